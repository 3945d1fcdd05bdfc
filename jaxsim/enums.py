"""MuJoCo's enumerations and their values; `mjJNT_HINGE` is `JointType.HINGE`."""

from __future__ import annotations

from enum import IntEnum, IntFlag

# MuJoCo's numeric limits (mjMINVAL, mjMAXVAL, ...).
MINVAL = 1e-15  # smaller values count as zero
MAXVAL = 1e10  # larger values count as diverged
MINMU = 1e-5  # smallest friction coefficient
MINIMP, MAXIMP = 0.0001, 0.9999  # smallest and largest impedance
MINAWAKE = 10  # steps that a tree stays awake after it was disturbed


class JointType(IntEnum):
    """Kind of joint (mjtJoint)."""

    FREE = 0
    BALL = 1
    SLIDE = 2
    HINGE = 3

    @property
    def nq(self) -> int:
        """Return the number of coordinates in `qpos`."""
        return (7, 4, 1, 1)[self]

    @property
    def nv(self) -> int:
        """Return the number of degrees of freedom in `qvel`."""
        return (6, 3, 1, 1)[self]


class GeomType(IntEnum):
    """Shape of a geom (mjtGeom)."""

    PLANE = 0
    HFIELD = 1
    SPHERE = 2
    CAPSULE = 3
    ELLIPSOID = 4
    CYLINDER = 5
    BOX = 6
    MESH = 7
    SDF = 8


class IntegratorType(IntEnum):
    """Time integrator (mjtIntegrator)."""

    EULER = 0
    RK4 = 1
    IMPLICIT = 2
    IMPLICITFAST = 3
    DISCRETE = 4


class ConeType(IntEnum):
    """Form of the friction cone (mjtCone)."""

    PYRAMIDAL = 0
    ELLIPTIC = 1


class JacobianType(IntEnum):
    """Storage of the constraint Jacobian (mjtJacobian)."""

    DENSE = 0
    SPARSE = 1
    AUTO = 2


class SolverType(IntEnum):
    """Constraint solver (mjtSolver)."""

    PGS = 0
    CG = 1
    NEWTON = 2


class EqType(IntEnum):
    """Kind of equality constraint (mjtEq)."""

    CONNECT = 0
    WELD = 1
    JOINT = 2
    TENDON = 3
    FLEX = 4
    FLEXVERT = 5
    FLEXSTRAIN = 6
    DISTANCE = 7


class TendonType(IntEnum):
    """Kind of tendon (mjtTendon)."""

    FIXED = 0
    SPATIAL = 1


class WrapType(IntEnum):
    """Kind of object on a tendon's path (mjtWrap)."""

    NONE = 0
    JOINT = 1
    PULLEY = 2
    SITE = 3
    SPHERE = 4
    CYLINDER = 5


class TrnType(IntEnum):
    """Transmission of an actuator (mjtTrn)."""

    JOINT = 0
    JOINTINPARENT = 1
    SLIDERCRANK = 2
    TENDON = 3
    SITE = 4
    BODY = 5
    SO3 = 6
    UNDEFINED = 1000


class DynType(IntEnum):
    """Activation dynamics of an actuator (mjtDyn)."""

    NONE = 0
    INTEGRATOR = 1
    FILTER = 2
    FILTEREXACT = 3
    MUSCLE = 4
    DCMOTOR = 5
    PID = 6
    USER = 7


class GainType(IntEnum):
    """Gain of an actuator (mjtGain)."""

    FIXED = 0
    AFFINE = 1
    MUSCLE = 2
    DCMOTOR = 3
    SO3 = 4
    PID = 5
    USER = 6


class BiasType(IntEnum):
    """Bias of an actuator (mjtBias)."""

    NONE = 0
    AFFINE = 1
    MUSCLE = 2
    DCMOTOR = 3
    SO3 = 4
    USER = 5


class ConstraintType(IntEnum):
    """Origin of a constraint row (mjtConstraint)."""

    EQUALITY = 0
    FRICTION_DOF = 1
    FRICTION_TENDON = 2
    LIMIT_JOINT = 3
    LIMIT_TENDON = 4
    CONTACT_FRICTIONLESS = 5
    CONTACT_PYRAMIDAL = 6
    CONTACT_ELLIPTIC = 7


