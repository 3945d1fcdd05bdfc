"""Groups of sensors that are computed together."""

from dataclasses import dataclass

import numpy as np

from jaxsim.enums import ObjType, SensorType, Stage
from jaxsim.model.structure import Structure, cache_by_structure

DISTANCE_SENSORS = (SensorType.GEOMDIST, SensorType.GEOMNORMAL, SensorType.GEOMFROMTO)
# Types that form one group, on any objects; the group has the first of its types.
_MERGED_TYPES = (
    (SensorType.CONTACT,),
    DISTANCE_SENSORS,
    (SensorType.TACTILE,),
    (SensorType.RANGEFINDER,),
)


@dataclass(frozen=True, eq=False)
class SensorGroup:
    """Sensors that are computed together.

    A group has one type and size, objects of one type and reference frames of one type. Exceptions
    are: all contact sensors, all distance sensors, all tactile sensors, all rangefinders, which
    have plans of their own (contact_plan.py, distance.py, tactile_plan.py, rangefinder.py); and all
    user sensors of a stage.

    Attributes:
      type: type of the sensors.
      ids: the sensors, `[n]`.
      objtype, objid: objects they are attached to.
      reftype, refid: reference frame; None and -1: the world.
      stage: stage of the forward dynamics in which they are computed.
      plugin: plugin instance that computes them, or -1.
      addresses: addresses of their outputs in `sensordata`: one array `[n]` per number of a sensor;
        for sensors with a plan a single one, of all numbers of the first sensor, of the second, ...
    """

    type: SensorType
    ids: np.ndarray
    objtype: ObjType
    objid: np.ndarray
    reftype: ObjType | None
    refid: np.ndarray
    stage: Stage
    plugin: int
    addresses: tuple[np.ndarray, ...]


@cache_by_structure
def sensor_groups(s: Structure) -> list[SensorGroup]:
    """Return all sensors, grouped."""
    if not s.nsensor:
        return []
    # Sensors with an equal key are evaluated together.
    reftype = np.where(s.sensor_refid >= 0, s.sensor_reftype, -1)
    kind = s.sensor_type, s.sensor_objtype, reftype, s.sensor_needstage, s.sensor_plugin
    key = np.column_stack([*kind, s.sensor_dim, s.sensor_intprm])
    # Some types are merged into one group each, independent of object and size.
    for kinds in _MERGED_TYPES:
        key[np.isin(s.sensor_type, kinds)] = [kinds[0], *np.zeros(key.shape[1] - 1, int)]
    own = s.sensor_type == SensorType.USER  # one callback call fills all user sensors of a stage
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
                addresses=_output_addresses(s, SensorType(kind), ids),
            )
        )
    return groups


def _output_addresses(s: Structure, kind: SensorType, ids: np.ndarray) -> tuple[np.ndarray, ...]:
    first, size = s.sensor_adr[ids], s.sensor_dim[ids]
    # Table sensors: all numbers of the first sensor, then of the second, ...
    if kind == SensorType.USER or any(kind in kinds for kinds in _MERGED_TYPES):
        return (np.repeat(first - np.cumsum(size) + size, size) + np.arange(size.sum()),)
    return tuple(first + k for k in range(size[0]))


def has_sensor(s: Structure, *kinds: SensorType) -> bool:
    """Return True if a model has a sensor of some types."""
    return bool(np.isin(s.sensor_type, kinds).any())
