"""Candidate contacts of flexes: broad phase and narrow phase of a group.

entries of a group -> gaps of their boxes -> the nearest entries, up to a budget -> narrow phase
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.model.structure import Structure
from jaxsim.physics.collision.contact_ids import IdArray, StaticIds, TracedIds
from jaxsim.physics.collision.flex.broadphase import select_near_entries
from jaxsim.physics.collision.flex.item import FlexItems, RoundedHull, hulls_of, no_item
from jaxsim.physics.collision.flex.plan import FlexPairGroup
from jaxsim.physics.collision.flex.rod_box import bars_of
from jaxsim.physics.collision.shape import CandidatePoints, PlacedGeoms, PointTable
from jaxsim.transforms.materialize import materialize_result


def flex_narrow_phase(
    s: Structure,
    group: FlexPairGroup,
    geoms: PlacedGeoms,
    flexes: FlexItems,
    reach: Array,
    assets: Mapping[Callable | None, Any],
) -> tuple[CandidatePoints, Array | int]:
    """Run the broad and narrow phase of a group; also return the number of dropped entries."""
    # Broad phase, then the geometry of both sides.
    pair, first, second, start, reach, dropped = select_near_entries(s, group, geoms, flexes, reach)
    # Narrow phase of all entries in one call.
    a = _side_geometry(s, group, 0, geoms, flexes, first)
    b = _side_geometry(s, group, 1, geoms, flexes, second)
    touch = materialize_result(
        group.collider.collide, a, b, assets.get(group.collider.assets), reach
    )
    if group.collider.among:
        touch = group.collider.among(touch, pair.array(touch.dist[0]))
    # Flatten the contact points of all entries: all first points, then all second ones.
    if touch.dropped is not None:
        dropped = dropped + jnp.sum(touch.dropped, axis=0, keepdims=True, dtype=jnp.int32)
    slots = group.slots
    shape = jnp.broadcast_shapes(touch.dist.shape, touch.pos.x.shape, (slots, *reach.shape))
    # A point is a contact if its distance is within reach and its slot is filled.
    found = (touch.dist <= reach[None]) & (reach > -NO_CONTACT_DISTANCE / 2)[None]

    def flat(x: Array) -> Array:
        return jnp.broadcast_to(x, shape).reshape(slots * shape[1], *shape[2:])

    def repeat_ids(ids: IdArray) -> IdArray:
        return ids.repeated(slots)

    if not group.sizes[0]:
        first = pair.look_up(np.full(int(group.entries.pair.max()) + 1, no_item(s)))
    touch = jax.tree.map(flat, touch._replace(tangent=None, dropped=None))
    item = repeat_ids(first), repeat_ids(second)
    points = CandidatePoints(
        PointTable((touch,)), repeat_ids(pair), flat(found), item, _point_ranks(start, slots)
    )
    return points, dropped


def _side_geometry(
    s: Structure, group: FlexPairGroup, k: int, geoms: PlacedGeoms, flexes: FlexItems, ids: IdArray
) -> PlacedGeoms | RoundedHull:
    """Return the geometry of one side of a group."""
    if group.bars[k]:
        return bars_of(s, flexes, ids, group.sizes[k])
    if not group.sizes[k]:
        return ids.take(geoms)
    return hulls_of(s, flexes, ids, group.sizes[k])


def _point_ranks(first: IdArray, number: int) -> IdArray:
    """Return the ranks of all first points, then of all second ones, from those of the first."""
    slots = range(number)
    if isinstance(first, StaticIds):
        return StaticIds(tuple(r + k for k in slots for r in first.id))
    return TracedIds(jnp.concatenate([first.id + k for k in slots]))
