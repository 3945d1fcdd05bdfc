"""Ray intersections with flexes: spheres, capsules and triangles between points; `mj_rayFlex`.

A flex is intersected as it is rendered: spheres of its radius at vertices, capsules of that radius
along edges, and faces without thickness. The search finds the first element of each ray without
derivatives; its intersection is then recomputed as a function of ray, points and radius.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather, gather_static
from jaxsim.math import Vec, safe_divide, select_where
from jaxsim.model.structure import Structure
from jaxsim.physics.ray import triangle
from jaxsim.physics.ray.cast import Rays, map_ray_chunks, normalize_rays
from jaxsim.physics.ray.local_rays import NO_HIT, Hit, nearest_ahead
from jaxsim.physics.ray.quadric import sphere_crossings
from jaxsim.transforms.tuning import tuning

_TETRAHEDRON_SIDES = (
    (0, 1, 2),
    (0, 1, 3),
    (0, 2, 3),
    (1, 2, 3),
)  # corners of the faces of a tetrahedron


class Shown(NamedTuple):
    """Rendered elements of a flex: MuJoCo's flags, and for solids the layer of elements."""

    layer: int
    vert: bool
    edge: bool
    face: bool
    skin: bool


class SoftHits(NamedTuple):
    """First intersections of rays, `[n, *W]`.

    Attributes:
      dist: distance, in lengths of the ray's vector; -1 for no hit.
      normal: normal of the surface; or zero.
      vert: index of the nearest point of the element; or -1.
    """

    dist: jax.Array
    normal: Vec
    vert: jax.Array


def visible_flex_items(s: Structure, flex: int, shown: Shown) -> list[np.ndarray]:
    """Return the elements of a flex that rays can hit, in the order of MuJoCo's tests.

    They are vertex tables: spheres `[k, 1]`, capsules `[k, 2]` and triangles `[k, 3]`.
    """
    dim, tables = int(s.flex_dim[flex]), []
    skin = dim > 1 and shown.skin
    # Vertices are drawn only where edges are not, as in MuJoCo.
    if shown.edge or skin:
        first = s.flex_edgeadr[flex]
        tables.append(np.reshape(s.flex_edge, (-1, 2))[first : first + s.flex_edgenum[flex]])
    elif shown.vert:
        tables.append(np.arange(s.flex_vertnum[flex])[:, None])
    if dim > 1 and (shown.face or skin):
        tables.append(_faces(s, flex, 0 if skin else shown.layer))
    return [np.asarray(t, np.int32) for t in tables if len(t)]


def _faces(s: Structure, flex: int, layer: int) -> np.ndarray:
    """Return the triangles of a flex; for solids the faces of the elements of a layer."""
    dim = int(s.flex_dim[flex])
    begin, number = s.flex_elemdataadr[flex], s.flex_elemnum[flex]
    elements = np.ravel(s.flex_elem)[begin : begin + number * (dim + 1)].reshape(number, dim + 1)
    # 2D elements are triangles themselves; solids show the sides of a layer.
    if dim == 2:
        return elements
    first = s.flex_elemadr[flex]
    layers = s.flex_elemlayer[first : first + number]
    return elements[layers == layer][:, _TETRAHEDRON_SIDES].reshape(-1, 3)


