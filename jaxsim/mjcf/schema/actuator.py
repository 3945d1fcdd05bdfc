"""`<actuator>`: motors, servos and muscles.

`<general>` is the only actuator of a compiled model; the other elements are shortcuts for it.
"""

from jaxsim.mjcf.schema.groups import CLASS_ATTR, INTERP, config, user
from jaxsim.mjcf.schema.rows import (
    Attr,
    Row,
    boolean,
    integer,
    keyword,
    keywords,
    name_attr,
    real,
    ref,
    row,
    text,
    tristate,
)

_BASE = (
    name_attr("actuator"),
    CLASS_ATTR,
    integer("group", 0, "group, for <option actuatorgroupdisable> and drawing"),
    integer("nsample", 0, "length of the control history, in samples; 0: none"),
    INTERP,
    real("delay", 0, "s", "delay of the control"),
    real("ctrlrange", (0, 0), "?", "bounds of the control"),
    user("actuator", "nuser_actuator"),
)
_CTRLLIMITED = tristate("ctrllimited", "auto", "clamp the control to its range")
_FORCELIMITED = tristate("forcelimited", "auto", "clamp the force to its range")
_ACTLIMITED = tristate("actlimited", "auto", "clamp the activation to its range")
_FORCERANGE = real("forcerange", (0, 0), "F", "bounds of the force")
_ACTRANGE = real("actrange", (0, 0), "?", "bounds of the activation")
_VELRANGE = real("velrange", (0, 0), "Q/s", "bounds of a velocity setpoint")
_FFRANGE = real("ffrange", (0, 0), "F", "bounds of a feedforward force")
_INHERITRANGE = real(
    "inheritrange", 0, "1", "take the control's range from the target, times this; 0: no"
)
_LENGTHRANGE = real("lengthrange", (0, 0), "Q", "least and greatest length of the transmission")
_GEAR = real("gear", (1, 0, 0, 0, 0, 0), "?", "force to generalized force", n=(1, 6))
_DAMPING = real(
    "damping",
    (0, 0, 0),
    "F s/Q, F s^2/Q^2, F s^3/Q^3",
    "damping of the transmission: linear, quadratic, cubic",
    n=(1, 3),
)
_ARMATURE = real("armature", 0, "F s^2/Q", "inertia of the transmission")
_CRANKLENGTH = real("cranklength", 0, "m", "length of the rod of a slider-crank")
_DRIVE = (_LENGTHRANGE, _GEAR, _DAMPING, _ARMATURE, _CRANKLENGTH)

_JOINT = ref("joint", "joint", "joint that is driven")
_JOINTINPARENT = ref("jointinparent", "joint", "ball or free joint, driven in the parent's frame")
_TENDON = ref("tendon", "tendon", "tendon that is driven")
_SLIDERSITE = ref("slidersite", "site", "site whose Z axis the slider moves along")
_CRANKSITE = ref("cranksite", "site", "site of the crank's pin")
_SITE = ref("site", "site", "site that the force acts at")
_REFSITE = ref("refsite", "site", "site that the force and pose are measured against")
_BODY = ref("body", "body", "body whose contacts pull")
_STRING = (_JOINT, _JOINTINPARENT, _TENDON, _SLIDERSITE, _CRANKSITE)
_TRANSMISSION = (*_STRING, _SITE, _REFSITE)

_DYNTYPES = "none integrator filter filterexact muscle dcmotor pid user"
_ACTDIM = integer("actdim", -1, "number of activation variables; -1: as the dynamics need")
_DYNTYPE = keyword("dyntype", _DYNTYPES, "none", "activation dynamics")
_DYNPRM = real("dynprm", (1, *[0] * 9), "?", "parameters of the dynamics", n=(1, 10))
_ACTEARLY = boolean("actearly", "false", "use the activation at the end of the step")

_DAMPRATIO = real("dampratio", 0, "1", "damping ratio of the servo; replaces kv")


def _kp(default: float = 1) -> Attr:
    return real("kp", default, "F/Q", "gain of the position error")


def _kv(default: float = 0) -> Attr:
    return real("kv", default, "F s/Q", "gain of the velocity")


_INPUTS = "pos vel ff voltage pressure"


