"""Collision detection from geom poses to the contact list, after `mj_collision` of MuJoCo.

The data flow, with the lengths of a model of nine spheres and a box on a plane (36 pairs of
spheres, 9 of a sphere and the box, 10 with the plane), loaded with `pairs=20, contacts=16`:

    group                                  sphere-sphere  sphere-box   plane-sphere  plane-box
    candidate pairs                        36             9            9             1
    1. broad phase (`may_collide`)         36 tested      -            -             -
    2. compaction to the budget            20             9            9             1
    3. narrow phase (`collide`)            20 x 1 point   9 x 1        9 x 1         1 x 4
    4. candidate contacts (`found` flags those within reach)    42
    5. compaction to the contact capacity (`choose_contacts`)   16
    6. parameters and frames (`Contacts`)                       16 slots, the first `ncon` used

A group whose budget covers all its pairs skips 1 and 2, and a model whose capacity covers all
candidate contacts skips 5 (`packed` is false): then all ids are constants (`StaticIds`,
contact_ids.py) and every candidate contact keeps its own slot. Otherwise each world chooses its
pairs and contacts (`TracedIds`). What exceeds a budget or the capacity is dropped and counted
(`dropped`): of pairs the last ones, of contacts those that are least deep.
On a CPU time follows what is near. The broad phase rejects most pairs by bounding spheres.
Colliders in closed form process slots in chunks, up to the last used one of any world; searches get
the near pairs of all worlds as lanes (narrow_phase.py). Contacts are made in chunks, too.
docs/developer/capacities.md lists where the lengths are decided.

Names: `touch` is the geometry of candidate contacts, `pair` the candidate pair of each, and `found`
flags those within `reach` = margin + gap.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather, gather_static, sum_items
from jaxsim.arrays.node import node
from jaxsim.math import Rot, Vec
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure
from jaxsim.physics.collision.candidates.plan import CollisionLayout, PairGroup
from jaxsim.physics.collision.compact import compact_ranked, compact_true, select_deepest
from jaxsim.physics.collision.contact_ids import IdArray, TracedIds, join_ids
from jaxsim.physics.collision.flex.broadphase import number_near
from jaxsim.physics.collision.flex.candidates import flex_narrow_phase
from jaxsim.physics.collision.flex.item import FlexItems, no_item
from jaxsim.physics.collision.frame import contact_frame
from jaxsim.physics.collision.narrow_phase import broad_phase, collide_group
from jaxsim.physics.collision.params import ContactParams
from jaxsim.physics.collision.shape import (
    CandidatePoints,
    ContactPoints,
    PlacedGeoms,
    PointTable,
)
from jaxsim.trace_context import trace_context
from jaxsim.transforms.compaction import evaluate_used_slots
from jaxsim.transforms.derivative_context import is_differentiated
from jaxsim.transforms.materialize import is_unbatched
from jaxsim.transforms.platform import platform
from jaxsim.transforms.tuning import tuning


class Contacts(NamedTuple):
    """Contacts of a state, `[ncontact, *W]` each.

    Attributes:
      dist: signed distance of the surfaces, negative in penetration [m]; NO_CONTACT_DISTANCE if
        there is no contact.
      pos: point midway between the surfaces [m].
      frame: rows are the normal, from geom 1 to geom 2, and two tangents.
      geom, body: ids of the first and of the second.
      dim: dimension of the contact force: 1, 3, 4 or 6; 1 where adhesion pulls across the gap.
      includemargin: the contact pushes if dist is below this [m].
      friction, solref, solreffriction, solimp: see ContactParams.
      exists: the slot holds a contact.
      active: it exists and has constraint rows, since it pushes or pulls.
      adhesion: see ContactParams.
      surfacevel: velocity of the second surface relative to the first, due to moving surfaces
        alone: along both tangents [m/s], spin [rad/s]; None if no surface of the model moves.
      smooth: see ContactParams.
      item: flex elements or vertices on both sides (flex/item.py), `no_item` for a geom. None if no
        flex of the model can collide. The geom of a flex side is -1, its body a representative one
        (flex/contact_bodies.py); the bodies that move it are in flex/flex_jacobian.py.
    """

    dist: jax.Array
    pos: Vec
    frame: Rot
    geom: tuple[IdArray, IdArray]
    body: tuple[IdArray, IdArray]
    dim: jax.Array
    includemargin: jax.Array
    friction: tuple[jax.Array, ...]
    solref: tuple[jax.Array, ...]
    solreffriction: tuple[jax.Array, ...]
    solimp: tuple[jax.Array, ...]
    exists: jax.Array
    active: jax.Array
    adhesion: jax.Array | None = None
    surfacevel: tuple[jax.Array, ...] | None = None
    smooth: jax.Array | None = None
    item: tuple[IdArray, IdArray] | None = None

    def each(self, ids: IdArray) -> jax.Array:
        """Return ids as an array `[ncontact, *W]`."""
        return jnp.broadcast_to(ids.array(self.dist), self.dist.shape)


@node("packed")
class CollisionResult:
    """Result of the collision stage.

    Attributes:
      contacts: one per slot of constraint rows.
      ncon: number of contacts, `[1, *W]`; it may exceed the capacity.
      dropped: number of pairs and contacts beyond a budget or the capacity, `[1, *W]`.
      packed: existing contacts come first (static).
    """

    contacts: Contacts
    ncon: jax.Array
    dropped: jax.Array
    packed: bool


def detect_candidates(
    geoms: PlacedGeoms,
    reach: Array,
    layout: CollisionLayout,
    assets: Mapping[Callable | None, Any],
    flexes: tuple[Structure, FlexItems] | None = None,
) -> tuple[CandidatePoints, Array | int] | None:
    """Compute all candidate contacts of a state: broad phase and narrow phase.

    Args:
      geoms: all geoms in the world, `[ngeom, *W]`.
      reach: distance below which geoms of a pair have contacts, `[npairs, *W]` [m].
      layout: the static plan.
      assets: tables of the model that colliders need, by the function that makes them.
      flexes: tables of the model and poses of its flexes; None if none can collide.

    Returns:
      The candidate contacts, and the number of near pairs that exceeded a budget; None if the model
      cannot have contacts.
    """
    if layout.empty:
        return None
    # Groups of geom pairs.
    parts = [
        collide_group(group, geoms, reach, layout, assets.get(group.collider.assets))
        for group in layout.groups
    ]
    if layout.flex_groups and flexes is not None:
        # Groups that involve flexes.
        none = no_item(flexes[0])
        parts = [
            (extend_to_flex_contacts(p, g, layout, none), over)
            for (p, over), g in zip(parts, layout.groups, strict=True)
        ]
        for group in layout.flex_groups:
            parts.append(flex_narrow_phase(flexes[0], group, geoms, flexes[1], reach, assets))
    return joined_points([p for p, _ in parts]), sum(over for _, over in parts)


def choose_contacts(
    points: CandidatePoints,
    dropped: Array | int,
    params: ContactParams,
    layout: CollisionLayout,
    slots_may_move: bool,
) -> CollisionResult:
    """Select the contacts of a state from its candidates, up to the contact capacity.

    Args:
      points: candidate contacts.
      dropped: number of pairs that exceeded a budget.
      params: parameters of all candidate pairs, `[npairs, *W]`.
      layout: the static plan.
      slots_may_move: whether another program may assign other slots to the same contacts.

    Returns:
      The contacts. If more exist than the capacity, the deepest are kept.
    """
    packed = not layout.fits_all_points or (slots_may_move and _prefer_compaction(points))
    if not packed:
        # Every candidate has its own slot: only a constant permutation to MuJoCo's order.
        order = layout.order()
        touch, pair = gather_static(points.touch.joined(), order), points.pair.ordered(order)
        exists = gather_static(points.found, order)
        contacts = _contacts(_ChosenPoints(touch, pair, exists), params, layout)
        count = sum_items(exists.astype(touch.dist.dtype)).astype(jnp.int32)
        return CollisionResult(contacts, count, jnp.broadcast_to(dropped, count.shape), packed)

    index, number, count, over = _compact_points(points, layout)
    # Existence follows from the slot count, not from `found`: at a distance of exactly 0 two
    # evaluations of `found`, one of which fuses a multiply-add, may disagree.
    exists = jnp.asarray(column(np.arange(len(index), dtype=np.int32), number) < number)

    def fill_slots(slots: tuple[Array, Array]) -> Contacts:
        """Return the contacts of some slots, given their candidates and whether they exist."""
        return _contacts(_gather_points(points, *slots), params, layout)

    if platform().fuses_calls and not is_differentiated():
        used = jnp.maximum(jnp.max(number), 1)
        size = tuning().contacts_per_chunk
        contacts = evaluate_used_slots(fill_slots, (index, exists), used, size)
        # Unused slots repeat the first one, whose parameters are valid.
        contacts = jax.tree.map(lambda a: jnp.where(exists, a, a[:1]), contacts)
        contacts = contacts._replace(
            dist=jnp.where(exists, contacts.dist, NO_CONTACT_DISTANCE),
            exists=exists,
            active=contacts.active & exists,
        )
    else:
        contacts = fill_slots((index, exists))
    dropped = jnp.broadcast_to(dropped + over, count.shape)
    return CollisionResult(contacts, count, dropped, packed)


def _compact_points(
    points: CandidatePoints, layout: CollisionLayout
) -> tuple[Array, Array, Array, Array]:
    """Compact the candidates within reach to the contact capacity, in MuJoCo's order.

    Returns:
      The candidates of the slots, `[slots, *W]`; the numbers of used slots, of candidates within
      reach, and of those dropped, `[1, *W]`.
    """
    order = np.arange(layout.points) if layout.flex_groups else layout.order()
    slots = min(layout.capacity, layout.points)
    # Overflow keeps the deepest contacts; the compaction keeps MuJoCo's order.
    kept = select_deepest(points.found, points.touch.dist, slots)
    if points.rank is not None or layout.interleaves:
        index, number = compact_ranked(kept, order, lambda: _contact_rank(points, layout), slots)
    else:
        index, number = compact_true(kept, order, slots)
    count = sum_items(points.found.astype(points.touch.dist.dtype)).astype(jnp.int32)
    count = jnp.where(number < slots, number, count)
    return index, number, count, jnp.maximum(count - slots, 0)


class _ChosenPoints(NamedTuple):
    """Candidates in the slots of contacts, `[n, *W]`; `exists` flags the slots that are used."""

    touch: ContactPoints
    pair: IdArray
    exists: Array
    item: tuple[IdArray, IdArray] | None = None


def _gather_points(points: CandidatePoints, index: Array, exists: Array) -> _ChosenPoints:
    """Return the candidates at an index `[n, *W]`."""

    def take(ids: IdArray) -> IdArray:
        return TracedIds(gather(ids.array(index), index))

    touch, pair = points.touch.take(index), take(points.pair)
    item = None if points.item is None else (take(points.item[0]), take(points.item[1]))
    return _ChosenPoints(touch, pair, exists, item)


def _contact_rank(points: CandidatePoints, layout: CollisionLayout) -> Array:
    """Return the position of each candidate in MuJoCo's contact order."""
    if points.rank is not None:
        return points.rank.array(points.found)
    return layout.rank(points.pair.array(points.found))


