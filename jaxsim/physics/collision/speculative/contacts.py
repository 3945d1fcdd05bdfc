"""Speculative contacts among the contacts of the present poses.

A fast pair without an active contact is advanced to its impact (conservative_advancement.py); the
contact points there are moved back with their geoms to the present poses, and get the effective
distance that stops the geoms at the impact (MuJoCo's documentation, Computation: Speculative
contacts, Effective contact distance). Points that another geom hides are discarded
(line_of_sight.py).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.enums import MAXIMP, MINIMP, MINVAL, DisableBit, GeomType
from jaxsim.math import Vec
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.collision.candidates.plan import CollisionLayout, PairGroup
from jaxsim.physics.collision.contact_ids import StaticIds
from jaxsim.physics.collision.convex.convex import convex_convex, lowest_point_over_plane
from jaxsim.physics.collision.convex.solid import Assets, convex_assets
from jaxsim.physics.collision.driver import extend_to_flex_contacts, joined_points
from jaxsim.physics.collision.flex.item import no_item
from jaxsim.physics.collision.params import ContactParams
from jaxsim.physics.collision.shape import (
    CandidatePoints,
    ContactPoints,
    PlacedGeoms,
    PointTable,
    add_slot_axis,
)
from jaxsim.physics.collision.speculative.conservative_advancement import conservative_advancement
from jaxsim.physics.collision.speculative.line_of_sight import Way, has_line_of_sight, obstacles
from jaxsim.physics.collision.speculative.motion import (
    Moving,
    geom_motions,
    is_fast,
    spheres_can_touch,
)
from jaxsim.physics.constraint.impedance import time_constants
from jaxsim.physics.integrate.discrete import is_discrete


def add_speculative_contacts(
    m: Model,
    d: Data,
    points: CandidatePoints,
    geoms: PlacedGeoms,
    reach: Array,
    params: ContactParams,
    plan: CollisionLayout,
) -> CandidatePoints:
    """Replace the candidate contacts of pairs that will collide by their speculative contacts.

    `reach` is -NO_CONTACT_DISTANCE for pairs that a callback rejects.
    """
    every = geom_motions(m, d, geoms)
    # Pairs with an active contact, or rejected by the callback, are not advanced.
    acts = _pairs_with(
        points, points.found & (points.touch.dist < _gather_for_points(points, params.margin)), plan
    )
    barred = acts | jnp.broadcast_to(reach <= -NO_CONTACT_DISTANCE, acts.shape)
    speculative = [
        _group_points(m, d, group, every, params, plan, acts, barred) for group in plan.speculative
    ]
    if plan.flex_groups:
        none = no_item(m.structure)
        speculative = [
            extend_to_flex_contacts(p, g, plan, none)
            for p, g in zip(speculative, plan.speculative, strict=True)
        ]
    # A pair with speculative contacts drops its present ones.
    meets = jnp.zeros_like(acts)
    for p in speculative:
        meets = meets | _pairs_with(p, p.found, plan)
    points = points._replace(found=points.found & ~_gather_for_points(points, meets))
    return joined_points([points, *speculative])


def _gather_for_points(points: CandidatePoints, x: Array) -> Array:
    """Gather values of pairs, `[npairs, *W]`, for each point."""
    return points.pair.take(jnp.broadcast_to(x, (len(x), *points.found.shape[1:])))


def _pairs_with(points: CandidatePoints, mask: Array, plan: CollisionLayout) -> Array:
    """Return which pairs have a point with a true `mask`, `[npairs, *W]` bool."""
    none = jnp.zeros((len(plan.pairs.dim), *mask.shape[1:]), bool)
    if isinstance(points.pair, StaticIds):
        return none.at[np.array(points.pair.id)].max(mask)
    pair = points.pair.array(mask)
    worlds = () if mask.ndim == 1 else (jnp.arange(mask.shape[1])[None],)
    return none.at[(pair, *worlds)].max(mask)


def _group_points(
    m: Model,
    d: Data,
    group: PairGroup,
    every: Moving,
    params: ContactParams,
    plan: CollisionLayout,
    acts: Array,
    barred: Array,
) -> CandidatePoints:
    """Compute the speculative contacts of a group of pairs, except the `barred` ones."""
    geom1, geom2 = plan.pairs.geom1[group.pairs], plan.pairs.geom2[group.pairs]
    plane = group.kinds[0][0] == GeomType.PLANE
    a, b = gather_static(every, geom1), gather_static(every, geom2)
    of_group = gather_static(params, group.pairs)
    # Broad phase: fast pairs whose swept bounding spheres touch.
    wanted = ~gather_static(barred, group.pairs) & is_fast(a, b, plane)
    wanted &= spheres_can_touch(a, b, of_group.margin + of_group.gap, plane)

    # Time of impact, and the contact points at that pose.
    table = replace(convex_assets(m), patches=False)
    nearest = partial(_plane_distance if plane else _convex_distance, table)
    meeting = conservative_advancement(nearest, a, b, of_group.margin, wanted)
    ends = group.collider.collide(m, a.at(meeting.pose), b.at(meeting.pose), meeting)
    # Move the points back to the present poses; the contact is between them, weighted by travel.
    pose = meeting.pose[None]
    one = Way(add_slot_axis(a).brought_back(pose, ends.one), ends.one)
    other = Way(add_slot_axis(b).brought_back(pose, ends.other), ends.other)
    share = a.travel / jnp.where(meeting.there, a.travel + b.travel, 1.0)
    at = one.start.scale(share[None]) + other.start.scale(1 - share[None])

    # Line of sight, then the effective distance.
    hides = obstacles(m, plan, geom1, geom2, acts), obstacles(m, plan, geom2, geom1, acts)
    there = ends.there & has_line_of_sight(m, d, (one, other), hides, b.travel > a.travel)
    away = _effective_distance(m, of_group, meeting.t, meeting.closing)
    away = jnp.where(there, away[None], NO_CONTACT_DISTANCE)
    speculative = jnp.ones(there.shape, bool)

    def flat(x: Array) -> Array:
        return jnp.broadcast_to(x, there.shape).reshape(-1, *there.shape[2:])

    touch = jax.tree.map(
        flat, ContactPoints(away, at, add_slot_axis(meeting.normal), speculative=speculative)
    )
    pair = StaticIds.of(group.pairs).repeated(group.slots)
    return CandidatePoints(PointTable((touch,)), pair, flat(there))


def _convex_distance(
    table: Assets, a: Moving, b: Moving, t: Array, wanted: Array
) -> tuple[Array, Vec, Vec]:
    """Return distance, midpoint and normal of two convex geoms at a fraction of the step."""
    touch = convex_convex(
        a.at(t), b.at(t), table, jnp.where(wanted, NO_CONTACT_DISTANCE / 4, -NO_CONTACT_DISTANCE)
    )
    return touch.dist[0], touch.pos.map(lambda x: x[0]), touch.normal.map(lambda x: x[0])


def _plane_distance(
    table: Assets, a: Moving, b: Moving, t: Array, wanted: Array
) -> tuple[Array, Vec, Vec]:
    """Return distance, midpoint and normal of a plane and a convex geom at a fraction of a step."""
    touch = lowest_point_over_plane(table, a.at(t), b.at(t))
    return touch.dist, touch.pos, touch.normal


def _effective_distance(m: Model, params: ContactParams, t: Array, closing: Array) -> Array:
    """Return the distance at which a row removes 1 - t of the approach speed in one step.

        dist = margin - closing (1 - t - b) / k

    with stiffness k and damping b of one step. Under the discrete integrator, which divides by 1 +
    b + k, the numerator is 1 - t - t (b + k). Without stiffness it is one impedance width below the
    margin.

    Args:
      m: model.
      params: parameters of the pairs, `[n, *W]`.
      t: time of impact, as a fraction of the step.
      closing: approach speed, per step [m].
    """
    k, b = _row_stiffness_damping(m, params.solref, params.solimp[1])
    damped = t * (b + k) if is_discrete(m) else b
    firm = k > MINVAL
    depth = closing * (1 - t - damped) / jnp.where(firm, k, 1.0)
    return params.margin - jnp.where(firm, depth, params.solimp[2])


def _row_stiffness_damping(m: Model, solref: Sequence[Array], dmax: Array) -> tuple[Array, Array]:
    """Return stiffness h^2 K d^2 and damping h B d of a row, d its largest impedance.

    They are those of the rows (constraint/impedance.py), which are limited to stable values unless
    the flag refsafe is disabled.
    """
    # Standard (positive) or direct (negative) format of solref.
    time, ratio = solref
    h, (standard, tc, dr) = m.opt.timestep, time_constants(m, solref)
    k = jnp.where(standard, (h / jnp.maximum(MINVAL, tc * dr)) ** 2, -time * h * h)
    b = jnp.where(ratio > 0, 2 * h / tc, -ratio * h)
    if is_discrete(m) and not m.opt.disableflags & DisableBit.REFSAFE:
        # Refsafe: limit the stiffness and keep the damping ratio.
        stiffest = jnp.clip(dmax, MINIMP, MAXIMP)
        abrupt = standard & (k > stiffest)
        b = jnp.where(abrupt, 2 * dr * jnp.sqrt(stiffest), b)
        k = jnp.where(abrupt, stiffest, k)
    return k, b
