"""Contacts of a mesh with an `sdf` geom: on each face, the points that are deepest in the other.

A face that may reach into the geom is searched from several points by the method of Frank and
Wolfe: each step goes towards the corner in whose direction the distance falls most, the k-th one
by 2 / (k + 2) of the way. The first step (k = 0) ends in that corner, so that all searches of a
face follow one of three ways. Faces are visited in the order of the mesh's tree of boxes, until 50
searches (mjMAXCONPAIR) have found a point.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.enums import MINVAL
from jaxsim.math import Vec, safe_divide, safe_sqrt, select
from jaxsim.model.data import FAR
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.collision.field.distance import Solid, distance, distance_and_slope
from jaxsim.physics.collision.field.faces import CORNERS, Faces, faces
from jaxsim.physics.collision.field.fields import Fields, fields
from jaxsim.physics.collision.field.found import Found, contacts, in_world
from jaxsim.physics.collision.field.pair import Pair, pair_of, unit
from jaxsim.physics.collision.field.starts import halton
from jaxsim.physics.collision.shape import Placed, Touch, choose, per_slot

MOST = 50  # searches of a mesh that may end in a contact
HEIGHT = 0.1  # of a point above a face, in parts of its distance; and the least height [m]


class MeshFields(NamedTuple):
    """What the search for contacts of meshes needs of a model."""

    fields: Fields
    faces: Faces


class _State(NamedTuple):
    """The visit of the faces.

    Attributes:
      visit: how many faces were visited.
      hits: searches that ended in the other geom, `[1, n, *W]`.
      places: different points among these, `[1, n, *W]`.
      x, dist: these points, `[MOST, n, *W]`, and their distances.
    """

    visit: Array
    hits: Array
    places: Array
    x: Vec
    dist: Array


def mesh_fields(m: Model) -> MeshFields:
    """Signed distances and faces of a model, which is in the form of the physics."""
    return MeshFields(fields(m), faces(m))


def mesh_sdf(a: Placed, b: Placed, assets: MeshFields, reach: Array | None = None) -> Touch:
    """Contacts of meshes with `sdf` geoms; how far they reach is not asked."""
    return _contacts(a, b, assets)


@jax.custom_jvp
def _contacts(a: Placed, b: Placed, assets: MeshFields) -> Touch:
    return in_world(_search(a, b, assets), b)


@_contacts.defjvp
def _mesh_sdf_jvp(primals: tuple, tangents: tuple) -> tuple[Touch, Touch]:
    """The found points are points of the mesh; along a face they do not move."""
    found = _search(*primals)

    def follow(a, b, assets):
        pair = pair_of(a, b, assets.fields)
        fixed: Pair = lax.stop_gradient(pair)
        x = pair.to_second(fixed.to_first(found.x))
        change, slope = distance_and_slope(x, pair.b)
        change = change - lax.stop_gradient(change)
        return in_world(Found(x, found.dist + change, unit(-slope)), b)

    _, tangent = jax.jvp(follow, primals, tangents)
    return in_world(found, primals[1]), tangent


def _search(a: Placed, b: Placed, assets: MeshFields) -> Found:
    """The contacts in the frames of the `sdf` geoms."""
    pair = pair_of(a, b, assets.fields)
    corners, there = assets.faces.of(a)
    corners = tuple(pair.to_second(corner) for corner in corners)
    reaching = there & _may_reach(corners, pair.b)
    number = jnp.arange(assets.faces.most, dtype=jnp.int32)
    number = number.reshape(-1, *(1,) * (reaching.ndim - 1))
    faces = lax.sort(jnp.where(reaching, number, assets.faces.most), dimension=0)

    def visit(state: _State) -> _State:
        face = lax.dynamic_slice_in_dim(faces, state.visit, 1)
        wanted = face < assets.faces.most
        face = jnp.minimum(face, assets.faces.most - 1)
        here = jax.tree.map(lambda c: jnp.take_along_axis(c, face, axis=0), corners)
        return _visited(state, here, wanted, pair.b, assets.fields)

    def go_on(state: _State) -> Array:
        last = state.visit >= assets.faces.most
        face = lax.dynamic_slice_in_dim(faces, jnp.minimum(state.visit, len(faces) - 1), 1)
        return ~last & jnp.any((face < assets.faces.most) & (state.hits < MOST))

    zero = jnp.zeros_like(corners[0].x[:1])
    none, far = zero.astype(jnp.int32), jnp.full((MOST, *zero.shape[1:]), FAR, zero.dtype)
    x = Vec(*(jnp.zeros_like(far) for _ in range(3)))
    state = lax.while_loop(go_on, visit, _State(jnp.int32(0), none, none, x, far))
    slope = distance_and_slope(state.x, pair.b)[1]
    return contacts(Found(state.x, state.dist, unit(-slope)), jnp.ones_like(none, bool))


def _visited(
    state: _State, corners: tuple[Vec, ...], wanted: Array, solid: Solid, fields: Fields
) -> _State:
    """Searches one face `[1, n, *W]` of each mesh, where it is `wanted`."""
    x, dist = _ways(corners, solid, fields.iterations)
    way = _steepest(_starts(corners, max(1, fields.starts)), corners, solid)
    hit = wanted & (choose(way, [dist[k : k + 1] for k in range(CORNERS)]) < 0)
    hit = hit & (state.hits + jnp.cumsum(hit, axis=0, dtype=jnp.int32) <= MOST)

    # each way ends in one point, in the order of the first searches that went it
    number = jnp.arange(way.shape[0], dtype=jnp.int32).reshape(-1, *(1,) * (way.ndim - 1))
    first = [
        jnp.min(jnp.where(hit & (way == k), number, len(way)), axis=0, keepdims=True)
        for k in range(CORNERS)
    ]
    place = jnp.arange(MOST, dtype=jnp.int32).reshape(-1, *(1,) * (way.ndim - 1))
    places, points, dists = state.places, state.x, state.dist
    for k in range(CORNERS):
        earlier = sum(((f < first[k]).astype(jnp.int32) for f in first), jnp.zeros_like(first[k]))
        here = (first[k] < len(way)) & (place == state.places + earlier)
        points = select(here, x[k : k + 1], points)
        dists = jnp.where(here, dist[k : k + 1], dists)
        places = places + (first[k] < len(way)).astype(jnp.int32)
    hits = state.hits + jnp.sum(hit, axis=0, keepdims=True, dtype=jnp.int32)
    return _State(state.visit + 1, hits, places, points, dists)


def _starts(corners: tuple[Vec, ...], count: int) -> Vec:
    """Points of a Halton sequence on faces, `[count, n, *W]`."""
    u, v = (halton(count + 1, base)[1:] for base in (2, 3))
    over = u + v > 1
    u, v = abs(over - u), abs(over - v)
    shares = (per_slot(share, corners[0].x[0]) for share in (1 - u - v, u, v))
    a, b, c = (corner.scale(share) for corner, share in zip(corners, shares, strict=True))
    return a + b + c


def _ways(corners: tuple[Vec, ...], solid: Solid, iterations: int) -> tuple[Vec, Array]:
    """Where the searches end that go to each of the corners first, `[3, n, *W]`."""
    start = Vec(*(jnp.concatenate([c.parts[k] for c in corners]) for k in range(3)))

    def step(k, x: Vec) -> Vec:
        way = _steepest(x, corners, solid)
        return x + (choose(way, corners) - x).scale(2 / (k + 2).astype(x.x.dtype))

    x = lax.fori_loop(1, max(1, iterations), step, start)
    return x, distance(x, solid)


def _steepest(x: Vec, corners: tuple[Vec, ...], solid: Solid) -> Array:
    """The corner in whose direction the distance falls most; of equal ones the first."""
    slope = distance_and_slope(x, solid)[1]
    a, b, c = (slope.dot(corner) for corner in corners)
    return jnp.where((b < a) & (b <= c), 1, jnp.where((c < a) & (c < b), 2, 0)).astype(jnp.int32)


def _may_reach(corners: tuple[Vec, ...], solid: Solid) -> Array:
    """Whether a sphere through the corners of a face reaches into a geom, as MuJoCo asks it.

    It is the sphere that goes, too, through a point beside the middle of the face, on the side away
    from the geom and at a tenth of its distance; near the geom, that around the middle with the
    radius of the circle through the corners.
    """
    a, b, c = corners
    middle = (a + b + c).scale(1 / 3)
    near = distance(middle, solid)
    ab, bc, ca = (v.norm() for v in (b - a, c - b, a - c))
    half = 0.5 * (ab + bc + ca)
    area = safe_sqrt(half * (half - ab) * (half - bc) * (half - ca))
    flat = near < ab * bc * ca / (4 * jnp.maximum(area, MINVAL))

    top = middle + (b - a).cross(c - a).normalize().scale(HEIGHT * near)
    p, q, r = (corner - top for corner in corners)
    qr, rp, pq = q.cross(r), r.cross(p), p.cross(q)
    volume = 2 * p.dot(qr)
    center = qr.scale(p.dot(p)) + rp.scale(q.dot(q)) + pq.scale(r.dot(r))
    center = center.scale(safe_divide(1.0, volume))
    around = distance(top + center, solid) < center.norm()
    around = jnp.where(jnp.abs(volume) < MINVAL, near < ab, around)
    return jnp.where(HEIGHT * jnp.abs(near) < HEIGHT, flat, around)
