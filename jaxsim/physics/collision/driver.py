"""From placed geoms to the list of contacts.

    candidate pairs of each kind -> cheap test -> the first of them, up to a budget -> narrow phase
    -> contacts of all kinds -> the first of them, up to the room there is -> parameters and frames

Where a kind has no more pairs than its budget there is no test, and where there is room for
every candidate contact none is moved: all indices are then constants.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.math import Rot, Vec, concat
from jaxsim.model.data import FAR
from jaxsim.physics.arrays.once import once
from jaxsim.physics.arrays.select import column, pick, take, total
from jaxsim.physics.collision.broadphase import near
from jaxsim.physics.collision.compact import deepest, first_true
from jaxsim.physics.collision.frame import contact_frame
from jaxsim.physics.collision.params import ContactParams
from jaxsim.physics.collision.plan import Group, Layout
from jaxsim.physics.collision.shape import Placed, Touch


class Contacts(NamedTuple):
    """Contacts of a state, `[ncontact, *W]` each. Ids are numpy `[ncontact]` where constant.

    Attributes:
      dist: distance of the surfaces, negative in penetration [m]; FAR where there is no contact.
      pos: point midway between the surfaces.
      frame: rows are the normal, from geom 1 to geom 2, and two tangents.
      geom1, geom2, body1, body2: ids.
      dim: dimension of the contact force: 1, 3, 4 or 6.
      includemargin: the contact pushes where dist is below this [m].
      friction, solref, solreffriction, solimp: see ContactParams.
      exists: there is a contact here.
      active: it exists and pushes.
      found: number of contacts there are, `[1, *W]`.
      lost: number of pairs and contacts for which there was no place, `[1, *W]`.
      packed: contacts that exist come first (static).
    """

    dist: jax.Array
    pos: Vec
    frame: Rot
    geom1: jax.Array | np.ndarray
    geom2: jax.Array | np.ndarray
    body1: jax.Array | np.ndarray
    body2: jax.Array | np.ndarray
    dim: jax.Array | np.ndarray
    includemargin: jax.Array
    friction: tuple[jax.Array, ...]
    solref: tuple[jax.Array, ...]
    solreffriction: tuple[jax.Array, ...]
    solimp: tuple[jax.Array, ...]
    exists: jax.Array
    active: jax.Array
    found: jax.Array
    lost: jax.Array
    packed: bool

    def each(self, ids) -> jax.Array:
        """Ids as an array `[ncontact, *W]`."""
        return jnp.broadcast_to(_as_array(ids, self.dist), self.dist.shape)


class _Points(NamedTuple):
    """Candidate contacts of one kind, `[points, *W]`."""

    touch: Touch
    pair: jax.Array | np.ndarray  # which of all pairs; numpy `[points]` where constant
    found: jax.Array  # closer than margin + gap


def collide(geoms: Placed, params: ContactParams, layout: Layout) -> Contacts | None:
    """The contacts of a state.

    Args:
      geoms: all geoms in the world, `[ngeom, *W]`.
      params: parameters of all candidate pairs, `[npairs, *W]`.
      layout: the static plan.

    Returns:
      The contacts; None if the model cannot have any.
    """
    if not layout.groups or not layout.capacity:
        return None
    reach = params.margin + params.gap
    parts = [_group_points(group, geoms, reach, layout) for group in layout.groups]
    lost = sum(over for _, over in parts)
    points = _joined([p for p, _ in parts])

    order = layout.order()
    if layout.all:
        chosen = jax.tree.map(lambda a: take(a, order), points.touch)
        pair, exists = _take_pair(points.pair, order), take(points.found, order)
        count = total(exists.astype(chosen.dist.dtype)).astype(jnp.int32)
    else:
        kept = deepest(points.found, points.touch.dist, layout.capacity)
        index, _ = first_true(kept, order, layout.capacity)
        chosen, pair = pick(points.touch, index), pick(_as_array(points.pair, index), index)
        count = total(points.found.astype(chosen.dist.dtype)).astype(jnp.int32)
        place = column(np.arange(layout.capacity, dtype=np.int32), count)
        exists = place < count
        lost = lost + jnp.maximum(count - layout.capacity, 0)
    return _contacts(chosen, pair, exists, count, lost, params, layout)


def _group_points(group: Group, geoms: Placed, reach, layout: Layout):
    """Narrow phase of one kind: its candidate contacts, and how many near pairs had no place."""
    geom1, geom2 = layout.pairs.geom1[group.pairs], layout.pairs.geom2[group.pairs]
    pair: jax.Array | np.ndarray = group.pairs
    lost: jax.Array | int = 0
    if group.all:
        a, b = take(geoms, geom1), take(geoms, geom2)
        reach = take(reach, pair)
    else:
        mask = near(group.kind, geoms, geom1, geom2, take(reach, group.pairs))
        every = np.arange(len(group.pairs))
        index, count = first_true(mask, every, group.budget)
        a = pick(geoms, pick(column(geom1, index), index))
        b = pick(geoms, pick(column(geom2, index), index))
        pair = pick(column(group.pairs, index), index)
        filled = column(np.arange(group.budget, dtype=np.int32), count) < count
        reach = jnp.where(filled, pick(reach, pair), -FAR)
        lost = jnp.maximum(count - group.budget, 0)

    touch = once(group.collider.collide, a, b)
    found = touch.dist < reach[None]
    shape = jnp.broadcast_shapes(touch.dist.shape, touch.pos.x.shape)
    points = group.points

    def flat(x):
        return jnp.broadcast_to(x, shape).reshape(points, *shape[2:])

    if isinstance(pair, np.ndarray):
        pair = np.tile(pair, group.collider.slots)
    else:
        pair = jnp.tile(pair, (group.collider.slots, *(1,) * (pair.ndim - 1)))
    return _Points(jax.tree.map(flat, touch), pair, flat(found)), lost


def _joined(parts: list[_Points]) -> _Points:
    """The candidate contacts of all kinds, one after another."""
    touches = [p.touch for p in parts]
    if any(t.tangent is not None for t in touches):  # the rest leaves the tangent free: zero
        touches = [
            t if t.tangent is not None else t._replace(tangent=t.normal.map(jnp.zeros_like))
            for t in touches
        ]
    found = jnp.concatenate([p.found for p in parts])
    pair: jax.Array | np.ndarray
    if all(isinstance(p.pair, np.ndarray) for p in parts):
        pair = np.concatenate([p.pair for p in parts])
    else:
        pair = jnp.concatenate(
            [jnp.broadcast_to(_as_array(p.pair, found), p.found.shape) for p in parts]
        )
    return _Points(concat(touches), pair, found)


def _as_array(pair, like):
    return jnp.asarray(column(pair, like)) if isinstance(pair, np.ndarray) else pair


def _take_pair(pair, order: np.ndarray):
    return pair[order] if isinstance(pair, np.ndarray) else take(pair, order)


def _contacts(touch, pair, exists, count, lost, params: ContactParams, layout: Layout) -> Contacts:
    """Ids, parameters and frames of the chosen points."""
    pairs, body = layout.pairs, layout.geom_bodyid
    dist = jnp.where(exists, touch.dist, FAR)
    tables = (pairs.geom1, pairs.geom2, body[pairs.geom1], body[pairs.geom2], pairs.dim)
    if isinstance(pair, np.ndarray):
        geom1, geom2, body1, body2, dim = (table[pair] for table in tables)
        dim, params = column(dim, dist), take(params, pair)
    else:
        geom1, geom2, body1, body2, dim = (
            pick(column(table.astype(np.int32), pair), pair) for table in tables
        )
        params = pick(params, pair)
    lost = jnp.broadcast_to(lost, count.shape)
    return Contacts(
        dist=dist,
        pos=touch.pos,
        frame=contact_frame(touch.normal, touch.tangent),
        geom1=geom1,
        geom2=geom2,
        body1=body1,
        body2=body2,
        dim=dim,
        includemargin=params.margin,
        friction=params.friction,
        solref=params.solref,
        solreffriction=params.solreffriction,
        solimp=params.solimp,
        exists=exists,
        active=exists & (dist < params.margin),
        found=count,
        lost=lost,
        packed=not layout.all,
    )
