"""Distance sensors between geoms or bodies: distance, normal, fromto.

MuJoCo's documentation, XML reference: collision sensors. All sensors share one query for all pairs
of geoms that some sensor needs.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather, gather_static, max_by_row
from jaxsim.arrays.kind_dispatch import concatenate_kinds
from jaxsim.enums import GeomType, ObjType, SensorType
from jaxsim.math import Vec, concat
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.distance import (
    distance_family,
    distances,
    nearest_segment,
    query_types,
    unsupported_reason,
)
from jaxsim.physics.collision.shape import ContactPoints, place_geoms
from jaxsim.physics.sensor.group import DISTANCE_SENSORS, SensorGroup


@dataclass(frozen=True, eq=False)
class DistancePlan:
    """Static plan of the distance sensors of a model.

    Attributes:
      geom1, geom2: distinct pairs of geoms, or with a height field one per sensor, `[npair]`.
      pair: pairs of each sensor in MuJoCo's order, padded with npair, `[n, k]`.
      sensor: indices of the sensors that need each pair, padded with the first, `[npair, k]`.
      rows: index of each output in the concatenated components of distances, normals and segments.
    """

    geom1: np.ndarray
    geom2: np.ndarray
    pair: np.ndarray
    sensor: np.ndarray
    rows: np.ndarray


def distance_sensors(m: Model, d: Data, g: SensorGroup) -> tuple[Array]:
    """Compute the outputs of all distance sensors, concatenated in one array.

    Beyond its cutoff a sensor returns the cutoff, or zeros. In penetration the normal, from the
    first point to the second, is opposite to the direction in which the second geom is pushed.
    """
    plan = _plan(m)
    # The nearest pair per sensor, and whether it is within the sensor's cutoff.
    touch, cutoff = _nearest(m, d, plan), gather_static(m.sensor_cutoff, g.ids)
    near = touch.dist < cutoff
    one, other = nearest_segment(touch)
    # The normal changes sign where the geoms overlap.
    normal = touch.normal.scale(jnp.sign(touch.dist))
    points = [jnp.where(near, x, 0) for v in (normal, one, other) for x in v.parts]
    return (
        gather_static(concatenate_kinds([jnp.where(near, touch.dist, cutoff), *points]), plan.rows),
    )


def unsupported_distance_reason(m: Model, i: int) -> str | None:
    """Return why a pair of geom types of a sensor is not supported; None if all are."""
    lacks = (unsupported_reason(m, *pair) for pair in _pairs_of(m.structure, i))
    return next(filter(None, lacks), None)


def _nearest(m: Model, d: Data, plan: DistancePlan) -> ContactPoints:
    """Return the nearest pair of each sensor, `[n, *W]`."""
    zero = jnp.zeros((1, *d.qpos.shape[1:]), d.qpos.dtype)
    none = ContactPoints(zero + NO_CONTACT_DISTANCE, Vec(zero, zero, zero), Vec(zero, zero, zero))
    # Append an entry for no pair, and take each sensor's minimum.
    every = concat([_pair_distances(m, d, plan), none]) if len(plan.geom1) else none
    number, most = plan.pair.shape
    # Nearest pair of each sensor; the choice has no derivative.
    dist = lax.stop_gradient(gather_static(every.dist, plan.pair.ravel()))
    least = jnp.argmin(dist.reshape(number, most, *dist.shape[1:]), axis=1).astype(jnp.int32)
    # Look the chosen pair up in the flattened table.
    start = jnp.asarray(column(np.arange(number, dtype=np.int32) * most, least))
    table = jnp.asarray(column(plan.pair.ravel().astype(np.int32), least))
    chosen = gather(table, start + least)
    return gather(every, chosen)


def _pair_distances(m: Model, d: Data, plan: DistancePlan) -> ContactPoints:
    """Compute all pairs `[npair, *W]`, one family of geom types at a time."""
    ids = np.flatnonzero(np.isin(m.sensor_type, DISTANCE_SENSORS))
    # Search distance of each pair: the largest cutoff of the sensors that need it.
    reach = max_by_row(gather_static(m.sensor_cutoff, ids), plan.sensor)
    geoms = place_geoms(m, d)
    # Group the pairs by the collision family of their types.
    kinds = zip(m.geom_type[plan.geom1], m.geom_type[plan.geom2], strict=True)
    families = np.array([distance_family(*pair) for pair in kinds])
    parts = [np.flatnonzero(families == k) for k in np.unique(families)]
    found = []
    for part in parts:
        geom1, geom2 = plan.geom1[part], plan.geom2[part]
        meet = query_types(m.structure, zip(geom1.tolist(), geom2.tolist(), strict=True))
        a, b = gather_static(geoms, geom1), gather_static(geoms, geom2)
        found.append(distances(m, a, b, gather_static(reach, part), meet))
    # Restore the order of the pairs.
    return gather_static(concat(found), np.argsort(np.concatenate(parts)))


@cache_by_structure
def _plan(s: Structure) -> DistancePlan:
    """Return the plan of a model: distinct pairs of geoms, and tables from sensors to pairs."""
    ids = np.flatnonzero(np.isin(s.sensor_type, DISTANCE_SENSORS))
    # With a height field the cutoff decides which prisms are tested: one pair per sensor.
    fields = np.flatnonzero(s.geom_type == GeomType.HFIELD)
    pairs_of_sensor = [
        [
            (*pair, k if np.isin(pair, fields).any() else -1)
            for pair in _pairs_of(s, int(i))
            if distance_family(*s.geom_type[list(pair)]) >= 0
        ]
        for k, i in enumerate(ids)
    ]
    # Number the distinct pairs in order of first use.
    distinct = dict.fromkeys(pair for pairs in pairs_of_sensor for pair in pairs)
    index = {pair: k for k, pair in enumerate(distinct)}
    none = len(index)
    # Collect the sensors that use each pair.
    sensors_of_pair: list[list[int]] = [[] for _ in index]
    for k, pairs in enumerate(pairs_of_sensor):
        for pair in pairs:
            sensors_of_pair[index[pair]].append(k)
    geoms = np.array(list(index), int).reshape(none, 3)
    # Position of each output among distances, normals and segments.
    rows = [
        n * len(ids) + k for k, i in enumerate(ids) for n in _REPORTED_NUMBERS[s.sensor_type[i]]
    ]
    return DistancePlan(
        geoms[:, 0],
        geoms[:, 1],
        _pad_rows([[index[pair] for pair in pairs] or [none] for pairs in pairs_of_sensor], none),
        _pad_rows(sensors_of_pair, None),
        np.array(rows, int),
    )


# Numbers among distance, normal and segment that a sensor reports.
_REPORTED_NUMBERS = {
    SensorType.GEOMDIST: range(1),
    SensorType.GEOMNORMAL: range(1, 4),
    SensorType.GEOMFROMTO: range(4, 10),
}


def _pad_rows(rows: list[list[int]], fill: int | None) -> np.ndarray:
    """Pad lists to rows of equal length, with a number; None: with their first entry."""
    most = max(map(len, rows), default=0)
    filled = [row + [row[0] if fill is None else fill] * (most - len(row)) for row in rows]
    return np.array(filled, int).reshape(len(rows), most)


def _pairs_of(s: Structure, i: int) -> list[tuple[int, int]]:
    """Return the pairs of geoms of a sensor."""
    first = _geoms(s, s.sensor_objtype[i], s.sensor_objid[i])
    second = _geoms(s, s.sensor_reftype[i], s.sensor_refid[i])
    return [(a, b) for a in first for b in second]


def _geoms(s: Structure, kind: int, index: int) -> list[int]:
    """Return a geom, or the geoms of a body."""
    return [int(index)] if kind == ObjType.GEOM else np.flatnonzero(s.geom_bodyid == index).tolist()
