"""Speculative contacts among the contacts of the present poses.

A fast pair without an active contact is advanced to its impact (advance.py); the contact points
there are moved back with their geoms to the present poses, and get the effective distance that
stops the geoms at the impact (distance.py). Points that another geom hides are discarded
(sight.py).
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import GeomType
from jaxsim.math import Vec
from jaxsim.model.data import FAR, Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import take
from jaxsim.physics.collision.ahead.advance import advance
from jaxsim.physics.collision.ahead.distance import effective_distance
from jaxsim.physics.collision.ahead.motion import Moving, fast, may_meet, moving
from jaxsim.physics.collision.ahead.sight import Way, in_sight, obstacles
from jaxsim.physics.collision.candidates.plan import Group, Layout
from jaxsim.physics.collision.convex.convex import convex_convex, over_plane
from jaxsim.physics.collision.convex.solid import Assets, assets
from jaxsim.physics.collision.driver import Points, as_soft, joined_points
from jaxsim.physics.collision.flex.item import no_item
from jaxsim.physics.collision.ids import Fixed
from jaxsim.physics.collision.params import ContactParams
from jaxsim.physics.collision.shape import Placed, Touch, slots


def with_ahead(
    m: Model,
    d: Data,
    points: Points,
    geoms: Placed,
    reach: Array,
    params: ContactParams,
    plan: Layout,
) -> Points:
    """Replace the candidate contacts of pairs that will collide by their speculative contacts.

    `reach` is -FAR for pairs that a callback rejects.
    """
    every = moving(m, d, geoms)
    # Pairs with an active contact, or rejected by the callback, are not advanced.
    acts = _pairs_with(
        points, points.found & (points.touch.dist < _of(points, params.margin)), plan
    )
    barred = acts | jnp.broadcast_to(reach <= -FAR, acts.shape)
    ahead = [_group_points(m, d, group, every, params, plan, acts, barred) for group in plan.ahead]
    if plan.soft:
        none = no_item(m.structure)
        ahead = [as_soft(p, g, plan, none) for p, g in zip(ahead, plan.ahead, strict=True)]
    # A pair with speculative contacts drops its present ones.
    meets = jnp.zeros_like(acts)
    for p in ahead:
        meets = meets | _pairs_with(p, p.found, plan)
    points = points._replace(found=points.found & ~_of(points, meets))
    return joined_points([points, *ahead])


def _of(points: Points, x: Array) -> Array:
    """Gather values of pairs, `[npairs, *W]`, for each point."""
    return points.pair.take(jnp.broadcast_to(x, (len(x), *points.found.shape[1:])))


def _pairs_with(points: Points, mask: Array, plan: Layout) -> Array:
    """Return which pairs have a point with a true `mask`, `[npairs, *W]` bool."""
    none = jnp.zeros((len(plan.pairs.dim), *mask.shape[1:]), bool)
    if isinstance(points.pair, Fixed):
        return none.at[np.array(points.pair.id)].max(mask)
    pair = points.pair.array(mask)
    worlds = () if mask.ndim == 1 else (jnp.arange(mask.shape[1])[None],)
    return none.at[(pair, *worlds)].max(mask)


def _group_points(
    m: Model,
    d: Data,
    group: Group,
    every: Moving,
    params: ContactParams,
    plan: Layout,
    acts: Array,
    barred: Array,
) -> Points:
    """Compute the speculative contacts of a group of pairs, except the `barred` ones."""
    geom1, geom2 = plan.pairs.geom1[group.pairs], plan.pairs.geom2[group.pairs]
    plane = group.kinds[0][0] == GeomType.PLANE
    a, b = take(every, geom1), take(every, geom2)
    of_group = take(params, group.pairs)
    # Broad phase: fast pairs whose swept bounding spheres touch.
    wanted = ~take(barred, group.pairs) & fast(a, b, plane)
    wanted &= may_meet(a, b, of_group.margin + of_group.gap, plane)

    # Time of impact, and the contact points at that pose.
    table = replace(assets(m), patches=False)
    nearest = partial(_over if plane else _between, table)
    meeting = advance(nearest, a, b, of_group.margin, wanted)
    ends = group.collider.collide(m, a.at(meeting.pose), b.at(meeting.pose), meeting)
    # Move the points back to the present poses; the contact is between them, weighted by travel.
    pose = meeting.pose[None]
    one = Way(slots(a).brought_back(pose, ends.one), ends.one)
    other = Way(slots(b).brought_back(pose, ends.other), ends.other)
    share = a.travel / jnp.where(meeting.there, a.travel + b.travel, 1.0)
    at = one.start.scale(share[None]) + other.start.scale(1 - share[None])

    # Line of sight, then the effective distance.
    hides = obstacles(m, plan, geom1, geom2, acts), obstacles(m, plan, geom2, geom1, acts)
    there = ends.there & in_sight(m, d, (one, other), hides, b.travel > a.travel)
    away = effective_distance(m, of_group, meeting.t, meeting.closing)
    away = jnp.where(there, away[None], FAR)
    ahead = jnp.ones(there.shape, bool)

    def flat(x: Array) -> Array:
        return jnp.broadcast_to(x, there.shape).reshape(-1, *there.shape[2:])

    touch = jax.tree.map(flat, Touch(away, at, slots(meeting.normal), ahead=ahead))
    return Points(touch, Fixed.of(group.pairs).repeated(group.slots), flat(there))


def _between(
    table: Assets, a: Moving, b: Moving, t: Array, wanted: Array
) -> tuple[Array, Vec, Vec]:
    """Return distance, midpoint and normal of two convex geoms at a fraction of the step."""
    touch = convex_convex(a.at(t), b.at(t), table, jnp.where(wanted, FAR / 4, -FAR))
    return touch.dist[0], touch.pos.map(lambda x: x[0]), touch.normal.map(lambda x: x[0])


def _over(table: Assets, a: Moving, b: Moving, t: Array, wanted: Array) -> tuple[Array, Vec, Vec]:
    """Return distance, midpoint and normal of a plane and a convex geom at a fraction of a step."""
    touch = over_plane(table, a.at(t), b.at(t))
    return touch.dist, touch.pos, touch.normal
