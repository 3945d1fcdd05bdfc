"""Signed distance of any two geoms and their nearest points, as `mj_geomDistance` in MuJoCo.

MuJoCo's rules, determined by experiment. Two convex shapes go through GJK/EPA; over a plane it is
the lowest point of a shape, for an `sdf` geom that of its convex hull. For a height field, and for
an `sdf` geom with any other, it is the nearest of the contacts that there would be with a margin of
the distance cutoff. So at most 50 prisms of a height field count, the first ones
(convex/hfield.py): deep inside or far above many prisms the result may not be the minimum. An `sdf`
geom has a distance only where it is in contact. Two unbounded shapes, or a height field and an
`sdf` geom, have no distance.

_DISTANCE_FAMILIES lists the pairs of geom types with one method each. Pairs may differ between
worlds, so all families that `QueryTypes` lists are evaluated for every pair and the one that
applies is selected.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.enums import GeomType
from jaxsim.math import Vec, select_where
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure
from jaxsim.physics.collision.convex.convex import convex_convex, lowest_point_over_plane
from jaxsim.physics.collision.convex.hfield import hfield_convex
from jaxsim.physics.collision.convex.hull.hulls import Hulls, hulls
from jaxsim.physics.collision.convex.hull.tables import geoms_without_hull
from jaxsim.physics.collision.convex.plane_mesh import plane_mesh
from jaxsim.physics.collision.convex.prisms import hfield_tables, max_prism_contacts
from jaxsim.physics.collision.convex.solid import CONVEX_TYPES, Assets, assets_of
from jaxsim.physics.collision.field.fields import fields_of
from jaxsim.physics.collision.field.kinds import NO_SDF, kind_of, unknown_sdf_reason
from jaxsim.physics.collision.field.mesh import MeshFields, mesh_sdf
from jaxsim.physics.collision.field.mesh_faces import mesh_faces_of
from jaxsim.physics.collision.field.sdf import sdf_contacts
from jaxsim.physics.collision.shape import ContactPoints, PlacedGeoms
from jaxsim.physics.unsupported import describe_object

PLANE, HFIELD, MESH, SDF = GeomType.PLANE, GeomType.HFIELD, GeomType.MESH, GeomType.SDF


class QueryTypes(NamedTuple):
    """Types of geoms that distances are requested of: the static extent of the program.

    Attributes:
      families: rows of _DISTANCE_FAMILIES.
      kinds: types of the convex geoms.
      first, second: names of the signed distance functions of geoms paired with `sdf` geoms, and of
        these `sdf` geoms.
      meshes: ids of meshes that are paired with `sdf` geoms, ascending.
      bare: some geom has a mesh without a convex hull.
    """

    families: tuple[int, ...]
    kinds: tuple[int, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]
    meshes: tuple[int, ...]
    bare: bool


class _Family(NamedTuple):
    """Pairs of geom types whose distances are computed by one method.

    Attributes:
      first, second: types of geoms; the lower type of a pair is first.
      measure: takes the model, both geoms, the distance cutoff (-NO_CONTACT_DISTANCE: skip the
        pair), and the types; returns distances `[n, *W]`, or those of several contacts `[k, n,
        *W]`.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    measure: Callable[[Model, PlacedGeoms, PlacedGeoms, Array, QueryTypes], ContactPoints]


def distance_family(type1: int, type2: int) -> int:
    """Return the row of _DISTANCE_FAMILIES of two geom types in any order; -1: no distance."""
    low, high = sorted((int(type1), int(type2)))
    rows = (k for k, f in enumerate(_DISTANCE_FAMILIES) if low in f.first and high in f.second)
    return next(rows, -1)


def query_types(s: Structure, pairs: Iterable[tuple[int, int]]) -> QueryTypes:
    """Return the static extent of a program for pairs of geoms."""
    # Order each pair by type, as in _DISTANCE_FAMILIES.
    rising = [sorted(pair, key=lambda g: int(s.geom_type[g])) for pair in pairs]
    families = {distance_family(*s.geom_type[pair]) for pair in rising} - {-1}
    geoms = {g for pair in rising for g in pair}
    searched = [
        p for p in rising if s.geom_type[p[1]] == SDF and s.geom_type[p[0]] not in _FLAT_TYPES
    ]
    return QueryTypes(
        families=tuple(sorted(families)),
        kinds=tuple(sorted({int(s.geom_type[g]) for g in geoms} & set(CONVEX_TYPES))),
        first=_names(s, (p[0] for p in searched)),
        second=_names(s, (p[1] for p in searched)),
        meshes=tuple(
            sorted({int(s.geom_dataid[p[0]]) for p in searched if s.geom_type[p[0]] == MESH})
        ),
        bare=bool(geoms_without_hull(s)[list(geoms)].any()),
    )


