"""Constant tables of the hulls of a model, and which meshes and vertices they contain.

A mesh that could not collide when it was compiled has no hull: all its vertices are searched.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxsim.enums import GeomType
from jaxsim.model.structure import Structure, cache_by_structure


class HullTables(NamedTuple):
    """Constant integer tables of the hulls of a model.

    Ids of polygons count through all meshes, ids of vertices through `searched_vertices`.

    Attributes:
      geom_hull: hull of each geom, `[ngeom]`; for a mesh without one, nhull plus its mesh id; 0 for
        other geoms.
      mesh_row: row of each vertex in `mesh_vert`.
      vert_adr, vert_num: first vertex of each mesh that has no hull, and its number of vertices,
        `[nmesh]`; arbitrary for other meshes.
      cell_code, part_adr, pole_u, pole_v, slice_adr, candidate: the support map, hull_* of the
        structure (assets/mesh/support_map.py).
      candidate_num: number of candidates in the list that starts at an address; 0 elsewhere.
      vertex_faces_adr, vertex_faces_num: address and number of the entries of each vertex in
        `vertex_face` and `vertex_corner`.
      vertex_face, vertex_corner: a polygon at the vertex, and the address of the vertex in the
        outline of this polygon.
      outline_adr, outline_num: address and number of the entries of each polygon in
        `outline_vertex` and `spanning_triple`, `[nmeshpoly]`.
      outline_vertex: vertex of a corner, counter-clockwise seen from outside.
      spanning_triple: three other corners of the polygon that span much of its area with this one.
    """

    geom_hull: jax.Array
    mesh_row: jax.Array
    vert_adr: jax.Array
    vert_num: jax.Array
    cell_code: jax.Array
    part_adr: jax.Array
    pole_u: jax.Array
    pole_v: jax.Array
    slice_adr: jax.Array
    candidate: jax.Array
    candidate_num: jax.Array
    vertex_faces_adr: jax.Array
    vertex_faces_num: jax.Array
    vertex_face: jax.Array
    vertex_corner: jax.Array
    outline_adr: jax.Array
    outline_num: jax.Array
    outline_vertex: jax.Array
    spanning_triple: tuple[jax.Array, jax.Array, jax.Array]


@cache_by_structure
def lookup_tables(s: Structure, drawn: bool) -> HullTables:
    """Return the tables of the hulls of a model; `drawn` as in `searched_geoms`."""
    searched = searched_vertices(s, drawn)
    # Polygons of meshes that are only drawn are not read: their corners may be any vertex.
    outline = np.searchsorted(searched, _outline_vertices(s))
    # Polygons are numbered within their mesh in the structure: add the mesh's first polygon.
    mesh_of_vertex = np.repeat(np.arange(s.nmesh), s.mesh_vertnum)
    mesh_of_entry = np.repeat(mesh_of_vertex, s.mesh_polymapnum)
    tables = HullTables(
        geom_hull=np.where(
            geoms_without_hull(s), s.nhull + s.geom_dataid, np.maximum(s.geom_hullid, 0)
        ),
        mesh_row=searched,
        vert_adr=np.searchsorted(searched, s.mesh_vertadr),
        vert_num=s.mesh_vertnum,
        cell_code=s.hull_cell.ravel(),
        part_adr=s.hull_part,
        pole_u=s.hull_pole[:, 0],
        pole_v=s.hull_pole[:, 1],
        slice_adr=s.hull_slice.ravel(),
        candidate=np.searchsorted(searched, s.hull_vertid),
        candidate_num=_list_lengths(s),
        vertex_faces_adr=s.mesh_polymapadr[searched],
        vertex_faces_num=s.mesh_polymapnum[searched],
        vertex_face=_append_zero(s.mesh_polymap + s.mesh_polyadr[mesh_of_entry]),
        vertex_corner=_append_zero(s.mesh_polyplace),
        outline_adr=s.mesh_polyvertadr,
        outline_num=s.mesh_polyvertnum,
        outline_vertex=np.minimum(outline, max(len(searched) - 1, 0)),
        spanning_triple=tuple(s.mesh_polyquad.T),
    )
    return jax.tree.map(lambda a: np.ascontiguousarray(a, np.int32), tables)


def _list_lengths(s: Structure) -> Any:
    """Return the number of candidates in the list that starts at each address of `hull_vertid`.

    Lists are stored one after another, each once.
    """
    starts = np.unique(np.concatenate([s.hull_part, s.hull_slice.ravel()]))
    starts = starts[starts >= 0]
    number = np.zeros(len(s.hull_vertid), int)
    number[starts] = np.diff(np.append(starts, len(number)))
    return np.minimum(number, s.nhullmost)


@cache_by_structure
def max_face_counts(s: Structure) -> tuple[int, int]:
    """Return the largest number of polygons at a hull vertex, and of corners of such a polygon."""
    faces = s.mesh_polymapnum[s.hull_vertid]
    corners = [np.zeros(1, int)] + [
        s.mesh_polyvertnum[s.mesh_polyadr[k] : s.mesh_polyadr[k] + s.mesh_polynum[k]]
        for k in np.unique(s.geom_dataid[s.geom_hullid >= 0])
    ]
    return int(faces.max(initial=1)), int(np.concatenate(corners).max())


@cache_by_structure
def searched_vertices(s: Structure, drawn: bool) -> np.ndarray:
    """Return the rows of `mesh_vert` that searches read, ascending.

    They are the corners of the hulls, and all vertices of meshes that are searched whole. A mesh
    that is drawn often has a hundred times as many vertices as its hull.
    """
    whole = np.unique(s.geom_dataid[searched_geoms(s, drawn)])
    parts = [s.mesh_vertadr[k] + np.arange(s.mesh_vertnum[k]) for k in whole]
    hull = np.isin(np.arange(s.nmesh), s.geom_dataid[s.geom_hullid >= 0])
    of_hull = np.repeat(np.repeat(hull, s.mesh_polynum), s.mesh_polyvertnum)
    return np.unique(np.concatenate([s.hull_vertid, _outline_vertices(s)[of_hull], *parts]))


def geoms_without_hull(s: Structure) -> np.ndarray:
    """Return which geoms have a mesh without a hull, `[ngeom]`."""
    return np.isin(s.geom_type, (GeomType.MESH, GeomType.SDF)) & (s.geom_hullid < 0)


def collidable_geoms(field: Callable[[str], np.ndarray]) -> np.ndarray:
    """Return which geoms can collide, `[ngeom]`; `field` returns mjModel's fields by name."""
    pairs = np.concatenate([field("pair_geom1"), field("pair_geom2")])
    named = np.isin(np.arange(len(field("geom_type"))), pairs)
    return named | (field("geom_contype") != 0) | (field("geom_conaffinity") != 0)


def searched_geoms(s: Structure, drawn: bool) -> np.ndarray:
    """Return which geoms have a mesh all of whose vertices are searched, `[ngeom]`.

    They are those without a hull that can collide; all without a hull if `drawn`.
    """
    bare = geoms_without_hull(s)
    return bare if drawn else bare & collidable_geoms(partial(getattr, s))


def _outline_vertices(s: Structure) -> Any:
    """Return the corners of all polygons, one polygon after the other, as rows of `mesh_vert`."""
    of_polygon = np.repeat(np.arange(s.nmesh), s.mesh_polynum)
    return s.mesh_polyvert + s.mesh_vertadr[np.repeat(of_polygon, s.mesh_polyvertnum)]


def _append_zero(entries: Any) -> Any:
    """Append an entry, which the last vertex of a trailing mesh without hull reads."""
    return np.append(entries, 0)
