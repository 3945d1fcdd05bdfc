"""From placed geoms to the list of contacts.

    candidate pairs of each kind -> cheap test -> the first of them, up to a budget -> narrow phase
    -> contacts of all kinds -> the first of them, up to the room there is -> parameters and frames

Where a kind has no more pairs than its budget there is no test, and where there is room for
every candidate contact none is moved: all indices are then constants.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.math import Rot, Vec, concat
from jaxsim.model.data import FAR
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure
from jaxsim.physics.arrays.array import Array, Tree
from jaxsim.physics.arrays.call.differentiated import differentiated
from jaxsim.physics.arrays.node import node
from jaxsim.physics.arrays.once import once
from jaxsim.physics.arrays.pin import few
from jaxsim.physics.arrays.platform import platform
from jaxsim.physics.arrays.products import CHUNK
from jaxsim.physics.arrays.select import column, pick, take, total
from jaxsim.physics.collision.candidates.broadphase import near
from jaxsim.physics.collision.candidates.plan import Group, Layout
from jaxsim.physics.collision.compact import deepest, first_ranked, first_true
from jaxsim.physics.collision.flex.broadphase import number_near
from jaxsim.physics.collision.flex.candidates import soft_points
from jaxsim.physics.collision.flex.item import Soft, no_item
from jaxsim.physics.collision.frame import contact_frame
from jaxsim.physics.collision.ids import Chosen, Fixed, Ids, joined
from jaxsim.physics.collision.params import ContactParams
from jaxsim.physics.collision.shape import Placed, Touch


class Contacts(NamedTuple):
    """Contacts, `[ncontact, *W]` each.

    Attributes:
      dist: distance of the surfaces, negative in penetration [m]; FAR where there is no contact.
      pos: point midway between the surfaces.
      frame: rows are the normal, from geom 1 to geom 2, and two tangents.
      geom, body: ids of the first and of the second.
      dim: dimension of the contact force: 1, 3, 4 or 6; 1 where it pulls across the gap.
      includemargin: the contact pushes where dist is below this [m].
      friction, solref, solreffriction, solimp: see ContactParams.
      exists: there is a contact here.
      active: it exists and pushes or pulls.
      adhesion: see ContactParams.
      surfacevel: velocity of the second surface over the first, from motion of the surfaces alone:
        along both tangents [m/s], spin [rad/s]; None where no surface of the model moves.
      smooth: see ContactParams.
      item: elements or vertices of flexes that touch (flex/item.py), on both sides; `no_item`: a
        geom does. None where no flex of the model touches anything. The geom of such a side is -1,
        its body one that stands for it (flex/sides.py); what moves it is in flex/shares.py.
    """

    dist: jax.Array
    pos: Vec
    frame: Rot
    geom: tuple[Ids, Ids]
    body: tuple[Ids, Ids]
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
    item: tuple[Ids, Ids] | None = None

    def each(self, ids: Ids) -> jax.Array:
        """Ids as an array `[ncontact, *W]`."""
        return jnp.broadcast_to(ids.array(self.dist), self.dist.shape)


@node("packed")
class Found:
    """What the collision stage finds.

    Attributes:
      contacts: each in the place of its rows.
      ncon: number of contacts there are, `[1, *W]`.
      lost: number of pairs and contacts for which there was no place, `[1, *W]`.
      packed: contacts that exist come first (static).
    """

    contacts: Contacts
    ncon: jax.Array
    lost: jax.Array
    packed: bool


class Points(NamedTuple):
    """Candidate contacts, `[points, *W]`.

    Attributes:
      touch: where the surfaces are nearest.
      pair: which of all pairs.
      found: not farther than contacts reach.
      item, rank: see SoftPoints; None where no flex touches anything.
    """

    touch: Touch
    pair: Ids
    found: jax.Array
    item: tuple[Ids, Ids] | None = None
    rank: Ids | None = None


def candidates(
    geoms: Placed,
    reach: Array,
    layout: Layout,
    assets: Mapping[Callable | None, Any],
    flexes: tuple[Structure, Soft] | None = None,
) -> tuple[Points, Array | int] | None:
    """All points of a state at which there may be contacts.

    Args:
      geoms: all geoms in the world, `[ngeom, *W]`.
      reach: how far from each other geoms of a pair have contacts, `[npairs, *W]` [m].
      layout: the static plan.
      assets: what colliders need of the model, by the function that makes it.
      flexes: tables of the model and where its flexes are; None if none touches anything.

    Returns:
      The points, and how many near pairs had no place; None if the model cannot have contacts.
    """
    if layout.empty:
        return None
    parts = [
        _group_points(group, geoms, reach, layout, assets.get(group.collider.assets))
        for group in layout.groups
    ]
    if layout.soft and flexes is not None:
        none = no_item(flexes[0])
        parts = [
            (as_soft(p, g, layout, none), over)
            for (p, over), g in zip(parts, layout.groups, strict=True)
        ]
        for group in layout.soft:
            found, over = soft_points(flexes[0], group, geoms, flexes[1], reach, assets)
            touch, pair, item, rank, mask = found
            parts.append((Points(touch, pair, mask, item, rank), over))
    return joined_points([p for p, _ in parts]), sum(over for _, over in parts)


def choose(
    points: Points, lost: Array | int, params: ContactParams, layout: Layout, free: bool
) -> Found:
    """The contacts of a state: of the points that are found those that have a place.

    Args:
      points: candidate contacts.
      lost: number of pairs for which there was no place.
      params: parameters of all candidate pairs, `[npairs, *W]`.
      layout: the static plan.
      free: whether contacts may have other places in another program of the same state.
    """
    item: tuple[Ids, Ids] | None = None
    order = np.arange(layout.points) if layout.soft else layout.order()
    places = min(layout.capacity, layout.points)
    packed = not layout.all or (free and _pays(points))
    if not packed:
        chosen, pair = take(points.touch, order), points.pair.ordered(order)
        exists = take(points.found, order)
        count = total(exists.astype(chosen.dist.dtype)).astype(jnp.int32)
    else:
        kept = deepest(points.found, points.touch.dist, places)
        if points.rank is not None or layout.mixes:
            index, number = first_ranked(kept, order, lambda: _rank(points, layout), places)
        else:
            index, number = first_true(kept, order, places)
        chosen = pick(points.touch, index)
        if points.item is not None:
            one, other = (Chosen(pick(i.array(index), index)) for i in points.item)
            item = one, other
        pair = Chosen(pick(points.pair.array(index), index))
        # At a distance of exactly 0 a program may find a point in one place and not in another,
        # where it multiplies and adds at once: what exists is what was given a place.
        exists = jnp.asarray(column(np.arange(places, dtype=np.int32), number) < number)
        count = total(points.found.astype(chosen.dist.dtype)).astype(jnp.int32)
        count = jnp.where(number < places, number, count)
        lost = lost + jnp.maximum(count - places, 0)
    contacts = _contacts(chosen, pair, exists, params, layout)
    if item is not None:
        contacts = _of_flexes(contacts, item, pair, layout)
    return Found(contacts, count, jnp.broadcast_to(lost, count.shape), packed)


def _rank(points: Points, layout: Layout) -> Array:
    """Where MuJoCo lists a candidate, among those of its world."""
    if points.rank is not None:
        return points.rank.array(points.found)
    return layout.rank(points.pair.array(points.found))


def has_free_places(m: Model) -> bool:
    """Whether contacts may have other places in another program of the same state: not where a
    derivative takes the forces of their rows from the program of which it is one."""
    return not m.solves_for_forces


def _pays(points: Points) -> bool:
    """Whether contacts that exist come first although there is room for every candidate.

    Contacts are taken some at a time, as far as some world has one, and few of many exist: moved to
    the front they fill one chunk, not each a part of every chunk.
    """
    found = points.found
    several = platform().in_kernels if found.ndim == 1 else not few(found)
    chunks = platform().chunks and several and not differentiated()
    return chunks and len(found) > CHUNK and not _in_place.value


_in_place = jax.make_user_context(default_value=False)


def in_place() -> AbstractContextManager:
    """A context for what is asked by places of contacts: with room for every candidate each has
    its own, however many worlds ask."""
    return _in_place(True)


def near_pairs(
    geoms: Placed,
    reach: Array,
    layout: Layout,
    flexes: tuple[Structure, Soft] | None = None,
) -> list[jax.Array]:
    """How many pairs of each group with a budget are near, `[1, *W]` each."""
    masks = [_near(group, geoms, reach, layout) for group in layout.groups if not group.all]
    numbers = [jnp.sum(mask, axis=0, keepdims=True, dtype=jnp.int32) for mask in masks]
    if flexes is None:
        return numbers
    soft = [group for group in layout.soft if not group.all]
    return numbers + [number_near(flexes[0], group, geoms, flexes[1], reach) for group in soft]


def _near(group: Group, geoms: Placed, reach: Array, layout: Layout) -> Array:
    """Which pairs of a group may have contacts, `[n, *W]`."""
    geom1, geom2 = layout.pairs.geom1[group.pairs], layout.pairs.geom2[group.pairs]
    kind = None if group.boxes else group.kinds[0]
    return near(kind, geoms, geom1, geom2, take(reach, group.pairs))


def _group_points(group: Group, geoms: Placed, reach: Array, layout: Layout, assets: Tree) -> tuple:
    """Narrow phase of a group: its candidate contacts, and how many near pairs had no place."""
    geom1, geom2 = layout.pairs.geom1[group.pairs], layout.pairs.geom2[group.pairs]
    pair: Ids = Fixed.of(group.pairs)
    lost: jax.Array | int = 0
    if group.all:
        a, b = take(geoms, geom1), take(geoms, geom2)
        reach = pair.take(reach)
    else:
        mask = _near(group, geoms, reach, layout)
        every = np.arange(len(group.pairs))
        index, count = first_true(mask, every, group.budget)
        near_ones = Chosen(index)
        a, b = (near_ones.look_up(geom).take(geoms) for geom in (geom1, geom2))
        pair = near_ones.look_up(group.pairs)
        filled = column(np.arange(group.budget, dtype=np.int32), count) < count
        reach = jnp.where(filled, pair.take(reach), -FAR)
        lost = jnp.maximum(count - group.budget, 0)

    operands = (a, b) if assets is None else (a, b, assets, reach)
    touch = once(group.collider.collide, *operands)
    if touch.lost is not None:
        lost = lost + jnp.sum(touch.lost, axis=0, keepdims=True, dtype=jnp.int32)
        touch = touch._replace(lost=None)
    found = touch.dist <= reach[None]
    shape = jnp.broadcast_shapes(touch.dist.shape, touch.pos.x.shape)
    points = group.points

    def flat(x):
        return jnp.broadcast_to(x, shape).reshape(points, *shape[2:])

    pair = pair.repeated(group.slots)
    return Points(jax.tree.map(flat, touch), pair, flat(found)), lost


def joined_points(parts: list[Points]) -> Points:
    """The candidate contacts of all kinds, one after another."""
    touches = [p.touch for p in parts]
    if any(t.tangent is not None for t in touches):  # the rest leaves the tangent free: zero
        touches = [
            t if t.tangent is not None else t._replace(tangent=t.normal.map(jnp.zeros_like))
            for t in touches
        ]
    if any(t.ahead is not None for t in touches):
        touches = [
            t if t.ahead is not None else t._replace(ahead=jnp.zeros(t.dist.shape, bool))
            for t in touches
        ]
    found = [p.found for p in parts]
    pair = joined([p.pair for p in parts], found)
    points = Points(concat(touches), pair, jnp.concatenate(found))
    items = [p.item for p in parts if p.item is not None]
    ranks = [p.rank for p in parts if p.rank is not None]
    if not items:
        return points
    one, other = (joined([item[k] for item in items], found) for k in range(2))
    return points._replace(item=(one, other), rank=joined(ranks, found))


def as_soft(points: Points, group: Group, layout: Layout, none: int) -> Points:
    """Points of geoms among those of flexes."""
    slot = np.repeat(np.arange(group.slots), group.budget).astype(np.int32)
    rank = points.pair.values(layout.rank_of_pair.astype(np.int32), points.found)
    nothing = points.pair.look_up(np.full(len(layout.pairs.dim), none))
    return points._replace(item=(nothing, nothing), rank=Chosen(rank + column(slot, rank)))


def _of_flexes(c: Contacts, item: tuple[Ids, Ids], pair: Ids, layout: Layout) -> Contacts:
    """Contacts with what of flexes they are of."""
    as_geom = layout.geom_of_surface
    pairs = layout.pairs
    geom = pair.look_up(as_geom[pairs.geom1]), pair.look_up(as_geom[pairs.geom2])
    return c._replace(geom=geom, item=item)


def _contacts(
    touch: Touch, pair: Ids, exists: Array, params: ContactParams, layout: Layout
) -> Contacts:
    """Ids, parameters and frames of the chosen points."""
    pairs, params = layout.pairs, pair.take(params)
    dist = jnp.where(exists, touch.dist, FAR)
    geom = pair.look_up(pairs.geom1), pair.look_up(pairs.geom2)
    dim = pair.values(pairs.dim.astype(np.int32), dist)
    acts, adhesion = dist < params.acts, params.adhesion
    if touch.ahead is not None:
        acts = acts | touch.ahead
    if adhesion is not None:  # across the gap nothing slides on anything: no friction there
        pulls = ~acts & (adhesion != 0)
        dim, acts = jnp.where(pulls, 1, dim), acts | pulls
    if not layout.moved.all():
        acts = acts & pair.values(layout.moved, dist)
    return Contacts(
        dist=dist,
        pos=touch.pos,
        frame=contact_frame(touch.normal, touch.tangent),
        geom=geom,
        body=(geom[0].look_up(layout.geom_bodyid), geom[1].look_up(layout.geom_bodyid)),
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
    )