def has_free_slots(m: Model) -> bool:
    """Return whether another program may assign other slots to the same contacts.

    It may not if a derivative takes the constraint forces from the program that it differentiates.
    """
    return not m.solves_for_forces


def _prefer_compaction(points: CandidatePoints) -> bool:
    """Return whether to compact contacts although the capacity covers every candidate.

    The solver processes contacts in chunks, up to the last used slot of any world, and few of many
    candidates exist: compacted they fill one chunk, otherwise a part of every chunk.
    """
    found = points.found
    several = platform().fuses_calls if found.ndim == 1 else not is_unbatched(found)
    chunks = platform().chunks and several and not is_differentiated()
    many = len(found) > tuning().contacts_per_chunk
    return chunks and many and not trace_context().keeps_candidate_slots


def count_near_pairs(
    geoms: PlacedGeoms,
    reach: Array,
    layout: CollisionLayout,
    flexes: tuple[Structure, FlexItems] | None = None,
) -> list[jax.Array]:
    """Return how many pairs pass the broad phase in each group with a budget, `[1, *W]` each."""
    # Groups of geom pairs, then groups of flexes.
    masks = [
        broad_phase(group, geoms, reach, layout)
        for group in layout.groups
        if not group.tests_every_entry
    ]
    numbers = [jnp.sum(mask, axis=0, keepdims=True, dtype=jnp.int32) for mask in masks]
    if flexes is None:
        return numbers
    groups = [group for group in layout.flex_groups if not group.tests_every_entry]
    return numbers + [number_near(flexes[0], group, geoms, flexes[1], reach) for group in groups]


