"""`<sensor>`: the measurements that the simulation reports."""

from jaxsim.mjcf.schema.groups import (
    FRAME_OBJECT,
    FRAME_REFERENCE,
    INTERP,
    OBJECT_TYPES,
    REFERENCE_TOGETHER,
    config,
    user,
)
from jaxsim.mjcf.schema.rows import (
    Row,
    at_most_one,
    boolean,
    integer,
    keyword,
    keywords,
    name_attr,
    one_of,
    real,
    ref,
    row,
    text,
    together,
)

_HISTORY = (
    integer("nsample", 0, "length of the history, in samples; 0: none"),
    INTERP,
    real("delay", 0, "s", "delay of the reading"),
    real("interval", (0, 0), "s", "time between readings, and of the first one", n=(1, 2)),
)


def _cutoff(unit: str):
    return real("cutoff", 0, unit, "bound of the absolute value; 0: none")


def _noise(unit: str):
    return real("noise", 0, unit, "standard deviation of the noise; for the user to add")


_USER = user("sensor", "nuser_sensor")


def _sensor(tag: str, unit: str, doc: str, *attrs, rules=()) -> Row:
    """Return a sensor with a history, whose reading is in `unit`."""
    head = (name_attr("sensor"), _HISTORY, _cutoff(unit), _noise(unit), _USER)
    return row(tag, "*", doc, head, *attrs, rules=rules)


# Sensors of one object: tag, unit, measured quantity.
_AT_SITE = (
    ("touch", "kg m/s^2", "Sum of the contact forces inside a site."),
    ("accelerometer", "m/s^2", "Linear acceleration, gravity included, in the site's frame."),
    ("velocimeter", "m/s", "Linear velocity in the site's frame."),
    ("gyro", "rad/s", "Angular velocity in the site's frame."),
    ("force", "kg m/s^2", "Force between the site's body and its parent."),
    ("torque", "kg m^2/s^2", "Torque between the site's body and its parent."),
    ("magnetometer", "?", "Magnetic flux in the site's frame."),
)
_OF_JOINT = (
    ("jointpos", "Q", "Coordinate of a hinge or slide joint."),
    ("jointvel", "Q/s", "Velocity of a hinge or slide joint."),
)
_OF_TENDON = (
    ("tendonpos", "Q", "Length of a tendon."),
    ("tendonvel", "Q/s", "Velocity of a tendon's length."),
)
_OF_ACTUATOR = (
    ("actuatorpos", "Q", "Length of an actuator's transmission."),
    ("actuatorvel", "Q/s", "Velocity of an actuator's transmission."),
    ("actuatorfrc", "F", "Force of an actuator."),
)
_OF_BALL = (
    ("ballquat", "1", "Orientation of a ball joint."),
    ("ballangvel", "rad/s", "Angular velocity of a ball joint."),
)
_OF_JOINT_LIMIT = (
    ("jointlimitpos", "Q", "Distance of a joint from its limit, less the margin."),
    ("jointlimitvel", "Q/s", "Velocity of a joint towards its limit."),
    ("jointlimitfrc", "F", "Force of a joint's limit."),
)
_OF_TENDON_LIMIT = (
    ("tendonlimitpos", "Q", "Distance of a tendon from its limit, less the margin."),
    ("tendonlimitvel", "Q/s", "Velocity of a tendon towards its limit."),
    ("tendonlimitfrc", "F", "Force of a tendon's limit."),
)
_OF_FRAME = (
    ("framepos", "m", "Position of a frame."),
    ("framequat", "1", "Orientation of a frame."),
    ("framexaxis", "1", "X axis of a frame."),
    ("frameyaxis", "1", "Y axis of a frame."),
    ("framezaxis", "1", "Z axis of a frame."),
    ("framelinvel", "m/s", "Linear velocity of a frame."),
    ("frameangvel", "rad/s", "Angular velocity of a frame."),
)
_OF_FRAME_IN_WORLD = (
    ("framelinacc", "m/s^2", "Linear acceleration of a frame."),
    ("frameangacc", "rad/s^2", "Angular acceleration of a frame."),
)
_OF_SUBTREE = (
    ("subtreecom", "m", "Center of mass of a body and its descendants."),
    ("subtreelinvel", "m/s", "Linear velocity of that center."),
    ("subtreeangmom", "kg m^2/s", "Angular momentum about that center."),
)
_GEOM_PAIR = (
    ("distance", "m", "Smallest distance between two geoms or bodies."),
    ("normal", "1", "Direction from one to the other where they are nearest."),
    ("fromto", "m", "The two points where they are nearest."),
)
_OF_MODEL = (
    ("e_potential", "kg m^2/s^2", "Potential energy."),
    ("e_kinetic", "kg m^2/s^2", "Kinetic energy."),
    ("clock", "s", "Time of the simulation."),
)


def _sensors_of_kind(kind: str, sensors) -> list[Row]:
    attr = ref(kind, kind, f"{kind} that is measured", required=True)
    return [_sensor(tag, unit, doc, attr) for tag, unit, doc in sensors]


