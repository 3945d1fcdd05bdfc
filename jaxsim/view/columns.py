"""Names and units of the entries of a field, by joints, sensors and actuators."""

from collections.abc import Sequence

import numpy as np

from jaxsim.enums import JointType, SensorType
from jaxsim.model.data import Data
from jaxsim.model.model import Model

# Coordinates, velocities and forces of a joint; "" for a single one.
_ROTATION_AXES = ("rx", "ry", "rz")
_COORDINATE_LABELS = {
    "qpos": {
        JointType.FREE: ("x", "y", "z", "qw", "qx", "qy", "qz"),
        JointType.BALL: ("qw", "qx", "qy", "qz"),
        JointType.SLIDE: ("",),
        JointType.HINGE: ("",),
    },
    "qvel": {
        JointType.FREE: ("vx", "vy", "vz", "wx", "wy", "wz"),
        JointType.BALL: ("wx", "wy", "wz"),
        JointType.SLIDE: ("",),
        JointType.HINGE: ("",),
    },
    "dof": {
        JointType.FREE: ("x", "y", "z", *_ROTATION_AXES),
        JointType.BALL: _ROTATION_AXES,
        JointType.SLIDE: ("",),
        JointType.HINGE: ("",),
    },
}
# Which of the two units of such a field a coordinate has, length or angle.
LENGTHS, ANGLES = ("x", "y", "z", "vx", "vy", "vz"), ("wx", "wy", "wz", *_ROTATION_AXES)
_SIZE_FIELDS = {"ctrl": "actuator_ctrlnum", "actuator_force": "actuator_outnum"}
_TENDON_FIELDS = ("ten_length", "ten_velocity")
_ENERGY_NAMES = ["potential", "kinetic"]

S = SensorType
SENSOR_UNITS = {
    "m": (S.FRAMEPOS, S.SUBTREECOM, S.GEOMDIST, S.GEOMFROMTO),
    "m/s": (S.VELOCIMETER, S.FRAMELINVEL, S.SUBTREELINVEL),
    "m/s^2": (S.ACCELEROMETER, S.FRAMELINACC),
    "rad/s": (S.GYRO, S.BALLANGVEL, S.FRAMEANGVEL),
    "rad/s^2": (S.FRAMEANGACC,),
    "N": (S.TOUCH, S.FORCE),
    "N m": (S.TORQUE,),
    "kg m^2/s": (S.SUBTREEANGMOM,),
    "J": (S.E_POTENTIAL, S.E_KINETIC),
    "s": (S.CLOCK,),
}
UNIT_OF_SENSOR = {kind: unit for unit, kinds in SENSOR_UNITS.items() for kind in kinds}
# Units of slides and of hinges.
JOINT_UNITS = {
    S.JOINTPOS: ("m", "rad"),
    S.JOINTVEL: ("m/s", "rad/s"),
    S.JOINTACTFRC: ("N", "N m"),
    S.JOINTLIMITPOS: ("m", "rad"),
    S.JOINTLIMITVEL: ("m/s", "rad/s"),
    S.JOINTLIMITFRC: ("N", "N m"),
}


def column_names(m: Model | None, name: str, number: int) -> list[str]:
    """Return the names of the entries of a field, such as those of joints, sensors or actuators.

    Args:
      m: the model; None: entries are numbered.
      name: the field.
      number: number of entries.
    """
    found = None if m is None else _object_names(m, name)
    if found is not None and len(found) == number:
        return found
    return [name] if number == 1 else [f"{name}[{k}]" for k in range(number)]


def column_units(m: Model | None, name: str, number: int) -> list[str]:
    """Return the units of the entries of a field, in the order of `column_names`; "" if unknown.

    A field of lengths and angles, "m or rad", has one of them for each entry.
    """
    unit = unit_of(name)
    found = None
    if m is not None and name == "sensordata":
        found = _repeat_per_entry([_sensor_unit(m, i) for i in range(m.nsensor)], m.sensor_dim)
    elif m is not None and " or " in unit and (parts := _coordinates(m, name)):
        found = [_label_of_unit(unit, kind, part) for _, kind, part in parts]
    if found is not None and len(found) == number:
        return found
    return [unit] * number


def unit_of(name: str) -> str:
    """Return the unit of a field of a Data, from its declaration; "" for another name."""
    return Data.fields[name].unit if name in Data.fields else ""


def _label_of_unit(unit: str, kind: JointType, part: str) -> str:
    of_length, of_angle = unit.split(" or ")
    if part in LENGTHS or (not part and kind == JointType.SLIDE):
        return of_length
    return of_angle if part in ANGLES or not part else ""  # a quaternion has none


def _coordinates(m: Model, name: str) -> list[tuple[int, JointType, str]]:
    """Return joint, type and coordinate of each entry of a field; none if it has no joints."""
    per_dof = name in Data.fields and Data.fields[name].shape == ("nv",)
    if not (name in _COORDINATE_LABELS or per_dof):
        return []
    kinds = _COORDINATE_LABELS[name if name in _COORDINATE_LABELS else "dof"]
    types = [JointType(int(kind)) for kind in m.jnt_type]
    return [(j, kind, part) for j, kind in enumerate(types) for part in kinds[kind]]


def _object_names(m: Model, name: str) -> list[str] | None:
    """Return the names of all entries of a field, if they belong to objects."""
    names = dict(m.structure.names)
    if parts := _coordinates(m, name):
        joints = _name_or_number("joint", names["joint"])
        return [" ".join(filter(None, (joints[j], part))) for j, _, part in parts]
    if name == "sensordata":
        return _number_names(_name_or_number("sensor", names["sensor"]), m.sensor_dim)
    if name in _SIZE_FIELDS:
        return _number_names(
            _name_or_number("actuator", names["actuator"]), getattr(m, _SIZE_FIELDS[name])
        )
    if name in _TENDON_FIELDS:
        return _name_or_number("tendon", names["tendon"])
    return _ENERGY_NAMES if name == "energy" else None


def _sensor_unit(m: Model, sensor: int) -> str:
    kind = SensorType(int(m.sensor_type[sensor]))
    if kind in JOINT_UNITS:
        is_angular = m.jnt_type[m.sensor_objid[sensor]] == JointType.HINGE
        return JOINT_UNITS[kind][int(is_angular)]
    return UNIT_OF_SENSOR.get(kind, "")


def _name_or_number(kind: str, names: Sequence[str]) -> list[str]:
    return [name or f"{kind} {i}" for i, name in enumerate(names)]


def _repeat_per_entry(values: Sequence[str], dims: np.ndarray) -> list[str]:
    """Return the value of each object, repeated for its entries."""
    return [value for value, dim in zip(values, dims, strict=True) for _ in range(int(dim))]


def _number_names(names: Sequence[str], dims: np.ndarray) -> list[str]:
    """Return the name of an object for each of its entries."""
    return [
        name + (f"[{k}]" if dim > 1 else "")
        for name, dim in zip(names, dims, strict=True)
        for k in range(int(dim))
    ]