def joined_points(parts: list[CandidatePoints]) -> CandidatePoints:
    """Concatenate the candidate contacts of all groups."""
    found = [p.found for p in parts]
    pair = join_ids([p.pair for p in parts], found)
    points = CandidatePoints(PointTable.of([p.touch for p in parts]), pair, jnp.concatenate(found))
    items = [p.item for p in parts if p.item is not None]
    ranks = [p.rank for p in parts if p.rank is not None]
    if not items:
        return points
    one, other = (join_ids([item[k] for item in items], found) for k in range(2))
    return points._replace(item=(one, other), rank=join_ids(ranks, found))


def extend_to_flex_contacts(
    points: CandidatePoints, group: PairGroup, layout: CollisionLayout, none: int
) -> CandidatePoints:
    """Extend candidate contacts of geoms with the fields of flex contacts."""
    slot = np.repeat(np.arange(group.slots), group.budget).astype(np.int32)
    rank = points.pair.values(layout.rank_of_pair.astype(np.int32), points.found)
    nothing = points.pair.look_up(np.full(len(layout.pairs.dim), none))
    return points._replace(item=(nothing, nothing), rank=TracedIds(rank + column(slot, rank)))


def _contacts(chosen: _ChosenPoints, params: ContactParams, layout: CollisionLayout) -> Contacts:
    """Assemble ids, parameters and frames of the chosen candidates."""
    touch, pair, exists, item = chosen
    pairs, params = layout.pairs, pair.take(params)
    dist = jnp.where(exists, touch.dist, NO_CONTACT_DISTANCE)
    geom = pair.look_up(pairs.geom1), pair.look_up(pairs.geom2)
    body = geom[0].look_up(layout.geom_bodyid), geom[1].look_up(layout.geom_bodyid)
    if item is not None:  # some involve flexes, which have no geom id
        as_geom = layout.geom_of_surface
        geom = geom[0].look_up(as_geom), geom[1].look_up(as_geom)
    dim = pair.values(pairs.dim.astype(np.int32), dist)
    # A contact acts (has rows) within its margin; a speculative one at any distance.
    acts, adhesion = dist < params.acts, params.adhesion
    if touch.speculative is not None:
        acts = acts | touch.speculative
    if adhesion is not None:  # adhesion across the gap has no friction
        pulls = ~acts & (adhesion != 0)
        dim, acts = jnp.where(pulls, 1, dim), acts | pulls
    # A pair that no dof moves relative to each other has contacts, but no rows.
    if not layout.moved.all():
        acts = acts & pair.values(layout.moved, dist)
    return Contacts(
        dist=dist,
        pos=touch.pos,
        frame=contact_frame(touch.normal, touch.tangent),
        geom=geom,
        body=body,
        dim=dim,
        includemargin=params.margin,
        friction=params.friction,
        solref=params.solref,
        solreffriction=params.solreffriction,
        solimp=params.solimp,
        exists=exists,
        active=exists & acts,
        adhesion=adhesion,
        smooth=params.smooth,
        item=item,
    )
