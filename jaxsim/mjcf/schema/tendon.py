"""`<tendon>`: spatial tendons over the bodies, and linear combinations of joints."""

from jaxsim.mjcf.schema.groups import CLASS_ATTR, rgba, solimp, solref, user
from jaxsim.mjcf.schema.rows import integer, name_attr, real, ref, row, tristate

_HEAD = (
    name_attr("tendon"),
    CLASS_ATTR,
    integer("group", 0, "group, for switching the drawing on and off"),
    tristate("limited", "auto", "the range is a limit"),
    tristate("actuatorfrclimited", "auto", "the range of actuator forces is a limit"),
    real("range", (0, 0), "Q", "shortest and longest length"),
    real("actuatorfrcrange", (0, 0), "F", "bounds of the sum of actuator forces"),
    solref("solreflimit", "the limit"),
    solimp("solimplimit", "the limit", "1, 1, Q, 1, 1"),
    solref("solreffriction", "the dry friction"),
    solimp("solimpfriction", "the dry friction", "1, 1, Q, 1, 1"),
    real("frictionloss", 0, "F", "dry friction"),
    real(
        "springlength",
        (-1, -1),
        "Q",
        "rest length, or range of rest lengths; -1 -1: length where joint springs are at rest",
        n=(1, 2),
    ),
    real("springyield", 0, "Q", "deflection at which the spring yields; 0: never"),
)
_DYNAMICS = (
    real("margin", 0, "Q", "distance from the limit at which it begins to act"),
    real("stiffness", (0, 0, 0), "F/Q, F/Q^2, F/Q^3", "spring: linear, quadratic, cubic", n=(1, 3)),
    real(
        "damping",
        (0, 0, 0),
        "F s/Q, F s^2/Q^2, F s^3/Q^3",
        "damper: linear, quadratic, cubic",
        n=(1, 3),
    ),
    real("armature", 0, "F s^2/Q", "inertia of motion along the tendon"),
)

SPATIAL = row(
    "spatial",
    "*",
    "A string through sites, around geoms and over pulleys.",
    _HEAD,
    real("width", 0.003, "m", "width of the string"),
    ref("material", "material", "material of the string"),
    _DYNAMICS,
    rgba(),
    user("tendon", "nuser_tendon"),
    children=[
        row(
            "site",
            "*",
            "A point that the string passes.",
            ref("site", "site", "the site", required=True),
        ),
        row(
            "geom",
            "*",
            "A sphere or cylinder that the string wraps around.",
            ref("geom", "geom", "the geom", required=True),
            ref("sidesite", "site", "site on the side that the string passes on"),
        ),
        row(
            "pulley",
            "*",
            "A pulley: the tendon branches, and the following length is divided.",
            real("divisor", None, "1", "divisor of the length that follows", required=True),
        ),
    ],
)

FIXED = row(
    "fixed",
    "*",
    "A weighted sum of joint coordinates.",
    _HEAD,
    _DYNAMICS,
    user("tendon", "nuser_tendon"),
    children=[
        row(
            "joint",
            "*",
            "A joint in the sum.",
            ref("joint", "joint", "the joint", required=True),
            real("coef", None, "?", "its weight", required=True),
        )
    ],
)

TENDON = row("tendon", "*", "Tendons.", children=[SPATIAL, FIXED])