_GEOM_OR_BODY = (
    ref("geom1", "geom", "geom on side 1"),
    ref("geom2", "geom", "geom on side 2"),
    ref("body1", "body", "body on side 1, with all its geoms"),
    ref("body2", "body", "body on side 2, with all its geoms"),
)
_TWO_SIDES = (
    at_most_one("geom1", "body1"),
    one_of("geom1", "body1"),
    at_most_one("geom2", "body2"),
    one_of("geom2", "body2"),
)

CAMPROJECTION = _sensor(
    "camprojection",
    "1",
    "Pixel at which a camera sees a site.",
    ref("site", "site", "site that is seen", required=True),
    ref("camera", "camera", "camera that sees it", required=True),
)

RANGEFINDER = _sensor(
    "rangefinder",
    "?",
    "Hits of a ray from a site, or of one ray per pixel of a camera.",
    ref("site", "site", "site that the ray leaves along its Z axis"),
    ref("camera", "camera", "camera that the rays leave"),
    keywords("data", "dist dir origin point normal depth", "dist", "reported quantities"),
    rules=[at_most_one("site", "camera"), one_of("site", "camera")],
)

INSIDESITE = _sensor(
    "insidesite",
    "?",
    "1 if an object is inside a site, else 0.",
    ref("site", "site", "site that is the volume", required=True),
    FRAME_OBJECT,
    boolean("enclosed", "false", "the whole object, not only its origin, must be inside"),
)

_CONTACT_SENSOR = _sensor(
    "contact",
    "?",
    "Contacts between two sides.",
    _GEOM_OR_BODY,
    ref("subtree1", "body", "body on side 1, with its descendants"),
    ref("subtree2", "body", "body on side 2, with its descendants"),
    ref("site", "site", "site inside which contacts count"),
    integer("num", 1, "most contacts that are reported"),
    keywords(
        "data",
        "found force torque dist pos normal tangent linvel angvel",
        "found",
        "quantities reported of each contact",
    ),
    keyword("reduce", "none mindist maxforce netforce", "none", "which contacts are reported"),
    rules=[
        at_most_one("geom1", "body1", "subtree1", "site"),
        at_most_one("geom2", "body2", "subtree2"),
    ],
)

_TACTILE_SENSOR = row(
    "tactile",
    "*",
    "Penetration and slip at the vertices of a mesh on a geom.",
    name_attr("sensor"),
    ref("geom", "geom", "geom that carries the mesh", required=True),
    ref("mesh", "mesh", "mesh whose vertices measure", required=True),
    _HISTORY,
    _cutoff("?"),
    _USER,
)

_USER_SENSOR = row(
    "user",
    "*",
    "A sensor that the user computes.",
    name_attr("sensor"),
    keyword("objtype", OBJECT_TYPES, None, "kind of object that it belongs to"),
    ref("objname", "@objtype", "object that it belongs to"),
    keyword("datatype", "real positive axis quaternion", "real", "kind of reading"),
    keyword("needstage", "none pos vel acc", "acc", "stage of the step after which it is filled"),
    integer("dim", None, "numbers in the reading", required=True),
    _cutoff("?"),
    _noise("?"),
    _USER,
    rules=[together("objtype", "objname")],
)

_PLUGIN_SENSOR = row(
    "plugin",
    "*",
    "A sensor that a plugin computes.",
    name_attr("sensor"),
    text("plugin", None, "identifier of the plugin, where no instance is named"),
    ref("instance", "plugin", "declared plugin instance to use"),
    _cutoff("?"),
    keyword("objtype", OBJECT_TYPES, None, "kind of object that it belongs to"),
    ref("objname", "@objtype", "object that it belongs to"),
    keyword("reftype", OBJECT_TYPES, None, "kind of object of reference"),
    ref("refname", "@reftype", "object of reference"),
    _USER,
    children=[config()],
)

SENSOR = row(
    "sensor",
    "*",
    "Sensors.",
    children=[
        *_sensors_of_kind("site", _AT_SITE),
        CAMPROJECTION,
        RANGEFINDER,
        *_sensors_of_kind("joint", _OF_JOINT),
        *_sensors_of_kind("tendon", _OF_TENDON),
        *_sensors_of_kind("actuator", _OF_ACTUATOR),
        *_sensors_of_kind(
            "joint", [("jointactuatorfrc", "F", "Sum of the actuator forces at a joint.")]
        ),
        *_sensors_of_kind(
            "tendon", [("tendonactuatorfrc", "F", "Sum of the actuator forces at a tendon.")]
        ),
        *_sensors_of_kind("joint", _OF_BALL + _OF_JOINT_LIMIT),
        *_sensors_of_kind("tendon", _OF_TENDON_LIMIT),
        *(
            _sensor(*entry, FRAME_OBJECT, FRAME_REFERENCE, rules=[REFERENCE_TOGETHER])
            for entry in _OF_FRAME
        ),
        *(_sensor(*entry, FRAME_OBJECT) for entry in _OF_FRAME_IN_WORLD),
        *_sensors_of_kind("body", _OF_SUBTREE),
        INSIDESITE,
        *(_sensor(*entry, _GEOM_OR_BODY, rules=_TWO_SIDES) for entry in _GEOM_PAIR),
        _CONTACT_SENSOR,
        *(_sensor(*entry) for entry in _OF_MODEL),
        _TACTILE_SENSOR,
        _USER_SENSOR,
        _PLUGIN_SENSOR,
    ],
)
