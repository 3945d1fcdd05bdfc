"""`<contact>` and `<equality>`: collision exceptions and equality constraints."""

from jaxsim.mjcf.schema.groups import CLASS_ATTR, solimp, solref
from jaxsim.mjcf.schema.rows import at_most_one, boolean, integer, name_attr, one_of, real, ref, row

PAIR = row(
    "pair",
    "*",
    "Two geoms that collide, with parameters of their own.",
    name_attr("pair"),
    CLASS_ATTR,
    ref("geom1", "geom", "first geom", required=True),
    ref("geom2", "geom", "second geom", required=True),
    integer("condim", 3, "dimensions of contact forces: 1, 3, 4 or 6"),
    real(
        "friction",
        (1, 1, 0.005, 0.0001, 0.0001),
        "1, 1, m, m, m",
        "two sliding, torsional, two rolling",
        n=(1, 5),
    ),
    solref(of="contacts"),
    real("solreffriction", (0, 0), "s, 1", "reference of the friction; 0 0: as solref", n=(1, 2)),
    solimp(of="contacts"),
    real("gap", 0, "m", "further distance at which contacts are detected but inactive"),
    real("margin", 0, "m", "distance at which contacts begin to act"),
    real("adhesion", 0, "kg m/s^2", "largest adhesive force of a contact"),
)

EXCLUDE = row(
    "exclude",
    "*",
    "Two bodies that do not collide.",
    name_attr("exclude"),
    ref("body1", "body", "first body", required=True),
    ref("body2", "body", "second body", required=True),
)

CONTACT = row(
    "contact", "*", "Exceptions to the collision masks of geoms.", children=[PAIR, EXCLUDE]
)

_EQUALITY = (
    name_attr("equality"),
    CLASS_ATTR,
    boolean("active", "true", "active at the start"),
    solref(),
    solimp(unit="?"),
)
_POLYCOEF = real("polycoef", (0, 1, 0, 0, 0), "?", "first as a polynomial of second", n=(1, 5))

EQUALITY_CONNECT = row(
    "connect",
    "*",
    "A point of one body stays at a point of another.",
    _EQUALITY,
    ref("body1", "body", "first body"),
    ref("body2", "body", "second body; none: the world"),
    real("anchor", None, "m", "the point, in the first body", n=3),
    ref("site1", "site", "site at the point of the first body"),
    ref("site2", "site", "site at the point of the second body"),
    rules=[
        at_most_one("site1 site2", "body1 body2 anchor"),
        one_of("site1 site2", "body1 anchor"),
    ],
)

_EQUALITY_WELD = row(
    "weld",
    "*",
    "One body stays in its pose relative to another.",
    _EQUALITY,
    ref("body1", "body", "first body"),
    ref("body2", "body", "second body; none: the world"),
    real(
        "relpose",
        (0, 1, 0, 0, 0, 0, 0),
        "m, m, m, 1, 1, 1, 1",
        "pose of the second in the first; a zero quaternion: as in the initial pose",
    ),
    real("anchor", (0, 0, 0), "m", "point of the weld, in the second body"),
    ref("site1", "site", "site in the first body"),
    ref("site2", "site", "site in the second body"),
    real("torquescale", 1, "m", "weight of rotations relative to translations"),
    rules=[
        at_most_one("site1 site2", "body1 body2 anchor relpose"),
        one_of("site1 site2", "body1"),
    ],
)

_EQUALITY_JOINT = row(
    "joint",
    "*",
    "A joint follows another, or is fixed.",
    _EQUALITY,
    ref("joint1", "joint", "joint that follows", required=True),
    ref("joint2", "joint", "joint that leads; none: a constant"),
    _POLYCOEF,
)

_EQUALITY_TENDON = row(
    "tendon",
    "*",
    "A tendon follows another, or keeps its length.",
    _EQUALITY,
    ref("tendon1", "tendon", "tendon that follows", required=True),
    ref("tendon2", "tendon", "tendon that leads; none: a constant"),
    _POLYCOEF,
)

_EQUALITY_FLEX = row(
    "flex",
    "*",
    "All edges of a flex keep their lengths.",
    _EQUALITY,
    ref("flex", "flex", "the flex", required=True),
)

_EQUALITY_FLEXSTRAIN = row(
    "flexstrain",
    "*",
    "An interpolated flex keeps its strain.",
    _EQUALITY,
    ref("flex", "flex", "the flex", required=True),
    real("cell", None, "1", "one cell of the flex; none: all of them", n=3),
)

EQUALITY = row(
    "equality",
    "*",
    "Equality constraints.",
    children=[
        EQUALITY_CONNECT,
        _EQUALITY_WELD,
        _EQUALITY_JOINT,
        _EQUALITY_TENDON,
        _EQUALITY_FLEX,
        _EQUALITY_FLEXSTRAIN,
    ],
)
