"""The rays of pixels and their first hits.

Surfaces are visible from outside only, as in MuJoCo's renderer: a camera inside a head sees through
it. Rays are clipped by the planes `znear` and `zfar`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.math import Vec, select_where
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.ray.cast import RAY_MISS, Hits, Rays, cast_rays, recompute_hits
from jaxsim.view.picture.deformable import NO_HIT_ID, FlexHits, differentiable_hits, nearest
from jaxsim.view.picture.scene import PictureScene

_MAX_CROSSINGS = 8  # limit on surfaces that a ray leaves from inside
_MIN_NEIGHBOR_SLOPE = 0.05  # smallest slope of an adjacent ray, relative to that of the ray
CONTINUE_STEP = 1e-5  # advance beyond a surface left from inside, relative to the distance


class View(NamedTuple):
    """A camera and its image plane, as one array `[18, *W]` of rows.

    Rows: position, directions forward, up and right; bottom, height, left and width of the image
    plane at unit distance (in meters if the rays are parallel); near and far depth.
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
        """Return the view of an array of rows with one item each."""
        some = [rows[k : k + 1] for k in range(rows.shape[0])]
        pos, ahead, up, right = (Vec(*some[k : k + 3]) for k in range(0, 12, 3))
        return cls(pos, ahead, up, right, *some[12:])


class PixelHits(NamedTuple):
    """Hits of pixels, `[n, *W]`.

    Attributes:
      way: directions of the rays, of length 1 along the optical axis.
      ahead: direction of the optical axis.
      point: the hit point, in the world [m].
      depth: depth along the optical axis [m]; that of `zfar` if nothing was hit.
      geom: id of the geom, or -1.
      normal: surface normal, in the world; or zero.
      part: face of a mesh.
      piece: index of the deformable part (deformable.py), or NONE.
      soft: the hit on a deformable part; None: the model has none.
    """

    way: Vec
    ahead: Vec
    point: Vec
    depth: jax.Array
    geom: jax.Array
    normal: Vec
    part: jax.Array
    piece: jax.Array
    soft: FlexHits | None

    @property
    def met(self) -> Array:
        """Return whether a ray hits anything."""
        return (self.geom >= 0) | (self.piece >= 0)


