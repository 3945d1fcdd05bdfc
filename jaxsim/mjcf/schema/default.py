"""`<default>`: values of omitted attributes; its rows derive from those of the elements."""

from jaxsim.mjcf.schema import actuator, asset, body, contact, tendon
from jaxsim.mjcf.schema.rows import Row, derived, ref, row

_FILES = "file fileright fileleft fileup filedown filefront fileback"
_DRIVEN = "lengthrange joint jointinparent tendon slidersite cranksite site refsite body tausmooth"


def _actuator(source: Row) -> Row:
    """Return an actuator row without the attributes that refer to other elements."""
    dropped = [name for name in f"name class {_DRIVEN}".split() if name in source.attrs]
    return derived(source, source.tag, without=" ".join(dropped))


def _material() -> Row:
    entry = derived(asset.MATERIAL, "material", without="name class")
    entry.children["layer"] = asset.LAYER
    return entry


DEFAULT = row(
    "default",
    "R",
    "A default class; classes inside inherit from it.",
    ref("class", "default", "name of the class; the outermost one is 'main'"),
    children=[
        derived(asset.MESH, "mesh", only="scale maxhullvert inertia"),
        derived(asset.TEXTURE, "texture", without=f"name class content_type {_FILES}"),
        _material(),
        derived(body.JOINT, "joint", without="name class"),
        derived(body.GEOM, "geom", without="name class"),
        derived(body.SITE, "site", without="name class"),
        derived(body.CAMERA, "camera", without="name class target"),
        derived(body.LIGHT, "light", without="name class target texture"),
        derived(contact.PAIR, "pair", without="name class geom1 geom2"),
        derived(contact.CONNECT, "equality", only="active solref solimp"),
        derived(tendon.SPATIAL, "tendon", without="name class"),
        *(_actuator(source) for source in (actuator.GENERAL, *actuator.SHORTCUTS)),
    ],
)
DEFAULT.children["default"] = DEFAULT
