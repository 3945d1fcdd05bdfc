"""Convex shapes as support functions: the farthest point in a direction.

A shape is a core with a radius: a sphere is a point, a capsule a segment. Each support point of the
core belongs to a feature: a vertex of a box or hull, a rim of a cylinder, the surface of an
ellipsoid. On one feature the support point is a smooth function of the direction (`point_on`),
which is what derivatives need; the feature itself is a discrete choice (`core_support`). Tables by
geom type (_FEATURE_FUNCTIONS, _POINT_FUNCTIONS) hold one function per type. The last axis of arrays
are lanes: pairs of one or many worlds.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.node import node
from jaxsim.enums import DisableBit, GeomType
from jaxsim.math import Vec, safe_divide, select_where
from jaxsim.model.model import Model
from jaxsim.physics.collision.convex.hull.hulls import Hulls, hull_vertex, hulls
from jaxsim.physics.collision.convex.hull.support import hull_support
from jaxsim.physics.collision.convex.hull.tables import collidable_geoms, geoms_without_hull
from jaxsim.transforms.materialize import materialize_decision


@node("kinds", "geom_type", "max_iterations", "patches")
class Assets:
    """Tables of the model for the convex search; static except for the hulls.

    Attributes:
      kinds: types of geoms that can collide.
      geom_type: type of each geom.
      max_iterations: limit of iterations.
      patches: flat contacts have several points.
      hulls: convex hulls of meshes; None if there are none.
    """

    kinds: tuple[int, ...]
    geom_type: tuple[int, ...]
    max_iterations: int
    patches: bool
    hulls: Hulls | None

    @property
    def are_polytopes(self) -> bool:
        """Return whether all cores are polytopes: a support point is fixed on its feature."""
        return not {GeomType.CYLINDER, GeomType.ELLIPSOID} & set(self.kinds)

    def for_types(self, types: Iterable[int]) -> "Assets":
        """Return the tables for geoms of some of the types, which make a smaller program."""
        occurring = set(types)
        kinds = tuple(k for k in self.kinds if k in occurring)
        return replace(self, kinds=kinds, hulls=self.hulls if GeomType.MESH in kinds else None)


def convex_assets(m: Model) -> Assets:
    """Return the tables for the geoms of a model that can collide; see `assets_of`."""
    s = m.structure
    drawn = geoms_without_hull(s) & ~collidable_geoms(partial(getattr, s))
    return assets_of(m, set(s.geom_type[~drawn].tolist()))


def assets_of(m: Model, types: Iterable[int]) -> Assets:
    """Return the tables of a model for geoms of some types."""
    types = set(types)
    return Assets(
        kinds=tuple(sorted(types & set(CONVEX_TYPES))),
        geom_type=tuple(m.geom_type.tolist()),
        max_iterations=int(m.opt.ccd_iterations),
        patches=not m.opt.disableflags & DisableBit.MULTICCD,
        hulls=hulls(m) if GeomType.MESH in types else None,
    )


CONVEX_TYPES = (
    GeomType.SPHERE,
    GeomType.CAPSULE,
    GeomType.ELLIPSOID,
    GeomType.CYLINDER,
    GeomType.BOX,
    GeomType.MESH,
)


FLEX_ELEMENT = len(GeomType)  # the kind of flex elements, after the geom types
_ROUNDED_TYPES = (GeomType.SPHERE, GeomType.CAPSULE, FLEX_ELEMENT)


class ConvexShape(NamedTuple):
    """Convex shapes in their own frames.

    Attributes:
      kind: geom type, or FLEX_ELEMENT.
      size: `geom_size` [m]; for a prism see `_prism_support`; for an element its radius.
      hull: id of the mesh's hull (hull/hulls.py); arbitrary for other shapes.
      tops: heights of the three upper corners of a prism [m]; arbitrary for other shapes, None if
        there are no prisms.
      corners: the four corners of an element, some of which may be equal [m]; arbitrary for other
        shapes, None if there are no elements.
    """

    kind: Array
    size: Vec
    hull: Array
    tops: Vec | None = None
    corners: tuple[Vec, ...] | None = None


def core_radius(s: ConvexShape) -> Array:
    """Return the radius around the core [m]."""
    round_ = jnp.zeros_like(s.kind, bool)
    for kind in _ROUNDED_TYPES:
        round_ = round_ | (s.kind == kind)
    return jnp.where(round_, s.size.x, 0)


def core_support(assets: Assets, s: ConvexShape, d: Vec) -> tuple[Array, Vec]:
    """Return the feature of the core that is farthest along `d`, and its support point."""
    feature = materialize_decision(_farthest_feature, assets, s, d)
    return feature, point_on(assets, s, feature, d)


def _farthest_feature(assets: Assets, s: ConvexShape, d: Vec) -> Array:
    """Return the feature of the core that is farthest along `d`."""
    s = s._replace(hull=jnp.broadcast_to(s.hull, d.shape))
    feature = jnp.zeros(d.shape, jnp.int32)
    for kind in assets.kinds:
        if kind in _FEATURE_FUNCTIONS:
            feature = jnp.where(s.kind == kind, _FEATURE_FUNCTIONS[kind](assets, s, d), feature)
    return feature


def point_on(assets: Assets, s: ConvexShape, feature: Array, d: Vec) -> Vec:
    """Return the support point of one feature of the core along `d`; differentiable.

    For a rim seen along its axis all points are equally far: see `feature_support`.
    """
    zero = jnp.zeros_like(d.x)
    point = Vec(zero, zero, zero)
    for kind in assets.kinds:
        if kind in _POINT_FUNCTIONS:
            point = select_where(
                s.kind == kind, _POINT_FUNCTIONS[kind](assets, s, feature, d), point
            )
    return point


# Features that are farthest along d, by type.


def _segment_end(assets: Assets, s: ConvexShape, d: Vec) -> Array:
    """Return 1 for the upper end of a capsule or a cylinder, else 0."""
    return (d.z > 0).astype(jnp.int32)


def _box_corner_bits(assets: Assets, s: ConvexShape, d: Vec) -> Array:
    """Return the corner of a box: bit k is its side of axis k."""
    return sum((c > 0).astype(jnp.int32) << k for k, c in enumerate(d.parts))


def _hull(assets: Assets, s: ConvexShape, d: Vec) -> Array:
    """Return the support vertex of a hull."""
    assert assets.hulls is not None
    return hull_support(assets.hulls, s.hull, d)


def _prism_corner(assets: Assets, s: ConvexShape, d: Vec) -> Array:
    """Return the corner of a prism: 0 to 2 above, 3 to 5 below."""
    assert s.tops is not None
    # Upper or lower corners by the sign of d.z, then the best of the three vertical edges.
    up = d.z > 0
    x, y = d.x * s.size.x, d.y * s.size.y
    slope = jnp.where(up, d.z, 0)
    sides = zip(_PRISM_EDGES, s.tops.parts, strict=True)
    first, second, third = (x * px + y * py + slope * top for (px, py), top in sides)
    best = jnp.where(second > first, 1, 0)
    best = jnp.where(third > jnp.maximum(first, second), 2, best)
    return jnp.where(up, best, best + 3).astype(jnp.int32)


def _element_corner(assets: Assets, s: ConvexShape, d: Vec) -> Array:
    """Return the corner of an element; the first among equal ones."""
    assert s.corners is not None
    best = s.corners[0].dot(d)
    feature = jnp.zeros(best.shape, jnp.int32)
    for k, corner in enumerate(s.corners[1:], 1):
        reach = corner.dot(d)
        feature = jnp.where(reach > best, k, feature)
        best = jnp.maximum(best, reach)
    return feature


_FEATURE_FUNCTIONS: dict[int, Callable] = {
    FLEX_ELEMENT: _element_corner,
    GeomType.HFIELD: _prism_corner,
    GeomType.CAPSULE: _segment_end,
    GeomType.CYLINDER: _segment_end,
    GeomType.BOX: _box_corner_bits,
    GeomType.MESH: _hull,
}


# Support points of a feature, by type.


def _segment_support(assets: Assets, s: ConvexShape, feature: Array, d: Vec) -> Vec:
    """Return an end of a capsule's segment."""
    zero = jnp.zeros_like(d.x)
    return Vec(zero, zero, jnp.where(feature > 0, s.size.y, -s.size.y))