def all_query_types(m: Model) -> QueryTypes:
    """Return the extent for any two geoms that have a distance, one geom for each type."""
    s = m.structure
    # One geom per combination of type, distance function, mesh and hull.
    mesh = np.where(np.any(s.geom_type == SDF) & (s.geom_type == MESH), s.geom_dataid, -1)
    hull = s.geom_hullid >= 0
    sorts = {(s.geom_type[g], kind_of(s, g), mesh[g], hull[g]): g for g in range(s.ngeom)}
    pairs = product(sorts.values(), sorts.values())
    return query_types(s, [pair for pair in pairs if unsupported_reason(m, *pair) is None])


def _names(s: Structure, geoms: Iterable[int]) -> tuple[str, ...]:
    """Return the names of the signed distance functions of geoms."""
    return tuple(sorted({kind_of(s, g) for g in geoms} - {NO_SDF}))


def distances(
    m: Model, a: PlacedGeoms, b: PlacedGeoms, reach: Array, meet: QueryTypes
) -> ContactPoints:
    """Return signed distances of pairs of geoms, with the points midway and the normals.

    Args:
      m: the model.
      a, b: placed geoms, `[n, *W]`.
      reach: distance cutoff, beyond which values need not be exact, `[n, *W]` [m].
      meet: types that can occur among them.

    Returns:
      Distance, midpoint and normal from a to b, `[n, *W]`. A pair without a distance is
      NO_CONTACT_DISTANCE away; the distance of a pair beyond its cutoff is only known to exceed it.
    """
    # Order each pair by type, evaluate every family, then restore the order.
    kind = jnp.asarray(m.geom_type, jnp.int32)
    swap = kind[a.id] > kind[b.id]
    first, second = select_where(swap, b, a), select_where(swap, a, b)
    zero = jnp.zeros_like((a.pos - b.pos).x)
    found = ContactPoints(zero + NO_CONTACT_DISTANCE, Vec(zero, zero, zero), Vec(zero, zero, zero))
    for row in meet.families:
        types1, types2, measure = _DISTANCE_FAMILIES[row]
        here = _is_one_of(types1, m, first) & _is_one_of(types2, m, second)
        touch = measure(m, first, second, jnp.where(here, reach, -NO_CONTACT_DISTANCE), meet)
        found = select_where(here, _least(touch, zero), found)
    return found._replace(normal=select_where(swap, -found.normal, found.normal))


def _is_one_of(types: tuple[int, ...], m: Model, g: PlacedGeoms) -> Array:
    """Return whether geoms are of some types."""
    return jnp.asarray(np.isin(m.geom_type, types))[g.id]


def _least(touch: ContactPoints, like: Array) -> ContactPoints:
    """Return the nearest contact of each pair, the first among equally near ones."""
    parts = touch.dist, touch.pos, touch.normal
    if touch.dist.ndim == like.ndim:
        return ContactPoints(*parts)
    if len(touch.dist) == 1:
        return ContactPoints(*jax.tree.map(lambda x: x[0], parts))
    nearest = jnp.argmin(lax.stop_gradient(touch.dist), axis=0)[None]
    shape = touch.dist.shape
    return ContactPoints(
        *jax.tree.map(
            lambda x: jnp.take_along_axis(jnp.broadcast_to(x, shape), nearest, axis=0)[0], parts
        )
    )


def nearest_segment(touch: ContactPoints) -> tuple[Vec, Vec]:
    """Return the nearest points on the first and on the second geom of each pair."""
    half = touch.normal.scale(0.5 * touch.dist)
    return touch.pos - half, touch.pos + half


def _convex_tables(m: Model, meet: QueryTypes) -> Assets:
    """Return the tables of convex geoms."""
    table = assets_of(m, meet.kinds)
    return replace(table, patches=False, hulls=_hulls(m, meet) if MESH in meet.kinds else None)


def _hulls(m: Model, meet: QueryTypes) -> Hulls:
    """Return the convex hulls of meshes."""
    return replace(hulls(m, drawn=meet.bare), searches_all=meet.bare)


