"""Groups of attributes that several MJCF elements share."""

from jaxsim.mjcf.schema.rows import (
    ANY_COUNT,
    Attr,
    at_most_one,
    keyword,
    real,
    ref,
    row,
    text,
    together,
)

DRAWING_ONLY = "drawing only; the physics never reads it"

CLASS_ATTR = ref("class", "default", "default class that fills in what is not written")

ORIENTATION_ATTRS = (
    real("quat", (1, 0, 0, 0), "1", "orientation as a quaternion (w, x, y, z)"),
    real("axisangle", None, "1, 1, 1, angle", "orientation as an axis and an angle", n=4),
    real("xyaxes", None, "1", "orientation as the X axis and a vector towards Y", n=6),
    real("zaxis", None, "1", "orientation by the Z axis alone, turned the shortest way", n=3),
    real("euler", None, "angle", "orientation as three turns in <compiler eulerseq>", n=3),
)
ONE_ORIENTATION = at_most_one(
    "quat", "axisangle", "xyaxes", "zaxis", "euler", by_value="axisangle xyaxes zaxis euler"
)


def position(doc: str) -> Attr:
    """Return the attribute `pos`, in the frame of the parent body or frame."""
    return real("pos", (0, 0, 0), "m", doc)


def user(kind: str, count: str) -> Attr:
    """Return the attribute of user-defined numbers."""
    return real(
        "user", (), "?", f"free numbers kept with each {kind}; see <size {count}>", n=ANY_COUNT
    )


def solref(name: str = "solref", of: str = "the constraint") -> Attr:
    """Return the attribute of the reference dynamics of a constraint."""
    return real(
        name,
        (0.02, 1),
        "s, 1",
        f"time constant and damping ratio of {of}, or minus stiffness and minus damping",
        n=(1, 2),
    )


def solimp(name: str = "solimp", of: str = "the constraint", unit: str = "1, 1, m, 1, 1") -> Attr:
    """Return the attribute of the impedance of a constraint."""
    return real(
        name,
        (0.9, 0.95, 0.001, 0.5, 2),
        unit,
        f"impedance of {of}: at zero, at full width, the width, midpoint, power",
        n=(1, 5),
    )


def rgba(default: tuple = (0.5, 0.5, 0.5, 1)) -> Attr:
    """Return the attribute of an RGBA color."""
    return real("rgba", default, "1", "red, green, blue and opacity, where no material says it")


REFERENCE_TYPES = "body xbody geom site camera"
OBJECT_TYPES = (
    "body xbody joint dof geom site camera light flex mesh skin hfield texture material pair"
    " exclude equality tendon actuator sensor numeric text tuple key plugin frame"
)


def plugin(doc: str):
    """Return the row of `<plugin>` inside an element, which attaches an engine plugin to it."""
    return row(
        "plugin",
        "*",
        doc,
        text("plugin", None, "identifier of the plugin, where no instance is named"),
        ref("instance", "plugin", "declared plugin instance to use"),
        children=[config()],
    )


def config():
    """Return the row of `<config>`: one setting of a plugin instance."""
    return row(
        "config",
        "*",
        "One setting of a plugin.",
        text("key", None, "name of the setting", required=True),
        text("value", None, "its value", required=True),
    )


INTERP = keyword(
    "interp", "zoh linear cubic", "zoh", "interpolation between the samples of the history"
)

FRAME_OBJECT = (
    keyword(
        "objtype", REFERENCE_TYPES, None, "kind of object whose frame is measured", required=True
    ),
    ref("objname", "@objtype", "object whose frame is measured", required=True),
)
FRAME_REFERENCE = (
    keyword("reftype", REFERENCE_TYPES, None, "kind of object that gives the frame of reference"),
    ref("refname", "@reftype", "object that gives the frame of reference; the world without it"),
)
REFERENCE_TOGETHER = together("reftype", "refname")
