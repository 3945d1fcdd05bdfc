"""`<mujoco>`, the root of the format, and functions that traverse the whole table."""

from collections.abc import Iterator

from jaxsim.mjcf.schema import actuator, asset, body, contact, option, tendon
from jaxsim.mjcf.schema.actuator import ACTUATOR
from jaxsim.mjcf.schema.custom import CUSTOM, KEYFRAME
from jaxsim.mjcf.schema.deformable import DEFORMABLE
from jaxsim.mjcf.schema.rows import Row, default_row, file, ref, row, text
from jaxsim.mjcf.schema.sensor import SENSOR
from jaxsim.mjcf.schema.tendon import TENDON
from jaxsim.mjcf.schema.visual import VISUAL

_TEXTURE_FILES = "file fileright fileleft fileup filedown filefront fileback"
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
        default_row(asset.TEXTURE, "texture", without=f"name class content_type {_TEXTURE_FILES}"),
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


ROOT = row(
    "mujoco",
    "!",
    "A model.",
    text("model", "MuJoCo Model", "name of the model"),
    children=[
        option.OPTION,
        option.COMPILER,
        option.SIZE,
        option.STATISTIC,
        asset.ASSET,
        body.WORLDBODY,
        DEFORMABLE,
        contact.CONTACT,
        contact.EQUALITY,
        TENDON,
        ACTUATOR,
        SENSOR,
        KEYFRAME,
        VISUAL,
        DEFAULT,
        CUSTOM,
        asset.EXTENSION,
    ],
)

# Allowed anywhere, and expanded while the file is read.
INCLUDE = row(
    "include",
    "*",
    "Includes the contents of another file.",
    file("file", "MJCF file", required=True),
    meta=True,
)


def walk() -> Iterator[tuple[str, Row]]:
    """Yield every row with its path, such as `("mujoco/worldbody/body/geom", row)`, each once.

    A recursive row is entered once, so the traversal is finite.
    """

    def visit(path: str, row: Row, above: tuple[Row, ...]) -> Iterator[tuple[str, Row]]:
        yield path, row
        for child in row.children.values():
            if child is not row and child not in above:
                yield from visit(f"{path}/{child.tag}", child, (*above, row))

    yield from visit(ROOT.tag, ROOT, ())
