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

from jaxsim.enums import DisableBit
from jaxsim.math import Rot, Vec
from jaxsim.model.data import FAR
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.collision.candidates.options import Options
from jaxsim.physics.collision.convex.feature import at_solution
from jaxsim.physics.collision.convex.hull import hull_of
from jaxsim.physics.collision.convex.patch import POINTS
from jaxsim.physics.collision.convex.search import Found, Lanes, contacts, search
from jaxsim.physics.collision.convex.solid import Assets, Solid, radius, support
from jaxsim.physics.collision.shape import Placed, Touch


class Frame(Protocol):
    """An object with a position and an orientation in the world."""

    @property
    def pos(self) -> Vec:
        """Return the position."""

    @property
    def rot(self) -> Rot:
        """Return the orientation."""


def convex_convex(a: Placed, b: Placed, assets: Assets, reach: Array) -> Touch:
    """Compute the contacts of two convex geoms.

    Args:
      a, b: placed geoms, `[n, *W]`.
      assets: tables of the support functions.
      reach: distance up to which contacts are detected, `[n, *W]`; -FAR: skip the pair.
    """
    return solids_touch(assets, (solid_of(assets, a), solid_of(assets, b)), a, b, reach)


def solids_touch(
    assets: Assets, solids: tuple[Solid, Solid], a: Frame, b: Frame, reach: Array
) -> Touch:
    """Compute the contacts of two convex shapes, each given in its own frame."""
    # Relative pose in the frame of the first shape; flatten pairs and worlds into lanes.
    pos, rot = a.rot.T @ (b.pos - a.pos), a.rot.T @ b.rot
    parts = (*solids, pos, rot)
    shape = jnp.broadcast_shapes(reach.shape, *(x.shape for x in jax.tree.leaves(parts)))
    lanes, flat_reach = jax.tree.map(
        lambda x: jnp.broadcast_to(x, shape).reshape(-1), (Lanes(*parts), reach)
    )
    dist, at, normal = _touches(assets, lanes, flat_reach)
    dist, at, normal = jax.tree.map(lambda x: x.reshape(x.shape[:-1] + shape), (dist, at, normal))
    turn = a.rot.map(lambda x: x[None])
    return Touch(dist, a.pos.map(lambda x: x[None]) + turn @ at, turn @ normal)


def convex_slots(options: Options) -> int:
    """Return the number of contact slots of a pair."""
    return 1 if options.pair_flags & DisableBit.MULTICCD else POINTS


def solid_of(assets: Assets, g: Placed) -> Solid:
    """Return geoms as convex shapes."""
    kind = jnp.asarray(assets.geom_type, jnp.int32)[g.id]
    hull = jnp.zeros_like(kind) if assets.hulls is None else hull_of(assets.hulls, g.id)
    return Solid(kind, g.size, hull)


def over_plane(table: Assets, plane: Placed, shape: Placed) -> Touch:
    """Return the lowest point of a shape over a plane."""
    normal, solid = plane.axis, solid_of(table, shape)
    _, point = support(table, solid, shape.rot.T @ -normal)
    low = shape.pos + shape.rot @ point - normal.scale(radius(solid))
    dist = normal.dot(low - plane.pos)
    return Touch(dist, low - normal.scale(0.5 * dist), normal)


@jax.custom_jvp
def _touches(assets: Assets, lanes: Lanes, reach: Array) -> tuple[Array, Vec, Vec]:
    """Return distance, position and normal of contacts in the first shape's frame, `[k, n]`."""
    return _found(assets, lanes, reach, features=False)[0]


@_touches.defjvp
def _(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    assets, lanes, reach = primals
    out, found = _found(assets, lanes, reach, features=True)
    feature = found.feature
    assert feature is not None

    def touch(assets: Assets, lanes: Lanes, reach: Array) -> tuple[Array, Vec, Vec]:
        """Return the contacts as a differentiable function, at fixed features."""
        set_ = lanes.difference(assets)
        patch = None if found.patch is None else found.patch._replace(reach=reach)
        return contacts(set_, at_solution(set_, feature), patch)

    # Differentiate at fixed features; slots without contact have zero tangents.
    _, change = jax.jvp(touch, (assets, lanes, reach), tangents)
    real = found.near[None] & (out[0] < FAR)
    change = jax.tree.map(lambda x: jnp.where(real, x, 0), change)
    return out, change


def _found(assets: Assets, lanes: Lanes, reach: Array, features: bool) -> tuple[tuple, Found]:
    """Run the search without derivatives; lanes without contacts have a distance of FAR."""
    assets, lanes, reach = lax.stop_gradient((assets, lanes, reach))
    found = search(assets, lanes, reach, features)
    dist, pos, normal = found.contacts
    return (jnp.where(found.near, dist, FAR), pos, normal), found
