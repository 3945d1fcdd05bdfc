"""The rays of pixels, and what each sees first.

Surfaces are seen from outside alone, as MuJoCo's renderer draws them: a camera inside a head looks
out of it. Rays begin in the plane `znear` before the camera and end in the plane `zfar`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math import Vec, select
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.ray.cast import NOTHING, Hits, Rays, cast, cast_again
from jaxsim.view.picture.scene import Scene
from jaxsim.view.picture.soft import NONE, Met, again, nearest

THROUGH = 8  # surfaces that a ray may leave from inside until it sees nothing
GRAZING = 0.05  # least slope of a neighbouring ray, in that of a ray
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
      piece: which part of what changes its form (soft.py), or NONE.
      soft: what is met there; None: a model has nothing that does.
    """

    way: Vec
    ahead: Vec
    point: Vec
    depth: jax.Array
    geom: jax.Array
    normal: Vec
    part: jax.Array
    piece: jax.Array
    soft: Met | None

    @property
    def met(self) -> Array:
        """Return whether a ray meets anything."""
        return (self.geom >= 0) | (self.piece >= 0)


def rays_of(
    view: View, index: Array, size: tuple[int, int], parallel: bool, like: Array
) -> tuple[Vec, Vec]:
    """Where the rays of some pixels begin, and their directions, of length 1 along the view.

    Args:
      view: from where.
      index: numbers of the pixels, row by row from the upper left one, `[n]`.
      size: width and height of the picture in pixels.
      parallel: whether the rays are.
      like: an array `[n, *W]`.
    """
    column, row = (
        k.astype(like.dtype).reshape(-1, *(1,) * (like.ndim - 1))
        for k in (index % size[0], index // size[0])
    )
    x, y = (column + 0.5) / size[0], 1 - (row + 0.5) / size[1]
    beside = view.right.scale(view.left + x * view.width)
    beside = beside + view.up.scale(view.bottom + y * view.height)
    pos = view.pos + beside if parallel else view.pos
    way = view.ahead if parallel else view.ahead + beside
    return jax.tree.map(lambda a: a + like, (pos, way))


class Beam(NamedTuple):
    """How the rays of the next pixels differ from those of some, `[n, *W]`.

    Attributes:
      begin: where rays begin; behind mirrors the place in them of the camera.
      right, up: what the next pixel's has in addition: its direction, or its beginning.
      shift: 1 if it is the beginning, 0 if it is the direction.
    """

    begin: Vec
    right: Vec
    up: Vec
    shift: jax.Array

    @classmethod
    def of(cls, view: View, size: tuple[int, int], parallel: bool, begin: Vec) -> "Beam":
        """Of pixels of a view whose rays begin somewhere."""
        zero = jnp.zeros_like(begin.x)
        sides = view.right.scale(view.width / size[0]), view.up.scale(view.height / size[1])
        right, up = (jax.tree.map(lambda a: a + zero, side) for side in sides)
        return cls(begin, right, up, zero + (1.0 if parallel else 0.0))

    def near(self, way: Vec, point: Vec, normal: Vec) -> tuple[Vec, Vec]:
        """Where the next pixels' rays meet the planes that rays meet at points.

        Args:
          way: directions of the rays.
          point, normal: of the planes.
        """
        facing = normal.dot(way)
        facing = jnp.where(facing == 0, 1, facing)

        def one(side: Vec) -> Vec:
            begin, ahead = self.begin + side.scale(self.shift), way + side.scale(1 - self.shift)
            # a ray beyond the horizon of the plane is taken for one that nearly grazes it
            slope = jnp.maximum(normal.dot(ahead) / facing, GRAZING) * facing
            return begin + ahead.scale(normal.dot(point - begin) / slope)

        return one(self.right), one(self.up)

    def mirrored(self, turns: Array, normal: Vec, point: Vec, way: Vec) -> "Beam":
        """As it is behind mirrors at points, for rays that turn there to the directions `way`."""
        right, up = (
            select(turns, side - normal.scale(2 * normal.dot(side)), side)
            for side in (self.right, self.up)
        )
        far = (point - self.begin).norm() / way.norm()
        return self._replace(
            begin=select(turns, point - way.scale(far), self.begin), right=right, up=up
        )


class Reach(NamedTuple):
    """From where to where rays see, `[n, *W]` or `[1, *W]`, in their lengths."""

    near: jax.Array
    far: jax.Array


def seen(
    m: Model,
    d: Data,
    scene: Scene,
    rays: tuple[Vec, Vec],
    reach: Reach,
    ahead: Vec,
    geoms: np.ndarray,
) -> Seen:
    """What rays see.

    Args:
      m, d: model and data with the poses of geoms.
      scene: what there is.
      rays: where they begin, and their directions, of length 1 along the view.
      reach: from where to where they see.
      ahead: direction of the view.
      geoms: those that may be seen.
    """
    pos, way = rays
    near, far = (x + jnp.zeros_like(pos.x) for x in reach)
    start, hits, piece = _outside(*lax.stop_gradient((m, d, scene, rays)), near, geoms)
    begin = pos + way.scale(start)
    hits = cast_again(m, d, Rays(begin, way, ()), geoms, hits, scene.solid)
    dist, normal, soft = hits.dist, hits.normal, None
    if scene.soft is not None:
        length = way.norm()
        soft, of_soft = again(m, scene.soft, begin, way.scale(1 / length), piece), piece >= 0
        dist = jnp.where(of_soft, jnp.where(of_soft, soft.dist, 0) / length, dist)
        normal = select(of_soft, soft.normal, normal)
    depth = start + dist
    met = ((hits.geom >= 0) | (piece >= 0)) & (depth < far)
    depth = jnp.where(met, depth, far)
    return Seen(
        way=way,
        ahead=ahead,
        point=pos + way.scale(depth),
        depth=depth,
        geom=jnp.where(met, hits.geom, NOTHING),
        normal=normal.map(lambda a: jnp.where(met, a, 0)),
        part=hits.part,
        piece=jnp.where(met, piece, NONE),
        soft=soft,
    )


def first_hits(
    m: Model, d: Data, scene: Scene, rays: Rays, geoms: np.ndarray
) -> tuple[Hits, Array]:
    """What rays meet first: a geom, or a piece of what changes its form."""
    hits = cast(m, d, rays, geoms, scene.solid)
    none = jnp.full(hits.dist.shape, NONE, jnp.int32)
    if scene.soft is None:
        return hits, none
    length = rays.vec.norm()
    limit = jnp.where(hits.geom >= 0, hits.dist * length, jnp.inf)
    dist, piece = nearest(m, scene.soft, rays.pos, rays.vec.scale(1 / length), limit)
    soft = piece >= 0
    dist = jnp.where(soft, jnp.where(soft, dist, 0) / length, hits.dist)
    return hits._replace(dist=dist, geom=jnp.where(soft, NOTHING, hits.geom)), piece


def _outside(
    m: Model,
    d: Data,
    scene: Scene,
    rays: tuple[Vec, Vec],
    near: Array,
    geoms: np.ndarray,
) -> tuple[Array, Hits, Array]:
    """Return the first surfaces that rays meet from outside, and from where on they see them."""
    pos, way = rays

    def turn(state: tuple) -> tuple:
        number, _, start, _, _ = state
        hits, piece = first_hits(m, d, scene, Rays(pos + way.scale(start), way, ()), geoms)
        inside = (hits.geom >= 0) & (hits.normal.dot(way) > 0)
        past = (start + hits.dist) * (1 + STEP) + STEP * near
        hits = hits._replace(geom=jnp.where(inside, NOTHING, hits.geom))
        return number + 1, inside, jnp.where(inside, past, start), hits, piece

    def going(state: tuple) -> Array:
        return jnp.any(state[1]) & (state[0] < THROUGH)

    near, zero = lax.stop_gradient(near), jnp.zeros_like(near)
    none = jnp.zeros(zero.shape, jnp.int32)
    hits = Hits(zero, none, Vec(zero, zero, zero), none)
    state = jnp.int32(0), jnp.ones(zero.shape, bool), near, hits, none + NONE
    _, _, start, hits, piece = lax.while_loop(going, turn, state)
    return start, hits, piece