class ConstraintState(IntEnum):
    """State of a constraint row in the solver (mjtConstraintState)."""

    SATISFIED = 0
    QUADRATIC = 1
    LINEARNEG = 2
    LINEARPOS = 3
    CONE = 4


class CtrlChart(IntEnum):
    """Chart of the commanded orientation of an so3 actuator (mjtCtrlChart)."""

    EXPMAP = 1
    QUAT = 2


class CtrlInput(IntFlag):
    """Inputs of an actuator, in the order of its block of `ctrl` (mjtCtrlInput)."""

    POS = 1
    VEL = 2
    FF = 4
    VOLTAGE = 8
    NONE = 16
    PRESSURE = 32


class ObjType(IntEnum):
    """Kind of model object (mjtObj)."""

    UNKNOWN = 0
    BODY = 1
    XBODY = 2
    JOINT = 3
    DOF = 4
    GEOM = 5
    SITE = 6
    CAMERA = 7
    LIGHT = 8
    FLEX = 9
    MESH = 10
    SKIN = 11
    HFIELD = 12
    TEXTURE = 13
    MATERIAL = 14
    PAIR = 15
    EXCLUDE = 16
    EQUALITY = 17
    TENDON = 18
    ACTUATOR = 19
    SENSOR = 20
    NUMERIC = 21
    TEXT = 22
    TUPLE = 23
    KEY = 24
    PLUGIN = 25
    FRAME = 100  # has no id in a compiled model


class SensorType(IntEnum):
    """Kind of sensor (mjtSensor)."""

    TOUCH = 0
    ACCELEROMETER = 1
    VELOCIMETER = 2
    GYRO = 3
    FORCE = 4
    TORQUE = 5
    MAGNETOMETER = 6
    RANGEFINDER = 7
    CAMPROJECTION = 8
    JOINTPOS = 9
    JOINTVEL = 10
    TENDONPOS = 11
    TENDONVEL = 12
    ACTUATORPOS = 13
    ACTUATORVEL = 14
    ACTUATORFRC = 15
    JOINTACTFRC = 16
    TENDONACTFRC = 17
    BALLQUAT = 18
    BALLANGVEL = 19
    JOINTLIMITPOS = 20
    JOINTLIMITVEL = 21
    JOINTLIMITFRC = 22
    TENDONLIMITPOS = 23
    TENDONLIMITVEL = 24
    TENDONLIMITFRC = 25
    FRAMEPOS = 26
    FRAMEQUAT = 27
    FRAMEXAXIS = 28
    FRAMEYAXIS = 29
    FRAMEZAXIS = 30
    FRAMELINVEL = 31
    FRAMEANGVEL = 32
    FRAMELINACC = 33
    FRAMEANGACC = 34
    SUBTREECOM = 35
    SUBTREELINVEL = 36
    SUBTREEANGMOM = 37
    INSIDESITE = 38
    GEOMDIST = 39
    GEOMNORMAL = 40
    GEOMFROMTO = 41
    CONTACT = 42
    E_POTENTIAL = 43
    E_KINETIC = 44
    CLOCK = 45
    TACTILE = 46
    PLUGIN = 47
    USER = 48


class Stage(IntEnum):
    """Pipeline stage after which a sensor can be computed (mjtStage)."""

    NONE = 0
    POS = 1
    VEL = 2
    ACC = 3


class State(IntFlag):
    """Parts of the state of a world (mjtState); fields of Data under the same names."""

    TIME = 1 << 0
    QPOS = 1 << 1
    QVEL = 1 << 2
    ACT = 1 << 3
    HISTORY = 1 << 4
    WARMSTART = 1 << 5
    CTRL = 1 << 6
    QFRC_APPLIED = 1 << 7
    XFRC_APPLIED = 1 << 8
    EQ_ACTIVE = 1 << 9
    MOCAP_POS = 1 << 10
    MOCAP_QUAT = 1 << 11
    USERDATA = 1 << 12
    PLUGIN = 1 << 13
    PLASTIC = 1 << 14
    PHYSICS = QPOS | QVEL | ACT | HISTORY | PLASTIC
    FULLPHYSICS = TIME | PHYSICS | PLUGIN
    USER = CTRL | QFRC_APPLIED | XFRC_APPLIED | EQ_ACTIVE | MOCAP_POS | MOCAP_QUAT | USERDATA
    INTEGRATION = FULLPHYSICS | USER | WARMSTART


