"""`<mujoco>`, the root of the format, and functions that traverse the whole table."""

from collections.abc import Iterator

from jaxsim.mjcf.schema import asset, body, contact, option
from jaxsim.mjcf.schema.actuator import ACTUATOR
from jaxsim.mjcf.schema.custom import CUSTOM, KEYFRAME
from jaxsim.mjcf.schema.default import DEFAULT
from jaxsim.mjcf.schema.deformable import DEFORMABLE
from jaxsim.mjcf.schema.rows import Row, file, row, text
from jaxsim.mjcf.schema.sensor import SENSOR
from jaxsim.mjcf.schema.tendon import TENDON
from jaxsim.mjcf.schema.visual import VISUAL

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
