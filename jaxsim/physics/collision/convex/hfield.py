"""The collider of a height field and a convex shape.

MuJoCo's rule, found by experiment: each prism of the field that is nearer to the geom than the
margin gives one contact, whatever the prisms beside it give; of one geom the first 50 stay.

How many prisms are under a geom depends on the state: four small feet are over a few cells, a box
that lies down over hundreds. So the prisms of all geoms of all worlds stand in one line, of which a
fixed number is looked at at a time: those too low are sorted out by their heights, the others are
searched, and contacts go to the places of their geom. Memory goes by these places, and time by the
prisms there are.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math import Vec
from jaxsim.model.data import FAR
from jaxsim.physics.arrays.array import Array, Tree
from jaxsim.physics.arrays.lanes import from_tables, tables
from jaxsim.physics.arrays.platform import platform
from jaxsim.physics.collision.convex.convex import Frame
from jaxsim.physics.collision.convex.feature import Feature, at_solution
from jaxsim.physics.collision.convex.hull import hull_of
from jaxsim.physics.collision.convex.prisms import (
    MOST,
    Fields,
    Over,
    Prism,
    Range,
    field_of,
    heights,
    lanes_at,
    range_of,
    shapes,
)
from jaxsim.physics.collision.convex.search import contacts, search
from jaxsim.physics.collision.convex.solid import Solid
from jaxsim.physics.collision.shape import Placed, Touch

TURN = 8  # times as many prisms are looked at together as are searched together: most are too low


def hfield_convex(field: Placed, geom: Placed, assets: Fields, reach: Array) -> Touch:
    """Contacts of a height field and a convex shape.

    Args:
      field, geom: placed geoms, `[n, *W]`.
      assets: what is needed of the model.
      reach: distances up to which contacts are found, `[n, *W]`; negative: not at all.
    """
    return on_field(field, _solid(assets, geom), geom, assets, reach)


def on_field(field: Placed, solid: Solid, frame: Frame, assets: Fields, reach: Array) -> Touch:
    """Contacts of a height field and shapes that are given in their frames."""
    pos, rot = field.rot.T @ (frame.pos - field.pos), field.rot.T @ frame.rot
    grid, size = field_of(assets, field.id)
    given = jax.tree.leaves((reach, pos, rot, solid, size))
    shape = jnp.broadcast_shapes(*(x.shape for x in given))
    worlds = shape[-1] if len(shape) > 1 else 1
    world = jnp.arange(worlds, dtype=jnp.int32).reshape((1,) * (len(shape) - 1) + (-1,))
    over, flat_reach = jax.tree.map(
        lambda x: jnp.broadcast_to(x, shape).reshape(-1),
        (Over(solid, pos, rot, size, grid, world), reach),
    )
    dist, at, normal, lost = _touches(assets, over, flat_reach)
    dist, at, normal = jax.tree.map(lambda x: x.reshape(-1, *shape), (dist, at, normal))
    turn = field.rot.map(lambda x: x[None])
    at = field.pos.map(lambda x: x[None]) + turn @ at
    return Touch(dist, at, turn @ normal, lost=lost.reshape(shape))


def _solid(assets: Fields, g: Placed) -> Solid:
    kind = jnp.asarray(assets.convex.geom_type, jnp.int32)[g.id]
    hulls = assets.convex.hulls
    hull = jnp.zeros_like(kind) if hulls is None else hull_of(hulls, g.id)
    return Solid(kind, g.size, hull, g.size.map(jnp.zeros_like))


class _Kept(NamedTuple):
    """What is left of a contact: what it is, and on which features of which prism."""

    touch: tuple[Array, Vec, Vec]
    feature: Feature
    prism: Prism


@jax.custom_jvp
def _touches(assets: Fields, over: Over, reach: Array) -> tuple[Array, Vec, Vec, Array]:
    """Distance, position and normal of contacts in the frame of the field, `[slots, n]`; and which
    geoms had more of them than places."""
    touch, filled, lost = _found(assets, over, reach, lambda kept: kept.touch)
    return *_placed(touch, filled), lost


@_touches.defjvp
def _(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    assets, over, reach = primals
    kept, filled, lost = _found(assets, over, reach, lambda kept: kept)

    def touch(assets: Fields, over: Over) -> tuple[Array, Vec, Vec]:
        each = jax.tree.map(lambda x: jnp.broadcast_to(x, filled.shape).reshape(-1), over)
        lanes, middle = shapes(assets, each, kept.prism)
        set_ = lanes.difference(assets.convex)
        dist, pos, normal = _only(contacts(set_, at_solution(set_, kept.feature), None))
        return dist, pos + middle, normal

    _, change = jax.jvp(touch, (assets, over), tangents[:2])
    change = jax.tree.map(lambda x: x.reshape(filled.shape), change)
    change = jax.tree.map(lambda x: jnp.where(filled, x, 0), change)
    no_change = np.zeros(lost.shape, jax.dtypes.float0)
    return (*_placed(kept.touch, filled), lost), (*change, no_change)


def _only(contacts: tuple[Array, Vec, Vec]) -> tuple[Array, Vec, Vec]:
    """The one contact of each prism, `[1, n]` -> `[n]`."""
    dist, pos, normal = contacts
    return dist[0], pos[0], normal[0]


def _placed(touch: tuple[Array, Vec, Vec], filled: Array) -> tuple[Array, Vec, Vec]:
    dist, pos, normal = jax.tree.map(lambda x: x.reshape(filled.shape), touch)
    return jnp.where(filled, dist, FAR), pos, normal


class _Line(NamedTuple):
    """The prisms under all geoms, one after another.

    Attributes:
      over: the geoms and their fields, `[n]`.
      reach: distances up to which contacts are found, `[n]`.
      under: the prisms under each geom, `[n]`.
      begin, end: places of each geom's prisms in the line, `[n]`.
    """

    over: Over
    reach: Array
    under: Range
    begin: Array
    end: Array

    @classmethod
    def of(cls, assets: Fields, over: Over, reach: Array) -> "_Line":
        """The prisms under geoms that are asked for contacts."""
        under = range_of(assets, over, reach)
        count = jnp.where(reach > -FAR / 2, under.number, 0)
        count = jnp.minimum(count, (2**31 - 1) // reach.size)  # an int32 counts them together
        end = jnp.cumsum(count, dtype=jnp.int32)
        return cls(over, reach, under, end - count, end)


def _found(
    assets: Fields, over: Over, reach: Array, keep: Callable[[_Kept], Tree]
) -> tuple[Tree, Array, Array]:
    """The contacts of geoms `[n]`.

    Returns:
      What is to be kept of them, `[..., slots * n]`; whether there is one, `[slots, n]`; and of
      which geoms some had no place, `[n]`.
    """
    assets, over, reach = lax.stop_gradient((assets, over, reach))
    n, slots = reach.size, assets.slots
    line = _Line.of(assets, over, reach)
    size = min(TURN * platform().lanes, n * slots)

    @functools.partial(jax.jit, inline=True)  # is traced once, though its form is asked before
    def look(start: Array, number: Array) -> tuple[Tree, Array, Array]:
        kept, place, number = _next(assets, line, start, number, size)
        return keep(kept), place, number

    def turn(state: tuple) -> tuple:
        start, number, kept = state
        some, place, number = look(start, number)
        put = zip(kept, tables(some)[0], strict=True)
        return start + size, number, [k.at[:, place].set(s, mode="drop") for k, s in put]

    none = jnp.zeros_like(line.end)
    blank = jax.tree.map(
        lambda x: jnp.zeros((*x.shape[:-1], slots * n), x.dtype),
        jax.eval_shape(look, none[0], none)[0],
    )
    start, form = tables(blank)
    state = (jnp.int32(0), none, start)
    _, number, kept = lax.while_loop(lambda state: state[0] < line.end[-1], turn, state)
    filled = jnp.arange(slots, dtype=jnp.int32)[:, None] < number[None]
    lost = (number > slots).astype(jnp.int32) if slots < MOST else none
    return from_tables(kept, form), filled, lost


def _next(
    assets: Fields, line: _Line, start: Array, number: Array, size: int
) -> tuple[_Kept, Array, Array]:
    """Looks at the next prisms of the line.

    Args:
      assets, line: what is searched.
      start: the first of them.
      number: contacts that each geom has from those before, `[n]`.
      size: how many they are.

    Returns:
      What is found on each, `[size]`; the places for it, slot by slot, behind the last where there
      is nothing; and the new numbers.
    """
    n, slots = line.reach.size, assets.slots
    item = start + jnp.arange(size, dtype=jnp.int32)
    lane = jnp.searchsorted(line.end, item, side="right").astype(jnp.int32)
    lane = jnp.minimum(lane, n - 1)
    here = lanes_at(line.over, lane)
    given = (line.under, line.begin, number, line.reach)
    under, first, so_far, limit = lanes_at(given, lane)
    prism = under.prism(item - first)
    tops = heights(assets, here, prism)
    high = jnp.maximum(jnp.maximum(tops.x, tops.y), tops.z) >= under.low
    # one more than there are places: so that it can be said
    wanted = (item < line.end[-1]) & high & (so_far <= slots)

    lanes, middle = shapes(assets, here, prism)
    found = search(assets.convex, lanes, jnp.where(wanted, limit, -FAR), features=True)
    assert found.feature is not None
    dist, pos, normal = _only(found.contacts)
    touches = (found.near & (dist < limit)).astype(jnp.int32)

    # the place of a contact: how many the geom had before these, and has among these before it
    before = jnp.cumsum(touches, dtype=jnp.int32) - touches
    place = so_far + before - before[jnp.maximum(first - start, 0)]
    place = jnp.where((touches > 0) & (place < slots), place * n + lane, slots * n)
    kept = _Kept((dist, pos + middle, normal), found.feature, prism)
    return kept, place, number.at[lane].add(touches)
