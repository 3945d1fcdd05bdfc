"""`<default>`: values of omitted attributes; its rows derive from those of the elements."""

from jaxsim.mjcf.schema import actuator, asset, body, contact, tendon
from jaxsim.mjcf.schema.rows import Row, default_row, ref, row

_FILES = "file fileright fileleft fileup filedown filefront fileback"
_DRIVEN = "lengthrange joint jointinparent tendon slidersite cranksite site refsite body tausmooth"


def _actuator(source: Row) -> Row:
    """Return an actuator row without the attributes that refer to other elements."""
    dropped = [name for name in f"name class {_DRIVEN}".split() if name in source.attrs]
    return default_row(source, source.tag, without=" ".join(dropped))


def _material() -> Row:
    entry = default_row(asset.MATERIAL, "material", without="name class")
    entry.children["layer"] = asset.LAYER
    return entry


DEFAULT = row(
    "default",
    "R",
    "A default class; classes inside inherit from it.",
    ref("class", "default", "name of the class; the outermost one is 'main'"),
    children=[
        default_row(asset.MESH, "mesh", only="scale maxhullvert inertia"),
        default_row(asset.TEXTURE, "texture", without=f"name class content_type {_FILES}"),
        _material(),
        default_row(body.JOINT, "joint", without="name class"),
        default_row(body.GEOM, "geom", without="name class"),
        default_row(body.SITE, "site", without="name class"),
        default_row(body.CAMERA, "camera", without="name class target"),
        default_row(body.LIGHT, "light", without="name class target texture"),
        default_row(contact.PAIR, "pair", without="name class geom1 geom2"),
        default_row(contact.EQUALITY_CONNECT, "equality", only="active solref solimp"),
        default_row(tendon.SPATIAL, "tendon", without="name class"),
        *(_actuator(source) for source in (actuator.GENERAL, *actuator.SHORTCUTS)),
    ],
)
DEFAULT.children["default"] = DEFAULT
