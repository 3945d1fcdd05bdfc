"""Narrow phase of a group of geom pairs: from geom poses to candidate contacts.

A group holds the pairs that one collider takes (candidates/plan.py). Its near pairs are compacted
to the budget of the group, and the collider evaluates the slots in one of four ways:

    searches in CPU kernels     near pairs of all worlds as lanes, in chunks (`_collide_near_pairs`)
    colliders with tables       all slots; they skip unused ones themselves
    closed form, with a budget  slots in chunks, up to the last used one of any world
    otherwise                   all slots at once
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.dynamic import take
from jaxsim.arrays.gather import column, gather_static
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.physics.collision.candidates.broadphase import may_collide
from jaxsim.physics.collision.candidates.plan import CollisionLayout, PairGroup
from jaxsim.physics.collision.compact import compact_true
from jaxsim.physics.collision.contact_ids import IdArray, StaticIds, TracedIds
from jaxsim.physics.collision.convex.hull.hulls import Hulls
from jaxsim.physics.collision.convex.solid import Assets
from jaxsim.physics.collision.shape import (
    CandidatePoints,
    ContactPoints,
    PlacedGeoms,
    PointTable,
)
from jaxsim.transforms.compaction import evaluate_active_lanes, evaluate_used_slots
from jaxsim.transforms.derivative_context import is_differentiated
from jaxsim.transforms.materialize import materialize_result
from jaxsim.transforms.platform import platform
from jaxsim.transforms.tuning import tuning


def collide_group(
    group: PairGroup, geoms: PlacedGeoms, reach: Array, layout: CollisionLayout, assets: Any
) -> tuple[CandidatePoints, Array | int]:
    """Compute the candidate contacts of a group, and the number of near pairs beyond its budget."""
    # Tables of the types in this group.
    if isinstance(assets, Assets):
        assets = assets.for_types(geom_type for kind in group.kinds for geom_type in kind)
    in_kernels = platform().fuses_calls and not is_differentiated()
    by_lane = in_kernels and group.collider.by_lane and _has_shared_hulls(assets)
    chosen = _choose_pairs(group, geoms, reach, layout, by_lane)

    # Narrow phase, evaluated once so that all users agree on which points exist.
    collide = group.collider.collide
    geom1, geom2 = layout.pairs.geom1[group.pairs], layout.pairs.geom2[group.pairs]

    def place(entry: IdArray) -> tuple[PlacedGeoms, PlacedGeoms]:
        """Gather the geoms of pairs."""
        return entry.look_up(geom1).take(geoms), entry.look_up(geom2).take(geoms)

    if by_lane:
        ids = tuple(chosen.entry.look_up(of).array(chosen.reach) for of in (geom1, geom2))
        touch = _collide_near_pairs(collide, geoms, ids, assets, chosen.reach)
    elif assets is not None:  # such a collider skips unused slots itself
        touch = materialize_result(collide, *place(chosen.entry), assets, chosen.reach)
    elif isinstance(chosen.entry, TracedIds) and platform().chunks and not is_differentiated():
        touch = evaluate_used_slots(
            lambda some: collide(*place(some)),
            chosen.entry,
            chosen.most,
            tuning().pairs_per_chunk,
            axis=1,
        )
    else:
        touch = materialize_result(collide, *place(chosen.entry))
    dropped = chosen.dropped
    if touch.dropped is not None:
        dropped = dropped + jnp.sum(touch.dropped, axis=0, keepdims=True, dtype=jnp.int32)
        touch = touch._replace(dropped=None)
    found = touch.dist <= chosen.reach[None]
    shape = jnp.broadcast_shapes(touch.dist.shape, touch.pos.x.shape)

    def flat(x: Array) -> Array:
        """Merge the axes of contact points and pairs."""
        return jnp.broadcast_to(x, shape).reshape(group.points, *shape[2:])

    pair = chosen.pair.repeated(group.slots)
    table = PointTable((jax.tree.map(flat, touch),))
    return CandidatePoints(table, pair, flat(found)), dropped


def broad_phase(
    group: PairGroup, geoms: PlacedGeoms, reach: Array, layout: CollisionLayout
) -> Array:
    """Run the broad phase of a group: which pairs may have contacts, `[n, *W]`."""
    geom1, geom2 = layout.pairs.geom1[group.pairs], layout.pairs.geom2[group.pairs]
    limit = gather_static(reach, group.pairs)
    return may_collide(group.tested_types, geoms, geom1, geom2, limit)


class _ChosenPairs(NamedTuple):
    """Pairs of a group that the narrow phase tests, `[budget, *W]`.

    Attributes:
      entry: indices among the pairs of the group.
      pair: indices among all pairs.
      reach: distance below which they have contacts [m]; -NO_CONTACT_DISTANCE where the broad
        phase rejects a pair, or a slot is not used.
      most: the largest number of used slots of any world.
      dropped: number of near pairs beyond the budget.
    """

    entry: IdArray
    pair: IdArray
    reach: Array
    most: Array
    dropped: Array | int


def _choose_pairs(
    group: PairGroup, geoms: PlacedGeoms, reach: Array, layout: CollisionLayout, by_lane: bool
) -> _ChosenPairs:
    """Choose the pairs that the narrow phase tests."""
    every, total = np.arange(len(group.pairs)), jnp.int32(len(group.pairs))
    if group.tests_every_entry:
        pair = StaticIds.of(group.pairs)
        limit = pair.take(reach)
        if by_lane:
            near = broad_phase(group, geoms, reach, layout)
            limit = jnp.where(near, limit, -NO_CONTACT_DISTANCE)
        return _ChosenPairs(StaticIds.of(every), pair, limit, total, 0)
    # Near pairs, compacted to the budget.
    index, count = compact_true(broad_phase(group, geoms, reach, layout), every, group.budget)
    entry = TracedIds(index)
    near_pair = entry.look_up(group.pairs)
    filled = column(np.arange(group.budget, dtype=np.int32), count) < count
    limit = jnp.where(filled, near_pair.take(reach), -NO_CONTACT_DISTANCE)
    dropped = jnp.maximum(count - group.budget, 0)
    return _ChosenPairs(entry, near_pair, limit, jnp.max(count), dropped)


def _has_shared_hulls(assets: Assets | Hulls) -> bool:
    """Return whether all worlds share the hulls, so that pairs of all worlds can be mixed."""
    h = assets.hulls if isinstance(assets, Assets) else assets
    return h is None or h.worlds == 1


def _collide_near_pairs(
    collide: Callable, geoms: PlacedGeoms, ids: tuple[Array, ...], assets: Any, reach: Array
) -> ContactPoints:
    """Compute the contacts of near pairs, those of all worlds together, in chunks.

    Args:
      collide: collider that takes lanes.
      geoms: all geoms in the world, `[ngeom, *W]`.
      ids: ids of both geoms, `[n, *W]` each.
      assets: data that the collider needs.
      reach: distance up to which contacts are detected, `[n, *W]`; -NO_CONTACT_DISTANCE: skip the
        pair.
    """
    shape = reach.shape
    worlds = jnp.arange(shape[1], dtype=jnp.int32) if len(shape) > 1 else jnp.zeros((), jnp.int32)
    lanes = jax.tree.map(lambda a: jnp.broadcast_to(a, shape).reshape(-1), (*ids, worlds, reach))

    def collide_lanes(lanes: tuple[Array, ...]) -> ContactPoints:
        """Compute the contacts of one chunk."""
        one, other, world, reach = lanes

        def place(ids: Array) -> PlacedGeoms:
            """Gather the geoms of pairs; worlds may share an array."""
            tables = jax.tree.map(lambda a: a.reshape(len(a), -1), geoms)
            return jax.tree.map(lambda a: take(a, ids, world if a.shape[1] > 1 else 0), tables)

        return collide(place(one), place(other), assets, reach)

    near = lanes[-1] > -NO_CONTACT_DISTANCE / 2
    touch = evaluate_active_lanes(collide_lanes, near, lanes, tuning().pair_lanes)
    touch = touch._replace(dist=jnp.where(near, touch.dist, NO_CONTACT_DISTANCE))
    return jax.tree.map(lambda a: a.reshape(*a.shape[:-1], *shape), touch)
