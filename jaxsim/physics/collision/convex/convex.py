"""The collider of any two convex shapes.

Contacts are searched without derivative, for the pairs of all worlds one after another, only where
two geoms are near. Their distances, positions and normals have the derivatives of the solution: see
feature.py.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.math import Vec
from jaxsim.model.data import FAR
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.collision.convex.difference import Difference
from jaxsim.physics.collision.convex.feature import Feature, at_solution, contact
from jaxsim.physics.collision.convex.hull import hull_of
from jaxsim.physics.collision.convex.search import Lanes, search
from jaxsim.physics.collision.convex.solid import Assets, Solid, radius
from jaxsim.physics.collision.shape import Placed, Touch


def convex_convex(a: Placed, b: Placed, assets: Assets, reach: Array) -> Touch:
    """Contacts of two convex shapes.

    Args:
      a, b: placed geoms, `[n, *W]`.
      assets: what the support functions need.
      reach: distances up to which contacts are found, `[n, *W]`; negative: not at all.
    """
    pos, rot = a.rot.T @ (b.pos - a.pos), a.rot.T @ b.rot
    parts = (_solid(assets, a), _solid(assets, b), pos, rot)
    shape = jnp.broadcast_shapes(reach.shape, *(x.shape for x in jax.tree.leaves(parts)))
    lanes, flat_reach = jax.tree.map(
        lambda x: jnp.broadcast_to(x, shape).reshape(-1), (Lanes(*parts), reach)
    )
    dist, at, normal = _touches(assets, lanes, flat_reach)
    dist, at, normal = jax.tree.map(lambda x: x.reshape(x.shape[:-1] + shape), (dist, at, normal))
    turn = a.rot.map(lambda x: x[None])
    return Touch(dist, a.pos.map(lambda x: x[None]) + turn @ at, turn @ normal)


def _solid(assets: Assets, g: Placed) -> Solid:
    kind = jnp.asarray(assets.geom_type, jnp.int32)[g.id]
    hull = jnp.zeros_like(kind) if assets.hulls is None else hull_of(assets.hulls, g.id)
    return Solid(kind, g.size, hull)


@functools.partial(jax.custom_jvp, nondiff_argnums=())
def _touches(assets: Assets, lanes: Lanes, reach: Array) -> tuple[Array, Vec, Vec]:
    """Distance, position and normal of contacts in the frame of the first shape, `[k, n]`."""
    return _found(assets, lanes, reach)[0]


@_touches.defjvp
def _(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    assets, lanes, reach = primals
    out, feature, near = _found(assets, lanes, reach)

    def touch(assets: Assets, lanes: Lanes) -> tuple[Array, Vec, Vec]:
        return _contact(lanes.difference(assets), at_solution(lanes.difference(assets), feature))

    _, change = jax.jvp(touch, (assets, lanes), tangents[:2])
    change = jax.tree.map(lambda x: jnp.where(near & jnp.isfinite(x), x, 0), change)
    return out, change


def _found(assets: Assets, lanes: Lanes, reach: Array) -> tuple[tuple, Feature, Array]:
    assets, lanes, reach = lax.stop_gradient((assets, lanes, reach))
    cutoff = reach + radius(lanes.a) + radius(lanes.b)
    feature, near = search(assets, lanes, reach > -FAR / 2, cutoff, assets.turns)
    dist, pos, normal = _contact(lanes.difference(assets), feature)
    return (jnp.where(near, dist, FAR), pos, normal), feature, near


def _contact(set_: Difference, f: Feature) -> tuple[Array, Vec, Vec]:
    """The contact at the nearest points, `[1, n]`."""
    return jax.tree.map(lambda x: x[None], contact(set_, f))
