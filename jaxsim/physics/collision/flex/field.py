"""Contacts of shells with `sdf` geoms: the deepest point of each triangle in the geom.

A triangle is searched like a face of a mesh, by the Frank-Wolfe method (field/face_search.py),
without its thickness. Of its points in the geom the deepest is kept, the first one if several are
equally deep. Triangles are visited in the order of the bounding volume hierarchy of the shell, as
compiled, until 50 of them have a point; a point that several triangles share counts once.
"""

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.dynamic import dynamic_slice_in_dim
from jaxsim.arrays.gather import running_sum
from jaxsim.enums import MINVAL
from jaxsim.math import Vec, select_where
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.model.model import Model
from jaxsim.physics.collision.field.distance import SdfGeoms, distance_and_slope
from jaxsim.physics.collision.field.face_search import Searched, may_reach, search_faces
from jaxsim.physics.collision.field.fields import SdfTables, fields_of
from jaxsim.physics.collision.field.kinds import NO_SDF, kind_of, shell_collidable_geoms
from jaxsim.physics.collision.field.mesh import MAX_MESH_CONTACTS
from jaxsim.physics.collision.field.pair import normalize_or_zero
from jaxsim.physics.collision.field.search_results import SdfSearchResult, contacts_in_world
from jaxsim.physics.collision.flex.item import RoundedHull
from jaxsim.physics.collision.flex.triangle import nearest_shares, weighted_point
from jaxsim.physics.collision.shape import ContactPoints, PlacedGeoms, add_slot_axis

_SAME_POINT_ULPS = 16  # closer points, in units of machine epsilon of their positions, are equal


def shell_fields(m: Model) -> SdfTables:
    """Return the signed distance fields of the `sdf` geoms that shells may touch."""
    s = m.structure
    geoms = shell_collidable_geoms(s, m.pair_flags)
    kinds = [kind_of(s, g) if g in geoms else NO_SDF for g in range(s.ngeom)]
    return fields_of(m, kinds, (), tuple(sorted({*kinds} - {NO_SDF})))


def sdf_triangle(
    geom: PlacedGeoms, triangle: RoundedHull, assets: SdfTables, reach: Array
) -> ContactPoints:
    """Return one contact of each triangle, with the normal from the geom to the shell.

    Only penetrating points are contacts: `reach` merely selects the triangles. The derivative keeps
    the barycentric coordinates of the point constant.
    """
    # Search in the frame of the geom.
    back, origin = geom.rot.T, geom.pos
    corners = tuple(add_slot_axis(back @ (corner - origin)) for corner in triangle.corner)
    solid = assets.solid(geom, assets.second)
    wanted = add_slot_axis(reach > -NO_CONTACT_DISTANCE / 2)
    x, found = lax.stop_gradient(
        _search_triangles(*lax.stop_gradient((corners, wanted, solid)), assets)
    )
    # Attach the tangents of the corners and of the distance to the point.
    shares = lax.stop_gradient(nearest_shares(x, corners))
    x = x + _zero_with_tangent(weighted_point(shares, corners))
    dist, slope = distance_and_slope(x, solid)
    dist = found + _zero_with_tangent(dist)
    exists = slope.dot(slope) > MINVAL
    touch = contacts_in_world(
        SdfSearchResult(x, jnp.where(exists, dist, NO_CONTACT_DISTANCE), normalize_or_zero(-slope)),
        geom,
    )
    return touch._replace(normal=-touch.normal)


def first_visits(touch: ContactPoints, pair: Array) -> ContactPoints:
    """Set NO_CONTACT_DISTANCE for repeated points, and for those after the first 50 of a pair.

    Args:
      touch: points of all triangles in the order of their visit, `[1, n, *W]`; NO_CONTACT_DISTANCE:
        no point.
      pair: pair of each triangle, `[n, *W]`; triangles of a pair are consecutive.
    """
    # Count the hits of each pair: a running sum, less its value where the pair begins.
    hit = touch.dist[0] < 0
    new = jnp.concatenate([jnp.ones_like(pair[:1], bool), pair[1:] != pair[:-1]])
    number = running_sum(hit.astype(jnp.int32))
    before = lax.cummax(jnp.where(new, number - hit.astype(jnp.int32), 0), axis=0)
    hit = hit & (number - before <= MAX_MESH_CONTACTS)
    # Remove points that an earlier triangle of the pair has.
    pos = lax.stop_gradient(touch.pos.map(lambda a: jnp.broadcast_to(a[0], hit.shape)))
    hit = hit & ~_is_repeated(pos, hit, pair)
    return touch._replace(dist=jnp.where(hit[None], touch.dist, NO_CONTACT_DISTANCE))


def _search_triangles(
    corners: tuple[Vec, ...], wanted: Array, solid: SdfGeoms, assets: SdfTables
) -> tuple[Vec, Array]:
    """Return the deepest points of triangles in the frames of the geoms, and their distances."""
    search = search_faces(corners, wanted & may_reach(corners, solid), solid, assets)
    return _deepest_end(search)


def _deepest_end(search: Searched) -> tuple[Vec, Array]:
    """Return the deepest end of the searches that end in the geom, the first of equal ones."""
    # Reduce over the three Frank-Wolfe paths; ties go to the earliest starting point.
    first, count = search.first(search.hit), len(search.way)
    x = search.x.map(lambda a: a[:1])
    best, since = (
        jnp.full_like(search.dist[:1], NO_CONTACT_DISTANCE),
        jnp.full_like(first[0], count),
    )
    for k, start in enumerate(first):
        dist = jnp.where(start < count, search.dist[k : k + 1], NO_CONTACT_DISTANCE)
        better = (dist < best) | ((dist == best) & (start < since))
        x = select_where(better, search.x.map(lambda a, k=k: a[k : k + 1]), x)
        best, since = jnp.where(better, dist, best), jnp.where(better, start, since)
    return x, best


def _is_repeated(pos: Vec, hit: Array, pair: Array) -> Array:
    """Return a mask of points that an earlier triangle of the same pair has, `[n, *W]`."""
    # Compare every hit with all later ones of its pair, one hit per iteration.
    number = jnp.arange(len(hit), dtype=jnp.int32).reshape(-1, *(1,) * (hit.ndim - 1))
    near = _SAME_POINT_ULPS * jnp.finfo(pos.x.dtype).eps

    def compare(k, again):
        here, first, of = (
            jax.tree.map(lambda a: dynamic_slice_in_dim(a, k, 1), v) for v in (pos, hit, pair)
        )
        gap, size = pos - here, 1 + here.dot(here)
        close = gap.dot(gap) < near * near * size
        return again | (first & close & (number > k) & (pair == of))

    return lax.fori_loop(0, len(hit), compare, jnp.zeros_like(hit))


def _zero_with_tangent(x: PyTree) -> PyTree:
    """Return zero, with the tangent of x."""
    return jax.tree.map(lambda a: a - lax.stop_gradient(a), x)
