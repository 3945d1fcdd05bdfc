"""How far two geoms are apart and where they are nearest, whether or not they may touch.

MuJoCo's rule, found by experiment. Any two convex shapes go through one search; over a plane the
lowest point of a shape counts, of an `sdf` geom that of its hull. Of a height field, and of an
`sdf` geom and others, it is the nearest of the contacts that there would be if these reached as far
as distances are asked for. So of a height field no more than 50 prisms count, those that come first
(convex/hfield.py): deep inside or far above many prisms the answer may be another than the least;
and an `sdf` geom has a distance only where it is touched. Two unbounded shapes, or a height field
and an `sdf` geom, have none.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.enums import GeomType
from jaxsim.math import Vec, select
from jaxsim.model.data import FAR
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.collision.convex.convex import convex_convex, over_plane
from jaxsim.physics.collision.convex.hfield import hfield_convex
from jaxsim.physics.collision.convex.hull import Hulls, hulls, without_hull
from jaxsim.physics.collision.convex.plane_mesh import plane_mesh
from jaxsim.physics.collision.convex.prisms import fields, most_contacts
from jaxsim.physics.collision.convex.solid import CONVEX, Assets, assets_of
from jaxsim.physics.collision.field.faces import faces_of
from jaxsim.physics.collision.field.fields import fields_of
from jaxsim.physics.collision.field.kinds import NONE, kind_of, reason
from jaxsim.physics.collision.field.mesh import MeshFields, mesh_sdf
from jaxsim.physics.collision.field.sdf import sdf_contacts
from jaxsim.physics.collision.shape import Placed, Touch
from jaxsim.physics.refusal import named

PLANE, HFIELD, MESH, SDF = GeomType.PLANE, GeomType.HFIELD, GeomType.MESH, GeomType.SDF


class Meetings(NamedTuple):
    """What is asked about: what a program needs code for.

    Attributes:
      families: rows of FAMILIES.
      kinds: types of the convex geoms.
      first, second: names of the signed distances of geoms that meet `sdf` geoms, and of these.
      meshes: meshes that meet `sdf` geoms, rising.
      bare: some geom has a mesh without hull.
    """

    families: tuple[int, ...]
    kinds: tuple[int, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]
    meshes: tuple[int, ...]
    bare: bool


class _Family(NamedTuple):
    """Pairs of kinds whose distances are found in one way.

    Attributes:
      first, second: types of geoms; the lower type of a pair is first.
      measure: distances `[n, *W]`, or of several contacts `[k, n, *W]`; of the model, the geoms,
        how far is asked (-FAR: not at all), and what is asked about.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    measure: Callable[[Model, Placed, Placed, Array, Meetings], Touch]


def family(type1: int, type2: int) -> int:
    """The row of FAMILIES of two types of geoms in any order; -1: they have no distance."""
    low, high = sorted((int(type1), int(type2)))
    rows = (k for k, f in enumerate(FAMILIES) if low in f.first and high in f.second)
    return next(rows, -1)


def meetings(s: Structure, pairs: Iterable[tuple[int, int]]) -> Meetings:
    """Of pairs of geoms."""
    rising = [sorted(pair, key=lambda g: int(s.geom_type[g])) for pair in pairs]
    families = {family(*s.geom_type[pair]) for pair in rising} - {-1}
    geoms = {g for pair in rising for g in pair}
    searched = [p for p in rising if s.geom_type[p[1]] == SDF and s.geom_type[p[0]] not in FLAT]
    return Meetings(
        families=tuple(sorted(families)),
        kinds=tuple(sorted({int(s.geom_type[g]) for g in geoms} & set(CONVEX))),
        first=_names(s, (p[0] for p in searched)),
        second=_names(s, (p[1] for p in searched)),
        meshes=tuple(
            sorted({int(s.geom_dataid[p[0]]) for p in searched if s.geom_type[p[0]] == MESH})
        ),
        bare=bool(without_hull(s)[list(geoms)].any()),
    )


def all_meetings(m: Model) -> Meetings:
    """Of any two geoms that have a distance: one of each sort stands for all."""
    s = m.structure
    mesh = np.where(np.any(s.geom_type == SDF) & (s.geom_type == MESH), s.geom_dataid, -1)
    hull = s.geom_hullid >= 0
    sorts = {(s.geom_type[g], kind_of(s, g), mesh[g], hull[g]): g for g in range(s.ngeom)}
    pairs = product(sorts.values(), sorts.values())
    return meetings(s, [pair for pair in pairs if lack(m, *pair) is None])


def _names(s: Structure, geoms: Iterable[int]) -> tuple[str, ...]:
    return tuple(sorted({kind_of(s, g) for g in geoms} - {NONE}))


def separations(m: Model, a: Placed, b: Placed, reach: Array, meet: Meetings) -> Touch:
    """Signed distances of pairs of geoms, with the points midway and the directions.

    Args:
      m: the model.
      a, b: placed geoms, `[n, *W]`.
      reach: distances that need not be told apart from larger ones, `[n, *W]` [m].
      meet: what can be among them.

    Returns:
      Distance, point and normal from a to b, `[n, *W]`. A pair without a distance is FAR away; of
      one that is farther than its reach only that is certain.
    """
    kind = jnp.asarray(m.geom_type, jnp.int32)
    swap = kind[a.id] > kind[b.id]
    first, second = select(swap, b, a), select(swap, a, b)
    zero = jnp.zeros_like((a.pos - b.pos).x)
    found = Touch(zero + FAR, Vec(zero, zero, zero), Vec(zero, zero, zero))
    for row in meet.families:
        types1, types2, measure = FAMILIES[row]
        here = _is_one_of(types1, m, first) & _is_one_of(types2, m, second)
        touch = measure(m, first, second, jnp.where(here, reach, -FAR), meet)
        found = select(here, _least(touch, zero), found)
    return found._replace(normal=select(swap, -found.normal, found.normal))


