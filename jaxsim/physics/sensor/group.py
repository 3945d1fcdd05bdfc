"""Sensors of a kind that are computed together."""

from dataclasses import dataclass

import numpy as np

from jaxsim.enums import ObjType, SensorType, Stage
from jaxsim.model.structure import Structure, derived

DISTANCES = (SensorType.GEOMDIST, SensorType.GEOMNORMAL, SensorType.GEOMFROMTO)
# types that are one group, whatever they are attached to; it has the first of its types
TOGETHER = (
    (SensorType.CONTACT,),
    DISTANCES,
    (SensorType.TACTILE,),
    (SensorType.RANGEFINDER,),
)


@dataclass(frozen=True, eq=False)
class SensorGroup:
    """Sensors of one type and size, on objects of one type, seen from frames of one type; or all
    contact sensors, all of distances, all tactile ones, or all rangefinders, which have tables of
    their own (contact_plan.py, distance.py, tactile_plan.py, rangefinder.py); or all user sensors
    of a stage.

    Attributes:
      type: kind of the sensors.
      ids: the sensors, `[n]`.
      objtype, objid: what they are attached to.
      reftype, refid: the frame they are seen from; None and -1: the world.
      stage: of the forward dynamics, in which they are computed.
      plugin: the instance that serves them, or -1.
      places: where in `sensordata` their outputs go: one array `[n]` for each number of a sensor;
        for sensors with tables one, of all numbers of the first sensor, of the second, ...
    """

    type: SensorType
    ids: np.ndarray
    objtype: ObjType
    objid: np.ndarray
    reftype: ObjType | None
    refid: np.ndarray
    stage: Stage
    plugin: int
    places: tuple[np.ndarray, ...]


@derived
def sensor_groups(s: Structure) -> list[SensorGroup]:
    """All sensors, grouped."""
    if not s.nsensor:
        return []
    reftype = np.where(s.sensor_refid >= 0, s.sensor_reftype, -1)
    kind = s.sensor_type, s.sensor_objtype, reftype, s.sensor_needstage, s.sensor_plugin
    key = np.column_stack([*kind, s.sensor_dim, s.sensor_intprm])
    for kinds in TOGETHER:
        key[np.isin(s.sensor_type, kinds)] = [kinds[0], *np.zeros(key.shape[1] - 1, int)]
    own = s.sensor_type == SensorType.USER  # one callback fills in all of a stage
    key[own, 1:] = 0
    key[own, 3] = s.sensor_needstage[own]
    groups = []
    for row in np.unique(key, axis=0):
        kind, obj, ref = row[:3]
        ids = np.flatnonzero((key == row).all(1))
        groups.append(
            SensorGroup(
                type=SensorType(kind),
                ids=ids,
                objtype=ObjType(obj),
                objid=s.sensor_objid[ids],
                reftype=ObjType(ref) if ref >= 0 else None,
                refid=s.sensor_refid[ids],
                stage=Stage(s.sensor_needstage[ids[0]]),
                plugin=int(s.sensor_plugin[ids[0]]),
                places=_places(s, SensorType(kind), ids),
            )
        )
    return groups


def _places(s: Structure, kind: SensorType, ids: np.ndarray) -> tuple[np.ndarray, ...]:
    first, size = s.sensor_adr[ids], s.sensor_dim[ids]
    if kind == SensorType.USER or any(kind in kinds for kinds in TOGETHER):
        return (np.repeat(first - np.cumsum(size) + size, size) + np.arange(size.sum()),)
    return tuple(first + k for k in range(size[0]))


def has_sensor(s: Structure, *kinds: SensorType) -> bool:
    """Whether a model has a sensor of some kinds."""
    return bool(np.isin(s.sensor_type, kinds).any())
