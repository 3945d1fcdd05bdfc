"""Detection of flat contact: which face or edge of one shape lies on a face of the other.

MuJoCo's documentation, Computation: Multiple contacts; its rules were determined by experiment.
Among the faces at the nearest points of both shapes, the two most opposed ones are in face-face
contact if their angle is small enough. Otherwise the first edge of the first shape that is parallel
to a face of the second lies on it, and otherwise the reverse.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
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
    faces = _faces(assets, sides, touching)
    known = faces >= 0
    rot = add_leading_axes(sides.rot, faces)
    normals = rot @ normal_of(assets, sides.shape, jnp.maximum(faces, 0))
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
    faces = faces_at(assets, sides.shape, t.first)
    here = faces >= 0
    for other in (t.second, t.third):
        also = faces_at(assets, sides.shape, other)
        shared = jnp.any(faces[:, None] == also[None], axis=1)
        here = here & (shared | (other == t.first)[None])
    return jnp.where(here & ~touches_with_side(sides.shape, sides.out)[None], faces, -1)


def _most_opposed_faces(known: Array, normals: Vec) -> tuple[Array, Array, Array]:
    """Return the most opposed faces of both shapes, and whether they lie on each other, `[n]`."""
    rows = len(known)
    cosine = normals[:, None, 0].dot(normals[None, :, 1])
    cosine = jnp.where(known[:, None, 0] & known[None, :, 1], cosine, 1)
    cosine = cosine.reshape(rows * rows, -1)
    best = jnp.argmin(cosine, axis=0).astype(jnp.int32)
    return best // rows, best % rows, jnp.min(cosine, axis=0) < -_MIN_FACE_COSINE


def _first_level(
    assets: Assets, sides: FacingShape, t: _Touching, known: Array, normals: Vec
) -> tuple[Array, Array, Array]:
    """Return, for each shape, the first edge that lies in a face of the other, `[2, n]`.

    Returns:
      The index of that face among those of the other shape; the feature at the other end of the
      edge; and whether there is such an edge.
    """
    ends = ends_at(assets, sides.shape, t.first)
    # If two features touch, only the edge between them counts, if there is one.
    between = ends == t.another[None]
    ends = jnp.where((t.number == 2)[None] & jnp.any(between, axis=0)[None] & ~between, -1, ends)
    ends = jnp.where((t.number == 3)[None], -1, ends)
    out = sides.out.map(lambda x: jnp.broadcast_to(x, ends.shape))
    start = end_of(assets, sides.shape, t.first, sides.out)
    along = end_of(assets, sides.shape, jnp.maximum(ends, 0), out) - start[None]
    along = add_leading_axes(sides.rot, ends) @ along.normalize()

    # An edge is in the face if it is orthogonal to the normal, up to MAX_FLAT_EDGE_SINE.
    other, edges = normals[:, ::-1][:, None], along[None]
    level = (
        (jnp.abs(edges.dot(other)) < MAX_FLAT_EDGE_SINE)
        & known[:, ::-1][:, None]
        & (ends >= 0)[None]
    )
    level = level.reshape(-1, *level.shape[2:])
    first = jnp.argmax(level, axis=0).astype(jnp.int32)
    end = jnp.take_along_axis(ends, (first % len(ends))[None], axis=0)[0]
    return first // len(ends), jnp.maximum(end, 0), jnp.any(level, axis=0)


def _gather_row(table: Array, index: Array) -> Array:
    """Return `table[index]` per lane, `[k, n]`, `[n]` -> `[n]`; at least 0."""
    return jnp.maximum(jnp.take_along_axis(table, index[None], axis=0)[0], 0)
