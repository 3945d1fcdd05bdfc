"""Sensors of a kind that are computed together."""

from dataclasses import dataclass

import numpy as np

from jaxsim.enums import ObjType, SensorType
from jaxsim.structure import Structure, derived


@dataclass(frozen=True, eq=False)
class SensorGroup:
    """Sensors of one type and size, on objects of one type, seen from frames of one type.

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
    if not s.nsensor:
        return []
    reftype = np.where(s.sensor_refid >= 0, s.sensor_reftype, -1)
    key = np.column_stack([s.sensor_type, s.sensor_objtype, reftype, s.sensor_dim, s.sensor_intprm])
    groups = []
    for row in np.unique(key, axis=0):
        kind, obj, ref = row[:3]
        ids = np.flatnonzero((key == row).all(1))
        seen_from = ObjType(ref) if ref >= 0 else None
        objid, refid = s.sensor_objid[ids], s.sensor_refid[ids]
        groups.append(SensorGroup(SensorType(kind), ids, ObjType(obj), objid, seen_from, refid))
    return groups


def has_sensor(s: Structure, *kinds: SensorType) -> bool:
    """Whether a model has a sensor of some kinds."""
    return bool(np.isin(s.sensor_type, kinds).any())
