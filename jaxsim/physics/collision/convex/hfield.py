"""The collider of a height field and a convex shape, by prisms.

MuJoCo's rule, determined by experiment: each prism of the field that is nearer to the geom than the
margin gives one contact, independent of its neighbors; the first 50 per geom are kept. Corresponds
to `mjc_ConvexHField` in MuJoCo.

The number of prisms under a geom depends on the state: four small feet cover a few cells, a box
that lies flat hundreds. So the prisms of all geoms of all worlds are concatenated into one queue
(`_Line`), which a loop processes in chunks of fixed size: low prisms are rejected by their heights,
GJK/EPA runs on the others, and contacts are scattered to the slots of their geom. Memory scales
with the slots, time with the number of prisms.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.math import Vec
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.physics.collision.convex.convex import Frame
from jaxsim.physics.collision.convex.feature import Feature, attach_solution_derivative
from jaxsim.physics.collision.convex.hull.hulls import hull_of
from jaxsim.physics.collision.convex.prisms import (
    MAX_CONTACTS_PER_PAIR,
    HfieldTables,
    Over,
    Prism,
    PrismRange,
    field_of,
    lanes_at,
    prism_heights,
    prism_pairs,
    range_of,
)
from jaxsim.physics.collision.convex.search import search_contacts, search_convex_pairs
from jaxsim.physics.collision.convex.solid import ConvexShape
from jaxsim.physics.collision.shape import ContactPoints, PlacedGeoms
from jaxsim.transforms.compaction import pack_tables, unpack_tables
from jaxsim.transforms.tuning import tuning


def hfield_convex(
    field: PlacedGeoms, geom: PlacedGeoms, assets: HfieldTables, reach: Array
) -> ContactPoints:
    """Compute the contacts of a height field and a convex geom.

    Args:
      field, geom: placed geoms, `[n, *W]`.
      assets: tables of the model.
      reach: distance up to which contacts are detected, `[n, *W]`; -NO_CONTACT_DISTANCE: skip the
        pair.
    """
    return collide_hfield(field, _convex_shapes(assets, geom), geom, assets, reach)


def collide_hfield(
    field: PlacedGeoms, solid: ConvexShape, frame: Frame, assets: HfieldTables, reach: Array
) -> ContactPoints:
    """Compute the contacts of a height field and shapes given in their own frames."""
    # Relative pose in the frame of the field; flatten pairs and worlds into lanes.
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
    dist, at, normal, dropped = _detect_contacts(assets, over, flat_reach)
    dist, at, normal = jax.tree.map(lambda x: x.reshape(-1, *shape), (dist, at, normal))
    turn = field.rot.map(lambda x: x[None])
    at = field.pos.map(lambda x: x[None]) + turn @ at
    return ContactPoints(dist, at, turn @ normal, dropped=dropped.reshape(shape))


def _convex_shapes(assets: HfieldTables, g: PlacedGeoms) -> ConvexShape:
    """Return geoms as convex shapes."""
    kind = jnp.asarray(assets.convex.geom_type, jnp.int32)[g.id]
    hulls = assets.convex.hulls
    hull = jnp.zeros_like(kind) if hulls is None else hull_of(hulls, g.id)
    return ConvexShape(kind, g.size, hull, g.size.map(jnp.zeros_like))


class _Kept(NamedTuple):
    """A contact with what its derivative needs: the features and the prism."""

    touch: tuple[Array, Vec, Vec]
    feature: Feature
    prism: Prism


@jax.custom_jvp
def _detect_contacts(
    assets: HfieldTables, over: Over, reach: Array
) -> tuple[Array, Vec, Vec, Array]:
    """Return contacts in the field's frame, `[slots, n]`, and which geoms exceeded the slots."""
    touch, filled, dropped = _search_prisms(assets, over, reach, lambda kept: kept.touch)
    return *_reshape_to_slots(touch, filled), dropped


