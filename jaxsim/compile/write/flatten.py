"""Convert a compilation back to a Spec in which nothing is left to expand.

`<attach>`, `<replicate>` and `<flexcomp>` are expanded, keyframes have their numbers for the whole
model. Elements of an attached model, which were compiled under its own settings and classes, are
rewritten for this model's: values of classes are written to the elements, and angles are in
radians, whose conversion is exact. Values that exist only in compiled fields are added by
`write_back`.
"""

from __future__ import annotations

import os

from jaxsim.assets.source.resource import folder_name, is_uri, join_uri
from jaxsim.compile.asset.files import ASSET_FOLDERS
from jaxsim.compile.asset.materials import roles
from jaxsim.compile.asset.skin_file import write_out
from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.orientation import SPELLINGS, orientation
from jaxsim.compile.scale.assets import write_stretched
from jaxsim.compile.settings import Settings
from jaxsim.compile.write.general_actuator import rewrite_as_general
from jaxsim.compile.write.inertials import write_inertials
from jaxsim.compile.write.radians import write_radians
from jaxsim.spec import Spec, SpecElement

# Settings of an attached model by which its elements are converted (_convert_attached_elements).
_CARRIED = ("degree", "eulerseq", "autolimits", "meshdir", "texturedir", "strippath")
# Settings that affect the inertia of a body, which is then written explicitly.
_WEIGHING = (
    "inertiafromgeom",
    "inertiagrouprange",
    "balanceinertia",
    "boundmass",
    "boundinertia",
)
# Settings of the whole model: those of an attached model have no effect.
_MODEL_SETTINGS = ("settotalmass", "fusestatic", "discardvisual")


def flatten_spec(c: Compilation) -> Spec:
    """Return the spec of a finished compilation, fully expanded; it becomes `c.spec`.

    Raises:
      ModelError: a part was attached from a model whose compiler settings cannot be expressed in
        one file with those of this model.
    """
    c.spec = spec = Spec(c.spec.root, path=c.spec.path, files=c.spec.files)  # which may change
    for key in spec.section("keyframe"):
        key.layout = None
    write_stretched(c)
    if spec.setting("compiler", "saveinertial") == "true":
        write_inertials(c, c.bodies[1:])
    if any(element.origin for element in spec.walk()):
        _convert_attached_elements(c, spec)
    return spec


def _convert_attached_elements(c: Compilation, spec: Spec) -> None:
    """Rewrite the elements of attached models for the settings of this one."""
    own = c.settings
    foreign = [(e, c.settings_of(e)) for e in spec.walk() if e.origin is not None]
    for element, settings in foreign:
        _report_unconvertible(c, element, settings)
    c.problems.raise_if_any()
    for actuator in range(len(c.elements["actuator"])):
        rewrite_as_general(c, actuator)
    for element in list(spec.walk()):
        _write_out(element)
    for element, settings in foreign:
        if settings.eulerseq != own.eulerseq and "euler" in element.attrs:
            element.attrs["quat"] = orientation(c, element)
            del element.attrs["euler"]
    write_radians(c)
    _write_limits(c)
    _write_files(c, spec)
    heavy = {e for e, settings in foreign if any(_settings_differ(own, settings, _WEIGHING))}
    write_inertials(c, [body for body in c.bodies[1:] if body.element in heavy])

    # the classes are no longer needed
    for section in spec.sections("default"):
        section.remove()
    for element in spec.walk():
        element.origin = None
        element.attrs.pop("class", None)
        element.attrs.pop("childclass", None)


def _settings_differ(own: Settings, other: Settings, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if getattr(own, name) != getattr(other, name)]


def _report_unconvertible(c: Compilation, element: SpecElement, settings: Settings) -> None:
    """Report settings of an attached model that cannot be converted to values of the element."""
    handled = {*_CARRIED, *_WEIGHING, *_MODEL_SETTINGS}
    names = tuple(n for n in Settings.__dataclass_fields__ if n not in handled)
    if element.tag in ("freejoint", "joint", "mesh"):
        for name in _settings_differ(c.settings, settings, names):
            c.fault(
                element,
                f"it was attached from a model whose <compiler {name}> differs from this model's, "
                "which one file cannot express; make the two equal",
            )
    if element.tag == "body" and c.settings.inertiafromgeom == "true":
        for name in _settings_differ(c.settings, settings, _WEIGHING):
            c.fault(
                element,
                f"its model has another <compiler {name}>, and this one has inertiafromgeom='true'"
                ", which leaves no way to write its inertia; make the two equal",
            )


def _write_out(element: SpecElement) -> None:
    """Write the values of an element's classes to the element."""
    layers = element.layers()[:-1]
    if not layers or element.tag == "default":
        return
    spelled = next((e for e in reversed(element.layers()) if SPELLINGS.keys() & e.attrs), element)
    layered = element.tag == "material" and any(layer.children for layer in layers)
    textures = {r: e.own(attr) for r, (e, attr) in roles(element).items()} if layered else {}
    spellings = SPELLINGS.keys() - spelled.attrs.keys()
    names = {name for layer in layers for name in layer.attrs} - spellings - {"class"}
    for name in names & element.row.attrs.keys():
        element.attrs[name] = element.get(name)
    if layered:
        element.unset("texture")
        element.children.clear()
        for role, texture in textures.items():
            element.add("layer", role=role, texture=texture)


_LIMITS = {
    "joint": (
        ("jnt_limited", "limited"),
        ("jnt_actfrclimited", "actuatorfrclimited"),
    ),
    "tendon": (
        ("tendon_limited", "limited"),
        ("tendon_actfrclimited", "actuatorfrclimited"),
    ),
}


def _write_limits(c: Compilation) -> None:
    """Write the limited flags that `autolimits` of another model determined."""
    for kind, flags in _LIMITS.items():
        for i, element in enumerate(c.elements[kind]):
            if element.origin is None or c.settings_of(element).autolimits == c.settings.autolimits:
                continue
            for field, attr in flags:
                if element.row.attribute(attr) is not None:
                    element.attrs[attr] = "true" if c.fields[field][i] else "false"


def _write_files(c: Compilation, spec: Spec) -> None:
    """Write names of files relative to this model; files in memory are included."""
    files = dict(spec.files or {})
    for element in spec.walk():
        origin, folder = element.origin, ASSET_FOLDERS.get(element.tag)
        if origin is None or folder is None:
            continue
        if element.tag == "skin" and (origin.prefix or origin.suffix) and element.get("file"):
            write_out(c, element)  # its bones have names other than in the file
        settings = c.settings_of(element)
        for attr in [a for a in element.attrs if element.row.attrs[a].type == "file"]:
            name = element.attrs[attr].replace("\\", "/")
            name = name.rsplit("/", 1)[-1] if settings.strippath else name
            path = join_uri(folder_name(origin.path), join_uri(getattr(settings, folder), name))
            element.attrs[attr] = path if is_uri(path) else os.path.abspath(path)
        for name, data in (origin.files or {}).items():
            files.setdefault(name, data)
    spec.files = files or None
