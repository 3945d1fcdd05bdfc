"""Rays and soft surfaces: balls, rods and triangles between points; MuJoCo's `mj_rayFlex`.

A flex is met as it is drawn: balls of its radius at its vertices, rods of that radius along its
edges, and its faces, which have no thickness. The search finds which of these a ray meets first,
without derivative; that one is computed once more, as a function of ray, points and radius.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math import Vec, safe_divide, select
from jaxsim.model.structure import Structure
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.platform import platform
from jaxsim.physics.arrays.select import pick, take
from jaxsim.physics.ray import triangle
from jaxsim.physics.ray.cast import TURN, Rays, by_parts, of_unit_length
from jaxsim.physics.ray.local import NEVER, Hit, first
from jaxsim.physics.ray.quadric import crossings

SIDES = ((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3))  # corners of the sides of a tetrahedron


class Shown(NamedTuple):
    """What of a flex is drawn: MuJoCo's flags, and of one of solids the layer of its elements."""

    layer: int
    vert: bool
    edge: bool
    face: bool
    skin: bool


class SoftHits(NamedTuple):
    """What rays meet first, `[n, *W]`.

    Attributes:
      dist: how far they go, in lengths of the ray's vector; -1 for those that meet nothing.
      normal: of the surface there; or zero.
      vert: number of the nearest point of what they meet; or -1.
    """

    dist: jax.Array
    normal: Vec
    vert: jax.Array


def drawn(s: Structure, flex: int, shown: Shown) -> list[np.ndarray]:
    """What of a flex rays meet: tables of its vertices, of balls `[k, 1]`, rods `[k, 2]` and
    triangles `[k, 3]`, in the order in which MuJoCo looks at them."""
    dim, tables = int(s.flex_dim[flex]), []
    skin = dim > 1 and shown.skin
    if shown.edge or skin:
        first = s.flex_edgeadr[flex]
        tables.append(np.reshape(s.flex_edge, (-1, 2))[first : first + s.flex_edgenum[flex]])
    elif shown.vert:
        tables.append(np.arange(s.flex_vertnum[flex])[:, None])
    if dim > 1 and (shown.face or skin):
        tables.append(_faces(s, flex, 0 if skin else shown.layer))
    return [np.asarray(t, np.int32) for t in tables if len(t)]


def _faces(s: Structure, flex: int, layer: int) -> np.ndarray:
    """Triangles of a flex; of solids those of the elements of a layer."""
    dim = int(s.flex_dim[flex])
    begin, number = s.flex_elemdataadr[flex], s.flex_elemnum[flex]
    elements = np.ravel(s.flex_elem)[begin : begin + number * (dim + 1)].reshape(number, dim + 1)
    if dim == 2:
        return elements
    first = s.flex_elemadr[flex]
    layers = s.flex_elemlayer[first : first + number]
    return elements[layers == layer][:, SIDES].reshape(-1, 3)