@_detect_contacts.defjvp
def _(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    assets, over, reach = primals
    kept, filled, dropped = _search_prisms(assets, over, reach, lambda kept: kept)

    def touch(assets: HfieldTables, over: Over) -> tuple[Array, Vec, Vec]:
        # Differentiate each contact at its fixed features and prism.
        each = jax.tree.map(lambda x: jnp.broadcast_to(x, filled.shape).reshape(-1), over)
        lanes, middle = prism_pairs(assets, each, kept.prism)
        set_ = lanes.difference(assets.convex)
        dist, pos, normal = _single_contact(
            search_contacts(set_, attach_solution_derivative(set_, kept.feature), None)
        )
        return dist, pos + middle, normal

    _, change = jax.jvp(touch, (assets, over), tangents[:2])
    change = jax.tree.map(lambda x: x.reshape(filled.shape), change)
    change = jax.tree.map(lambda x: jnp.where(filled, x, 0), change)
    no_change = np.zeros(dropped.shape, jax.dtypes.float0)
    return (*_reshape_to_slots(kept.touch, filled), dropped), (*change, no_change)


def _single_contact(contacts: tuple[Array, Vec, Vec]) -> tuple[Array, Vec, Vec]:
    """Return the single contact of each prism, `[1, n]` -> `[n]`."""
    dist, pos, normal = contacts
    return dist[0], pos[0], normal[0]


def _reshape_to_slots(touch: tuple[Array, Vec, Vec], filled: Array) -> tuple[Array, Vec, Vec]:
    """Reshape contacts to slots; empty slots have a distance of NO_CONTACT_DISTANCE."""
    dist, pos, normal = jax.tree.map(lambda x: x.reshape(filled.shape), touch)
    return jnp.where(filled, dist, NO_CONTACT_DISTANCE), pos, normal


class _Line(NamedTuple):
    """The queue of the prisms under all geoms, one after another.

    Attributes:
      over: the geoms and their fields, `[n]`.
      reach: distance up to which contacts are detected, `[n]`.
      under: the prisms under each geom, `[n]`.
      begin, end: range of each geom's prisms in the queue, `[n]`.
    """

    over: Over
    reach: Array
    under: PrismRange
    begin: Array
    end: Array

    @classmethod
    def of(cls, assets: HfieldTables, over: Over, reach: Array) -> "_Line":
        """Return the queue of the prisms under geoms that are not skipped."""
        under = range_of(assets, over, reach)
        count = jnp.where(reach > -NO_CONTACT_DISTANCE / 2, under.number, 0)
        count = jnp.minimum(count, (2**31 - 1) // reach.size)  # the total fits int32
        end = jnp.cumsum(count, dtype=jnp.int32)
        return cls(over, reach, under, end - count, end)


def _search_prisms(
    assets: HfieldTables, over: Over, reach: Array, keep: Callable[[_Kept], PyTree]
) -> tuple[PyTree, Array, Array]:
    """Compute the contacts of geoms `[n]` by iterating over the queue of prisms.

    Returns:
      What `keep` selects of the contacts, `[..., slots * n]`; which slots are filled, `[slots, n]`;
      and which geoms exceeded their slots, `[n]`.
    """
    assets, over, reach = lax.stop_gradient((assets, over, reach))
    n, slots = reach.size, assets.slots
    # Queue of prisms, and the length of a chunk; most of a chunk are rejected by height.
    line = _Line.of(assets, over, reach)
    size = min(tuning().prisms_per_lane * tuning().search_lanes, n * slots)

    @functools.partial(jax.jit, inline=True)  # traced once, for its shapes and its values
    def look(start: Array, number: Array) -> tuple[PyTree, Array, Array]:
        """Process one chunk of the queue."""
        kept, place, number = _process_next_chunk(assets, line, start, number, size)
        return keep(kept), place, number

    def iterate(state: tuple) -> tuple:
        """Process one chunk and scatter its contacts to their slots."""
        start, number, kept = state
        some, place, number = look(start, number)
        put = zip(kept, pack_tables(some)[0], strict=True)
        return start + size, number, [k.at[:, place].set(s, mode="drop") for k, s in put]

    # Storage for the contacts of all slots; the loop runs over the queue.
    none = jnp.zeros_like(line.end)
    blank = jax.tree.map(
        lambda x: jnp.zeros((*x.shape[:-1], slots * n), x.dtype),
        jax.eval_shape(look, none[0], none)[0],
    )
    start, form = pack_tables(blank)
    state = (jnp.int32(0), none, start)
    _, number, kept = lax.while_loop(lambda state: state[0] < line.end[-1], iterate, state)
    filled = jnp.arange(slots, dtype=jnp.int32)[:, None] < number[None]
    dropped = (number > slots).astype(jnp.int32) if slots < MAX_CONTACTS_PER_PAIR else none
    return unpack_tables(kept, form), filled, dropped


def _process_next_chunk(
    assets: HfieldTables, line: _Line, start: Array, number: Array, size: int
) -> tuple[_Kept, Array, Array]:
    """Process the next chunk of prisms.

    Args:
      assets, line: tables and queue.
      start: index of the first prism.
      number: contacts that each geom has so far, `[n]`.
      size: prisms per chunk.

    Returns:
      The contact of each prism, `[size]`; its slot, past the end where there is no contact; and the
      new numbers.
    """
    n, slots = line.reach.size, assets.slots
    # Geom of each prism by binary search in the queue.
    item = start + jnp.arange(size, dtype=jnp.int32)
    lane = jnp.searchsorted(line.end, item, side="right").astype(jnp.int32)
    lane = jnp.minimum(lane, n - 1)
    here = lanes_at(line.over, lane)
    given = (line.under, line.begin, number, line.reach)
    under, first, so_far, limit = lanes_at(given, lane)
    # Reject prisms that are too low.
    prism = under.prism(item - first)
    tops = prism_heights(assets, here, prism)
    high = jnp.maximum(jnp.maximum(tops.x, tops.y), tops.z) >= under.low
    # One more than the slots, so that overflow is detected.
    wanted = (item < line.end[-1]) & high & (so_far <= slots)

    # GJK/EPA on the remaining prisms.
    lanes, middle = prism_pairs(assets, here, prism)
    found = search_convex_pairs(
        assets.convex, lanes, jnp.where(wanted, limit, -NO_CONTACT_DISTANCE), features=True
    )
    assert found.feature is not None
    dist, pos, normal = _single_contact(found.contacts)
    touches = (found.near & (dist < limit)).astype(jnp.int32)

    # Slot of a contact: the geom's contacts before this chunk, plus those before it in the chunk.
    before = jnp.cumsum(touches, dtype=jnp.int32) - touches
    place = so_far + before - before[jnp.maximum(first - start, 0)]
    place = jnp.where((touches > 0) & (place < slots), place * n + lane, slots * n)
    kept = _Kept((dist, pos + middle, normal), found.feature, prism)
    return kept, place, number.at[lane].add(touches)
