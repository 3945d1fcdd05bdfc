"""Frank-Wolfe search for the points of a triangle that are deepest in a signed distance field.

A face that may reach into the geom is searched from several initial points by the Frank-Wolfe
method (conditional gradient): step k moves towards the corner in whose direction the distance
decreases most, by 2 / (k + 2) of the way. Step k = 0 ends in that corner, so all searches of a face
follow one of three paths, which are computed once each (`_corner_searches`); `way` is the path of a
search.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.enums import MINVAL
from jaxsim.math import Vec, safe_divide, safe_sqrt
from jaxsim.physics.collision.field.distance import SdfGeoms, distance_and_slope, signed_distance
from jaxsim.physics.collision.field.fields import SdfTables
from jaxsim.physics.collision.field.initial_points import radical_inverse
from jaxsim.physics.collision.field.mesh_faces import CORNERS_PER_FACE
from jaxsim.physics.collision.shape import choose_static, per_slot

_START_HEIGHT = (
    0.1  # height of a point above a face, relative to its distance; also the least one [m]
)


class Searched(NamedTuple):
    """Searches of faces `[n, *W]`.

    Attributes:
      x, dist: ends of the three paths, `[3, n, *W]`, and the distances there.
      way: path of each search, `[starts, n, *W]`.
      hit: whether the search ends in the geom, `[starts, n, *W]`.
    """

    x: Vec
    dist: Array
    way: Array
    hit: Array

    def first(self, hit: Array) -> list[Array]:
        """Return the first search with `hit` on each path, `[1, n, *W]`; their number if none."""
        count = len(self.way)
        number = jnp.arange(count, dtype=jnp.int32).reshape(-1, *(1,) * (self.way.ndim - 1))
        return [
            jnp.min(jnp.where(hit & (self.way == k), number, count), axis=0, keepdims=True)
            for k in range(CORNERS_PER_FACE)
        ]


def search_faces(
    corners: tuple[Vec, ...], wanted: Array, solid: SdfGeoms, fields: SdfTables
) -> Searched:
    """Search faces `[1, n, *W]` where `wanted`."""
    # Follow all three paths, and assign each initial point to its path.
    x, dist = _corner_searches(corners, solid, fields.iterations)
    way = _steepest_corner(_starts(corners, max(1, fields.starts)), corners, solid)
    hit = wanted & (choose_static(way, [dist[k : k + 1] for k in range(CORNERS_PER_FACE)]) < 0)
    return Searched(x, dist, way, hit)


def may_reach(corners: tuple[Vec, ...], solid: SdfGeoms) -> Array:
    """Return whether a sphere through the corners of a face reaches into a geom, as in MuJoCo.

    The sphere also passes through a point above the middle of the face, on the side away from the
    geom, at a tenth of its distance. Near the geom it is the sphere around the middle with the
    circumradius of the corners.
    """
    a, b, c = corners
    middle = (a + b + c).scale(1 / 3)
    near = signed_distance(middle, solid)
    ab, bc, ca = (v.norm() for v in (b - a, c - b, a - c))
    # Circumradius from Heron's formula.
    half = 0.5 * (ab + bc + ca)
    area = safe_sqrt(half * (half - ab) * (half - bc) * (half - ca))
    flat = near < ab * bc * ca / (4 * jnp.maximum(area, MINVAL))

    # Circumsphere of the corners and the point above.
    top = middle + (b - a).cross(c - a).normalize().scale(_START_HEIGHT * near)
    p, q, r = (corner - top for corner in corners)
    qr, rp, pq = q.cross(r), r.cross(p), p.cross(q)
    volume = 2 * p.dot(qr)
    center = qr.scale(p.dot(p)) + rp.scale(q.dot(q)) + pq.scale(r.dot(r))
    center = center.scale(safe_divide(1.0, volume))
    around = signed_distance(top + center, solid) < center.norm()
    around = jnp.where(jnp.abs(volume) < MINVAL, near < ab, around)
    return jnp.where(_START_HEIGHT * jnp.abs(near) < _START_HEIGHT, flat, around)


def _starts(corners: tuple[Vec, ...], count: int) -> Vec:
    """Return points of a Halton sequence on faces, `[count, n, *W]`."""
    u, v = (radical_inverse(count + 1, base)[1:] for base in (2, 3))
    # Fold the unit square onto the triangle.
    over = u + v > 1
    u, v = abs(over - u), abs(over - v)
    # Barycentric coordinates to points.
    shares = (per_slot(share, corners[0].x[0]) for share in (1 - u - v, u, v))
    a, b, c = (corner.scale(share) for corner, share in zip(corners, shares, strict=True))
    return a + b + c


def _corner_searches(
    corners: tuple[Vec, ...], solid: SdfGeoms, iterations: int
) -> tuple[Vec, Array]:
    """Return the ends of the searches that move to each of the corners first, `[3, n, *W]`."""
    start = Vec(*(jnp.concatenate([c.parts[k] for c in corners]) for k in range(3)))

    def step(k, x: Vec) -> Vec:
        """Take one Frank-Wolfe step."""
        way = _steepest_corner(x, corners, solid)
        return x + (choose_static(way, corners) - x).scale(2 / (k + 2).astype(x.x.dtype))

    x = lax.fori_loop(1, max(1, iterations), step, start)
    return x, signed_distance(x, solid)


def _steepest_corner(x: Vec, corners: tuple[Vec, ...], solid: SdfGeoms) -> Array:
    """Return the first corner in whose direction the distance decreases most."""
    slope = distance_and_slope(x, solid)[1]
    a, b, c = (slope.dot(corner) for corner in corners)
    return jnp.where((b < a) & (b <= c), 1, jnp.where((c < a) & (c < b), 2, 0)).astype(jnp.int32)
