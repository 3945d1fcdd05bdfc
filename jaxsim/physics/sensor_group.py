"""Sensors of a kind that are computed together."""

from dataclasses import dataclass

import numpy as np

from jaxsim.enums import ObjType, SensorType
from jaxsim.structure import Structure, derived


@dataclass(frozen=True, eq=False)
class SensorGroup:
    """Sensors of one type, on objects of one type, seen from frames of one type.

    Attributes:
      type: kind of the sensors.
      ids: the sensors, `[n]`.
      objtype, objid: what they are attached to.
      reftype, refid: the frame they are seen from; None and -1: the world.
    """

    type: SensorType
    ids: np.ndarray
    objtype: ObjType
    objid: np.ndarray
    reftype: ObjType | None
    refid: np.ndarray


@derived
def sensor_groups(s: Structure) -> list[SensorGroup]:
    """All sensors, grouped."""
    reftype = np.where(s.sensor_refid >= 0, s.sensor_reftype, -1)
    key = np.stack([s.sensor_type, s.sensor_objtype, reftype], axis=-1).reshape(-1, 3)
    groups = []
    for kind, obj, ref in np.unique(key, axis=0):
        ids = np.flatnonzero((key == (kind, obj, ref)).all(1))
        seen_from = ObjType(ref) if ref >= 0 else None
        groups.append(
            SensorGroup(
                SensorType(kind),
                ids,
                ObjType(obj),
                s.sensor_objid[ids],
                seen_from,
                s.sensor_refid[ids],
            )
        )
    return groups


def has_sensor(s: Structure, *kinds: SensorType) -> bool:
    """Whether a model has a sensor of some kinds."""
    return bool(np.isin(s.sensor_type, kinds).any())
