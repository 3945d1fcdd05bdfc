"""Static plan of contact sensors: criteria, slots, and addresses of their outputs.

Sensors differ in what they match, how they reduce and which fields they report. The tables hold
these as constants per sensor, so that all sensors are computed together.
"""

from dataclasses import dataclass

import numpy as np

from jaxsim.enums import ConDataField, ObjType, Reduce, SensorType
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.topology import descendants


@dataclass(frozen=True, eq=False)
class Criterion:
    """Criterion for one end of a contact, for each sensor, `[n]` each.

    Attributes:
      of_geom: True: the limits apply to the geom's id, else to the body's.
      first, last: smallest and largest id; the bodies of a subtree have consecutive ids.
      site: site whose volume must contain the contact; -1: anywhere.
    """

    of_geom: np.ndarray
    first: np.ndarray
    last: np.ndarray
    site: np.ndarray


@dataclass(frozen=True, eq=False)
class ContactSensorPlan:
    """Sensors with the same number of slots and the same kind of reduction.

    Attributes:
      net: all matching contacts are summed in the first slot; else the first by `reduce` get one
        slot each.
      count: number of slots.
      ends: criteria of both ends.
      reduce: order of the contacts, `[n]`.
    """

    net: bool
    count: int
    ends: tuple[Criterion, Criterion]
    reduce: np.ndarray

    def __len__(self) -> int:
        return len(self.reduce)

    @property
    def rows(self) -> int:
        """Return the number of rows: all fields of a slot for all sensors, slot by slot."""
        return sum(f.width for f in ConDataField) * self.count * len(self)

    def row(self, item: int, slot: int, number: int) -> int:
        """Return the row of a field's number in a slot of a sensor."""
        return (number * self.count + slot) * len(self) + item


@cache_by_structure
def contact_plans(s: Structure) -> list[ContactSensorPlan]:
    """Return the contact sensors of a model, one plan per number of slots."""
    return [_plan(s, ids) for ids in _group_sensors(s)]


@cache_by_structure
def output_rows(s: Structure) -> np.ndarray:
    """Return the row of each output among those of all plans, concatenated."""
    place: dict[int, list[int]] = {}
    # Record where the numbers of each sensor are among those of all plans.
    start = 0
    for ids, plan in zip(_group_sensors(s), contact_plans(s), strict=True):
        for item, sensor in enumerate(ids):
            numbers = _numbers(int(s.sensor_intprm[sensor, 0]))
            slots = range(s.sensor_dim[sensor] // max(len(numbers), 1))
            place[sensor] = [start + plan.row(item, k, n) for k in slots for n in numbers]
        start += plan.rows
    return np.array([row for sensor in sorted(place) for row in place[sensor]], int)


def _group_sensors(s: Structure) -> list[np.ndarray]:
    """Return the ids of the contact sensors of each plan."""
    ids = np.flatnonzero(s.sensor_type == SensorType.CONTACT)
    _, reduce, count = s.sensor_intprm[ids, :3].T
    # Sensors with net force are a group of their own, marked by a negative count.
    kind = np.where(reduce == Reduce.NETFORCE, -count, count)
    return [ids[kind == k] for k in np.unique(kind)]


def _plan(s: Structure, ids: np.ndarray) -> ContactSensorPlan:
    _, reduce, count = s.sensor_intprm[ids, :3].T
    net = bool(reduce[0] == Reduce.NETFORCE)
    seen_from = np.where(s.sensor_refid[ids] >= 0, s.sensor_reftype[ids], ObjType.UNKNOWN)
    ends = (
        _match_criterion(s, s.sensor_objtype[ids], s.sensor_objid[ids]),
        _match_criterion(s, seen_from, s.sensor_refid[ids]),
    )
    return ContactSensorPlan(net, int(count[0]), ends, reduce)


def _match_criterion(s: Structure, kind: np.ndarray, ids: np.ndarray) -> Criterion:
    """Build criteria on objects; an unspecified object, or a site, matches all ids."""
    of_geom, tree = kind == ObjType.GEOM, kind == ObjType.XBODY
    # A subtree's bodies have consecutive ids, starting at its root.
    given = of_geom | tree | (kind == ObjType.BODY)
    size = descendants(s).sum(1).astype(int)[np.where(tree, ids, 0)]
    last = np.where(tree, ids + size - 1, ids)
    everything = max(s.nbody, s.ngeom)
    site = np.where(kind == ObjType.SITE, ids, -1)
    return Criterion(of_geom, np.where(given, ids, 0), np.where(given, last, everything), site)


def _numbers(fields: int) -> list[int]:
    """Return the numbers of a slot that the selected fields report."""
    # Offset of every field within a slot.
    start = np.cumsum([0, *(f.width for f in ConDataField)])
    return [int(start[f]) + k for f in ConDataField if fields & 1 << f for k in range(f.width)]
