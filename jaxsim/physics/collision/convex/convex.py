"""The collider of any two convex shapes, by GJK/EPA.

The search has no derivative; it runs on compacted lanes, one per pair and world, and only for pairs
that are near. Distance, position and normal get the implicit derivative of the solution
(feature.py) by a custom JVP: the features found by the search are held, and one Newton step on
their equations is differentiated. Corresponds to `mjc_Convex` in MuJoCo.
"""

from typing import Protocol

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.enums import DisableBit
from jaxsim.math import Rot, Vec
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.physics.collision.candidates.options import Options
from jaxsim.physics.collision.convex.feature import attach_solution_derivative
from jaxsim.physics.collision.convex.hull.hulls import hull_of
from jaxsim.physics.collision.convex.patch import MAX_PATCH_POINTS
from jaxsim.physics.collision.convex.search import (
    ConvexSearchResult,
    Lanes,
    search_contacts,
    search_convex_pairs,
)
from jaxsim.physics.collision.convex.solid import Assets, ConvexShape, core_radius, core_support
from jaxsim.physics.collision.shape import ContactPoints, PlacedGeoms


class Frame(Protocol):
    """An object with a position and an orientation in the world."""

    @property
    def pos(self) -> Vec:
        """Return the position."""

    @property
    def rot(self) -> Rot:
        """Return the orientation."""


def convex_convex(a: PlacedGeoms, b: PlacedGeoms, assets: Assets, reach: Array) -> ContactPoints:
    """Compute the contacts of two convex geoms.

    Args:
      a, b: placed geoms, `[n, *W]`.
      assets: tables of the support functions.
      reach: distance up to which contacts are detected, `[n, *W]`; -NO_CONTACT_DISTANCE: skip the
        pair.
    """
    return solids_touch(assets, (solid_of(assets, a), solid_of(assets, b)), a, b, reach)


def solids_touch(
    assets: Assets, solids: tuple[ConvexShape, ConvexShape], a: Frame, b: Frame, reach: Array
) -> ContactPoints:
    """Compute the contacts of two convex shapes, each given in its own frame."""
    # Relative pose in the frame of the first shape; flatten pairs and worlds into lanes.
    pos, rot = a.rot.T @ (b.pos - a.pos), a.rot.T @ b.rot
    parts = (*solids, pos, rot)
    shape = jnp.broadcast_shapes(reach.shape, *(x.shape for x in jax.tree.leaves(parts)))
    lanes, flat_reach = jax.tree.map(
        lambda x: jnp.broadcast_to(x, shape).reshape(-1), (Lanes(*parts), reach)
    )
    dist, at, normal = _detect_contacts(assets, lanes, flat_reach)
    dist, at, normal = jax.tree.map(lambda x: x.reshape(x.shape[:-1] + shape), (dist, at, normal))
    turn = a.rot.map(lambda x: x[None])
    return ContactPoints(dist, a.pos.map(lambda x: x[None]) + turn @ at, turn @ normal)


def convex_slots(options: Options) -> int:
    """Return the number of contact slots of a pair."""
    return 1 if options.pair_flags & DisableBit.MULTICCD else MAX_PATCH_POINTS


def solid_of(assets: Assets, g: PlacedGeoms) -> ConvexShape:
    """Return geoms as convex shapes."""
    kind = jnp.asarray(assets.geom_type, jnp.int32)[g.id]
    hull = jnp.zeros_like(kind) if assets.hulls is None else hull_of(assets.hulls, g.id)
    return ConvexShape(kind, g.size, hull)


def lowest_point_over_plane(table: Assets, plane: PlacedGeoms, shape: PlacedGeoms) -> ContactPoints:
    """Return the lowest point of a shape over a plane."""
    normal, solid = plane.axis, solid_of(table, shape)
    _, point = core_support(table, solid, shape.rot.T @ -normal)
    low = shape.pos + shape.rot @ point - normal.scale(core_radius(solid))
    dist = normal.dot(low - plane.pos)
    return ContactPoints(dist, low - normal.scale(0.5 * dist), normal)


@jax.custom_jvp
def _detect_contacts(assets: Assets, lanes: Lanes, reach: Array) -> tuple[Array, Vec, Vec]:
    """Return distance, position and normal of contacts in the first shape's frame, `[k, n]`."""
    return _run_search(assets, lanes, reach, features=False)[0]


@_detect_contacts.defjvp
def _(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    assets, lanes, reach = primals
    out, found = _run_search(assets, lanes, reach, features=True)
    feature = found.feature
    assert feature is not None

    def touch(assets: Assets, lanes: Lanes, reach: Array) -> tuple[Array, Vec, Vec]:
        """Return the contacts as a differentiable function, at fixed features."""
        set_ = lanes.difference(assets)
        patch = None if found.patch is None else found.patch._replace(reach=reach)
        return search_contacts(set_, attach_solution_derivative(set_, feature), patch)

    # Differentiate at fixed features; slots without contact have zero tangents.
    _, change = jax.jvp(touch, (assets, lanes, reach), tangents)
    real = found.near[None] & (out[0] < NO_CONTACT_DISTANCE)
    change = jax.tree.map(lambda x: jnp.where(real, x, 0), change)
    return out, change


def _run_search(
    assets: Assets, lanes: Lanes, reach: Array, features: bool
) -> tuple[tuple, ConvexSearchResult]:
    """Run the search without derivatives; lanes without contacts are at NO_CONTACT_DISTANCE."""
    assets, lanes, reach = lax.stop_gradient((assets, lanes, reach))
    found = search_convex_pairs(assets, lanes, reach, features)
    dist, pos, normal = found.contacts
    return (jnp.where(found.near, dist, NO_CONTACT_DISTANCE), pos, normal), found
