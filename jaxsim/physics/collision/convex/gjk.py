"""The point of a convex set nearest to the origin, by the GJK algorithm.

E. G. Gilbert, D. W. Johnson, S. S. Keerthi, A fast procedure for computing the distance between
complex objects in three-dimensional space, 1988. The set is given by its support function. The
simplex is stored as a triangle, which may have equal corners (an edge or a point): in each
iteration the support point towards the origin makes it a tetrahedron, and the part of that nearest
to the origin is the next triangle. All lanes iterate together; a lane that is `done` keeps its
result.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.math import Vec, select_where
from jaxsim.physics.collision.convex.difference import Corner, Difference, same_features
from jaxsim.transforms.materialize import materialize_decision, zeros_from_shapes

Triangle = tuple[Corner, Corner, Corner]


class GjkResult(NamedTuple):
    """Result of the search.

    Attributes:
      triangle: corners of the simplex, some of which may be equal.
      weight: barycentric coordinates of the nearest point.
      inside: the origin is in the set, up to rounding.
      apart: the set is farther than the cutoff; the rest is then arbitrary.
    """

    triangle: Triangle
    weight: tuple[Array, Array, Array]
    inside: Array
    apart: Array


class _State(NamedTuple):
    """State of the iteration over all lanes."""

    found: GjkResult
    point: Vec
    scale: Array  # largest coordinate seen
    done: Array
    iteration: Array


def gjk_nearest(set_: Difference, cutoff: Array, max_iterations: int) -> GjkResult:
    """Return the point of a set nearest to the origin.

    Args:
      set_: `[n]` sets.
      cutoff: distances beyond this need not be computed, `[n]`.
      max_iterations: limit of iterations.
    """
    judge = functools.partial(_next_lane_state, float(jnp.finfo(set_.pos.x.dtype).eps))
    zero = jnp.zeros_like(set_.pos.x)
    false = jnp.zeros_like(zero, bool)

    def iteration(s: _State) -> _State:
        """Add the support point towards the origin and reduce the simplex."""
        x = s.point
        square = x.dot(x)
        new = set_.farthest(-x)
        # Support in the direction of the nearest point: a lower bound of the distance, times |x|.
        ahead = x.dot(new.y)
        scale = jnp.maximum(s.scale, _max_abs(new.y))
        known = same_features(new, s.found.triangle[0])
        for corner in s.found.triangle[1:]:
            known = known | same_features(new, corner)
        triangle, weight, point, within = _reduce_simplex(new, s.found.triangle)
        # The first iteration starts the simplex with the support point.
        start = s.iteration == 0
        triangle = select_where(start, (new, new, new), triangle)
        weight = select_where(start, (zero + 1, zero, zero), weight)
        point = select_where(start, new.y, point)
        # Decide whether a lane is done: inside, converged, or beyond the cutoff.
        next_square = point.dot(point)
        verdict = materialize_decision(
            judge, start, square, ahead, known, next_square, within, scale, cutoff
        )
        keep = s.done | (verdict >= CONVERGED)
        found = select_where(keep, s.found, GjkResult(triangle, weight, verdict == INSIDE, false))
        found = found._replace(apart=s.found.apart | (~s.done & (verdict == SEPARATED)))
        done = s.done | (verdict != CONTINUE)
        return _State(found, select_where(keep, x, point), scale, done, s.iteration + 1)

    nothing = zeros_from_shapes(jax.eval_shape(set_.farthest, set_.pos))
    found = GjkResult((nothing, nothing, nothing), (zero, zero, zero), false, false)
    # Initial direction: the difference of the centers, a point of the set.
    state = _State(found, -set_.pos, zero, false, jnp.int32(0))

    def not_converged(s: _State) -> Array:
        """Return whether some lane has not converged."""
        return (s.iteration <= max_iterations) & ~jnp.all(s.done)

    return lax.while_loop(not_converged, iteration, state).found


CONTINUE, INSIDE, CONVERGED, SEPARATED = range(4)


def _next_lane_state(
    eps: float,
    start: Array,
    square: Array,
    ahead: Array,
    known: Array,
    next_square: Array,
    within: Array,
    scale: Array,
    cutoff: Array,
) -> Array:
    """Return the state of a lane: go on, origin inside, converged, or farther than the cutoff."""
    # Farther than the cutoff: the support value bounds the distance from below.
    apart = (ahead > 0) & (ahead * ahead > cutoff * cutoff * square) & (cutoff >= 0)
    # Converged: the new vertex is known, or reduces the distance by rounding errors only.
    known = known & (square - ahead <= 1e-4 * square)  # a curved feature has many support points
    still = (square - ahead <= 8 * eps * jnp.maximum(square, eps * scale * scale)) | known
    # The origin is inside or at the boundary, or rounding made the point worse.
    tiny = next_square <= (16 * eps * scale) ** 2
    worse = ~within & ~tiny & (next_square >= square)
    verdict = jnp.where(within | tiny, INSIDE, CONTINUE)
    verdict = jnp.where(still | worse, CONVERGED, verdict)
    first = jnp.where(next_square <= 0, INSIDE, CONTINUE)
    return jnp.where(apart, SEPARATED, jnp.where(start, first, verdict)).astype(jnp.int32)


def _max_abs(y: Vec) -> Array:
    """Return the largest absolute coordinate."""
    return jnp.maximum(jnp.maximum(jnp.abs(y.x), jnp.abs(y.y)), jnp.abs(y.z))


# parts: three edges, three triangles
SECOND, THIRD = (0, 1, 2, 0, 1, 2), (None, None, None, 1, 2, 0)


def _reduce_simplex(
    new: Corner, old: Triangle
) -> tuple[Triangle, tuple[Array, Array, Array], Vec, Array]:
    """Return the part of a tetrahedron nearest to the origin, which contains the new corner.

    Returns:
      Its corners; their weights; its nearest point; whether the origin is in the tetrahedron.
    """
    edges = tuple(corner.y - new.y for corner in old)
    # Select the edge or triangle, then compute the barycentric coordinates on it.
    code = materialize_decision(_nearest_part, new.y, edges)
    within, part = code >= _ORIGIN_INSIDE, code % _ORIGIN_INSIDE
    second, third = old[0], new
    for k in range(6):
        later = THIRD[k]
        second = select_where(part == k, old[SECOND[k]], second)
        third = select_where(part == k, new if later is None else old[later], third)
    e, f = second.y - new.y, third.y - new.y
    edge = part < 3
    t, _ = _project_on_edge(new.y, e)
    u, v, _, _ = _project_on_triangle(new.y, e, f)
    u, v = jnp.where(edge, t, u), jnp.where(edge, 0, v)
    corners = new, second, third
    weight = 1 - u - v, u, v
    return corners, weight, combine_corners((new.y, second.y, third.y), weight), within


_ORIGIN_INSIDE = 8  # added to the index of the part if the origin is in the tetrahedron


def _nearest_part(w: Vec, edges: tuple[Vec, Vec, Vec]) -> Array:
    """Return which of the three edges and three triangles at the new corner is nearest, 0 to 5."""
    # Squared distances of the edges, and of triangles that contain the projection of the origin.
    squares = [_project_on_edge(w, e)[1] for e in edges]
    for k in range(3, 6):
        _, _, square, inside = _project_on_triangle(w, edges[SECOND[k]], edges[THIRD[k] or 0])
        squares.append(jnp.where(inside, square, jnp.inf))
    best, part = squares[0], jnp.zeros(w.x.shape, jnp.int32)
    for k in range(1, 6):
        nearer = squares[k] < best
        best, part = jnp.where(nearer, squares[k], best), jnp.where(nearer, k, part)
    return part + _ORIGIN_INSIDE * _holds_origin(w, edges).astype(jnp.int32)


def _project_on_edge(w: Vec, e: Vec) -> tuple[Array, Array]:
    """Return parameter (0 to 1) and squared distance of the nearest point on an edge w + t e."""
    square = e.dot(e)
    t = jnp.clip(-w.dot(e) / jnp.where(square > 0, square, 1.0), 0, 1)
    point = w + e.scale(t)
    return t, point.dot(point)


def _project_on_triangle(w: Vec, e: Vec, f: Vec) -> tuple[Array, Array, Array, Array]:
    """Project the origin on the triangle of `w` and two edges.

    Returns:
      Its coordinates along both edges; its squared distance; whether it is inside of a
      nondegenerate triangle.
    """
    normal = e.cross(f)
    square = normal.dot(normal)
    flat = square <= 1e-12 * e.dot(e) * f.dot(f)
    over = 1 / jnp.where(flat, 1.0, square)
    u = f.cross(w).dot(normal) * over
    v = w.cross(e).dot(normal) * over
    height = normal.dot(w)
    inside = ~flat & (u >= 0) & (v >= 0) & (u + v <= 1)
    return u, v, height * height * over, inside


def _holds_origin(w: Vec, edges: tuple[Vec, Vec, Vec]) -> Array:
    """Return whether the tetrahedron of `w` and three edges from it contains the origin."""
    a, b, c = edges
    # Signed volumes of the four tetrahedra with the origin: inside, all have one sign.
    volume = a.dot(b.cross(c))
    parts = [w.dot(c.cross(b)), w.dot(a.cross(c)), w.dot(b.cross(a))]
    last = volume - sum(parts)
    eps = float(jnp.finfo(w.x.dtype).eps)
    sizes = a.dot(a) * b.dot(b) * c.dot(c)
    solid = volume * volume > 64 * eps * eps * sizes
    sign = jnp.sign(volume)
    inside = solid
    for part in [*parts, last]:
        inside = inside & (part * sign > 0)
    return inside


def combine_corners(corners: tuple[Vec, Vec, Vec], weight: tuple[Array, Array, Array]) -> Vec:
    """Return the weighted sum of three corners."""
    parts = [c.scale(w) for c, w in zip(corners, weight, strict=True)]
    return parts[0] + parts[1] + parts[2]
