"""How far two geoms are apart and where they are nearest, whether or not they may touch.

Any two convex shapes go through one search; over a plane the lowest point of a shape counts. Two
unbounded shapes have no distance.

Height fields and `sdf` geoms are refused by name. MuJoCo's compiler refuses sensors of height
fields too; its function has the distance from one while a shape is outside or shallow inside, and a
positive one when it is deep inside. Of an `sdf` geom MuJoCo has the least of the contacts that its
search finds, so that geoms that are apart have no distance; over a plane it has that of the hull.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import GeomType
from jaxsim.math import Vec, select
from jaxsim.model.data import FAR
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.collision.convex.convex import convex_convex, solid_of
from jaxsim.physics.collision.convex.solid import CONVEX, Assets, assets, radius, support
from jaxsim.physics.collision.shape import Placed, Touch
from jaxsim.physics.refusal import named

UNBOUNDED = frozenset({GeomType.PLANE, GeomType.HFIELD})


class Meetings(NamedTuple):
    """Which types of geoms are asked about: what a program needs code for.

    Attributes:
      kinds: convex types.
      planes: a plane and a convex geom.
      solids: two convex geoms.
    """

    kinds: tuple[int, ...]
    planes: bool
    solids: bool


def meetings(pairs: Iterable[tuple[int, int]]) -> Meetings:
    """Of pairs of types of geoms."""
    pairs = list(pairs)
    plane = [GeomType.PLANE in pair for pair in pairs]
    convex = [[kind for kind in pair if kind in CONVEX] for pair in pairs]
    return Meetings(
        kinds=tuple(sorted({int(kind) for of_pair in convex for kind in of_pair})),
        planes=any(p and len(c) == 1 for p, c in zip(plane, convex, strict=True)),
        solids=any(len(c) == 2 for c in convex),
    )


def all_meetings(m: Model) -> Meetings:
    """Of any two geoms of a model."""
    types = sorted(set(m.geom_type.tolist()))
    return meetings(product(types, types))


def separations(m: Model, a: Placed, b: Placed, reach: Array, meet: Meetings) -> Touch:
    """Signed distances of pairs of geoms, with the points midway and the directions.

    Args:
      m: the model.
      a, b: placed geoms, `[n, *W]`.
      reach: distances that need not be told apart from larger ones, `[n, *W]` [m].
      meet: the types of geoms that there can be.

    Returns:
      Distance, point and normal from a to b, `[n, *W]`. A pair without a distance is FAR away; of
      one that is farther than its reach only that is certain.
    """
    every = assets(m)
    known = tuple(kind for kind in meet.kinds if kind in every.kinds)
    table = replace(every, kinds=known, patches=False)
    plane_a, plane_b = (_is_one_of((GeomType.PLANE,), m, g) for g in (a, b))
    solid_a, solid_b = (_is_one_of(CONVEX, m, g) for g in (a, b))
    zero = jnp.zeros_like((a.pos - b.pos).x)
    found = Touch(zero + FAR, Vec(zero, zero, zero), Vec(zero, zero, zero))
    if meet.solids:
        near = convex_convex(a, b, table, jnp.where(solid_a & solid_b, reach, -FAR))
        found = jax.tree.map(lambda x: x[0], near)
    if meet.planes:
        over = over_plane(table, select(plane_a, a, b), select(plane_a, b, a))
        over = over._replace(normal=select(plane_a, over.normal, -over.normal))
        found = select((plane_a & solid_b) | (solid_a & plane_b), over, found)
    return found


def _is_one_of(kinds: tuple[int, ...], m: Model, g: Placed) -> Array:
    """Whether geoms are of some types."""
    return jnp.asarray(np.isin(m.geom_type, kinds))[g.id]


def segment(touch: Touch) -> tuple[Vec, Vec]:
    """Where the first and the second geom of each pair are nearest to the other."""
    half = touch.normal.scale(0.5 * touch.dist)
    return touch.pos - half, touch.pos + half


def over_plane(table: Assets, plane: Placed, shape: Placed) -> Touch:
    """The lowest point of a shape over a plane."""
    normal, solid = plane.axis, solid_of(table, shape)
    _, point = support(table, solid, shape.rot.T @ -normal)
    low = shape.pos + shape.rot @ point - normal.scale(radius(solid))
    dist = normal.dot(low - plane.pos)
    return Touch(dist, low - normal.scale(0.5 * dist), normal)


def lack(m: Model, geom1: int, geom2: int) -> str | None:
    """What keeps two geoms from having a distance here though MuJoCo gives one; None: nothing."""
    if {m.geom_type[geom1], m.geom_type[geom2]} <= UNBOUNDED:
        return None
    return lack_of(m, geom1) or lack_of(m, geom2)


def lack_of(m: Model, geom: int) -> str | None:
    """The same of one geom and any other that is bounded."""
    kind = m.geom_type[geom]
    who = f"the distance of {named(m, 'geom', geom)}"
    if kind == GeomType.MESH and m.geom_hullid[geom] < 0:
        return f"{who}, a mesh without convex hull (give it contype or conaffinity in XML),"
    if kind not in (*CONVEX, GeomType.PLANE):
        return f"{who}, a geom of type {GeomType(kind).name.lower()},"
    return None
