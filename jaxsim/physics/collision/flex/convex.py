"""Contacts of flex elements with convex geoms and with each other, by GJK/EPA.

Each pair has one contact; with a height field, one for each prism. Elements enter the general
convex collider as inflated hulls.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.enums import GeomType
from jaxsim.math import Rot, Vec, safe_sqrt, select_where
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure
from jaxsim.physics.collision.convex.convex import solid_of, solids_touch
from jaxsim.physics.collision.convex.hfield import collide_hfield
from jaxsim.physics.collision.convex.prisms import HfieldTables, max_prism_contacts
from jaxsim.physics.collision.convex.prisms import hfield_tables as geom_fields
from jaxsim.physics.collision.convex.solid import FLEX_ELEMENT, Assets, ConvexShape
from jaxsim.physics.collision.convex.solid import convex_assets as geom_assets
from jaxsim.physics.collision.flex.item import MAX_ELEMENT_VERTICES, RoundedHull
from jaxsim.physics.collision.shape import ContactPoints, PlacedGeoms

# where a cylinder is touched on its side: see `_radial_normals`
MIN_SIDE_HEIGHT, MIN_SIDE_DEPTH = 0.95, 0.25


class _Frame(NamedTuple):
    pos: Vec
    rot: Rot


def flex_convex_assets(m: Model) -> Assets:
    """Return the flex_convex_assets of the convex collider with elements as a further kind.

    Pairs with a flex have one contact, also where faces are parallel, so there are no patches.
    """
    geoms = geom_assets(m)
    return replace(geoms, kinds=(*geoms.kinds, FLEX_ELEMENT), patches=False)


def geom_element(
    geom: PlacedGeoms, element: RoundedHull, assets: Assets, reach: Array
) -> ContactPoints:
    """Return the contact of a convex geom with an element."""
    solid = solid_of(assets, geom)
    zero = jnp.zeros_like(geom.size.x)
    solid = solid._replace(corners=(Vec(zero, zero, zero),) * MAX_ELEMENT_VERTICES)
    frame, other = _element_solids(element)
    touch = solids_touch(assets, (solid, other), geom, frame, reach)
    if len(element.corner) != 3 or GeomType.CYLINDER not in assets.kinds:
        return touch
    return touch._replace(normal=_radial_normals(assets, geom, touch))


def flex_hfield_tables(m: Model) -> HfieldTables:
    """Return the assets of the height field collider with elements as the other kind."""
    geoms = geom_fields(m)
    convex = replace(geoms.convex, kinds=(GeomType.HFIELD, FLEX_ELEMENT))
    return replace(geoms, convex=convex, slots=field_slots(m.structure))


def field_slots(s: Structure) -> int:
    """Return the number of contact points of a height field with an element."""
    return max_prism_contacts(int(np.max(s.flex_prismnum, initial=0)))


def field_element(
    field: PlacedGeoms, element: RoundedHull, assets: HfieldTables, reach: Array
) -> ContactPoints:
    """Return the contacts of elements with the prisms of height fields below them."""
    frame, solid = _element_solids(element)
    solid = solid._replace(tops=solid.size.map(jnp.zeros_like))
    return collide_hfield(field, solid, frame, assets, reach)


def element_element(
    one: RoundedHull, other: RoundedHull, assets: Assets, reach: Array
) -> ContactPoints:
    """Return the contact of an element with an element."""
    first, second = _element_solids(one), _element_solids(other)
    return solids_touch(assets, (first[1], second[1]), first[0], second[0], reach)


def _element_solids(element: RoundedHull) -> tuple[_Frame, ConvexShape]:
    """Return elements as convex solids, in frames at their centers with the axes of the world."""
    # Center of the vertices, and corners relative to it.
    middle = element.corner[0]
    for corner in element.corner[1:]:
        middle = middle + corner
    middle = middle.scale(1 / len(element.corner))
    corners = [corner - middle for corner in element.corner]
    corners += [corners[0]] * (MAX_ELEMENT_VERTICES - len(corners))
    zero, one = jnp.zeros_like(middle.x), jnp.ones_like(middle.x)
    kind = jnp.full(zero.shape, FLEX_ELEMENT, jnp.int32)
    radius = jnp.broadcast_to(element.radius, zero.shape)
    solid = ConvexShape(kind, Vec(radius, zero, zero), jnp.zeros_like(kind), corners=tuple(corners))
    return _Frame(middle, Rot(one, zero, zero, zero, one, zero, zero, zero, one)), solid


def _radial_normals(assets: Assets, geom: PlacedGeoms, touch: ContactPoints) -> Vec:
    """Set the normals of triangles that touch the side of a cylinder to the radial direction.

    As in MuJoCo, a point is on the side if it is not near a cap and much nearer to the side than to
    the cap.
    """
    kind = jnp.asarray(assets.geom_type, jnp.int32)[geom.id]
    rot, pos, size = jax.tree.map(lambda a: a[None], (geom.rot, geom.pos, geom.size))
    # Cylindrical coordinates of the contact in the frame of the cylinder.
    local = rot.T @ (touch.pos - pos)
    across = safe_sqrt(local.x * local.x + local.y * local.y)
    height = jnp.abs(local.z)
    on_side = (
        (kind == GeomType.CYLINDER)[None] & (height <= MIN_SIDE_HEIGHT * size.y) & (across > 0)
    )
    on_side &= jnp.abs(size.y - height) >= MIN_SIDE_DEPTH * jnp.abs(size.x - across)
    # Replace the normal by the radial direction.
    radial = Vec(local.x, local.y, jnp.zeros_like(local.z)).normalize()
    return select_where(on_side, rot @ radial, touch.normal)