class DataType(IntEnum):
    """Kind of a sensor's values (mjtDataType)."""

    REAL = 0
    POSITIVE = 1
    AXIS = 2
    QUATERNION = 3


class Reduce(IntEnum):
    """Reduction over the contacts that match a contact sensor, `sensor_intprm[1]`."""

    NONE = 0
    MINDIST = 1
    MAXFORCE = 2
    NETFORCE = 3


class Interpolation(IntEnum):
    """Interpolation of a delayed value between samples, `actuator_history[1]`,
    `sensor_history[1]`."""

    ZOH = 0
    LINEAR = 1
    CUBIC = 2


class ConDataField(IntEnum):
    """Quantity that a contact sensor reports of each contact (mjtConDataField)."""

    FOUND = 0
    FORCE = 1
    TORQUE = 2
    DIST = 3
    POS = 4
    NORMAL = 5
    TANGENT = 6
    LINVEL = 7
    ANGVEL = 8

    @property
    def width(self) -> int:
        """Return the number of values of the field."""
        return 1 if self in (ConDataField.FOUND, ConDataField.DIST) else 3


class RayDataField(IntEnum):
    """Quantity that a rangefinder reports of each ray (mjtRayDataField)."""

    DIST = 0
    DIR = 1
    ORIGIN = 2
    POINT = 3
    NORMAL = 4
    DEPTH = 5

    @property
    def width(self) -> int:
        """Return the number of values of the field."""
        return 1 if self in (RayDataField.DIST, RayDataField.DEPTH) else 3


class CamLight(IntEnum):
    """Tracking mode of a camera or light (mjtCamLight)."""

    FIXED = 0
    TRACK = 1
    TRACKCOM = 2
    TARGETBODY = 3
    TARGETBODYCOM = 4


class LightType(IntEnum):
    """Kind of light (mjtLightType)."""

    SPOT = 0
    DIRECTIONAL = 1
    POINT = 2
    IMAGE = 3


class Projection(IntEnum):
    """Projection of a camera (mjtProjection)."""

    PERSPECTIVE = 0
    ORTHOGRAPHIC = 1


class SameFrame(IntEnum):
    """Frame of its body with which a frame coincides (mjtSameFrame)."""

    NONE = 0
    BODY = 1
    INERTIA = 2
    BODYROT = 3
    INERTIAROT = 4


class SleepPolicy(IntEnum):
    """Sleep policy of a tree (mjtSleepPolicy)."""

    AUTO = 0
    AUTO_NEVER = 1
    AUTO_ALLOWED = 2
    NEVER = 3
    ALLOWED = 4
    INIT = 5


class SleepState(IntEnum):
    """Sleep state of a body (mjtSleepState)."""

    STATIC = -1
    ASLEEP = 0
    AWAKE = 1


class WarningType(IntEnum):
    """Kind of failure in a step, counted in `Data.warning` (mjtWarning)."""

    INERTIA = 0
    CONTACTFULL = 1
    CNSTRFULL = 2
    BADQPOS = 3
    BADQVEL = 4
    BADQACC = 5
    BADCTRL = 6


class DisableBit(IntFlag):
    """Default features that an option flag turns off (mjtDisableBit)."""

    CONSTRAINT = 1 << 0
    EQUALITY = 1 << 1
    FRICTIONLOSS = 1 << 2
    LIMIT = 1 << 3
    CONTACT = 1 << 4
    SPRING = 1 << 5
    DAMPER = 1 << 6
    GRAVITY = 1 << 7
    CLAMPCTRL = 1 << 8
    WARMSTART = 1 << 9
    FILTERPARENT = 1 << 10
    ACTUATION = 1 << 11
    REFSAFE = 1 << 12
    SENSOR = 1 << 13
    MIDPHASE = 1 << 14
    EULERDAMP = 1 << 15
    AUTORESET = 1 << 16
    NATIVECCD = 1 << 17
    ISLAND = 1 << 18
    MULTICCD = 1 << 19


class EnableBit(IntFlag):
    """Optional features that an option flag turns on (mjtEnableBit)."""

    OVERRIDE = 1 << 0
    ENERGY = 1 << 1
    FWDINV = 1 << 2
    INVDISCRETE = 1 << 3
    SLEEP = 1 << 4
    DIAGEXACT = 1 << 5
    IPC = 1 << 6
    SPECULATIVE = 1 << 7