def rays_of(
    view: View, index: Array, size: tuple[int, int], parallel: bool, like: Array
) -> tuple[Vec, Vec]:
    """Return the origins of the rays of some pixels, and their directions, of length 1 along the
    optical axis.

    Args:
      view: the camera.
      index: indices of the pixels, row by row from the upper left one, `[n]`.
      size: width and height of the image in pixels.
      parallel: whether the rays are parallel.
      like: an array `[n, *W]`.
    """
    column, row = (
        k.astype(like.dtype).reshape(-1, *(1,) * (like.ndim - 1))
        for k in (index % size[0], index // size[0])
    )
    x, y = (column + 0.5) / size[0], 1 - (row + 0.5) / size[1]
    offset = view.right.scale(view.left + x * view.width)
    offset = offset + view.up.scale(view.bottom + y * view.height)
    pos = view.pos + offset if parallel else view.pos
    way = view.ahead if parallel else view.ahead + offset
    return jax.tree.map(lambda a: a + like, (pos, way))


class Beam(NamedTuple):
    """Ray differentials: differences to the rays of the adjacent pixels, `[n, *W]`.

    Attributes:
      begin: origins of the rays; behind mirrors the mirror image of the camera.
      right, up: difference of the adjacent pixel's ray: of its direction, or of its origin.
      shift: 1 if it is of the origin, 0 if of the direction.
    """

    begin: Vec
    right: Vec
    up: Vec
    shift: jax.Array

    @classmethod
    def of(cls, view: View, size: tuple[int, int], parallel: bool, begin: Vec) -> "Beam":
        """Return the ray differentials of pixels of a view with these ray origins."""
        zero = jnp.zeros_like(begin.x)
        sides = view.right.scale(view.width / size[0]), view.up.scale(view.height / size[1])
        right, up = (jax.tree.map(lambda a: a + zero, side) for side in sides)
        return cls(begin, right, up, zero + (1.0 if parallel else 0.0))

    def plane_hits(self, way: Vec, point: Vec, normal: Vec) -> tuple[Vec, Vec]:
        """Return the intersections of the adjacent pixels' rays with the tangent planes at hit
        points.

        Args:
          way: directions of the rays.
          point, normal: of the planes.
        """
        facing = normal.dot(way)
        facing = jnp.where(facing == 0, 1, facing)

        def one(side: Vec) -> Vec:
            begin, ahead = self.begin + side.scale(self.shift), way + side.scale(1 - self.shift)
            # a ray beyond the horizon of the plane is replaced by a grazing one
            slope = jnp.maximum(normal.dot(ahead) / facing, _MIN_NEIGHBOR_SLOPE) * facing
            return begin + ahead.scale(normal.dot(point - begin) / slope)

        return one(self.right), one(self.up)

    def mirror(self, is_mirrored: Array, normal: Vec, point: Vec, way: Vec) -> "Beam":
        """Return the differentials reflected by mirrors at points, for rays with new directions
        `way`."""
        right, up = (
            select_where(is_mirrored, side - normal.scale(2 * normal.dot(side)), side)
            for side in (self.right, self.up)
        )
        far = (point - self.begin).norm() / way.norm()
        return self._replace(
            begin=select_where(is_mirrored, point - way.scale(far), self.begin), right=right, up=up
        )


class Reach(NamedTuple):
    """Range of rays, `[n, *W]` or `[1, *W]`, in units of their lengths."""

    near: jax.Array
    far: jax.Array


def trace_rays(
    m: Model,
    d: Data,
    scene: PictureScene,
    rays: tuple[Vec, Vec],
    reach: Reach,
    ahead: Vec,
    geoms: np.ndarray,
) -> PixelHits:
    """Return the first hits of rays.

    Args:
      m, d: model and data with the poses of geoms.
      scene: the visible objects.
      rays: origins, and directions of length 1 along the optical axis.
      reach: their range.
      ahead: direction of the optical axis.
      geoms: visible geoms.
    """
    pos, way = rays
    near, far = (x + jnp.zeros_like(pos.x) for x in reach)
    start, hits, piece = _first_outer_hits(*lax.stop_gradient((m, d, scene, rays)), near, geoms)
    begin = pos + way.scale(start)
    hits = recompute_hits(m, d, Rays(begin, way, ()), geoms, hits, scene.solid)
    dist, normal, soft = hits.dist, hits.normal, None
    if scene.soft is not None:
        length = way.norm()
        soft, of_soft = (
            differentiable_hits(m, scene.soft, begin, way.scale(1 / length), piece),
            piece >= 0,
        )
        dist = jnp.where(of_soft, jnp.where(of_soft, soft.dist, 0) / length, dist)
        normal = select_where(of_soft, soft.normal, normal)
    depth = start + dist
    met = ((hits.geom >= 0) | (piece >= 0)) & (depth < far)
    depth = jnp.where(met, depth, far)
    return PixelHits(
        way=way,
        ahead=ahead,
        point=pos + way.scale(depth),
        depth=depth,
        geom=jnp.where(met, hits.geom, RAY_MISS),
        normal=normal.map(lambda a: jnp.where(met, a, 0)),
        part=hits.part,
        piece=jnp.where(met, piece, NO_HIT_ID),
        soft=soft,
    )


def first_hits(
    m: Model, d: Data, scene: PictureScene, rays: Rays, geoms: np.ndarray
) -> tuple[Hits, Array]:
    """Return the nearest hits of rays: on geoms, or on deformable parts."""
    hits = cast_rays(m, d, rays, geoms, scene.solid)
    none = jnp.full(hits.dist.shape, NO_HIT_ID, jnp.int32)
    if scene.soft is None:
        return hits, none
    length = rays.vec.norm()
    limit = jnp.where(hits.geom >= 0, hits.dist * length, jnp.inf)
    dist, piece = nearest(m, scene.soft, rays.pos, rays.vec.scale(1 / length), limit)
    soft = piece >= 0
    dist = jnp.where(soft, jnp.where(soft, dist, 0) / length, hits.dist)
    return hits._replace(dist=dist, geom=jnp.where(soft, RAY_MISS, hits.geom)), piece


def _first_outer_hits(
    m: Model,
    d: Data,
    scene: PictureScene,
    rays: tuple[Vec, Vec],
    near: Array,
    geoms: np.ndarray,
) -> tuple[Array, Hits, Array]:
    """Return the first hits from outside, and the distances from which rays see them."""
    pos, way = rays

    def iterate(state: tuple) -> tuple:
        number, _, start, _, _ = state
        hits, piece = first_hits(m, d, scene, Rays(pos + way.scale(start), way, ()), geoms)
        inside = (hits.geom >= 0) & (hits.normal.dot(way) > 0)
        past = (start + hits.dist) * (1 + CONTINUE_STEP) + CONTINUE_STEP * near
        hits = hits._replace(geom=jnp.where(inside, RAY_MISS, hits.geom))
        return number + 1, inside, jnp.where(inside, past, start), hits, piece

    def going(state: tuple) -> Array:
        return jnp.any(state[1]) & (state[0] < _MAX_CROSSINGS)

    near, zero = lax.stop_gradient(near), jnp.zeros_like(near)
    none = jnp.zeros(zero.shape, jnp.int32)
    hits = Hits(zero, none, Vec(zero, zero, zero), none)
    state = jnp.int32(0), jnp.ones(zero.shape, bool), near, hits, none + NO_HIT_ID
    _, _, start, hits, piece = lax.while_loop(going, iterate, state)
    return start, hits, piece