def _input(default: str | None, doc: str) -> Attr:
    """Return the signature of the controls: an alternative word, or some of the inputs in order."""
    return keywords("input", _INPUTS, default, doc, alone="none expmap quat")


def _actuator(tag: str, doc: str, *attrs, children=()) -> Row:
    return row(tag, "*", doc, _BASE, *attrs, children=children)


GENERAL = _actuator(
    "general",
    "An actuator with all parameters explicit.",
    _CTRLLIMITED,
    _FORCELIMITED,
    _ACTLIMITED,
    _FORCERANGE,
    _ACTRANGE,
    _DRIVE,
    _TRANSMISSION,
    _BODY,
    _ACTDIM,
    _input(None, "kind of the controls"),
    _VELRANGE,
    _FFRANGE,
    _INHERITRANGE,
    _DYNTYPE,
    keyword("gaintype", "fixed affine muscle dcmotor so3 pid user", "fixed", "kind of gain"),
    keyword("biastype", "none affine muscle dcmotor so3 user", "none", "kind of bias"),
    _DYNPRM,
    real("gainprm", (1, *[0] * 9), "?", "parameters of the gain", n=(1, 10)),
    real("biasprm", (0,) * 10, "?", "parameters of the bias", n=(1, 10)),
    _ACTEARLY,
)

MOTOR = _actuator(
    "motor",
    "A force.",
    _CTRLLIMITED,
    _FORCELIMITED,
    _FORCERANGE,
    _DRIVE,
    _TRANSMISSION,
)

_POSITION_ACTUATOR = _actuator(
    "position",
    "A position servo.",
    _CTRLLIMITED,
    _FORCELIMITED,
    _INHERITRANGE,
    _FORCERANGE,
    _DRIVE,
    _TRANSMISSION,
    _kp(),
    _kv(),
    _DAMPRATIO,
    real("timeconst", 0, "s", "time constant of a filter of the control; 0: none"),
)

_VELOCITY_ACTUATOR = _actuator(
    "velocity",
    "A velocity servo.",
    _CTRLLIMITED,
    _FORCELIMITED,
    _FORCERANGE,
    _DRIVE,
    _TRANSMISSION,
    _kv(1),
)

INTVELOCITY = _actuator(
    "intvelocity",
    "A velocity servo that integrates its control into a position setpoint.",
    _CTRLLIMITED,
    _FORCELIMITED,
    _ACTLIMITED,
    _FORCERANGE,
    _ACTRANGE,
    _INHERITRANGE,
    _DRIVE,
    _TRANSMISSION,
    _kp(),
    _kv(),
    _DAMPRATIO,
)

_ORIENTATION_ACTUATOR = _actuator(
    "orientation",
    "An orientation servo of a ball joint or a site.",
    _FORCELIMITED,
    _FORCERANGE,
    _JOINT,
    _SITE,
    _REFSITE,
    _kp(),
    _kv(),
    _DAMPRATIO,
    _input("expmap", "the commanded orientation: expmap or quat"),
)

PID = _actuator(
    "pid",
    "A servo with integral term, velocity setpoint and feedforward.",
    _CTRLLIMITED,
    _FORCELIMITED,
    real("posrange", (0, 0), "Q", "bounds of the position setpoint"),
    _VELRANGE,
    _FFRANGE,
    _FORCERANGE,
    _INHERITRANGE,
    _DRIVE,
    _TRANSMISSION,
    _kp(),
    _kv(),
    _DAMPRATIO,
    real("ki", 0, "F/Q s", "gain of the integral of the error"),
    real("imax", 0, "Q s", "bound of the integral; 0: none"),
    real("slewmax", 0, "Q/s", "fastest change of the setpoint; 0: no bound"),
    _input("pos vel", "its inputs, of: pos vel ff"),
)

DAMPER = _actuator(
    "damper",
    "A damper whose strength is the control.",
    _FORCELIMITED,
    _FORCERANGE,
    _DRIVE,
    _TRANSMISSION,
    _kv(1),
)

