"""Table of colliders of flex items with geoms and with each other, with their contact points."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxsim.arrays.array import Array
from jaxsim.enums import GeomType
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure
from jaxsim.physics.collision.flex.convex import (
    element_element,
    field_element,
    field_slots,
    flex_convex_assets,
    flex_hfield_tables,
    geom_element,
)
from jaxsim.physics.collision.flex.field import first_visits, sdf_triangle, shell_fields
from jaxsim.physics.collision.flex.item import RoundedHull, as_capsule, as_sphere
from jaxsim.physics.collision.flex.rod_box import (
    MAX_PLANE_CORNERS,
    bar_segment,
    box_bar,
    capsule_bar,
    plane_bar,
    segment_bar,
    sphere_bar,
)
from jaxsim.physics.collision.flex.triangle import box_triangle, capsule_triangle, sphere_triangle
from jaxsim.physics.collision.primitive.capsule_box import capsule_box
from jaxsim.physics.collision.primitive.plane import plane_sphere
from jaxsim.physics.collision.primitive.sphere import capsule_capsule, sphere_capsule
from jaxsim.physics.collision.shape import ContactPoints, PlacedGeoms

_GeomsOrHull = PlacedGeoms | RoundedHull


class FlexCollider(NamedTuple):
    """Narrow-phase function of flex items, and the contact points that it returns.

    Attributes:
      collide: function of both sides, of the assets, and of the distance below which contacts are
        detected, `[n, *W]`, -NO_CONTACT_DISTANCE for entries to skip.
      slots: number of contact points of an entry; or a function of the structure.
      assets: function of the model that returns the data that `collide` needs; None: nothing.
      among: function that selects among the points of all elements of a pair, from the points and
        the indices of their pairs in the order of the entries; None: every point is kept.
    """

    collide: Callable[[Any, Any, Any, Array], ContactPoints]
    slots: int | Callable[[Structure], int]
    assets: Callable[[Model], Any] | None = None
    among: Callable[[ContactPoints, Array], ContactPoints] | None = None

    def points(self, s: Structure) -> int:
        """Return the number of contact points of an entry in a model."""
        return self.slots if isinstance(self.slots, int) else self.slots(s)


def _plane(plane: PlacedGeoms, vertex: RoundedHull, assets: None, reach: Array) -> ContactPoints:
    return plane_sphere(plane, as_sphere(vertex))


def _sphere_segment(
    sphere: PlacedGeoms, segment: RoundedHull, assets: None, reach: Array
) -> ContactPoints:
    return sphere_capsule(sphere, as_capsule(segment))


def _capsule_segment(
    capsule: PlacedGeoms, segment: RoundedHull, assets: None, reach: Array
) -> ContactPoints:
    return capsule_capsule(capsule, as_capsule(segment))


def _box_segment(
    box: PlacedGeoms, segment: RoundedHull, assets: None, reach: Array
) -> ContactPoints:
    touch = capsule_box(as_capsule(segment), box)
    return touch._replace(normal=-touch.normal)


def _segments(one: RoundedHull, other: RoundedHull, assets: None, reach: Array) -> ContactPoints:
    return capsule_capsule(as_capsule(one), as_capsule(other))


def _sphere_triangle(
    sphere: PlacedGeoms, triangle: RoundedHull, assets: None, reach: Array
) -> ContactPoints:
    return sphere_triangle(sphere, triangle)


def _capsule_triangle(
    capsule: PlacedGeoms, triangle: RoundedHull, assets: None, reach: Array
) -> ContactPoints:
    return capsule_triangle(capsule, triangle)


def _box_triangle(
    box: PlacedGeoms, triangle: RoundedHull, assets: None, reach: Array
) -> ContactPoints:
    return box_triangle(box, triangle, reach)


_PLANE_VERTEX_COLLIDER = FlexCollider(_plane, 1)
_CONVEX_ELEMENT_COLLIDER = FlexCollider(geom_element, 1, flex_convex_assets)
_HFIELD_ELEMENT_COLLIDER = FlexCollider(field_element, field_slots, flex_hfield_tables)
SHELL_SDF = FlexCollider(sdf_triangle, 1, shell_fields, first_visits)
_ELEMENT_COLLIDER = FlexCollider(element_element, 1, flex_convex_assets)
_SEGMENT_COLLIDER = FlexCollider(_segments, 2)

# by the type of a geom and the dimension of a flex; other kinds use the general convex collider
BY_KIND: dict[tuple[int, int], FlexCollider] = {
    (GeomType.SPHERE, 1): FlexCollider(_sphere_segment, 1),
    (GeomType.CAPSULE, 1): FlexCollider(_capsule_segment, 2),
    (GeomType.BOX, 1): FlexCollider(_box_segment, 2),
    (GeomType.SPHERE, 2): FlexCollider(_sphere_triangle, 1),
    (GeomType.CAPSULE, 2): FlexCollider(_capsule_triangle, 5),
    (GeomType.BOX, 2): FlexCollider(_box_triangle, 11),
    (GeomType.SDF, 2): SHELL_SDF,
}


# geoms with edges of a box section; for other types of geoms the edges are capsules
ON_BARS: dict[int, FlexCollider] = {
    GeomType.PLANE: FlexCollider(plane_bar, MAX_PLANE_CORNERS),
    GeomType.SPHERE: FlexCollider(sphere_bar, 1),
    GeomType.CAPSULE: FlexCollider(capsule_bar, 2),
    GeomType.BOX: FlexCollider(box_bar, 8),
}
# two rods, by whether the edges of each have a box section
OF_RODS = {
    (False, False): _SEGMENT_COLLIDER,
    (False, True): FlexCollider(segment_bar, 2),
    (True, False): FlexCollider(bar_segment, 2),
    (True, True): ON_BARS[GeomType.BOX],
}


def geom_collider(geom_type: int, dim: int, boxed: bool = False) -> FlexCollider:
    """Return the collider of a type of geoms with flexes of a dimension."""
    if boxed and geom_type in ON_BARS:
        return ON_BARS[geom_type]
    of_any = {GeomType.PLANE: _PLANE_VERTEX_COLLIDER, GeomType.HFIELD: _HFIELD_ELEMENT_COLLIDER}
    return of_any.get(GeomType(geom_type)) or BY_KIND.get(
        (geom_type, dim), _CONVEX_ELEMENT_COLLIDER
    )


def flex_collider(dim1: int, dim2: int, bars: tuple[bool, bool] = (False, False)) -> FlexCollider:
    """Return the collider of elements of two flexes, by their dimensions."""
    return OF_RODS[bars] if dim1 == dim2 == 1 else _ELEMENT_COLLIDER
