"""Contacts of shells with `sdf` geoms: the deepest point of each triangle in the geom.

A triangle is searched like a face of a mesh, by the Frank-Wolfe method (field/face.py), without its
thickness. Of its points in the geom the deepest is kept, the first one if several are equally deep.
Triangles are visited in the order of the bounding volume hierarchy of the shell, as compiled, until
50 of them have a point; a point that several triangles share counts once.
"""

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.enums import MINVAL
from jaxsim.math import Vec, select
from jaxsim.model.data import FAR
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array, Tree
from jaxsim.physics.arrays.select import running_sum
from jaxsim.physics.collision.field.distance import Solid, distance_and_slope
from jaxsim.physics.collision.field.face import Searched, may_reach, searched
from jaxsim.physics.collision.field.fields import Fields, fields_of
from jaxsim.physics.collision.field.found import Found, in_world
from jaxsim.physics.collision.field.kinds import NONE, kind_of, under_shells
from jaxsim.physics.collision.field.mesh import MOST
from jaxsim.physics.collision.field.pair import unit
from jaxsim.physics.collision.flex.item import Hull
from jaxsim.physics.collision.flex.triangle import mean, nearest_shares
from jaxsim.physics.collision.shape import Placed, Touch, slots

SAME = 16  # points closer than this, in units of machine epsilon of their positions, are equal


def shell_fields(m: Model) -> Fields:
    """Return the signed distance fields of the `sdf` geoms that shells may touch."""
    s = m.structure
    geoms = under_shells(s, m.pair_flags)
    kinds = [kind_of(s, g) if g in geoms else NONE for g in range(s.ngeom)]
    return fields_of(m, kinds, (), tuple(sorted({*kinds} - {NONE})))


def sdf_triangle(geom: Placed, triangle: Hull, assets: Fields, reach: Array) -> Touch:
    """Return one contact of each triangle, with the normal from the geom to the shell.

    Only penetrating points are contacts: `reach` merely selects the triangles. The derivative keeps
    the barycentric coordinates of the point constant.
    """
    # Search in the frame of the geom.
    back, origin = geom.rot.T, geom.pos
    corners = tuple(slots(back @ (corner - origin)) for corner in triangle.corner)
    solid = assets.solid(geom, assets.second)
    wanted = slots(reach > -FAR / 2)
    x, found = lax.stop_gradient(_search(*lax.stop_gradient((corners, wanted, solid)), assets))
    # Attach the tangents of the corners and of the distance to the point.
    shares = lax.stop_gradient(nearest_shares(x, corners))
    x = x + _change(mean(shares, corners))
    dist, slope = distance_and_slope(x, solid)
    dist = found + _change(dist)
    exists = slope.dot(slope) > MINVAL
    touch = in_world(Found(x, jnp.where(exists, dist, FAR), unit(-slope)), geom)
    return touch._replace(normal=-touch.normal)


def first_visits(touch: Touch, pair: Array) -> Touch:
    """Set the distance to FAR for repeated points, and for those after the first 50 of a pair.

    Args:
      touch: points of all triangles in the order of their visit, `[1, n, *W]`; FAR: no point.
      pair: pair of each triangle, `[n, *W]`; triangles of a pair are consecutive.
    """
    # Count the hits of each pair: a running sum, less its value where the pair begins.
    hit = touch.dist[0] < 0
    new = jnp.concatenate([jnp.ones_like(pair[:1], bool), pair[1:] != pair[:-1]])
    number = running_sum(hit.astype(jnp.int32))
    before = lax.cummax(jnp.where(new, number - hit.astype(jnp.int32), 0), axis=0)
    hit = hit & (number - before <= MOST)
    # Remove points that an earlier triangle of the pair has.
    pos = lax.stop_gradient(touch.pos.map(lambda a: jnp.broadcast_to(a[0], hit.shape)))
    hit = hit & ~_again(pos, hit, pair)
    return touch._replace(dist=jnp.where(hit[None], touch.dist, FAR))


def _search(
    corners: tuple[Vec, ...], wanted: Array, solid: Solid, assets: Fields
) -> tuple[Vec, Array]:
    """Return the deepest points of triangles in the frames of the geoms, and their distances."""
    search = searched(corners, wanted & may_reach(corners, solid), solid, assets)
    return _deepest(search)


def _deepest(search: Searched) -> tuple[Vec, Array]:
    """Return the deepest end of the searches that end in the geom, the first of equal ones."""
    # Reduce over the three Frank-Wolfe paths; ties go to the earliest starting point.
    first, count = search.first(search.hit), len(search.way)
    x = search.x.map(lambda a: a[:1])
    best, since = jnp.full_like(search.dist[:1], FAR), jnp.full_like(first[0], count)
    for k, start in enumerate(first):
        dist = jnp.where(start < count, search.dist[k : k + 1], FAR)
        better = (dist < best) | ((dist == best) & (start < since))
        x = select(better, search.x.map(lambda a, k=k: a[k : k + 1]), x)
        best, since = jnp.where(better, dist, best), jnp.where(better, start, since)
    return x, best


def _again(pos: Vec, hit: Array, pair: Array) -> Array:
    """Return a mask of points that an earlier triangle of the same pair has, `[n, *W]`."""
    # Compare every hit with all later ones of its pair, one hit per iteration.
    number = jnp.arange(len(hit), dtype=jnp.int32).reshape(-1, *(1,) * (hit.ndim - 1))
    near = SAME * jnp.finfo(pos.x.dtype).eps

    def compare(k, again):
        here, first, of = (
            jax.tree.map(lambda a: lax.dynamic_slice_in_dim(a, k, 1), v) for v in (pos, hit, pair)
        )
        gap, size = pos - here, 1 + here.dot(here)
        close = gap.dot(gap) < near * near * size
        return again | (first & close & (number > k) & (pair == of))

    return lax.fori_loop(0, len(hit), compare, jnp.zeros_like(hit))


def _change(x: Tree) -> Tree:
    """Return zero, with the tangent of x."""
    return jax.tree.map(lambda a: a - lax.stop_gradient(a), x)