CYLINDER = _actuator(
    "cylinder",
    "A pneumatic or hydraulic cylinder.",
    _CTRLLIMITED,
    _FORCELIMITED,
    _FORCERANGE,
    _DRIVE,
    _TRANSMISSION,
    real("timeconst", 1, "s", "time constant of the pressure"),
    real("area", 1, "m^2", "area of the piston"),
    real("diameter", None, "m", "diameter of the piston; replaces area"),
    real("bias", (0, 0, 0), "F, F/Q, F s/Q", "constant, stiffness and damping force"),
)

MUSCLE = _actuator(
    "muscle",
    "A muscle.",
    _CTRLLIMITED,
    _FORCELIMITED,
    _FORCERANGE,
    _DRIVE,
    _STRING,
    real("timeconst", (0.01, 0.04), "s", "time constants of activation and deactivation"),
    real("tausmooth", 0, "1", "width of the transition between the two"),
    real("range", (0.75, 1.05), "1", "operating range of lengths, in optimal lengths"),
    real("force", -1, "F", "peak force at rest; negative: scale over acc0"),
    real("scale", 200, "?", "peak force times acc0, where force is negative"),
    real("lmin", 0.5, "1", "shortest active length, in optimal lengths"),
    real("lmax", 1.6, "1", "longest active length, in optimal lengths"),
    real("vmax", 1.5, "/s", "shortening velocity of no force, in optimal lengths"),
    real("fpmax", 1.3, "1", "passive force at lmax, in peak forces"),
    real("fvmax", 1.2, "1", "force at the fastest lengthening, in peak forces"),
)

ADHESION = _actuator(
    "adhesion",
    "Pulls a body towards its contacts.",
    _FORCELIMITED,
    _FORCERANGE,
    ref("body", "body", "body whose contacts pull", required=True),
    real("gain", 1, "kg m/s^2", "force at control 1"),
)

DCMOTOR = _actuator(
    "dcmotor",
    "A DC motor with its electronics.",
    _CTRLLIMITED,
    _DRIVE,
    _TRANSMISSION,
    real("motorconst", None, "?", "torque constant, back-EMF constant", n=(1, 2)),
    real("resistance", None, "?", "resistance of the winding"),
    real("nominal", None, "?", "voltage, stall torque, no-load speed", n=(1, 3)),
    real("saturation", (0, 0, 0), "?", "bounds of torque, current, current rate", n=(1, 3)),
    real("inductance", (0, 0), "?", "inductance, or time constant", n=(1, 2)),
    real("cogging", (0, 0, 0), "F, 1, angle", "amplitude, poles, phase", n=(1, 3)),
    real("controller", (0,) * 6, "?", "kp, ki, kd, slewmax, Imax, Vmax", n=(1, 6)),
    real(
        "thermal", (0,) * 6, "?", "R, C, time constant, coefficient, reference, ambient", n=(1, 6)
    ),
    real(
        "lugre",
        (0,) * 5,
        "F/Q, F s/Q, F, F, Q/s",
        "stiffness, damping, Coulomb, static, Stribeck",
        n=(1, 5),
    ),
    _input("voltage", "its inputs, of: pos vel ff voltage; or none"),
)

_PLUGIN_ACTUATOR = _actuator(
    "plugin",
    "An actuator whose force a plugin computes.",
    text("plugin", None, "identifier of the plugin, where no instance is named"),
    ref("instance", "plugin", "declared plugin instance to use"),
    _CTRLLIMITED,
    _FORCELIMITED,
    _ACTLIMITED,
    _FORCERANGE,
    _ACTRANGE,
    _DRIVE,
    _JOINT,
    _JOINTINPARENT,
    _SITE,
    _ACTDIM,
    _DYNTYPE,
    _DYNPRM,
    _TENDON,
    _CRANKSITE,
    _SLIDERSITE,
    _ACTEARLY,
    children=[config()],
)

SHORTCUTS = (
    MOTOR,
    _POSITION_ACTUATOR,
    _VELOCITY_ACTUATOR,
    INTVELOCITY,
    _ORIENTATION_ACTUATOR,
    PID,
    DAMPER,
    CYLINDER,
    MUSCLE,
    ADHESION,
    DCMOTOR,
)

ACTUATOR = row("actuator", "*", "Actuators.", children=[GENERAL, *SHORTCUTS, _PLUGIN_ACTUATOR])
