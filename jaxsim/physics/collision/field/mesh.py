"""Contacts of a mesh with an `sdf` geom: on each face, the points that are deepest in the other.

Each face is searched by the Frank-Wolfe method (face_search.py). Faces are visited in the order of
the mesh's bounding volume hierarchy, until 50 searches (mjMAXCONPAIR) have found a point.
Corresponds to `mjc_MeshSDF` in MuJoCo.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.dynamic import dynamic_slice_in_dim
from jaxsim.arrays.gather import running_sum
from jaxsim.math import Vec, select_where
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.model.model import Model
from jaxsim.physics.collision.field.distance import SdfGeoms, distance_and_slope
from jaxsim.physics.collision.field.face_search import may_reach, search_faces
from jaxsim.physics.collision.field.fields import SdfTables, sdf_tables
from jaxsim.physics.collision.field.mesh_faces import CORNERS_PER_FACE, Faces, sdf_mesh_faces
from jaxsim.physics.collision.field.pair import Pair, normalize_or_zero, pair_of
from jaxsim.physics.collision.field.search_results import (
    SdfSearchResult,
    contacts_in_world,
    filter_contacts,
)
from jaxsim.physics.collision.shape import ContactPoints, PlacedGeoms

MAX_MESH_CONTACTS = 50  # most searches of a mesh that end in a contact (mjMAXCONPAIR)


class MeshFields(NamedTuple):
    """Tables for contacts of meshes with `sdf` geoms."""

    fields: SdfTables
    faces: Faces


class _State(NamedTuple):
    """State of the iteration over faces.

    Attributes:
      visit: number of faces visited.
      hits: number of searches that ended in the other geom, `[1, n, *W]`.
      num_points: number of distinct points among these, `[1, n, *W]`.
      x, dist: these points, `[MAX_MESH_CONTACTS, n, *W]`, and their distances.
    """

    visit: Array
    hits: Array
    num_points: Array
    x: Vec
    dist: Array


def mesh_sdf_tables(m: Model) -> MeshFields:
    """Return signed distance functions and faces of a model in the form of the physics."""
    return MeshFields(sdf_tables(m), sdf_mesh_faces(m))


def mesh_sdf(
    a: PlacedGeoms, b: PlacedGeoms, assets: MeshFields, reach: Array | None = None
) -> ContactPoints:
    """Compute the contacts of meshes with `sdf` geoms; `reach` is not used."""
    return _contacts(a, b, assets)


@jax.custom_jvp
def _contacts(a: PlacedGeoms, b: PlacedGeoms, assets: MeshFields) -> ContactPoints:
    """Return the contacts in the world frame."""
    return contacts_in_world(_search_faces(a, b, assets), b)


@_contacts.defjvp
def _mesh_sdf_jvp(primals: tuple, tangents: tuple) -> tuple[ContactPoints, ContactPoints]:
    """Differentiate at fixed points of the mesh, which do not slide along a face."""
    found = _search_faces(*primals)

    def follow(a, b, assets):
        """Return the contacts as differentiable functions of the geoms."""
        pair = pair_of(a, b, assets.fields)
        fixed: Pair = lax.stop_gradient(pair)
        x = pair.to_second(fixed.to_first(found.x))
        change, slope = distance_and_slope(x, pair.b)
        change = change - lax.stop_gradient(change)
        return contacts_in_world(
            SdfSearchResult(x, found.dist + change, normalize_or_zero(-slope)), b
        )

    _, tangent = jax.jvp(follow, primals, tangents)
    return contacts_in_world(found, primals[1]), tangent


def _search_faces(a: PlacedGeoms, b: PlacedGeoms, assets: MeshFields) -> SdfSearchResult:
    """Return the contacts in the frames of the `sdf` geoms."""
    pair = pair_of(a, b, assets.fields)
    corners, there = assets.faces.corners_of(a)
    corners = tuple(pair.to_second(corner) for corner in corners)
    # Faces that may reach into the other geom, compacted by sorting.
    reaching = there & may_reach(corners, pair.b)
    number = jnp.arange(assets.faces.most, dtype=jnp.int32)
    number = number.reshape(-1, *(1,) * (reaching.ndim - 1))
    faces = lax.sort(jnp.where(reaching, number, assets.faces.most), dimension=0)

    def visit(state: _State) -> _State:
        """Search the next face of each mesh."""
        face = dynamic_slice_in_dim(faces, state.visit, 1)
        wanted = face < assets.faces.most
        face = jnp.minimum(face, assets.faces.most - 1)
        here = jax.tree.map(lambda c: jnp.take_along_axis(c, face, axis=0), corners)
        return _search_next_face(state, here, wanted, pair.b, assets.fields)

    def go_on(state: _State) -> Array:
        """Return whether some mesh has faces left and fewer than MAX_MESH_CONTACTS contacts."""
        last = state.visit >= assets.faces.most
        face = dynamic_slice_in_dim(faces, jnp.minimum(state.visit, len(faces) - 1), 1)
        return ~last & jnp.any((face < assets.faces.most) & (state.hits < MAX_MESH_CONTACTS))

    # Visit faces until all meshes have none left or enough contacts.
    zero = jnp.zeros_like(corners[0].x[:1])
    none, far = (
        zero.astype(jnp.int32),
        jnp.full((MAX_MESH_CONTACTS, *zero.shape[1:]), NO_CONTACT_DISTANCE, zero.dtype),
    )
    x = Vec(*(jnp.zeros_like(far) for _ in range(3)))
    state = lax.while_loop(go_on, visit, _State(jnp.int32(0), none, none, x, far))
    slope = distance_and_slope(state.x, pair.b)[1]
    return filter_contacts(
        SdfSearchResult(state.x, state.dist, normalize_or_zero(-slope)), jnp.ones_like(none, bool)
    )


def _search_next_face(
    state: _State, corners: tuple[Vec, ...], wanted: Array, solid: SdfGeoms, fields: SdfTables
) -> _State:
    """Search one face `[1, n, *W]` of each mesh where `wanted`, and record its contacts."""
    search = search_faces(corners, wanted, solid, fields)
    hit = search.hit
    # Ignore searches beyond the limit of contacts.
    hit = hit & (state.hits + running_sum(hit.astype(jnp.int32)) <= MAX_MESH_CONTACTS)

    # Each path ends in one point; points are ordered by the first search that follows the path.
    way, first = search.way, search.first(hit)
    place = jnp.arange(MAX_MESH_CONTACTS, dtype=jnp.int32).reshape(-1, *(1,) * (way.ndim - 1))
    num_points, points, dists = state.num_points, state.x, state.dist
    for k in range(CORNERS_PER_FACE):
        earlier = sum(((f < first[k]).astype(jnp.int32) for f in first), jnp.zeros_like(first[k]))
        here = (first[k] < len(way)) & (place == state.num_points + earlier)
        points = select_where(here, search.x[k : k + 1], points)
        dists = jnp.where(here, search.dist[k : k + 1], dists)
        num_points = num_points + (first[k] < len(way)).astype(jnp.int32)
    hits = state.hits + jnp.sum(hit, axis=0, keepdims=True, dtype=jnp.int32)
    return _State(state.visit + 1, hits, num_points, points, dists)