def _solids(
    m: Model, a: PlacedGeoms, b: PlacedGeoms, reach: Array, meet: QueryTypes
) -> ContactPoints:
    """Measure two convex geoms."""
    return convex_convex(a, b, _convex_tables(m, meet), reach)


def _distance_to_plane(
    m: Model, a: PlacedGeoms, b: PlacedGeoms, reach: Array, meet: QueryTypes
) -> ContactPoints:
    """Measure a convex geom over a plane."""
    return lowest_point_over_plane(_convex_tables(m, meet), a, b)


def _hull_distance_to_plane(
    m: Model, a: PlacedGeoms, b: PlacedGeoms, reach: Array, meet: QueryTypes
) -> ContactPoints:
    """Measure the convex hull of an `sdf` geom over a plane."""
    return plane_mesh(a, b, _hulls(m, meet), reach)


def _hfield_distance(
    m: Model, a: PlacedGeoms, b: PlacedGeoms, reach: Array, meet: QueryTypes
) -> ContactPoints:
    """Measure a convex geom on a height field."""
    s = m.structure
    cells = (np.asarray(s.hfield_nrow) - 1) * (np.asarray(s.hfield_ncol) - 1)
    convex = _convex_tables(m, meet)
    convex = replace(convex, kinds=(HFIELD, *convex.kinds))
    table = replace(hfield_tables(m), convex=convex, slots=max_prism_contacts(2 * int(cells.max())))
    return hfield_convex(a, b, table, reach)


def _sdf_distance(
    m: Model, a: PlacedGeoms, b: PlacedGeoms, reach: Array, meet: QueryTypes
) -> ContactPoints:
    """Measure two geoms with signed distance functions."""
    s = m.structure
    kinds = [kind_of(s, g) for g in range(s.ngeom)]
    return sdf_contacts(a, b, fields_of(m, kinds, meet.first, meet.second))


def _mesh_by_distance(
    m: Model, a: PlacedGeoms, b: PlacedGeoms, reach: Array, meet: QueryTypes
) -> ContactPoints:
    """Measure a mesh and an `sdf` geom."""
    s = m.structure
    kinds = [kind_of(s, g) for g in range(s.ngeom)]
    table = fields_of(m, kinds, meet.first, meet.second)
    return mesh_sdf(a, b, MeshFields(table, mesh_faces_of(m, np.array(meet.meshes))))


_FLAT_TYPES = (PLANE, HFIELD)
_ANALYTIC_CONVEX_TYPES = tuple(kind for kind in CONVEX_TYPES if kind != MESH)
_DISTANCE_FAMILIES = (
    _Family(CONVEX_TYPES, CONVEX_TYPES, _solids),
    _Family((PLANE,), CONVEX_TYPES, _distance_to_plane),
    _Family((PLANE,), (SDF,), _hull_distance_to_plane),
    _Family((HFIELD,), CONVEX_TYPES, _hfield_distance),
    _Family((*_ANALYTIC_CONVEX_TYPES, SDF), (SDF,), _sdf_distance),
    _Family((MESH,), (SDF,), _mesh_by_distance),
)


def unsupported_reason(m: Model, geom1: int, geom2: int) -> str | None:
    """Return why two geoms have no distance here although MuJoCo has one; None if they have."""
    types = m.geom_type[[geom1, geom2]]
    lacks = (_unsupported_type_reason(m, g, t) for g, t in ((geom1, types[1]), (geom2, types[0])))
    return next(filter(None, lacks), None)


def unsupported_reason_of_geom(m: Model, geom: int) -> str | None:
    """Return why a geom has no distance to some other geom although MuJoCo has one, or None."""
    lacks = (_unsupported_type_reason(m, geom, t) for t in np.unique(m.geom_type))
    return next(filter(None, lacks), None)


def _unsupported_type_reason(m: Model, geom: int, other: int) -> str | None:
    """Return why a geom has no distance to a type of geoms although MuJoCo has one, or None."""
    kind = m.geom_type[geom]
    if distance_family(kind, other) < 0:
        return None
    beside_sdf = SDF in (kind, other) and other != PLANE
    who = f"the distance of {describe_object(m, 'geom', geom)}"
    if kind == SDF and beside_sdf and kind_of(m.structure, geom) == NO_SDF:
        return f"{who} ({unknown_sdf_reason(m.structure, geom)})"
    return None
