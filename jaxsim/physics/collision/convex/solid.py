"""Convex shapes as their support functions: the farthest point in a direction.

A shape is a core, and a radius about it: a sphere is a point, a capsule a segment. Of the core,
each point that can be farthest belongs to a feature: a vertex of a box or of a hull, one rim of a
cylinder, the surface of an ellipsoid. On one feature the farthest point is a smooth function of
the direction (`point_on`), which is what derivatives need; which feature it is on is a choice
(`support`).

Arrays end with lanes: pairs, of one world or of many, one after another.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp

from jaxsim.enums import DisableBit, GeomType
from jaxsim.math import Vec, safe_divide, select
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.node import node
from jaxsim.physics.arrays.once import decide
from jaxsim.physics.collision.convex.hull import (
    Hulls,
    hull_support,
    hull_vertex,
    hulls,
    touchable,
    without_hull,
)


@node("kinds", "geom_type", "turns", "patches")
class Assets:
    """What the search needs of the model; static but for the hulls.

    Attributes:
      kinds: types of geoms that can meet.
      geom_type: type of each geom.
      turns: limit of iterations.
      patches: flat contacts have several points.
      hulls: tables of the hulls of meshes; None if there are none.
    """

    kinds: tuple[int, ...]
    geom_type: tuple[int, ...]
    turns: int
    patches: bool
    hulls: Hulls | None


def assets(m: Model) -> Assets:
    """What the search needs of a model for what may touch; see `assets_of`."""
    s = m.structure
    drawn = without_hull(s) & ~touchable(partial(getattr, s))
    return assets_of(m, set(s.geom_type[~drawn].tolist()))


def assets_of(m: Model, types: Iterable[int]) -> Assets:
    """What the search needs of a model for geoms of some types."""
    types = set(types)
    return Assets(
        kinds=tuple(sorted(types & set(CONVEX))),
        geom_type=tuple(m.geom_type.tolist()),
        turns=int(m.opt.ccd_iterations),
        patches=not m.opt.disableflags & DisableBit.MULTICCD,
        hulls=hulls(m) if GeomType.MESH in types else None,
    )


CONVEX = (
    GeomType.SPHERE,
    GeomType.CAPSULE,
    GeomType.ELLIPSOID,
    GeomType.CYLINDER,
    GeomType.BOX,
    GeomType.MESH,
)


ELEMENT = len(GeomType)  # the kind of elements of flexes, after those of geoms
ROUND = (GeomType.SPHERE, GeomType.CAPSULE, ELEMENT)


class Solid(NamedTuple):
    """Convex shapes in their own frames.

    Attributes:
      kind: type of geom, or ELEMENT.
      size: its `geom_size` [m]; of a prism see `_on_prism`; of an element its radius.
      hull: number of the hull of its mesh, and of the world where these differ; of other shapes
        any.
      tops: heights of the three upper corners of a prism [m]; of other shapes any, and None where
        there are no prisms.
      corners: the four corners of an element, some of which may be the same [m]; of other shapes
        any, and None where there are no elements.
    """

    kind: Array
    size: Vec
    hull: Array
    tops: Vec | None = None
    corners: tuple[Vec, ...] | None = None


def radius(s: Solid) -> Array:
    """The radius about the core [m]."""
    round_ = jnp.zeros_like(s.kind, bool)
    for kind in ROUND:
        round_ = round_ | (s.kind == kind)
    return jnp.where(round_, s.size.x, 0)


def support(assets: Assets, s: Solid, d: Vec) -> tuple[Array, Vec]:
    """The feature of the core that is farthest along `d`, and its point there."""
    feature = decide(_farthest_feature, assets, s, d)
    return feature, point_on(assets, s, feature, d)


def _farthest_feature(assets: Assets, s: Solid, d: Vec) -> Array:
    s = s._replace(hull=jnp.broadcast_to(s.hull, d.shape))
    feature = jnp.zeros(d.shape, jnp.int32)
    for kind in assets.kinds:
        if kind in FEATURE:
            feature = jnp.where(s.kind == kind, FEATURE[kind](assets, s, d), feature)
    return feature


def point_on(assets: Assets, s: Solid, feature: Array, d: Vec) -> Vec:
    """The farthest point along `d` of one feature of the core; differentiable.

    Of a rim seen along its axis all points are equally far: see `held`.
    """
    zero = jnp.zeros_like(d.x)
    point = Vec(zero, zero, zero)
    for kind in assets.kinds:
        if kind in POINT:
            point = select(s.kind == kind, POINT[kind](assets, s, feature, d), point)
    return point


# which feature is farthest along d


def _end(assets: Assets, s: Solid, d: Vec) -> Array:
    """Of a capsule or a cylinder: 1 at the upper end."""
    return (d.z > 0).astype(jnp.int32)


def _corner(assets: Assets, s: Solid, d: Vec) -> Array:
    """Of a box: bit k is its side of axis k."""
    return sum((c > 0).astype(jnp.int32) << k for k, c in enumerate(d.parts))


def _hull(assets: Assets, s: Solid, d: Vec) -> Array:
    assert assets.hulls is not None
    return hull_support(assets.hulls, s.hull, d)


def _prism_corner(assets: Assets, s: Solid, d: Vec) -> Array:
    """Of a prism: 0 to 2 above, 3 to 5 below."""
    assert s.tops is not None
    up = d.z > 0
    x, y = d.x * s.size.x, d.y * s.size.y
    slope = jnp.where(up, d.z, 0)
    sides = zip(PRISM, s.tops.parts, strict=True)
    first, second, third = (x * px + y * py + slope * top for (px, py), top in sides)
    best = jnp.where(second > first, 1, 0)
    best = jnp.where(third > jnp.maximum(first, second), 2, best)
    return jnp.where(up, best, best + 3).astype(jnp.int32)


def _element_corner(assets: Assets, s: Solid, d: Vec) -> Array:
    """Of an element: the number of the corner; the first of equal ones."""
    assert s.corners is not None
    best = s.corners[0].dot(d)
    feature = jnp.zeros(best.shape, jnp.int32)
    for k, corner in enumerate(s.corners[1:], 1):
        reach = corner.dot(d)
        feature = jnp.where(reach > best, k, feature)
        best = jnp.maximum(best, reach)
    return feature


FEATURE: dict[int, Callable] = {
    ELEMENT: _element_corner,
    GeomType.HFIELD: _prism_corner,
    GeomType.CAPSULE: _end,
    GeomType.CYLINDER: _end,
    GeomType.BOX: _corner,
    GeomType.MESH: _hull,
}


# the farthest point of a feature


def _on_segment(assets: Assets, s: Solid, feature: Array, d: Vec) -> Vec:
    zero = jnp.zeros_like(d.x)
    return Vec(zero, zero, jnp.where(feature > 0, s.size.y, -s.size.y))


def _on_rim(assets: Assets, s: Solid, feature: Array, d: Vec) -> Vec:
    across = Vec(d.x, d.y, jnp.zeros_like(d.x))
    out = across.scale(safe_divide(s.size.x, across.norm()))
    return Vec(out.x, out.y, jnp.where(feature > 0, s.size.y, -s.size.y))


def _on_ellipsoid(assets: Assets, s: Solid, feature: Array, d: Vec) -> Vec:
    stretched = Vec(*(a * c for a, c in zip(s.size.parts, d.parts, strict=True)))
    out = stretched.scale(safe_divide(1.0, stretched.norm()))
    return Vec(*(a * c for a, c in zip(s.size.parts, out.parts, strict=True)))


def _on_box(assets: Assets, s: Solid, feature: Array, d: Vec) -> Vec:
    sides = enumerate(s.size.parts)
    return Vec(*(jnp.where((feature >> k) & 1 > 0, a, -a) for k, a in sides))


def _on_hull(assets: Assets, s: Solid, feature: Array, d: Vec) -> Vec:
    assert assets.hulls is not None
    mine = jnp.where(s.kind == GeomType.MESH, feature, 0)  # a feature of others is no vertex
    return hull_vertex(assets.hulls, mine)


# where the upright edges of a prism are, from the middle of its triangle
PRISM = ((-1 / 3, 1 / 3), (-1 / 3, -2 / 3), (2 / 3, 1 / 3))


def _on_prism(assets: Assets, s: Solid, feature: Array, d: Vec) -> Vec:
    """Half of a cell of a height field down to its base.

    Its size is that of the cell along x and y, both negative for the other half, which is this one
    turned by half a turn; and the height of the base.
    """
    assert s.tops is not None
    edge = feature % 3
    x = y = jnp.zeros_like(s.size.x)
    top = s.tops.x
    for k, (place, height) in enumerate(zip(PRISM, s.tops.parts, strict=True)):
        x, y = jnp.where(edge == k, place[0], x), jnp.where(edge == k, place[1], y)
        top = jnp.where(edge == k, height, top)
    return Vec(s.size.x * x, s.size.y * y, jnp.where(feature < 3, top, s.size.z))


def _on_element(assets: Assets, s: Solid, feature: Array, d: Vec) -> Vec:
    assert s.corners is not None
    point = s.corners[0]
    for k, corner in enumerate(s.corners[1:], 1):
        point = select(feature == k, corner, point)
    return point


POINT: dict[int, Callable] = {
    ELEMENT: _on_element,
    GeomType.HFIELD: _on_prism,
    GeomType.CAPSULE: _on_segment,
    GeomType.ELLIPSOID: _on_ellipsoid,
    GeomType.CYLINDER: _on_rim,
    GeomType.BOX: _on_box,
    GeomType.MESH: _on_hull,
}


# points that do not move with the direction

FLAT = 0.03  # a cap may be the face that touches if it is tilted by less [rad]
WIDE = 0.1  # ... and the points found on it are further apart than this part of its radius


def is_flat(s: Solid, d: Vec, apart: Array) -> Array:
    """Whether the cap of a cylinder touches as a face, with points as far `apart` [m]."""
    across = d.x * d.x + d.y * d.y
    level = across < FLAT * FLAT * d.dot(d)
    return (s.kind == GeomType.CYLINDER) & level & (apart > WIDE * s.size.x)


def held(assets: Assets, s: Solid, feature: Array, d: Vec, point: Vec, flat: Array) -> Vec:
    """The farthest point of a feature along `d`; where the cap is `flat`, the rim's at `point`."""
    guide = Vec(jnp.where(flat, point.x, d.x), jnp.where(flat, point.y, d.y), d.z)
    return point_on(assets, s, feature, guide)
