"""Intersect rays with the triangles of a skin; MuJoCo's `mju_raySkin`."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.math import Vec
from jaxsim.physics.ray.cast import Rays
from jaxsim.physics.ray.flex import cast_soft


class SkinHit(NamedTuple):
    """Intersection of a ray with a skin, or of each of several rays.

    Attributes:
      dist: distance in lengths of the ray vector; -1: no intersection.
      vertid: id of the vertex of the hit face nearest to the point; -1: none.
      normal: normal of the face, by the order of its vertices; zero if the ray misses.
    """

    dist: jax.Array
    vertid: jax.Array
    normal: jax.Array


def ray_skin(face: np.ndarray, vert: Array, pnt: Array, vec: Array) -> SkinHit:
    """Intersect rays pnt + x vec, x >= 0, with a skin from either side; return the nearest
    intersection.

    Differentiable, with the hit face held fixed.

    Args:
      face: vertex ids of each face, (nface, 3), such as a part of `m.skin_face`. Known when traced.
      vert: vertex positions, (nvert, 3) [m].
      pnt: origin of a ray, (3,), or of each of several, (n, 3) [m].
      vec: direction, (3,) or (n, 3), of any length; a zero vector hits nothing.

    Returns:
      A SkinHit: dist () or (n,), in lengths of `vec`; vertid () or (n,); normal (3,) or (n, 3).

    Raises:
      ValueError: a shape is wrong, or a face names a vertex that does not exist.
    """
    face, vert = np.asarray(face), jnp.asarray(vert)
    for name, array in (("face", face), ("vert", vert)):
        if array.ndim != 2 or array.shape[1] != 3:
            raise ValueError(f"ray_skin: {name}: expected shape (n, 3), got {array.shape}")
    if face.size and not (face.min() >= 0 and face.max() < len(vert)):
        wrong = face.max() if face.max() >= len(vert) else face.min()
        raise ValueError(f"ray_skin: face: there are {len(vert)} vertices, got {wrong}")
    given = [jnp.asarray(x) for x in (vert, pnt, vec)]
    real = [a.dtype for a in given if jnp.issubdtype(a.dtype, jnp.floating)]
    kind = np.result_type(*real) if real else jnp.zeros(()).dtype
    vert, pnt, vec = (a.astype(kind) for a in given)
    shape = jnp.broadcast_shapes(pnt.shape, vec.shape)
    if shape[-1:] != (3,) or len(shape) > 2:
        raise ValueError(f"ray_skin: pnt, vec: expected shapes (3,) or (n, 3), got {shape}")
    begin, way, points = (
        Vec(*jnp.reshape(jnp.broadcast_to(x, to), (-1, 3)).T)
        for x, to in ((pnt, shape), (vec, shape), (vert, vert.shape))
    )
    tables = [face.astype(np.int32)] if len(face) else []
    hits = cast_soft(points, jnp.zeros_like(points.x), tables, Rays(begin, way, unseen=()))
    found = SkinHit(hits.dist, hits.vert, jnp.stack(hits.normal.parts, axis=1))
    return jax.tree.map(lambda x: x[0], found) if len(shape) == 1 else found
