"""Detection of flat contact: which face or edge of one shape lies on a face of the other.

MuJoCo's documentation, Computation: Multiple contacts; its rules were determined by experiment.
Among the faces at the nearest points of both shapes, the two most opposed ones are in face-face
contact if their angle is small enough. Otherwise the first edge of the first shape that is parallel
to a face of the second lies on it, and otherwise the reverse.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.math import Rot, Vec
from jaxsim.physics.collision.convex.difference import Difference
from jaxsim.physics.collision.convex.face import (
    end_of,
    ends_at,
    faces_at,
    normal_of,
    touches_with_side,
)
from jaxsim.physics.collision.convex.feature import Feature
from jaxsim.physics.collision.convex.solid import Assets, ConvexShape
from jaxsim.transforms.compaction import add_leading_axes
from jaxsim.transforms.materialize import materialize_decision, materialize_result
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


def facing_of(assets: Assets, sides: FacingShape, f: Feature) -> Facing:
    """Detect flat contact of two shapes, given the features of their nearest points."""
    # Faces at the nearest points, and their normals in one frame.
    touching = _nearest_features(f)
    # Materialized, because all pairs of faces, and of faces and edges, use them.
    faces = materialize_decision(_faces, assets, sides, touching)
    normals = materialize_result(_normals, assets, sides, faces)
    known = faces >= 0
    # Face-face contact, else an edge of the first, else of the second shape on a face of the other.
    first, second, meet = _most_opposed_faces(known, normals)
    face, end, lies = _first_level(assets, sides, touching, known, normals)
    turned = ~meet & lies[0]  # an edge of the first on a face of the second comes first
    ends = jnp.stack([touching.first, end])
    return Facing(
        flat=meet | lies[0] | lies[1],
        edge=~meet & (lies[0] | lies[1]),
        turned=turned,
        face=jnp.where(
            meet,
            _gather_row(faces[:, 0], first),
            jnp.where(turned, _gather_row(faces[:, 1], face[0]), _gather_row(faces[:, 0], face[1])),
        ),
        other=jnp.where(meet, _gather_row(faces[:, 1], second), 0),
        ends=jnp.where(turned[None], ends[:, 0], ends[:, 1]),
    )


def _nearest_features(f: Feature) -> _Touching:
    """Return the features of both shapes at the nearest points."""
    one, two, three = jnp.stack(f.corners.feature, axis=1)
    return _Touching(one, jnp.where(f.needed[0], two, one), jnp.where(f.needed[1], three, one))


def _faces(assets: Assets, sides: FacingShape, t: _Touching) -> Array:
    """Return the faces shared by all touching features, `[k, 2, n]`; -1 where there is none."""
    listed = [
        materialize_decision(faces_at, assets, sides.shape, feature)
        for feature in (t.first, t.second, t.third)
    ]
    faces = listed[0]
    here = faces >= 0
    for other, also in zip((t.second, t.third), listed[1:], strict=True):
        here = here & (_is_listed(faces, also) | (other == t.first)[None])
    return jnp.where(here & ~touches_with_side(sides.shape, sides.out)[None], faces, -1)


def _normals(assets: Assets, sides: FacingShape, faces: Array) -> Vec:
    """Return the normals of faces in the frame of the first shape; arbitrary if there is none."""
    rot = add_leading_axes(sides.rot, faces)
    return rot @ normal_of(assets, sides.shape, jnp.maximum(faces, 0))


def _most_opposed_faces(known: Array, normals: Vec) -> tuple[Array, Array, Array]:
    """Return the most opposed faces of both shapes, and whether they lie on each other, `[n]`."""

    def score(one: tuple[Vec, Array], other: tuple[Vec, Array]) -> Array:
        """Return the cosine of the angle of two faces."""
        return jnp.where(one[1] & other[1], one[0].dot(other[0]), 1)

    first, second = ((normals[:, k], known[:, k]) for k in range(2))
    one, other, least = _first_least(score, first, second)
    return one, other, least < -_MIN_FACE_COSINE


def _first_least(
    score: Callable[[Any, Any], Array], one: Any, other: Any
) -> tuple[Array, Array, Array]:
    """Return the rows of two lists with the least score, the first of equal ones, and the score.

    Args:
      score: of rows of `one` and `other` that broadcast.
      one, other: lists, `[k, *S]`.
    """
    rows = [len(jax.tree.leaves(x)[0]) for x in (one, other)]
    if not platform().scans:
        every = score(*(_insert_axis(x, axis) for x, axis in ((one, 1), (other, 0))))
        every = every.reshape(rows[0] * rows[1], *every.shape[2:])
        best = jnp.argmin(every, axis=0).astype(jnp.int32)
        return best // rows[1], best % rows[1], jnp.min(every, axis=0)

    def offer(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        """Compare one pair of rows with the best so far, in all lanes."""
        best, least = state
        now = score(_row(one, k // rows[1]), _row(other, k % rows[1]))
        return jnp.where(now < least, k, best), jnp.minimum(now, least)

    like = jax.eval_shape(score, _row(one, 0), _row(other, 0))
    start = jnp.zeros(like.shape, jnp.int32), jnp.full(like.shape, jnp.inf, like.dtype)
    best, least = lax.fori_loop(jnp.int32(0), jnp.int32(rows[0] * rows[1]), offer, start)
    return best // rows[1], best % rows[1], least


def _insert_axis(x: PyTree, axis: int) -> PyTree:
    """Insert an axis of 1."""
    return jax.tree.map(lambda a: jnp.expand_dims(a, axis), x)


def _row(x: PyTree, k: Array | int) -> PyTree:
    """Return the k-th row of lists, for a traced index."""
    return jax.tree.map(lambda a: lax.dynamic_index_in_dim(a, k, keepdims=False), x)


def _is_listed(items: Array, listed: Array) -> Array:
    """Return which items `[k, *S]` a list `[j, *S]` contains."""
    if not platform().scans:
        return jnp.any(items[:, None] == listed[None], axis=1)

    def compare(j: Array, found: Array) -> Array:
        """Compare all items with one row of the list."""
        return found | (items == lax.dynamic_index_in_dim(listed, j))

    none = jnp.zeros(items.shape, bool)
    return lax.fori_loop(jnp.int32(0), jnp.int32(len(listed)), compare, none)


def _first_level(
    assets: Assets, sides: FacingShape, t: _Touching, known: Array, normals: Vec
) -> tuple[Array, Array, Array]:
    """Return, for each shape, the first edge that lies in a face of the other, `[2, n]`.

    Returns:
      The index of that face among those of the other shape; the feature at the other end of the
      edge; and whether there is such an edge.
    """
    ends, along = materialize_result(_edges, assets, sides, t)

    def score(face: tuple[Vec, Array], edge: tuple[Vec, Array]) -> Array:
        """Return 0 if the edge is in the face: orthogonal to the normal, up to the tolerance."""
        level = jnp.abs(edge[0].dot(face[0])) < MAX_FLAT_EDGE_SINE
        return jnp.where(level & face[1] & edge[1], 0.0, 1.0)

    faces = normals[:, ::-1], known[:, ::-1]
    face, edge, least = _first_least(score, faces, (along, ends >= 0))
    end = jnp.take_along_axis(ends, edge[None], axis=0)[0]
    return face, jnp.maximum(end, 0), least == 0


def _edges(assets: Assets, sides: FacingShape, t: _Touching) -> tuple[Array, Vec]:
    """Return the edges at the first touching feature of each shape, `[k, 2, n]`.

    Returns:
      The features at their other ends, -1 where there is none; and their directions in the frame of
      the first shape.
    """
    ends = ends_at(assets, sides.shape, t.first)
    # If two features touch, only the edge between them counts, if there is one.
    between = ends == t.another[None]
    ends = jnp.where((t.number == 2)[None] & jnp.any(between, axis=0)[None] & ~between, -1, ends)
    ends = jnp.where((t.number == 3)[None], -1, ends)
    out = sides.out.map(lambda x: jnp.broadcast_to(x, ends.shape))
    start = end_of(assets, sides.shape, t.first, sides.out)
    along = end_of(assets, sides.shape, jnp.maximum(ends, 0), out) - start[None]
    return ends, add_leading_axes(sides.rot, ends) @ along.normalize()


def _gather_row(table: Array, index: Array) -> Array:
    """Return `table[index]` per lane, `[k, n]`, `[n]` -> `[n]`; at least 0."""
    return jnp.maximum(jnp.take_along_axis(table, index[None], axis=0)[0], 0)