def _rim_support(assets: Assets, s: ConvexShape, feature: Array, d: Vec) -> Vec:
    """Return the support point of a cylinder's rim."""
    across = Vec(d.x, d.y, jnp.zeros_like(d.x))
    out = across.scale(safe_divide(s.size.x, across.norm()))
    return Vec(out.x, out.y, jnp.where(feature > 0, s.size.y, -s.size.y))


def _ellipsoid_support(assets: Assets, s: ConvexShape, feature: Array, d: Vec) -> Vec:
    """Return the support point of an ellipsoid."""
    stretched = Vec(*(a * c for a, c in zip(s.size.parts, d.parts, strict=True)))
    out = stretched.scale(safe_divide(1.0, stretched.norm()))
    return Vec(*(a * c for a, c in zip(s.size.parts, out.parts, strict=True)))


def _box_support(assets: Assets, s: ConvexShape, feature: Array, d: Vec) -> Vec:
    """Return a corner of a box."""
    sides = enumerate(s.size.parts)
    return Vec(*(jnp.where((feature >> k) & 1 > 0, a, -a) for k, a in sides))


def _hull_support(assets: Assets, s: ConvexShape, feature: Array, d: Vec) -> Vec:
    """Return a vertex of a hull."""
    assert assets.hulls is not None
    mine = jnp.where(s.kind == GeomType.MESH, feature, 0)  # features of other kinds: any vertex
    return hull_vertex(assets.hulls, mine)


