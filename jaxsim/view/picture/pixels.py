"""The rays of pixels, and what each sees first.

Surfaces are seen from outside alone, as MuJoCo's renderer draws them: a camera inside a head looks
out of it. Rays begin in the plane `znear` before the camera and end in the plane `zfar`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math import Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.ray.cast import NOTHING, Hits, Rays, cast, cast_again

THROUGH = 8  # surfaces that a ray may leave from inside until it sees nothing
STEP = 1e-5  # by how much farther it goes on, of the distance so far


class View(NamedTuple):
    """A camera and its picture, as one array `[18, *W]` of rows.

    Rows: position, directions ahead, up and to the right; bottom, height, left and width of the
    picture at unit distance (in meters if the rays are parallel); nearest and farthest depth.
    """

    pos: Vec
    ahead: Vec
    up: Vec
    right: Vec
    bottom: jax.Array
    height: jax.Array
    left: jax.Array
    width: jax.Array
    near: jax.Array
    far: jax.Array

    @classmethod
    def of(cls, rows: Array) -> "View":
        """From the rows; each has one item."""
        some = [rows[k : k + 1] for k in range(rows.shape[0])]
        pos, ahead, up, right = (Vec(*some[k : k + 3]) for k in range(0, 12, 3))
        return cls(pos, ahead, up, right, *some[12:])


class Seen(NamedTuple):
    """What pixels see, `[n, *W]`.

    Attributes:
      way: directions of their rays, of length 1 along the view.
      ahead: direction of the view.
      point: what they meet, in the world [m].
      depth: how far before the camera, along the view [m]; that of `zfar` for nothing.
      geom: which geom, or -1.
      normal: of the surface, in the world; or zero.
      part: of a mesh the face.
    """

    way: Vec
    ahead: Vec
    point: Vec
    depth: jax.Array
    geom: jax.Array
    normal: Vec
    part: jax.Array


def seen(
    m: Model,
    d: Data,
    view: View,
    index: Array,
    size: tuple[int, int],
    parallel: bool,
    geoms: np.ndarray,
) -> Seen:
    """What some pixels see.

    Args:
      m, d: model and data with the poses of geoms.
      view: from where.
      index: numbers of the pixels, row by row from the upper left one, `[n]`.
      size: width and height of the picture in pixels.
      parallel: whether the rays are.
      geoms: those that may be seen.
    """
    like = jnp.zeros_like(d.qpos, shape=(len(index), *d.qpos.shape[1:]))
    column, row = (
        k.astype(like.dtype).reshape(-1, *(1,) * (like.ndim - 1))
        for k in (index % size[0], index // size[0])
    )
    x, y = (column + 0.5) / size[0], 1 - (row + 0.5) / size[1]
    beside = view.right.scale(view.left + x * view.width)
    beside = beside + view.up.scale(view.bottom + y * view.height)
    pos = view.pos + beside if parallel else view.pos
    way = view.ahead if parallel else view.ahead + beside
    pos, way = jax.tree.map(lambda a: a + like, (pos, way))
    start, hits = _outside(*lax.stop_gradient((m, d, pos, way)), view.near + like, geoms)
    hits = cast_again(m, d, Rays(pos + way.scale(start), way, ()), geoms, hits)
    depth = start + hits.dist
    met = (hits.geom >= 0) & (depth < view.far)
    depth = jnp.where(met, depth, view.far)
    return Seen(
        way=way,
        ahead=view.ahead,
        point=pos + way.scale(depth),
        depth=depth,
        geom=jnp.where(met, hits.geom, NOTHING),
        normal=hits.normal.map(lambda a: jnp.where(met, a, 0)),
        part=hits.part,
    )


def _outside(
    m: Model, d: Data, pos: Vec, way: Vec, near: Array, geoms: np.ndarray
) -> tuple[Array, Hits]:
    """The first surfaces that rays meet from outside, and from where on they see them."""

    def turn(state: tuple) -> tuple:
        number, _, start, _ = state
        hits = cast(m, d, Rays(pos + way.scale(start), way, ()), geoms)
        inside = (hits.geom >= 0) & (hits.normal.dot(way) > 0)
        past = (start + hits.dist) * (1 + STEP) + STEP * near
        hits = hits._replace(geom=jnp.where(inside, NOTHING, hits.geom))
        return number + 1, inside, jnp.where(inside, past, start), hits

    def going(state: tuple) -> Array:
        return jnp.any(state[1]) & (state[0] < THROUGH)

    near, zero = lax.stop_gradient(near), jnp.zeros_like(near)
    none = jnp.zeros(zero.shape, jnp.int32)
    hits = Hits(zero, none, Vec(zero, zero, zero), none)
    state = jnp.int32(0), jnp.ones(zero.shape, bool), near, hits
    _, _, start, hits = lax.while_loop(going, turn, state)
    return start, hits
