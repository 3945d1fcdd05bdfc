"""Penetration depth by the expanding polytope algorithm (EPA).

G. van den Bergen, Proximity queries and penetration depth computation on 3D game objects, 2001. The
face of the polytope nearest to the origin bounds the depth from below, the support of the set along
its normal from above. The support point becomes a new vertex: faces visible from it are removed,
and the hole is closed by triangles to it.

The initial polytope is a large triangle in the set, as two opposite faces. It need not contain the
origin: plane distances are signed, and the polytope first grows to enclose the origin.

Vertices and faces have fixed slots, `[_MAX_VERTICES, n]` and `[_MAX_FACES, n]`. The horizon
(boundary of the hole) is found with bit sets: for each vertex the set of vertices to which edges of
visible faces lead, minus those from which such edges come. Many lanes do this by comparing all
vertices with all faces; a single lane in a kernel of a CPU visits its visible faces only.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.bit_set import BitSet, bit_set, count_members, is_empty, pop_first
from jaxsim.arrays.dynamic import dynamic_index_in_dim, dynamic_update_index_in_dim
from jaxsim.arrays.gather import running_sum
from jaxsim.math import Vec, safe_divide, select_where
from jaxsim.physics.collision.convex.difference import Corner, Difference, same_features
from jaxsim.transforms.compaction import add_leading_axes
from jaxsim.transforms.materialize import materialize_decision, zeros_from_shapes
from jaxsim.transforms.platform import platform

_MAX_VERTICES = 32  # capacity; a triangulated polytope of n vertices has 2 n - 4 faces
_MAX_FACES = 2 * _MAX_VERTICES - 4
NO_FACE = np.inf
FLAT_FACE = 1e30  # distance of a degenerate triangle: it closes the surface, but is never nearest


class Deepest(NamedTuple):
    """The face of the set nearest to the origin.

    Attributes:
      triangle: its corners.
      weight: barycentric coordinates of the projection of the origin.
      normal: unit vector out of the set.
    """

    triangle: tuple[Corner, Corner, Corner]
    weight: tuple[Array, Array, Array]
    normal: Vec


class _Polytope(NamedTuple):
    """Vertices `[_MAX_VERTICES, n]` and faces `[_MAX_FACES, n]`, counter-clockwise from outside."""

    vertex: Corner
    vertices: Array
    face: tuple[Array, Array, Array]
    normal: Vec
    distance: Array  # signed distance of the plane from the origin; NO_FACE: the slot is empty


class _State(NamedTuple):
    """State of the iteration over all lanes."""

    polytope: _Polytope
    best: Corner  # support point with the smallest upper bound of the depth so far
    normal: Vec
    upper: Array
    beyond: Array  # upper bound at the last nearest face
    scale: Array
    done: Array
    iteration: Array


def epa_deepest_face(
    set_: Difference, corners: tuple[Corner, Corner, Corner], max_iterations: int
) -> Deepest:
    """Return the face of a set that is nearest to the origin inside it.

    Args:
      set_: `[n]` sets, the Minkowski difference of two solids each.
      corners: the initial polytope, see `epa_first_triangle`.
      max_iterations: limit of iterations, at most _MAX_VERTICES - 3.
    """
    scale = (corners[0].y - corners[1].y).norm()
    polytope = _initial_polytope(corners)
    false = jnp.zeros_like(scale, bool)
    nowhere = jnp.full_like(scale, jnp.inf)
    zero = set_.pos.map(jnp.zeros_like)
    state = _State(polytope, corners[0], zero, nowhere, nowhere, scale, false, jnp.int32(0))
    max_iterations = min(max_iterations, _MAX_VERTICES - 3)

    def not_converged(s: _State) -> Array:
        """Return whether some lane has not converged."""
        return (s.iteration <= max_iterations) & ~jnp.all(s.done)

    # The last iteration only evaluates the nearest face.
    last = lax.while_loop(
        not_converged, lambda s: _expand_polytope(set_, s, s.iteration == max_iterations), state
    )
    face = _read(last.polytope, materialize_decision(_nearest_face, last.polytope.distance))
    # If the iteration limit was reached, an earlier support plane may be a better bound than the
    # last face.
    finished = materialize_decision(_is_nearest, last.beyond, last.upper, last.scale)
    one, none = jnp.ones_like(scale), jnp.zeros_like(scale)
    seen = Deepest((last.best, last.best, last.best), (one, none, none), last.normal)
    return select_where(finished, face, seen)


def _is_nearest(beyond: Array, upper: Array, scale: Array) -> Array:
    """Return whether the last nearest face is as good as the best support plane."""
    return beyond <= upper + 1e-3 * scale


def epa_first_triangle(set_: Difference) -> tuple[Corner, Corner, Corner]:
    """Return three points of the set far from each other: the initial polytope."""
    zero = jnp.zeros_like(set_.pos.x)
    x = Vec(zero + 1, zero, zero)
    line = (-set_.pos).normalize(fallback=x)

    def iteration(k: Array, ends: tuple[Corner, Corner, Corner]) -> tuple[Corner, Corner, Corner]:
        """Find the two ends of a line, then the point farthest from it."""
        one, other, _ = ends
        span = one.y - other.y
        # First the support points along a line; then, among those in four directions across it, the
        # farthest from it.
        side = span.cross(_axis_least(span)).normalize(fallback=x)
        side2 = span.cross(side).normalize(fallback=x)
        start = k == 0
        first, second = select_where(start, (line, line), (side, side2))
        found = _unstack_lanes(set_.farthest(_stack_lanes([first, -first, second, -second])))
        third = _select_index(
            materialize_decision(_farthest_from_line, found, other.y, span), found
        )
        return select_where(start, (found[0], found[1], found[0]), (one, other, third))

    nothing = zeros_from_shapes(jax.eval_shape(set_.farthest, line))
    return lax.fori_loop(0, 2, iteration, (nothing, nothing, nothing))


def _farthest_from_line(points: list[Corner], origin: Vec, span: Vec) -> Array:
    """Return which of a few points is farthest from a line."""
    square = span.dot(span)
    distances = []
    for point in points:
        v = point.y - origin
        across = v - span.scale(safe_divide(v.dot(span), square))
        distances.append(across.dot(across))
    return jnp.argmax(jnp.stack(distances), axis=0).astype(jnp.int32)


def _stack_lanes(values: list[PyTree]) -> PyTree:
    """Stack values of lanes as `[k, n]`: the program then has one support function."""
    return jax.tree.map(lambda *x: jnp.stack(x), *values)


def _unstack_lanes(x: PyTree) -> list[PyTree]:
    """Split a stacked value, the inverse of `_stack_lanes`."""
    leaves, structure = jax.tree.flatten(x)
    return [jax.tree.unflatten(structure, each) for each in zip(*leaves, strict=True)]


def _select_index(index: Array, choices: list[PyTree]) -> PyTree:
    """Return `choices[index]`."""
    out = choices[0]
    for k in range(1, len(choices)):
        out = select_where(index == k, choices[k], out)
    return out


def _axis_least(v: Vec) -> Vec:
    """Return the coordinate axis along which `v` is shortest."""
    x, y, z = (jnp.abs(c) for c in v.parts)
    by_x = (x <= y) & (x <= z)
    by_y = ~by_x & (y <= z)
    one, zero = jnp.ones_like(x), jnp.zeros_like(x)
    return Vec(
        jnp.where(by_x, one, zero),
        jnp.where(by_y, one, zero),
        jnp.where(by_x | by_y, zero, one),
    )


def _initial_polytope(corners: tuple[Corner, Corner, Corner]) -> _Polytope:
    """Return the initial polytope, a triangle with two opposite faces."""

    def rows(*parts: Array) -> Array:
        """Fill the vertex slots, repeating the first corner."""
        return jnp.concatenate(
            [jnp.stack(parts), jnp.stack([parts[0]] * (_MAX_VERTICES - len(parts)))]
        )

    n = corners[0].y.x.shape
    normal, distance = _plane(*(corner.y for corner in corners))
    none = jnp.zeros_like(distance)
    index = np.zeros((3, _MAX_FACES, 1), np.int32)
    index[:, 0, 0], index[:, 1, 0] = (0, 1, 2), (0, 2, 1)
    face = [jnp.broadcast_to(jnp.asarray(k), (_MAX_FACES, *n)) for k in index]
    flat = distance == FLAT_FACE
    away = jnp.where(flat, FLAT_FACE, -distance)
    return _Polytope(
        jax.tree.map(rows, *corners),
        jnp.full(n, 3, jnp.int32),
        (face[0], face[1], face[2]),
        jax.tree.map(lambda x: jnp.stack([x, -x] + [none] * (_MAX_FACES - 2)), normal),
        jnp.stack([distance, away] + [none + NO_FACE] * (_MAX_FACES - 2)),
    )


def _plane(p: Vec, q: Vec, r: Vec) -> tuple[Vec, Array]:
    """Return outward unit normal and signed distance of a face."""
    e, f = q - p, r - p
    normal = e.cross(f)
    square, eps = normal.dot(normal), float(jnp.finfo(p.x.dtype).eps)
    flat = square <= (8 * eps) ** 2 * e.dot(e) * f.dot(f)
    unit = normal.scale(jnp.where(flat, 0.0, lax.rsqrt(jnp.where(flat, 1.0, square))))
    return unit, jnp.where(flat, FLAT_FACE, unit.dot(p))


def _gather_rows(table: PyTree, index: Array) -> PyTree:
    """Return `table[index]` per lane, `[k, n]`, `[n]` -> `[n]`."""
    return jax.tree.map(lambda a: jnp.take_along_axis(a, index[None], axis=0)[0], table)


def _expand_polytope(set_: Difference, s: _State, last: Array) -> _State:
    """Add a vertex at the nearest face; in the last iteration only evaluate that face."""
    p = s.polytope
    # Nearest face, and the support point along its normal.
    best = materialize_decision(_nearest_face, p.distance)
    normal = _gather_rows(p.normal, best)
    new = set_.farthest(normal)
    each = jax.tree.map(lambda a: a[None], new)
    known = jnp.any(same_features(each, _corners(p, best)), axis=0)
    upper = normal.dot(new.y)
    scale = jnp.maximum(s.scale, jnp.abs(upper))
    nearer = ~s.done & materialize_decision(jnp.less, upper, s.upper)
    # Termination and visible faces, then the horizon and the faces that close the hole.
    one_lane = platform().fuses_calls and known.shape == (1,)
    grow = _grow_one if one_lane else _grow
    ended, seen = materialize_decision(_visible_faces, p, best, known, upper, new.y, scale)
    polytope, whole = grow(p, new, seen, ~(s.done | ended | last))
    done = s.done | ended | last | ~whole
    return _State(
        polytope,
        select_where(nearer, new, s.best),
        select_where(nearer, normal, s.normal),
        jnp.where(nearer, upper, s.upper),
        jnp.where(s.done, s.beyond, upper),
        scale,
        done,
        s.iteration + 1,
    )


def _nearest_face(distance: Array) -> Array:
    """Return the face nearest to the origin."""
    return jnp.argmin(distance, axis=0).astype(jnp.int32)


def _visible_faces(
    p: _Polytope, best: Array, known: Array, upper: Array, new: Vec, scale: Array
) -> tuple[Array, Array]:
    """Return whether the iteration ends, and the faces visible from the new vertex."""
    eps = float(jnp.finfo(p.distance.dtype).eps)
    # Converged: upper and lower bound agree, or the support point is a known vertex.
    gap = upper - _gather_rows(p.distance, best)
    ended = (known & (gap <= 1e-5 * scale)) | (gap <= 8 * eps * scale)
    place = np.arange(_MAX_FACES, dtype=np.int32)[:, None]
    # Visible faces: those whose plane the new vertex is above, and always the nearest one.
    height = p.normal.dot(add_leading_axes(new, p.distance)) - p.distance
    above = height > 2 * eps * scale[None]
    return ended, jnp.isfinite(p.distance) & (above | (place == best[None]))


def _grow(p: _Polytope, new: Corner, seen: Array, grows: Array) -> tuple[_Polytope, Array]:
    """Replace the visible faces by faces to the new vertex, in the lanes that grow.

    Returns:
      The polytope, unchanged in lanes without a hole; and which lanes have one.
    """
    leads = materialize_decision(_directed_edges, p.face, seen)
    follow, whole = materialize_decision(_horizon, leads, seen)
    grows = grows & whole
    return _close_hole(p, new, seen & grows[None], follow, grows), whole


def _grow_one(p: _Polytope, new: Corner, seen: Array, grows: Array) -> tuple[_Polytope, Array]:
    """Return what `_grow` does for one lane, by loops over its visible faces and its new ones."""
    visible = bit_set(seen & grows[None])
    out, into, ends = _directed_edges_of_one(p.face, visible)
    follow, rim, whole = _horizon_of_one(out, into, ends, visible)
    grows = grows & whole
    # Empty the slots of the visible faces, and write the new vertex.
    distance = jnp.where(seen & grows[None], NO_FACE, p.distance)
    free = bit_set(~jnp.isfinite(distance))
    at = jnp.minimum(p.vertices[0], _MAX_VERTICES - 1)

    def write(a: Array, value: Array) -> Array:
        old = dynamic_index_in_dim(a, at, keepdims=False)
        return dynamic_update_index_in_dim(a, jnp.where(grows, value, old), at, 0)

    vertex = jax.tree.map(write, p.vertex, new)

    def point(k: Array) -> Vec:
        return vertex.y.map(lambda a: dynamic_index_in_dim(a, k, keepdims=False))

    def add_face(state: tuple) -> tuple:
        """Close the first open edge of the hole by a face in the first free slot."""
        edges, slots, face, normals, distance = state
        (start, edges), (slot, slots) = pop_first(edges), pop_first(slots)
        end = dynamic_index_in_dim(follow, start, keepdims=False)[0]
        normal, away = _plane(point(start), point(end), new.y)

        def put(a: Array, value: Array) -> Array:
            row = jnp.broadcast_to(value, (1,)).astype(a.dtype)
            return dynamic_update_index_in_dim(a, row, slot, 0)

        face = tuple(put(a, k) for a, k in zip(face, (start, end, at), strict=True))
        return edges, slots, face, jax.tree.map(put, normals, normal), put(distance, away)

    edges = BitSet(jnp.where(grows[0], rim, 0), jnp.uint32(0))
    state = edges, free, p.face, p.normal, distance
    left = lax.while_loop(lambda s: ~is_empty(s[0]) & ~is_empty(s[1]), add_face, state)
    grown = _Polytope(vertex, p.vertices + grows.astype(jnp.int32), *left[2:])
    return grown, whole | ~grows


def _horizon(leads: tuple[Array, Array], seen: Array) -> tuple[Array, Array]:
    """Return the horizon, the edges that bound the visible faces.

    Args:
      leads: bit sets of the edges of visible faces, see `_directed_edges`.
      seen: visible faces, `[_MAX_FACES, n]`.

    Returns:
      For each vertex the next one around the hole, -1 if it is not on it, `[_MAX_VERTICES, n]`; and
      whether there is one hole of at least three edges, as far as the edge count shows.
    """
    # An edge whose opposite direction does not occur is on the boundary.
    out, into = leads
    once = out & ~into
    many = lax.population_count(once)
    next_ = jnp.where(many == 1, (31 - lax.clz(once)).astype(jnp.int32), -1)
    edges = jnp.sum(many == 1, axis=0)
    faces = jnp.sum(seen, axis=0)
    whole = jnp.all(many <= 1, axis=0) & (edges == faces + 2)
    return next_, whole


def _directed_edges(face: tuple[Array, Array, Array], seen: Array) -> tuple[Array, Array]:
    """Return, for each vertex, the ends of the edges of visible faces that start and end there.

    Each set of vertices is one word of bits, `[_MAX_VERTICES, n]`.
    """
    bit = [jnp.uint32(1) << f.astype(jnp.uint32) for f in face]
    vertex = np.arange(_MAX_VERTICES, dtype=np.int32)[:, None, None]
    out = into = jnp.zeros((_MAX_VERTICES, *seen.shape), jnp.uint32)
    for k in range(3):
        here = seen[None] & (face[k][None] == vertex)
        out = out | jnp.where(here, bit[(k + 1) % 3][None], 0)
        into = into | jnp.where(here, bit[(k + 2) % 3][None], 0)
    return _or_face_bits(out), _or_face_bits(into)


def _directed_edges_of_one(
    face: tuple[Array, Array, Array], visible: BitSet
) -> tuple[Array, Array, Array]:
    """Return what `_directed_edges` does for one lane, and the set of vertices with such edges."""

    def add_edges(state: tuple[Any, Array, Array, Array]) -> tuple[Any, Array, Array, Array]:
        """Add the three edges of the first face of the set, and remove the face from the set."""
        left, out, into, ends = state
        slot, left = pop_first(left)
        corner = [dynamic_index_in_dim(f, slot)[0, 0] for f in face]
        bit = [jnp.uint32(1) << c.astype(jnp.uint32) for c in corner]
        for j in range(3):
            out = _or_word(out, corner[j], bit[(j + 1) % 3])
            into = _or_word(into, corner[j], bit[(j + 2) % 3])
        return left, out, into, ends | bit[0] | bit[1] | bit[2]

    none = jnp.zeros((_MAX_VERTICES, 1), jnp.uint32)
    start = visible, none, none, jnp.uint32(0)
    return lax.while_loop(lambda state: ~is_empty(state[0]), add_edges, start)[1:]


def _horizon_of_one(
    out: Array, into: Array, ends: Array, visible: BitSet
) -> tuple[Array, Array, Array]:
    """Return what `_horizon` does for one lane, by a loop over the vertices of visible faces.

    Returns:
      For each vertex of the horizon the next one, `[_MAX_VERTICES, 1]`; the set of these vertices;
      and whether there is one hole.
    """

    def visit(state: tuple) -> tuple:
        """Find where the edge of the horizon leads from one vertex."""
        left, follow, rim, single = state
        vertex, left = pop_first(left)
        once, back = (dynamic_index_in_dim(a, vertex, keepdims=False)[0] for a in (out, into))
        once = once & ~back
        many = lax.population_count(once)
        next_ = (31 - lax.clz(once)).astype(jnp.int32)
        follow = dynamic_update_index_in_dim(follow, next_[None], vertex, 0)
        bit = jnp.uint32(1) << vertex.astype(jnp.uint32)
        return left, follow, jnp.where(many == 1, rim | bit, rim), single & (many <= 1)

    none = jnp.zeros((_MAX_VERTICES, 1), jnp.int32)
    start = BitSet(ends, jnp.uint32(0)), none, jnp.uint32(0), jnp.ones((), bool)
    _, follow, rim, single = lax.while_loop(lambda state: ~is_empty(state[0]), visit, start)
    edges = lax.population_count(rim)
    return follow, rim, (single & (edges == count_members(visible) + 2))[None]


def _or_word(words: Array, k: Array, bits: Array) -> Array:
    """Add bits to one word."""
    return dynamic_update_index_in_dim(words, dynamic_index_in_dim(words, k) | bits, k, 0)


def _or_face_bits(words: Array) -> Array:
    """Combine bit sets of all faces, `[_MAX_VERTICES, _MAX_FACES, n]` -> `[_MAX_VERTICES, n]`."""
    return lax.reduce(words, np.uint32(0), lax.bitwise_or, (1,))


def _close_hole(p: _Polytope, new: Corner, seen: Array, follow: Array, grows: Array) -> _Polytope:
    """Add the new vertex, remove visible faces, and close the hole, in the lanes that grow."""
    row = np.arange(_MAX_VERTICES, dtype=np.int32)[:, None]
    here = (row == p.vertices[None]) & grows[None]
    vertex = jax.tree.map(lambda a, b: jnp.where(here, b[None], a), p.vertex, new)

    # Each edge of the hole gets a face; the k-th edge takes the k-th free slot.
    on_rim = (follow >= 0) & grows[None]
    free = seen | ~jnp.isfinite(p.distance)
    start, taken = _assign_edges(on_rim, free)
    end = jnp.take_along_axis(follow, start, axis=0)

    def at(index: Array) -> Vec:
        return vertex.y.map(lambda a: jnp.take_along_axis(a, index, axis=0))

    top = new.y.map(lambda a: a[None])
    normal, distance = _plane(at(start), at(end), top)
    last = jnp.broadcast_to(p.vertices[None], start.shape)
    face = tuple(jnp.where(taken, a, b) for a, b in zip((start, end, last), p.face, strict=True))
    gone = seen & ~taken
    return _Polytope(
        vertex,
        p.vertices + grows.astype(jnp.int32),
        (face[0], face[1], face[2]),
        select_where(taken, normal, p.normal),
        jnp.where(taken, distance, jnp.where(gone, NO_FACE, p.distance)),
    )


def _assign_edges(on_rim: Array, free: Array) -> tuple[Array, Array]:
    """Assign the k-th edge of the hole to the k-th free slot.

    Args:
      on_rim: an edge of the hole starts at the vertex, `[_MAX_VERTICES, n]`.
      free: free slots for faces, `[_MAX_FACES, n]`.

    Returns:
      The vertex where the edge of each slot starts, arbitrary for slots that are not taken; and
      which slots are taken.
    """
    row = np.arange(_MAX_VERTICES, dtype=np.int32)[:, None]
    rank_edge = running_sum(on_rim.astype(jnp.int32))
    rank_free = running_sum(free.astype(jnp.int32))
    taken = free & (rank_free <= rank_edge[-1:])
    here = (rank_edge[None] == rank_free[:, None]) & on_rim[None]
    return jnp.sum(jnp.where(here, row[None], 0), axis=1, dtype=jnp.int32), taken


def _corners(p: _Polytope, best: Array) -> Corner:
    """Return the corners of a face, `[3, n]`."""
    vertex = jnp.stack([_gather_rows(f, best) for f in p.face])
    return jax.tree.map(lambda a: jnp.take_along_axis(a, vertex, axis=0), p.vertex)


def _read(p: _Polytope, best: Array) -> Deepest:
    """Return a face, with the barycentric coordinates of the projection of the origin."""
    one, two, three = _unstack_lanes(_corners(p, best))
    normal = _gather_rows(p.normal, best)
    a, b, c = one.y, two.y, three.y
    e, f = b - a, c - a
    across = e.cross(f)
    over = safe_divide(1.0, across.dot(across))
    u = f.cross(a).dot(across) * over
    v = a.cross(e).dot(across) * over
    return Deepest((one, two, three), (1 - u - v, u, v), normal)
