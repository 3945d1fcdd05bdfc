"""Compile sensors: `sensor_*`, from one table of their readings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from jaxsim.compile.columns import Column, copy_columns, user_data
from jaxsim.compile.context import Compilation
from jaxsim.compile.options.bounds import fits_bounds
from jaxsim.compile.options.history import history
from jaxsim.compile.options.plugins import plugin_ids
from jaxsim.compile.step import declare_pass
from jaxsim.enums import (
    ConDataField,
    DataType,
    JointType,
    ObjType,
    RayDataField,
    Reduce,
    SensorType,
    Stage,
)
from jaxsim.spec import SpecElement

_COLUMNS = (
    Column("sensor_cutoff", "cutoff"),
    Column("sensor_noise", "noise"),
    Column("sensor_delay", "delay"),
    Column("sensor_interval", "interval", 2),
)


class SensorObject(NamedTuple):
    """An object that a sensor refers to: its kind and id."""

    objtype: ObjType
    objid: int


NO_OBJECT = SensorObject(ObjType.UNKNOWN, -1)


class SensorReading(NamedTuple):
    """The quantity that a sensor reports, and its objects."""

    type: SensorType
    datatype: DataType
    stage: Stage
    dim: int
    obj: SensorObject = NO_OBJECT
    ref: SensorObject = NO_OBJECT
    intprm: tuple[int, int, int] = (0, 0, 0)


@declare_pass(
    needs="plugin_fields assets bodies meshes geoms joints sites cameras tendons actuators",
    gives="sensor",
)
def sensors(c: Compilation) -> None:
    """Add all fields of sensors."""
    elements = c.spec.section("sensor")
    c.register("sensor", elements, [sensor.name for sensor in elements])
    readings = []
    for e in elements:
        kind = _KINDS[e.tag]
        readings.append(kind.read(c, e, kind))
    dim = _dims(c, elements, readings)
    c.fields.update(
        nsensor=len(readings),
        nsensordata=int(dim.sum()),
        sensor_type=np.array([r.type for r in readings], np.int32),
        sensor_datatype=np.array([r.datatype for r in readings], np.int32),
        sensor_needstage=np.array([r.stage for r in readings], np.int32),
        sensor_objtype=np.array([r.obj.objtype for r in readings], np.int32),
        sensor_objid=np.array([r.obj.objid for r in readings], np.int32),
        sensor_reftype=np.array([r.ref.objtype for r in readings], np.int32),
        sensor_refid=np.array([r.ref.objid for r in readings], np.int32),
        sensor_intprm=np.array([r.intprm for r in readings], np.int32).reshape(-1, 3),
        sensor_dim=dim,
        sensor_adr=(np.cumsum(dim) - dim).astype(np.int32),
        sensor_plugin=plugin_ids(c, elements),
    )
    copy_columns(c, elements, _COLUMNS)
    for e, reading in zip(elements, readings, strict=True):
        _check(c, e, reading)
    c.fields["nhistory"] = history(c, "sensor", elements, dim, c.fields["nhistory"])
    user_data(c, "sensor", elements)


def _dims(
    c: Compilation, elements: Sequence[SpecElement], readings: list[SensorReading]
) -> np.ndarray:
    """Return the number of values of each sensor; zeros, and a fault, if they are too many
    together."""
    total = 0
    for e, reading in zip(elements, readings, strict=True):
        total += reading.dim
        if not fits_bounds(c, e, "with the sensors before it, sensordata", total):
            return np.zeros(len(readings), np.int32)
    return np.array([r.dim for r in readings], np.int32)


def _check(c: Compilation, e: SpecElement, reading: SensorReading) -> None:
    """Check the ranges of the attributes that all sensors share."""
    cutoff = e.get("cutoff") or 0
    if cutoff < 0 or (e.get("noise") or 0) < 0:
        c.fault(e, "cutoff and noise must not be negative")
    direction = reading.datatype in (DataType.AXIS, DataType.QUATERNION)
    if cutoff > 0 and direction and reading.type != SensorType.GEOMNORMAL:
        c.fault(e, "a cutoff has no meaning for an axis or a quaternion; remove it")
    interval = e.get("interval")
    period, phase = (*np.atleast_1d(interval), 0.0, 0.0)[:2] if interval is not None else (0.0, 0.0)
    if period < 0 or phase > 0 or (period > 0 and phase <= -period):
        c.fault(e, f"interval='{period:g} {phase:g}' must be a period and a phase in (-period, 0]")


class SensorKind(NamedTuple):
    """A row of the table: the function that reads an element, and the properties of its reading."""

    type: SensorType
    read: Callable[[Compilation, SpecElement, SensorKind], SensorReading]
    stage: Stage = Stage.POS
    dim: int = 1
    datatype: DataType = DataType.REAL
    target: str = ""

    def reading(self, obj: SensorObject, ref: SensorObject = NO_OBJECT, **changes) -> SensorReading:
        """Return a reading of this kind for an object, relative to a reference object."""
        values = {"datatype": self.datatype, "stage": self.stage, "dim": self.dim, **changes}
        return SensorReading(type=self.type, obj=obj, ref=ref, **values)


def _read_object_sensor(c: Compilation, e: SpecElement, kind: SensorKind) -> SensorReading:
    """Return a sensor of the one object that an attribute names."""
    return kind.reading(
        SensorObject(ObjType[kind.target.upper()], c.resolve_attribute(kind.target, e, kind.target))
    )


def _scalar_joint(c: Compilation, e: SpecElement, kind: SensorKind) -> SensorReading:
    return _joint_of(c, e, kind, (JointType.SLIDE, JointType.HINGE), "a hinge or a slide")


def _ball_joint(c: Compilation, e: SpecElement, kind: SensorKind) -> SensorReading:
    return _joint_of(c, e, kind, (JointType.BALL,), "a ball joint")


def _joint_of(
    c: Compilation, e: SpecElement, kind: SensorKind, types: tuple, what: str
) -> SensorReading:
    joint = c.resolve_attribute("joint", e, "joint")
    if joint >= 0 and c.fields["jnt_type"][joint] not in types:
        c.fault(e, f"joint='{e.get('joint')}' must be {what}")
    return kind.reading(SensorObject(ObjType.JOINT, joint))


def _limit(c: Compilation, e: SpecElement, kind: SensorKind) -> SensorReading:
    """Return the reading of the limit of a joint or tendon, which must have one."""
    target = c.resolve_attribute(kind.target, e, kind.target)
    limited = c.fields[{"joint": "jnt_limited", "tendon": "tendon_limited"}[kind.target]]
    if target >= 0 and not limited[target]:
        c.fault(e, f"{kind.target}='{e.get(kind.target)}' has no limit; give it a range")
    return kind.reading(SensorObject(ObjType[kind.target.upper()], target))


def _actuator(c: Compilation, e: SpecElement, kind: SensorKind) -> SensorReading:
    """Return the reading of an actuator, one value per force output."""
    actuator = c.resolve_attribute("actuator", e, "actuator")
    dim = int(c.fields["actuator_outnum"][actuator]) if actuator >= 0 else 1
    return kind.reading(SensorObject(ObjType.ACTUATOR, actuator), dim=dim)


def _object_by_name(c: Compilation, e: SpecElement, typeattr: str, nameattr: str) -> SensorObject:
    """Return the object whose kind and name two attributes give."""
    keyword, name = e.get(typeattr), e.get(nameattr)
    if not keyword or not name:
        return NO_OBJECT
    kind = "body" if keyword == "xbody" else keyword
    return SensorObject(ObjType[keyword.upper()], c.resolve_name(kind, name, e, nameattr))


def _frame(c: Compilation, e: SpecElement, kind: SensorKind) -> SensorReading:
    return kind.reading(
        _object_by_name(c, e, "objtype", "objname"), _object_by_name(c, e, "reftype", "refname")
    )


def _inside_site(c: Compilation, e: SpecElement, kind: SensorKind) -> SensorReading:
    site = SensorObject(ObjType.SITE, c.resolve_attribute("site", e, "site"))
    enclosed = e.get("enclosed") == "true"
    datatype = DataType.REAL if enclosed else DataType.POSITIVE
    obj = _object_by_name(c, e, "objtype", "objname")
    return kind.reading(obj, site, datatype=datatype, intprm=(int(enclosed), 0, 0))


_SIDES = {
    "site": ObjType.SITE,
    "geom": ObjType.GEOM,
    "body": ObjType.BODY,
    "subtree": ObjType.XBODY,
}


def _read_sensor_side(c: Compilation, e: SpecElement, number: str) -> SensorObject:
    """Return one side of a sensor between two objects: a geom, body, subtree or the inside of a
    site."""
    for what, objtype in _SIDES.items():
        attr = "site" if what == "site" else what + number
        if e.own(attr) and (what != "site" or number == "1"):
            return SensorObject(
                objtype, c.resolve_attribute("body" if what == "subtree" else what, e, attr)
            )
    return NO_OBJECT


def _between_sides(c: Compilation, e: SpecElement, kind: SensorKind) -> SensorReading:
    first, second = _read_sensor_side(c, e, "1"), _read_sensor_side(c, e, "2")
    if first == second and first.objid >= 0:
        c.fault(e, "its two sides are the same; name two different ones")
    return kind.reading(first, second)


def _projection(c: Compilation, e: SpecElement, kind: SensorKind) -> SensorReading:
    site = SensorObject(ObjType.SITE, c.resolve_attribute("site", e, "site"))
    return kind.reading(site, _camera(c, e))


def _camera(c: Compilation, e: SpecElement) -> SensorObject:
    """Return the camera whose pixels a sensor counts."""
    camera = c.resolve_attribute("camera", e, "camera")
    if camera >= 0 and np.any(c.fields["cam_resolution"][camera] <= 0):
        c.fault(e, f"camera='{e.get('camera')}' needs a resolution, in pixels")
    return SensorObject(ObjType.CAMERA, camera)


def _data_bits(c: Compilation, e: SpecElement, fields: type[IntEnum], default: str) -> int:
    """Return `data`, a list of fields in their order, as bits."""
    words = (e.get("data") or default).split()
    known = [field.name.lower() for field in fields]
    bits = [known.index(word) for word in words if word in known]
    if len(bits) != len(words) or bits != sorted(set(bits)):
        c.fault(e, f"data='{e.get('data')}': give each field once, in the order {' '.join(known)}")
    return sum(1 << bit for bit in set(bits))


def _width(bits: int, fields: type[RayDataField] | type[ConDataField]) -> int:
    return sum(field.width for field in fields if bits >> field & 1)


def _rangefinder(c: Compilation, e: SpecElement, kind: SensorKind) -> SensorReading:
    """Return the reading of one ray from a site, or of one ray per pixel of a camera."""
    bits = _data_bits(c, e, RayDataField, "dist")
    if e.own("camera"):
        obj = _camera(c, e)
        pixels = c.fields["cam_resolution"][obj.objid] if obj.objid >= 0 else np.ones(1)
        rays = int(np.prod(pixels, dtype=np.int64))
    else:
        obj, rays = SensorObject(ObjType.SITE, c.resolve_attribute("site", e, "site")), 1
    return kind.reading(obj, dim=rays * _width(bits, RayDataField), intprm=(bits, 0, 0))


_BY_FORCE = (Reduce.MAXFORCE, Reduce.NETFORCE)


def _contact(c: Compilation, e: SpecElement, kind: SensorKind) -> SensorReading:
    """Return the reading of contacts between two sides; its stage is that of the latest requested
    quantity."""
    bits = _data_bits(c, e, ConDataField, "found")
    num, reduce = int(e.get("num") or 1), Reduce[(e.get("reduce") or "none").upper()]
    if e.get("num") is not None and e.get("num") <= 0:
        c.fault(e, f"num='{e.get('num')}' must be positive")

    def asks(*fields: ConDataField) -> bool:
        return any(bits >> field & 1 for field in fields)

    stage = Stage.POS
    if asks(ConDataField.LINVEL, ConDataField.ANGVEL):
        stage = Stage.VEL
    if asks(ConDataField.FORCE, ConDataField.TORQUE) or reduce in _BY_FORCE:
        stage = Stage.ACC
    return kind.reading(
        _read_sensor_side(c, e, "1"),
        _read_sensor_side(c, e, "2"),
        stage=stage,
        dim=num * _width(bits, ConDataField),
        intprm=(bits, reduce, num),
    )


def _read_global_sensor(c: Compilation, e: SpecElement, kind: SensorKind) -> SensorReading:
    return kind.reading(NO_OBJECT)


def _tactile(c: Compilation, e: SpecElement, kind: SensorKind) -> SensorReading:
    """Return the reading of three values per mesh vertex; the sensor uses the contacts of its
    body."""
    f, mesh = c.fields, c.resolve_attribute("mesh", e, "mesh")
    vertices = int(f["mesh_vertnum"][mesh]) if mesh >= 0 else 0
    geom = c.resolve_attribute("geom", e, "geom")
    touches = (f["geom_contype"] | f["geom_conaffinity"]) != 0
    if geom >= 0 and not np.any(touches[f["geom_bodyid"] == f["geom_bodyid"][geom]]):
        c.fault(e, f"geom='{e.get('geom')}': its body has no geom with contype or conaffinity")
    return kind.reading(
        SensorObject(ObjType.MESH, mesh), SensorObject(ObjType.GEOM, geom), dim=3 * vertices
    )


_USER_DIMS = {DataType.AXIS: 3, DataType.QUATERNION: 4}


def _read_user_sensor(c: Compilation, e: SpecElement, kind: SensorKind) -> SensorReading:
    dim = int(e.get("dim"))
    if not fits_bounds(c, e, "dim", dim):
        dim = 0
    datatype = DataType[(e.get("datatype") or "real").upper()]
    if dim < 0:
        c.fault(e, f"dim='{dim}' must not be negative")
    if dim != _USER_DIMS.get(datatype, dim):
        c.fault(e, f"dim='{dim}' must be {_USER_DIMS[datatype]} for datatype='{e.get('datatype')}'")
    stage = Stage[(e.get("needstage") or "acc").upper()]
    obj = _object_by_name(c, e, "objtype", "objname")
    return kind.reading(obj, datatype=datatype, stage=stage, dim=max(dim, 0))


def _plugin(c: Compilation, e: SpecElement, kind: SensorKind) -> SensorReading:
    """Return the reading and stage that a plugin declares."""
    obj, ref = (
        _object_by_name(c, e, "objtype", "objname"),
        _object_by_name(c, e, "reftype", "refname"),
    )
    instance = c.instances.of(e)
    if instance is None:
        return kind.reading(obj, ref, dim=0)
    plugin = instance.plugin
    if plugin.objtype not in (None, obj.objtype):
        what = plugin.objtype.name.lower()
        c.fault(e, f"{plugin.name} is attached to a {what}: objtype='{what}' and its objname")
    return kind.reading(obj, ref, stage=plugin.stage, dim=plugin.readings(instance.config))


S, R = SensorType, DataType
POS, VEL, ACC = Stage.POS, Stage.VEL, Stage.ACC

_KINDS: dict[str, SensorKind] = {
    "touch": SensorKind(S.TOUCH, _read_object_sensor, ACC, 1, R.POSITIVE, "site"),
    "accelerometer": SensorKind(S.ACCELEROMETER, _read_object_sensor, ACC, 3, target="site"),
    "velocimeter": SensorKind(S.VELOCIMETER, _read_object_sensor, VEL, 3, target="site"),
    "gyro": SensorKind(S.GYRO, _read_object_sensor, VEL, 3, target="site"),
    "force": SensorKind(S.FORCE, _read_object_sensor, ACC, 3, target="site"),
    "torque": SensorKind(S.TORQUE, _read_object_sensor, ACC, 3, target="site"),
    "magnetometer": SensorKind(S.MAGNETOMETER, _read_object_sensor, POS, 3, target="site"),
    "rangefinder": SensorKind(S.RANGEFINDER, _rangefinder),
    "camprojection": SensorKind(S.CAMPROJECTION, _projection, POS, 2),
    "jointpos": SensorKind(S.JOINTPOS, _scalar_joint, POS),
    "jointvel": SensorKind(S.JOINTVEL, _scalar_joint, VEL),
    "tendonpos": SensorKind(S.TENDONPOS, _read_object_sensor, POS, target="tendon"),
    "tendonvel": SensorKind(S.TENDONVEL, _read_object_sensor, VEL, target="tendon"),
    "actuatorpos": SensorKind(S.ACTUATORPOS, _actuator, POS),
    "actuatorvel": SensorKind(S.ACTUATORVEL, _actuator, VEL),
    "actuatorfrc": SensorKind(S.ACTUATORFRC, _actuator, ACC),
    "jointactuatorfrc": SensorKind(S.JOINTACTFRC, _scalar_joint, ACC),
    "tendonactuatorfrc": SensorKind(S.TENDONACTFRC, _read_object_sensor, ACC, target="tendon"),
    "ballquat": SensorKind(S.BALLQUAT, _ball_joint, POS, 4, R.QUATERNION),
    "ballangvel": SensorKind(S.BALLANGVEL, _ball_joint, VEL, 3),
    "jointlimitpos": SensorKind(S.JOINTLIMITPOS, _limit, POS, target="joint"),
    "jointlimitvel": SensorKind(S.JOINTLIMITVEL, _limit, VEL, target="joint"),
    "jointlimitfrc": SensorKind(S.JOINTLIMITFRC, _limit, ACC, target="joint"),
    "tendonlimitpos": SensorKind(S.TENDONLIMITPOS, _limit, POS, target="tendon"),
    "tendonlimitvel": SensorKind(S.TENDONLIMITVEL, _limit, VEL, target="tendon"),
    "tendonlimitfrc": SensorKind(S.TENDONLIMITFRC, _limit, ACC, target="tendon"),
    "framepos": SensorKind(S.FRAMEPOS, _frame, POS, 3),
    "framequat": SensorKind(S.FRAMEQUAT, _frame, POS, 4, R.QUATERNION),
    "framexaxis": SensorKind(S.FRAMEXAXIS, _frame, POS, 3, R.AXIS),
    "frameyaxis": SensorKind(S.FRAMEYAXIS, _frame, POS, 3, R.AXIS),
    "framezaxis": SensorKind(S.FRAMEZAXIS, _frame, POS, 3, R.AXIS),
    "framelinvel": SensorKind(S.FRAMELINVEL, _frame, VEL, 3),
    "frameangvel": SensorKind(S.FRAMEANGVEL, _frame, VEL, 3),
    "framelinacc": SensorKind(S.FRAMELINACC, _frame, ACC, 3),
    "frameangacc": SensorKind(S.FRAMEANGACC, _frame, ACC, 3),
    "subtreecom": SensorKind(S.SUBTREECOM, _read_object_sensor, POS, 3, target="body"),
    "subtreelinvel": SensorKind(S.SUBTREELINVEL, _read_object_sensor, VEL, 3, target="body"),
    "subtreeangmom": SensorKind(S.SUBTREEANGMOM, _read_object_sensor, VEL, 3, target="body"),
    "insidesite": SensorKind(S.INSIDESITE, _inside_site, POS),
    "distance": SensorKind(S.GEOMDIST, _between_sides, POS),
    "normal": SensorKind(S.GEOMNORMAL, _between_sides, POS, 3, R.AXIS),
    "fromto": SensorKind(S.GEOMFROMTO, _between_sides, POS, 6),
    "contact": SensorKind(S.CONTACT, _contact),
    "e_potential": SensorKind(S.E_POTENTIAL, _read_global_sensor, POS),
    "e_kinetic": SensorKind(S.E_KINETIC, _read_global_sensor, POS),
    "clock": SensorKind(S.CLOCK, _read_global_sensor, POS),
    "tactile": SensorKind(S.TACTILE, _tactile, VEL),
    "user": SensorKind(S.USER, _read_user_sensor),
    "plugin": SensorKind(S.PLUGIN, _plugin, ACC),
}
