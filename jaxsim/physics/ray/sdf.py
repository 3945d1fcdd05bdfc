"""Ray intersections with signed distance fields, by MuJoCo's sphere tracing.

A ray at distance |d| from a surface advances by |d| until |d| vanishes; one that does not converge
within the iteration limit, for instance along a surface, hits nothing. The hit is a root of the
signed distance f, whose derivative follows implicitly: df + (grad f . u) dt = 0.
"""

import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.node import node
from jaxsim.math import Vec
from jaxsim.model.model import Model
from jaxsim.physics.collision.field.distance import SdfGeoms, distance_and_slope, signed_distance
from jaxsim.physics.collision.field.fields import SdfTables, fields_of
from jaxsim.physics.collision.field.kinds import NO_SDF
from jaxsim.physics.ray.local_rays import NO_HIT, Hit, LocalRays
from jaxsim.physics.ray.plane_box import box_crossings

_MAX_SPHERE_TRACING_STEPS = 40  # MuJoCo's iteration limit and tolerance [m]
_HIT_TOLERANCE = 1e-7
_DISTANCE_ROUNDING_ULPS = 8  # rounding error of distances, in units of eps
_MIN_INCIDENCE_COSINE = 1e-6  # cosine below which a ray along the surface has no derivative


@node("names")
class Distances:
    """Signed distances of a model's `sdf` geoms.

    Attributes:
      names: names of their functions (static).
      fields: fields of the model.
    """

    names: tuple[str, ...]
    fields: SdfTables


def ray_distance_fields(m: Model, kinds: list[str]) -> Distances:
    """Build the signed distances of geoms from their function names, NONE for other geoms."""
    names = tuple(sorted({*kinds} - {NO_SDF}))
    return Distances(names, fields_of(m, kinds, names))


def nearest_sdf_hit(field: Distances, ray: LocalRays, limit: Array) -> tuple[Array, Array]:
    """Compute distances to geoms, of the shape of `limit`, and part 0.

    Args:
      field: signed distances of the model.
      ray: the rays.
      limit: largest distance of interest [m]; below 0: none.
    """
    # The points of a ray have the rounding error of its origin.
    x, y, z = ray.pos.map(jnp.abs).parts
    reach = jnp.maximum(jnp.maximum(x, y), jnp.maximum(z, 1))
    near = jnp.maximum(
        _HIT_TOLERANCE, _DISTANCE_ROUNDING_ULPS * float(jnp.finfo(limit.dtype).eps) * reach
    )
    # Start at the entry into the bounding box.
    enters, leaves = box_crossings(ray.pos, ray.way, ray.size)
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
        return (k < _MAX_SPHERE_TRACING_STEPS) & jnp.any(going)

    start = jnp.int32(0), jnp.zeros_like(limit), wanted, jnp.zeros_like(wanted)
    _, t, _, met = lax.while_loop(go_on, step, start)
    return jnp.where(met, t, NO_HIT), jnp.zeros(limit.shape, jnp.int32)


def intersect_sdf_surface(field: Distances, ray: LocalRays, dist: Array) -> Hit:
    """Differentiate a known hit by the implicit function theorem."""
    # One Newton step with the slope held constant carries the derivative; its value is zero.
    t = lax.stop_gradient(dist)
    value, slope = _distance_slope(field, ray, t)
    along = lax.stop_gradient(slope.dot(ray.way))
    moves = jnp.abs(along) > _MIN_INCIDENCE_COSINE
    change = (value - lax.stop_gradient(value)) / jnp.where(moves, along, 1)
    t = t - jnp.where(moves, change, 0)
    return Hit(t, _distance_slope(field, ray, t)[1].normalize())


def _distance(field: Distances, ray: LocalRays, t: Array) -> Array:
    at, solid = _query_points(field, ray, t)
    return signed_distance(at, solid).reshape(t.shape)


def _distance_slope(field: Distances, ray: LocalRays, t: Array) -> tuple[Array, Vec]:
    at, solid = _query_points(field, ray, t)
    value, slope = distance_and_slope(at, solid)
    return value.reshape(t.shape), slope.map(lambda x: x.reshape(t.shape))


def _query_points(field: Distances, ray: LocalRays, t: Array) -> tuple[Vec, SdfGeoms]:
    """Return points of rays, `[1, geoms * rays, *W]`, and their geoms."""

    def flat(x: Array) -> Array:
        return jnp.broadcast_to(x, t.shape).reshape(-1, *t.shape[2:])

    solid = field.fields.solid_of(flat(ray.geom), ray.size.map(flat), field.names)
    return ray.at(t).map(lambda x: flat(x)[None]), solid