def cast_soft(points: Vec, radius: Array, tables: list, rays: Rays) -> SoftHits:
    """Find the first intersection of rays with spheres, capsules and triangles.

    Args:
      points: `[npoint, *W]`.
      radius: radius of the spheres at the points, and of the capsules that start there, `[npoint,
        *W]` [m].
      tables: indices of points, see `visible_flex_items`.
      rays: the rays; one with a zero direction hits nothing.
    """
    rays, length = normalize_rays(rays)
    if not tables:
        return _no_hit(length)
    # Search in blocks without derivatives, then evaluate each kind of element.
    # Limit rays times primitives per iteration, so that memory is bounded.
    worlds = int(np.prod(length.shape[1:], dtype=int))
    together = tuning().ray_pairs_per_lane * tuning().search_lanes // worlds
    most = max(1, together // max(len(t) for t in tables))
    # The search has no derivative.
    still = lax.stop_gradient((points, radius))
    found = map_ray_chunks(
        lambda some: _search_elements(*still, tables, some), lax.stop_gradient(rays), most
    )
    best, part = found[0], found[1]
    hits = _no_hit(length)
    met = (best < NO_HIT) & (length > 0)
    # Evaluate the hit of each kind of primitive differentiably.
    for number, table in enumerate(tables):
        here = met & (part == number)
        ids = list(jnp.moveaxis(jnp.asarray(table)[jnp.where(here, found[2], 0)], -1, 0))
        hit = _hit(points, radius, rays, ids)
        dist = jnp.where(here, hit.dist, 0) / jnp.where(here, length, 1)
        hits = SoftHits(
            jnp.where(here, dist, hits.dist),
            select_where(here, hit.normal, hits.normal),
            jnp.where(here, _nearest(points, rays, hit, ids), hits.vert),
        )
    return hits


def _no_hit(like: Array) -> SoftHits:
    zero = jnp.zeros_like(like)
    return SoftHits(zero - 1, Vec(zero, zero, zero), jnp.full(like.shape, -1, jnp.int32))


def _search_elements(
    points: Vec, radius: Array, tables: list, rays: Rays
) -> tuple[Array, Array, Array]:
    """Search the nearest element of each ray: distance [m], table, and row."""
    best = jnp.full_like(rays.pos.x, NO_HIT)
    part = row = jnp.zeros(best.shape, jnp.int32)
    begin, way = (v.map(lambda x: x[None]) for v in (rays.pos, rays.vec))
    for number, table in enumerate(tables):
        # Corners relative to the rays' origins.
        corners = [gather_static(points, c).map(lambda x: x[:, None]) - begin for c in table.T]
        thick = gather_static(radius, table[:, 0])[:, None]
        far = FAR_TO[table.shape[1]](way, thick, *corners)
        far = jnp.where(far >= 0, far, NO_HIT)
        # The nearest primitive of this table, compared with those before.
        index = jnp.argmin(far, axis=0).astype(jnp.int32)
        least = jnp.min(far, axis=0)
        nearer = least < best
        best = jnp.where(nearer, least, best)
        part, row = jnp.where(nearer, np.int32(number), part), jnp.where(nearer, index, row)
    return best, part, row


def _hit(points: Vec, radius: Array, rays: Rays, ids: list) -> Hit:
    """Compute the intersections with each ray's own element; differentiable."""
    corners = [gather(points, i) - rays.pos for i in ids]
    if len(ids) == 3:
        return triangle.intersect_triangle(rays.vec, *corners)
    far = FAR_TO[len(ids)](rays.vec, gather(radius, ids[0]), *corners)
    far = jnp.where(jnp.isfinite(far), far, 0)
    at = rays.vec.scale(far)
    return Hit(far, (at - _axis_point(at, *corners)).normalize())


def _nearest(points: Vec, rays: Rays, hit: Hit, ids: list) -> Array:
    """Return the element's point nearest to the hit."""
    at = rays.pos + rays.vec.scale(hit.dist)
    away = [(gather(points, i) - at) for i in ids]
    square = jnp.stack([lax.stop_gradient(v.dot(v)) for v in away])
    least = jnp.argmin(square, axis=0)[None]
    return jnp.take_along_axis(jnp.stack(ids), least, axis=0)[0]


def _sphere_distance(way: Vec, radius: Array, a: Vec) -> Array:
    """Compute distances to spheres with centers relative to the origins; else NEVER."""
    return nearest_ahead(*sphere_crossings(-a, way, radius))


def _capsule_distance(way: Vec, radius: Array, a: Vec, b: Vec) -> Array:
    """Compute distances to capsules from a to b, relative to the origins; else NEVER.

    The lateral surface is a circle across the axis, valid between the ends; the end spheres beyond
    them.
    """
    span = b - a
    length = span.norm()
    axis = span.scale(safe_divide(jnp.ones_like(length), length))
    # Height along the axis and its rate along the ray.
    height, rise = -axis.dot(a), axis.dot(way)
    ways = []
    # Round side: a circle across the axis, between the ends.
    across = -a - axis.scale(height)
    for t in sphere_crossings(across, way - axis.scale(rise), radius):
        at = height + _finite(t) * rise
        ways.append(jnp.where((at >= 0) & (at <= length), t, NO_HIT))
    # End balls, beyond the ends.
    for end, sign, level in ((a, -1, 0.0), (b, 1, length)):
        for t in sphere_crossings(-end, way, radius):
            beyond = sign * (height + _finite(t) * rise - level) >= 0
            ways.append(jnp.where(beyond, t, NO_HIT))
    return nearest_ahead(*ways)


def _triangle_distance(way: Vec, radius: Array, a: Vec, b: Vec, c: Vec) -> Array:
    del radius
    return triangle.ray_triangle(way, a, b, c)


FAR_TO: dict[int, Callable] = {
    1: _sphere_distance,
    2: _capsule_distance,
    3: _triangle_distance,
}  # by number of points


def _axis_point(at: Vec, a: Vec, b: Vec | None = None) -> Vec:
    """Return the nearest axis point of a capsule to a surface point; the center of a sphere."""
    if b is None:
        return a
    span = b - a
    share = jnp.clip(safe_divide((at - a).dot(span), span.dot(span)), 0, 1)
    return a + span.scale(share)


def _finite(t: Array) -> Array:
    return jnp.where(jnp.isfinite(t), t, 0)