def _is_one_of(types: tuple[int, ...], m: Model, g: Placed) -> Array:
    """Whether geoms are of some types."""
    return jnp.asarray(np.isin(m.geom_type, types))[g.id]


def _least(touch: Touch, like: Array) -> Touch:
    """The nearest contact of each pair, of equally near ones the first."""
    parts = touch.dist, touch.pos, touch.normal
    if touch.dist.ndim == like.ndim:
        return Touch(*parts)
    if len(touch.dist) == 1:
        return Touch(*jax.tree.map(lambda x: x[0], parts))
    nearest = jnp.argmin(lax.stop_gradient(touch.dist), axis=0)[None]
    shape = touch.dist.shape
    return Touch(
        *jax.tree.map(
            lambda x: jnp.take_along_axis(jnp.broadcast_to(x, shape), nearest, axis=0)[0], parts
        )
    )


def segment(touch: Touch) -> tuple[Vec, Vec]:
    """Where the first and the second geom of each pair are nearest to the other."""
    half = touch.normal.scale(0.5 * touch.dist)
    return touch.pos - half, touch.pos + half


def _table(m: Model, meet: Meetings) -> Assets:
    table = assets_of(m, meet.kinds)
    return replace(table, patches=False, hulls=_hulls(m, meet) if MESH in meet.kinds else None)


def _hulls(m: Model, meet: Meetings) -> Hulls:
    return replace(hulls(m), bare=meet.bare)


def _solids(m: Model, a: Placed, b: Placed, reach: Array, meet: Meetings) -> Touch:
    return convex_convex(a, b, _table(m, meet), reach)


def _over_plane(m: Model, a: Placed, b: Placed, reach: Array, meet: Meetings) -> Touch:
    return over_plane(_table(m, meet), a, b)


def _hull_over_plane(m: Model, a: Placed, b: Placed, reach: Array, meet: Meetings) -> Touch:
    return plane_mesh(a, b, _hulls(m, meet), reach)


def _on_field(m: Model, a: Placed, b: Placed, reach: Array, meet: Meetings) -> Touch:
    s = m.structure
    cells = (np.asarray(s.hfield_nrow) - 1) * (np.asarray(s.hfield_ncol) - 1)
    convex = _table(m, meet)
    convex = replace(convex, kinds=(HFIELD, *convex.kinds))
    table = replace(fields(m), convex=convex, slots=most_contacts(2 * int(cells.max())))
    return hfield_convex(a, b, table, reach)


def _by_distance(m: Model, a: Placed, b: Placed, reach: Array, meet: Meetings) -> Touch:
    s = m.structure
    kinds = [kind_of(s, g) for g in range(s.ngeom)]
    return sdf_contacts(a, b, fields_of(m, kinds, meet.first, meet.second))


def _mesh_by_distance(m: Model, a: Placed, b: Placed, reach: Array, meet: Meetings) -> Touch:
    s = m.structure
    kinds = [kind_of(s, g) for g in range(s.ngeom)]
    table = fields_of(m, kinds, meet.first, meet.second)
    return mesh_sdf(a, b, MeshFields(table, faces_of(m, np.array(meet.meshes))))


FLAT = (PLANE, HFIELD)
SMOOTH = tuple(kind for kind in CONVEX if kind != MESH)
FAMILIES = (
    _Family(CONVEX, CONVEX, _solids),
    _Family((PLANE,), CONVEX, _over_plane),
    _Family((PLANE,), (SDF,), _hull_over_plane),
    _Family((HFIELD,), CONVEX, _on_field),
    _Family((*SMOOTH, SDF), (SDF,), _by_distance),
    _Family((MESH,), (SDF,), _mesh_by_distance),
)


def lack(m: Model, geom1: int, geom2: int) -> str | None:
    """What keeps two geoms from having a distance here though MuJoCo gives one; None: nothing."""
    types = m.geom_type[[geom1, geom2]]
    lacks = (_lack_beside(m, g, t) for g, t in ((geom1, types[1]), (geom2, types[0])))
    return next(filter(None, lacks), None)


def lack_of(m: Model, geom: int) -> str | None:
    """The same of one geom and any other."""
    lacks = (_lack_beside(m, geom, t) for t in np.unique(m.geom_type))
    return next(filter(None, lacks), None)


def _lack_beside(m: Model, geom: int, other: int) -> str | None:
    """The same of one geom and others of some type."""
    kind = m.geom_type[geom]
    if family(kind, other) < 0:
        return None
    beside_sdf = SDF in (kind, other) and other != PLANE
    who = f"the distance of {named(m, 'geom', geom)}"
    if kind == SDF and beside_sdf and kind_of(m.structure, geom) == NONE:
        return f"{who} ({reason(m.structure, geom)})"
    return None
