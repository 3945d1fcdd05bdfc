"""Detection of flat contact: which face or edge of one shape lies on a face of the other.

MuJoCo's documentation, Computation: Multiple contacts; its rules were determined by experiment.
Among the faces at the nearest points of both shapes, the two most opposed ones are in face-face
contact if their angle is small enough. Otherwise the first edge of the first shape that is parallel
to a face of the second lies on it, and otherwise the reverse.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.dynamic import dynamic_index_in_dim, dynamic_update_index_in_dim
from jaxsim.math import Rot, Vec
from jaxsim.physics.collision.convex.difference import Difference
from jaxsim.physics.collision.convex.face import (
    end_of,
    ends_at,
    faces_at,
    max_faces_at,
    normal_of,
    num_faces_at,
    touches_with_side,
)
from jaxsim.physics.collision.convex.feature import Feature
from jaxsim.physics.collision.convex.solid import Assets, ConvexShape
from jaxsim.transforms.compaction import add_leading_axes
from jaxsim.transforms.platform import platform

_MIN_FACE_COSINE = 0.996  # cosine of the largest angle of face-face contact
MAX_FLAT_EDGE_SINE = 0.0888  # sine of the largest angle of edge-face contact


class FacingShape(NamedTuple):
    """One shape of each lane: pose in the frame of the first shape, and outward direction."""

    shape: ConvexShape
    pos: Vec
    rot: Rot
    out: Vec  # outward direction at the contact, in its own frame

    def world(self, point: Vec) -> Vec:
        """Transform a point of the shape to the frame of the first shape."""
        pos, rot = add_leading_axes((self.pos, self.rot), point)
        return pos + rot @ point


def sides_of(set_: Difference, f: Feature) -> FacingShape:
    """Return both shapes, `[2, n]`, so that the program contains one set of face functions."""
    zero = jnp.zeros_like(set_.pos.x)
    one = Rot(*(zero + (1 if k % 4 == 0 else 0) for k in range(9)))
    first = Vec(zero, zero, zero), one, f.normal
    second = set_.pos, set_.rot, set_.rot.T @ -f.normal
    return FacingShape(set_.both, *jax.tree.map(lambda *x: jnp.stack(x), first, second))


class Facing(NamedTuple):
    """Flat contact, `[n]`.

    Attributes:
      flat: there is flat contact; else the other fields are arbitrary.
      edge: it is an edge on a face.
      turned: the reference face belongs to the second shape.
      face: id of the reference face.
      other: id of the face that lies on it; 0 for an edge.
      ends: features of the ends of the edge that lies on it, `[2, n]`.
    """

    flat: Array
    edge: Array
    turned: Array
    face: Array
    other: Array
    ends: Array


class _Touching(NamedTuple):
    """Features of three corners of each shape, `[2, n]`, some of which may be equal."""

    first: Array
    second: Array
    third: Array

    @property
    def number(self) -> Array:
        """Return the number of distinct features."""
        second = self.second != self.first
        third = (self.third != self.first) & (self.third != self.second)
        return 1 + second.astype(jnp.int32) + third.astype(jnp.int32)

    @property
    def another(self) -> Array:
        """Return a feature other than the first, if there is one."""
        return jnp.where(self.second != self.first, self.second, self.third)


class _Faces(NamedTuple):
    """The faces at the nearest points, `[k, 2, n]`, of which `number` `[2, n]` exist.

    Attributes:
      id: face ids; -1 past the last one.
      normal: outward normals in the frame of the first shape.
      number: how many there are; an upper bound where lists have gaps (-1).
    """

    id: Array
    normal: Vec
    number: Array


def facing_of(assets: Assets, sides: FacingShape, f: Feature) -> Facing:
    """Detect flat contact of two shapes, given the features of their nearest points."""
    touching = _nearest_features(f)
    faces = _faces(assets, sides, touching)
    # Face-face contact, else an edge of the first, else of the second shape on a face of the other.
    first, second, meet = _most_opposed_faces(faces)
    face, end, lies = _first_level(assets, sides, touching, faces, ~meet)
    turned = ~meet & lies[0]  # an edge of the first on a face of the second comes first
    ends = jnp.stack([touching.first, end])
    return Facing(
        flat=meet | lies[0] | lies[1],
        edge=~meet & (lies[0] | lies[1]),
        turned=turned,
        face=jnp.where(
            meet,
            _gather_row(faces.id[:, 0], first),
            jnp.where(
                turned, _gather_row(faces.id[:, 1], face[0]), _gather_row(faces.id[:, 0], face[1])
            ),
        ),
        other=jnp.where(meet, _gather_row(faces.id[:, 1], second), 0),
        ends=jnp.where(turned[None], ends[:, 0], ends[:, 1]),
    )


def _nearest_features(f: Feature) -> _Touching:
    """Return the features of both shapes at the nearest points."""
    one, two, three = jnp.stack(f.corners.feature, axis=1)
    return _Touching(one, jnp.where(f.needed[0], two, one), jnp.where(f.needed[1], three, one))


def _tabulate(row: Callable[[Array], Any], number: Array, most: int) -> Any:
    """Return the rows of lists: `row(k)` `[2, n]` for k below the largest `number`, else zeros.

    Most lists are short: a vertex of a hull has four polygons on average, and dozens at most.

    Args:
      row: returns the k-th item of each list; k broadcasts with `[2, n]`.
      number: length of the lists, `[2, n]`.
      most: number of rows of the result.
    """
    if not platform().scans:
        return row(jnp.arange(most, dtype=jnp.int32)[:, None, None])

    def put(k: Array, table: PyTree) -> PyTree:
        """Write one row."""
        write = functools.partial(dynamic_update_index_in_dim, index=k, axis=0)
        return jax.tree.map(lambda a, x: write(a, x), table, row(k))

    like = jax.eval_shape(row, jnp.int32(0))
    table = jax.tree.map(lambda x: jnp.zeros((most, *x.shape), x.dtype), like)
    return lax.fori_loop(jnp.int32(0), jnp.max(number), put, table)


def _read(table: PyTree, k: Array) -> PyTree:
    """Return the k-th row of a table; the table for the k of all rows."""
    return table if k.ndim else _row(table, k)


def _faces(assets: Assets, sides: FacingShape, t: _Touching) -> _Faces:
    """Return the faces shared by all touching features."""
    shape, most = sides.shape, max_faces_at(assets)
    faces = functools.partial(faces_at, assets, shape)
    side = touches_with_side(shape, sides.out)
    number = jnp.where(side, 0, num_faces_at(assets, shape, t.first))
    others = []
    for feature in (t.second, t.third):
        count = jnp.where(feature == t.first, 0, num_faces_at(assets, shape, feature))
        others.append((feature, count, _tabulate(functools.partial(faces, feature), count, most)))

    def shared(k: Array) -> Array:
        """Return the k-th face at the first feature, if it is at the others too."""
        face = faces(t.first, k)
        for feature, count, listed in others:
            same = add_leading_axes(feature == t.first, face)
            face = jnp.where(same | _is_listed(face, listed, count), face, -1)
        return jnp.where(add_leading_axes(side, face), -1, face)

    number, id_ = _compact(shared, number, most)

    def normals(k: Array) -> Vec:
        """Return the normal of the k-th face."""
        face = jnp.maximum(_read(id_, k), 0)
        return add_leading_axes(sides.rot, face) @ normal_of(assets, shape, face)

    return _Faces(id_, _tabulate(normals, number, most), number)


def _compact(row: Callable[[Array], Array], number: Array, most: int) -> tuple[Array, Array]:
    """Return the items of lists that are not -1, in order: how many, and `[most, 2, n]`.

    Where that takes a sort, the items stay where they are, and so does the number.
    """
    if not platform().scans:
        return number, _tabulate(row, number, most)
    place = jnp.arange(most, dtype=jnp.int32)[:, None, None]

    def append(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        """Append the k-th item of each list, if there is one."""
        count, table = state
        item = row(k)
        there = item >= 0
        table = jnp.where((place == count[None]) & there[None], item[None], table)
        return count + there.astype(jnp.int32), table

    start = jnp.zeros_like(number), jnp.full((most, *number.shape), -1, jnp.int32)
    return lax.fori_loop(jnp.int32(0), jnp.max(number), append, start)


def _most_opposed_faces(faces: _Faces) -> tuple[Array, Array, Array]:
    """Return the most opposed faces of both shapes, and whether they lie on each other, `[n]`."""

    def score(one: tuple[Vec, Array], other: tuple[Vec, Array]) -> Array:
        """Return the cosine of the angle of two faces."""
        return jnp.where((one[1] >= 0) & (other[1] >= 0), one[0].dot(other[0]), 1)

    first, second = ((faces.normal[:, k], faces.id[:, k]) for k in range(2))
    one, other, least = _first_least(score, first, second, (faces.number[0], faces.number[1]))
    return one, other, least < -_MIN_FACE_COSINE


def _first_least(
    score: Callable[[Any, Any], Array], one: Any, other: Any, number: tuple[Array, Array]
) -> tuple[Array, Array, Array]:
    """Return the rows of two lists with the least score, the first of equal ones, and the score.

    Args:
      score: of rows of `one` and `other` that broadcast.
      one, other: lists, `[k, *S]`.
      number: lengths of the lists; rows past them are not compared where rows are scanned.
    """
    if not platform().scans:
        rows = [len(jax.tree.leaves(x)[0]) for x in (one, other)]
        every = score(*(_insert_axis(x, axis) for x, axis in ((one, 1), (other, 0))))
        every = every.reshape(rows[0] * rows[1], *every.shape[2:])
        best = jnp.argmin(every, axis=0).astype(jnp.int32)
        return best // rows[1], best % rows[1], jnp.min(every, axis=0)
    most = [jnp.max(n) for n in number]

    def offer_row(i: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        """Compare one row of `one` with all rows of `other`."""
        mine = _row(one, i)

        def offer(j: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            """Compare one pair of rows with the best so far, in all lanes."""
            first, second, least = state
            now = score(mine, _row(other, j))
            less = now < least
            return (
                jnp.where(less, i, first),
                jnp.where(less, j, second),
                jnp.minimum(now, least),
            )

        return lax.fori_loop(jnp.int32(0), most[1], offer, state)

    like = jax.eval_shape(score, _row(one, 0), _row(other, 0))
    none = jnp.zeros(like.shape, jnp.int32)
    start = none, none, jnp.full(like.shape, jnp.inf, like.dtype)
    return lax.fori_loop(jnp.int32(0), most[0], offer_row, start)


def _insert_axis(x: PyTree, axis: int) -> PyTree:
    """Insert an axis of 1."""
    return jax.tree.map(lambda a: jnp.expand_dims(a, axis), x)


def _row(x: PyTree, k: Array | int) -> PyTree:
    """Return the k-th row of lists, for a traced index."""
    return jax.tree.map(lambda a: dynamic_index_in_dim(a, k, keepdims=False), x)


def _is_listed(items: Array, listed: Array, number: Array) -> Array:
    """Return which items `[*k, 2, n]` are in the first `number` rows of a list `[j, 2, n]`."""
    if not platform().scans:
        place = jnp.arange(len(listed), dtype=jnp.int32)[:, None, None]
        exists = (place < number[None])[None]
        return jnp.any((items[:, None] == listed[None]) & exists, axis=1)

    def compare(j: Array, found: Array) -> Array:
        """Compare all items with one row of the list."""
        return found | ((items == _row(listed, j)) & (j < number))

    none = jnp.zeros(items.shape, bool)
    return lax.fori_loop(jnp.int32(0), jnp.max(number), compare, none)


def _first_level(
    assets: Assets, sides: FacingShape, t: _Touching, faces: _Faces, wanted: Array
) -> tuple[Array, Array, Array]:
    """Return, for each shape, the first edge that lies in a face of the other, `[2, n]`.

    Args:
      assets: tables of the model.
      sides: both shapes.
      t: the touching features.
      faces: faces at them.
      wanted: lanes without face-face contact, `[n]`; the results of the others are arbitrary.

    Returns:
      The index of that face among those of the other shape; the feature at the other end of the
      edge; and whether there is such an edge.
    """
    # Edges of a face, which three features are, are not considered.
    number = jnp.where(wanted[None] & (t.number < 3), num_faces_at(assets, sides.shape, t.first), 0)
    ends, along = _edges(assets, sides, t, number)

    def score(face: tuple[Vec, Array], edge: tuple[Vec, Array]) -> Array:
        """Return 0 if the edge is in the face: orthogonal to the normal, up to the tolerance."""
        level = jnp.abs(edge[0].dot(face[0])) < MAX_FLAT_EDGE_SINE
        return jnp.where(level & (face[1] >= 0) & (edge[1] >= 0), 0.0, 1.0)

    of_other = faces.normal[:, ::-1], faces.id[:, ::-1]
    lengths = faces.number[::-1], number
    face, edge, least = _first_least(score, of_other, (along, ends), lengths)
    end = jnp.take_along_axis(ends, edge[None], axis=0)[0]
    return face, jnp.maximum(end, 0), least == 0


def _edges(assets: Assets, sides: FacingShape, t: _Touching, number: Array) -> tuple[Array, Vec]:
    """Return the first `number` edges at the first touching feature of each shape, `[k, 2, n]`.

    Returns:
      The features at their other ends, -1 where there is none; and their directions in the frame of
      the first shape.
    """
    shape, most = sides.shape, max_faces_at(assets)
    start = end_of(assets, shape, t.first, sides.out)

    def listed(k: Array) -> Array:
        """Return the end of the k-th edge."""
        end = ends_at(assets, shape, t.first, k)
        return jnp.where(k < add_leading_axes(number, end), end, -1)

    ends = _tabulate(listed, number, most)
    # If two features touch, only the edge between them counts, if there is one.
    exists = jnp.arange(most, dtype=jnp.int32)[:, None, None] < number[None]
    between = (ends == t.another[None]) & exists
    lone = (t.number == 2) & jnp.any(between, axis=0)
    ends = jnp.where(exists & (between | ~lone[None]), ends, -1)

    def direction(k: Array) -> Vec:
        """Return the direction of the k-th edge."""
        end = jnp.maximum(_read(ends, k), 0)
        out = sides.out.map(lambda x: jnp.broadcast_to(x, end.shape))
        along = end_of(assets, shape, end, out) - add_leading_axes(start, end)
        return add_leading_axes(sides.rot, end) @ along.normalize()

    return ends, _tabulate(direction, number, most)


def _gather_row(table: Array, index: Array) -> Array:
    """Return `table[index]` per lane, `[k, n]`, `[n]` -> `[n]`; at least 0."""
    return jnp.maximum(jnp.take_along_axis(table, index[None], axis=0)[0], 0)
