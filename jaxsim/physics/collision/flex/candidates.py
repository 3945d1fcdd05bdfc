"""Candidate contacts of flexes: broad phase and narrow phase of a group.

entries of a group -> gaps of their boxes -> the nearest entries, up to a budget -> narrow phase
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.model.data import NO_CONTACT_DISTANCE
from jaxsim.model.structure import Structure
from jaxsim.physics.collision.contact_ids import IdArray, StaticIds, TracedIds
from jaxsim.physics.collision.flex.broadphase import select_near_entries
from jaxsim.physics.collision.flex.item import FlexItems, RoundedHull, hulls_of, no_item
from jaxsim.physics.collision.flex.plan import FlexPairGroup
from jaxsim.physics.collision.flex.rod_box import bars_of
from jaxsim.physics.collision.shape import ContactPoints, PlacedGeoms
from jaxsim.transforms.materialize_result import materialize_result


class SoftPoints(NamedTuple):
    """Candidate contacts of flexes, `[points, *W]`.

    Attributes:
      touch: positions, distances and normals.
      pair: index among all pairs.
      item: items on both sides; `no_item` for a geom.
      rank: sort key of MuJoCo's order.
      found: bool, the distance is below the detection distance.
    """

    touch: ContactPoints
    pair: IdArray
    item: tuple[IdArray, IdArray]
    rank: IdArray
    found: jax.Array


def flex_narrow_phase(
    s: Structure,
    group: FlexPairGroup,
    geoms: PlacedGeoms,
    soft: FlexItems,
    reach: Array,
    assets: Mapping[Callable | None, Any],
) -> tuple[SoftPoints, Array | int]:
    """Run the broad and narrow phase of a group; also return the number of dropped entries."""
    # Broad phase, then the geometry of both sides.
    pair, first, second, start, reach, lost = select_near_entries(s, group, geoms, soft, reach)
    # Narrow phase of all entries in one call.
    a = _side_geometry(s, group, 0, geoms, soft, first)
    b = _side_geometry(s, group, 1, geoms, soft, second)
    touch = materialize_result(
        group.collider.collide, a, b, assets.get(group.collider.assets), reach
    )
    if group.collider.among:
        touch = group.collider.among(touch, pair.array(touch.dist[0]))
    # Flatten the contact points of all entries: all first points, then all second ones.
    if touch.lost is not None:
        lost = lost + jnp.sum(touch.lost, axis=0, keepdims=True, dtype=jnp.int32)
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
    touch = jax.tree.map(flat, touch._replace(tangent=None, lost=None))
    points = SoftPoints(
        touch,
        repeat_ids(pair),
        (repeat_ids(first), repeat_ids(second)),
        _point_ranks(start, slots),
        flat(found),
    )
    return points, lost


def _side_geometry(
    s: Structure, group: FlexPairGroup, k: int, geoms: PlacedGeoms, soft: FlexItems, ids: IdArray
) -> PlacedGeoms | RoundedHull:
    """Return the geometry of one side of a group."""
    if group.bars[k]:
        return bars_of(s, soft, ids, group.sizes[k])
    if not group.sizes[k]:
        return ids.take(geoms)
    return hulls_of(s, soft, ids, group.sizes[k])


def _point_ranks(first: IdArray, number: int) -> IdArray:
    """Return the ranks of all first points, then of all second ones, from those of the first."""
    slots = range(number)
    if isinstance(first, StaticIds):
        return StaticIds(tuple(r + k for k in slots for r in first.id))
    return TracedIds(jnp.concatenate([first.id + k for k in slots]))
