"""Expand `<compiler discardvisual>`: remove visual elements, preserve the inertia of bodies.

Geoms that cannot collide are removed, with all materials and textures and unused meshes; geoms that
another element names are kept. The inertia of a body that loses a geom from which it was inferred
becomes its `<inertial>`.
"""

from __future__ import annotations

from jaxsim.compile.context import Compilation
from jaxsim.compile.expand.original_inertia import known_inertia, weighing_geoms
from jaxsim.compile.step import declare_pass
from jaxsim.spec import Body, SpecElement
from jaxsim.spec.references import Name, references

_APPEARANCE_TAGS = ("material", "texture")
_SHAPES = ("geom", "site")


@declare_pass(needs="read_settings option scale_frames", gives="spec")
def discard_visual(c: Compilation) -> None:
    """Remove the visual elements from the tree, if the model requests it."""
    if not c.settings.discardvisual:
        return
    named = _referenced_names(c)
    for body in c.spec.bodies:
        visual = [geom for geom in body.geoms if _is_visual(geom, named)]
        if set(visual) & set(weighing_geoms(c, body)) and not _keep_inertia(c, body):
            return
        for geom in visual:
            geom.remove()
    _discard_looks(c, named)
    _discard_meshes(c, named)


def _referenced_names(c: Compilation) -> set[Name]:
    """Return the names that sensors, tuples, tendons and other elements refer to, except for shapes
    and appearance."""
    found = set()
    for element in c.spec.walk():
        if element.tag in _SHAPES and element.defined_kind in _SHAPES:
            continue
        if any(above.tag == "default" for above in element.ancestors()):
            continue
        found |= {
            name
            for attr, name in references(element)
            if attr not in _APPEARANCE_TAGS or name[0] != attr
        }
    return found


def _is_visual(geom: SpecElement, named: set[Name]) -> bool:
    return not (
        geom.get("contype")
        or geom.get("conaffinity")
        or geom.get("fluidshape") == "ellipsoid"
        or ("geom", geom.name) in named
    )


def _keep_inertia(c: Compilation, body: Body) -> bool:
    """Make the inertia of a body explicit; report a fault if the model allows geoms only."""
    if c.settings_of(body.element).inertiafromgeom == "true":
        c.fault(
            body.element,
            "discardvisual would drop geoms that its inertia is inferred from; "
            "give them mass='0', or set <compiler inertiafromgeom='auto'/>",
        )
        return False
    known = known_inertia(c)
    if known:
        known[body.id].write(body)
    return bool(known)


def _discard_looks(c: Compilation, named: set[Name]) -> None:
    """Remove materials, textures, and the attributes and layers that refer to them."""
    for section in c.spec.sections("asset"):
        for asset in [e for e in section.children if e.tag in _APPEARANCE_TAGS]:
            if (asset.tag, asset.asset_name) not in named:
                asset.remove()
    for element in list(c.spec.walk()):
        if element.tag == "layer":
            element.remove()
        for attr, (kind, _) in list(references(element)):
            if attr == kind and attr in _APPEARANCE_TAGS:
                del element.attrs[attr]


def _discard_meshes(c: Compilation, named: set[Name]) -> None:
    used = {e.get("mesh") for body in c.spec.bodies for e in (*body.geoms, *body.sites)}
    for section in c.spec.sections("asset"):
        for asset in [e for e in section.children if e.tag == "mesh"]:
            if asset.asset_name not in used and ("mesh", asset.asset_name) not in named:
                asset.remove()
