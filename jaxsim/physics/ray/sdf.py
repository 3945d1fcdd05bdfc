"""Ray intersections with signed distance fields, by MuJoCo's sphere tracing.

A ray at distance |d| from a surface advances by |d| until |d| vanishes; one that does not converge
within the iteration limit, for instance along a surface, hits nothing. The hit is a root of the
signed distance f, whose derivative follows implicitly: df + (grad f . u) dt = 0.
"""

import jax.numpy as jnp
from jax import lax

from jaxsim.math import Vec
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.node import node
from jaxsim.physics.collision.field.distance import Solid, distance, distance_and_slope
from jaxsim.physics.collision.field.fields import Fields, fields_of
from jaxsim.physics.collision.field.kinds import NONE
from jaxsim.physics.ray.flat import crossing
from jaxsim.physics.ray.local import NEVER, Hit, Local

TURNS = 40  # MuJoCo's iteration limit and tolerance [m]
NEAR = 1e-7
ROUNDINGS = 8  # rounding error of distances, in units of eps
GRAZING = 1e-6  # cosine below which a ray along the surface has no derivative


@node("names")
class Distances:
    """Signed distances of a model's `sdf` geoms.

    Attributes:
      names: names of their functions (static).
      fields: fields of the model.
    """

    names: tuple[str, ...]
    fields: Fields


def distances(m: Model, kinds: list[str]) -> Distances:
    """Build the signed distances of geoms from their function names, NONE for other geoms."""
    names = tuple(sorted({*kinds} - {NONE}))
    return Distances(names, fields_of(m, kinds, names))


def nearest(field: Distances, ray: Local, limit: Array) -> tuple[Array, Array]:
    """Compute distances to geoms, of the shape of `limit`, and part 0.

    Args:
      field: signed distances of the model.
      ray: the rays.
      limit: largest distance of interest [m]; below 0: none.
    """
    # The points of a ray have the rounding error of its origin.
    x, y, z = ray.pos.map(jnp.abs).parts
    reach = jnp.maximum(jnp.maximum(x, y), jnp.maximum(z, 1))
    near = jnp.maximum(NEAR, ROUNDINGS * float(jnp.finfo(limit.dtype).eps) * reach)
    # Start at the entry into the bounding box.
    enters, leaves = crossing(ray.pos, ray.way, ray.size)
    begin = jnp.maximum(enters[0], 0)
    wanted = (begin <= leaves[0]) & (begin <= limit)

    # Sphere tracing: advance by the absolute distance.
    def step(state: tuple) -> tuple:
        k, t, going, met = state
        away = jnp.abs(_distance(field, ray, t))
        t = jnp.where(going, t + away, t)
        met |= going & (away < near)
        return k + 1, t, going & ~met & (t <= limit), met

    def go_on(state: tuple) -> Array:
        k, _, going, _ = state
        return (k < TURNS) & jnp.any(going)

    start = jnp.int32(0), jnp.zeros_like(limit), wanted, jnp.zeros_like(wanted)
    _, t, _, met = lax.while_loop(go_on, step, start)
    return jnp.where(met, t, NEVER), jnp.zeros(limit.shape, jnp.int32)


def hit(field: Distances, ray: Local, dist: Array) -> Hit:
    """Differentiate a known hit by the implicit function theorem."""
    # One Newton step with the slope held constant carries the derivative; its value is zero.
    t = lax.stop_gradient(dist)
    value, slope = _slope(field, ray, t)
    along = lax.stop_gradient(slope.dot(ray.way))
    moves = jnp.abs(along) > GRAZING
    change = (value - lax.stop_gradient(value)) / jnp.where(moves, along, 1)
    t = t - jnp.where(moves, change, 0)
    return Hit(t, _slope(field, ray, t)[1].normalize())


def _distance(field: Distances, ray: Local, t: Array) -> Array:
    at, solid = _asked(field, ray, t)
    return distance(at, solid).reshape(t.shape)


def _slope(field: Distances, ray: Local, t: Array) -> tuple[Array, Vec]:
    at, solid = _asked(field, ray, t)
    value, slope = distance_and_slope(at, solid)
    return value.reshape(t.shape), slope.map(lambda x: x.reshape(t.shape))


def _asked(field: Distances, ray: Local, t: Array) -> tuple[Vec, Solid]:
    """Return points of rays, `[1, geoms * rays, *W]`, and their geoms."""

    def flat(x: Array) -> Array:
        return jnp.broadcast_to(x, t.shape).reshape(-1, *t.shape[2:])

    solid = field.fields.solid_of(flat(ray.geom), ray.size.map(flat), field.names)
    return ray.at(t).map(lambda x: flat(x)[None]), solid