# Vertical edges of a prism, relative to the centroid of its triangle, in units of the cell.
_PRISM_EDGES = ((-1 / 3, 1 / 3), (-1 / 3, -2 / 3), (2 / 3, 1 / 3))


def _prism_support(assets: Assets, s: ConvexShape, feature: Array, d: Vec) -> Vec:
    """Return a corner of a prism of a height field.

    `size` is that of the cell along x and y, both negative for the second prism, which is the first
    one rotated by 180 degrees; and the height of the base.
    """
    assert s.tops is not None
    edge = feature % 3
    x = y = jnp.zeros_like(s.size.x)
    top = s.tops.x
    for k, (place, height) in enumerate(zip(_PRISM_EDGES, s.tops.parts, strict=True)):
        x, y = jnp.where(edge == k, place[0], x), jnp.where(edge == k, place[1], y)
        top = jnp.where(edge == k, height, top)
    return Vec(s.size.x * x, s.size.y * y, jnp.where(feature < 3, top, s.size.z))


def _element_support(assets: Assets, s: ConvexShape, feature: Array, d: Vec) -> Vec:
    """Return a corner of an element."""
    assert s.corners is not None
    point = s.corners[0]
    for k, corner in enumerate(s.corners[1:], 1):
        point = select_where(feature == k, corner, point)
    return point


_POINT_FUNCTIONS: dict[int, Callable] = {
    FLEX_ELEMENT: _element_support,
    GeomType.HFIELD: _prism_support,
    GeomType.CAPSULE: _segment_support,
    GeomType.ELLIPSOID: _ellipsoid_support,
    GeomType.CYLINDER: _rim_support,
    GeomType.BOX: _box_support,
    GeomType.MESH: _hull_support,
}


# Flat caps, whose contact points do not move with the direction.

_MAX_FLAT_CAP_ANGLE = 0.03  # largest tilt of a cap that touches as a face [rad]
_MIN_CAP_POINT_DISTANCE = 0.1  # smallest distance of the points on such a cap, in radii


def is_flat(s: ConvexShape, d: Vec, apart: Array) -> Array:
    """Return whether the cap of a cylinder touches as a face, with points this far `apart` [m]."""
    across = d.x * d.x + d.y * d.y
    level = across < _MAX_FLAT_CAP_ANGLE * _MAX_FLAT_CAP_ANGLE * d.dot(d)
    return (s.kind == GeomType.CYLINDER) & level & (apart > _MIN_CAP_POINT_DISTANCE * s.size.x)


def feature_support(
    assets: Assets, s: ConvexShape, feature: Array, d: Vec, point: Vec, flat: Array
) -> Vec:
    """Return the support point of a feature along `d`; on a `flat` cap the rim point at `point`."""
    guide = Vec(jnp.where(flat, point.x, d.x), jnp.where(flat, point.y, d.y), d.z)
    return point_on(assets, s, feature, guide)