def cast_soft(points: Vec, radius: Array, tables: list, rays: Rays) -> SoftHits:
    """What rays meet of balls, rods and triangles.

    Args:
      points: `[npoint, *W]`.
      radius: of the balls at the points, and of the rods that begin there, `[npoint, *W]` [m].
      tables: numbers of points, as `drawn` gives them.
      rays: the rays; one without direction meets nothing.
    """
    rays, length = of_unit_length(rays)
    if not tables:
        return _nothing(length)
    worlds = int(np.prod(length.shape[1:], dtype=int))
    most = max(1, TURN * platform().lanes // (worlds * max(len(t) for t in tables)))
    still = lax.stop_gradient((points, radius))
    found = by_parts(lambda some: _search(*still, tables, some), lax.stop_gradient(rays), most)
    best, part = found[0], found[1]
    hits = _nothing(length)
    met = (best < NEVER) & (length > 0)
    for number, table in enumerate(tables):
        here = met & (part == number)
        ids = list(jnp.moveaxis(jnp.asarray(table)[jnp.where(here, found[2], 0)], -1, 0))
        hit = _hit(points, radius, rays, ids)
        dist = jnp.where(here, hit.dist, 0) / jnp.where(here, length, 1)
        hits = SoftHits(
            jnp.where(here, dist, hits.dist),
            select(here, hit.normal, hits.normal),
            jnp.where(here, _nearest(points, rays, hit, ids), hits.vert),
        )
    return hits


def _nothing(like: Array) -> SoftHits:
    zero = jnp.zeros_like(like)
    return SoftHits(zero - 1, Vec(zero, zero, zero), jnp.full(like.shape, -1, jnp.int32))


def _search(points: Vec, radius: Array, tables: list, rays: Rays) -> tuple[Array, Array, Array]:
    """How far each ray goes [m], the table that has what it meets, and the row there."""
    best = jnp.full_like(rays.pos.x, NEVER)
    part = row = jnp.zeros(best.shape, jnp.int32)
    begin, way = (v.map(lambda x: x[None]) for v in (rays.pos, rays.vec))
    for number, table in enumerate(tables):
        corners = [take(points, c).map(lambda x: x[:, None]) - begin for c in table.T]
        thick = take(radius, table[:, 0])[:, None]
        far = FAR_TO[table.shape[1]](way, thick, *corners)
        far = jnp.where(far >= 0, far, NEVER)
        index = jnp.argmin(far, axis=0).astype(jnp.int32)
        least = jnp.min(far, axis=0)
        nearer = least < best
        best = jnp.where(nearer, least, best)
        part, row = jnp.where(nearer, np.int32(number), part), jnp.where(nearer, index, row)
    return best, part, row


def _hit(points: Vec, radius: Array, rays: Rays, ids: list) -> Hit:
    """Where rays meet a ball, a rod or a triangle, each its own; differentiable."""
    corners = [pick(points, i) - rays.pos for i in ids]
    if len(ids) == 3:
        return triangle.hit(rays.vec, *corners)
    far = FAR_TO[len(ids)](rays.vec, pick(radius, ids[0]), *corners)
    far = jnp.where(jnp.isfinite(far), far, 0)
    at = rays.vec.scale(far)
    return Hit(far, (at - _axis_point(at, *corners)).normalize())


def _nearest(points: Vec, rays: Rays, hit: Hit, ids: list) -> Array:
    """Which of the points is nearest to where the ray ends."""
    at = rays.pos + rays.vec.scale(hit.dist)
    away = [(pick(points, i) - at) for i in ids]
    square = jnp.stack([lax.stop_gradient(v.dot(v)) for v in away])
    least = jnp.argmin(square, axis=0)[None]
    return jnp.take_along_axis(jnp.stack(ids), least, axis=0)[0]


def _to_ball(way: Vec, radius: Array, a: Vec) -> Array:
    """How far rays go to balls whose centers are seen from where they begin; else NEVER."""
    return first(*crossings(-a, way, radius))


def _to_rod(way: Vec, radius: Array, a: Vec, b: Vec) -> Array:
    """How far rays go to rods with round ends, from a to b as seen from where they begin.

    Across the axis the side is a circle; it counts between the ends, and the balls beyond them.
    """
    span = b - a
    length = span.norm()
    axis = span.scale(safe_divide(jnp.ones_like(length), length))
    height, rise = -axis.dot(a), axis.dot(way)
    ways = []
    across = -a - axis.scale(height)
    for t in crossings(across, way - axis.scale(rise), radius):
        at = height + _finite(t) * rise
        ways.append(jnp.where((at >= 0) & (at <= length), t, NEVER))
    for end, sign, level in ((a, -1, 0.0), (b, 1, length)):
        for t in crossings(-end, way, radius):
            beyond = sign * (height + _finite(t) * rise - level) >= 0
            ways.append(jnp.where(beyond, t, NEVER))
    return first(*ways)


def _to_triangle(way: Vec, radius: Array, a: Vec, b: Vec, c: Vec) -> Array:
    del radius
    return triangle.meets(way, a, b, c)


FAR_TO: dict[int, Callable] = {1: _to_ball, 2: _to_rod, 3: _to_triangle}  # by number of points


def _axis_point(at: Vec, a: Vec, b: Vec | None = None) -> Vec:
    """The point of the axis of a rod that is nearest to one of its surface; a ball's center."""
    if b is None:
        return a
    span = b - a
    share = jnp.clip(safe_divide((at - a).dot(span), span.dot(span)), 0, 1)
    return a + span.scale(share)


def _finite(t: Array) -> Array:
    return jnp.where(jnp.isfinite(t), t, 0)
