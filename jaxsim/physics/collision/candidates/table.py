"""Table of colliders by the types of two geoms, with the contact points of each.

Corresponds to `mjCOLLISIONFUNC` in MuJoCo. Kinds without a closed form use the general convex
collider (GJK/EPA); `sdf` geoms a search by signed distance.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxsim.enums import GeomType
from jaxsim.model.model import Model
from jaxsim.physics.collision.ahead.points import flat_points, points_over_plane, single_points
from jaxsim.physics.collision.candidates.options import Options
from jaxsim.physics.collision.convex.convex import convex_convex, convex_slots
from jaxsim.physics.collision.convex.hfield import hfield_convex
from jaxsim.physics.collision.convex.hull import hulls
from jaxsim.physics.collision.convex.patch import POINTS
from jaxsim.physics.collision.convex.plane_mesh import SLOTS, plane_mesh
from jaxsim.physics.collision.convex.prisms import fields, most_contacts
from jaxsim.physics.collision.convex.solid import CONVEX as CONVEX_KINDS
from jaxsim.physics.collision.convex.solid import assets
from jaxsim.physics.collision.field.fields import fields as distance_fields
from jaxsim.physics.collision.field.mesh import MOST, mesh_fields, mesh_sdf
from jaxsim.physics.collision.field.sdf import sdf_contacts
from jaxsim.physics.collision.primitive.box_box import box_box
from jaxsim.physics.collision.primitive.capsule_box import capsule_box
from jaxsim.physics.collision.primitive.plane import (
    plane_box,
    plane_box_corners,
    plane_capsule,
    plane_cylinder,
    plane_ellipsoid,
    plane_sphere,
)
from jaxsim.physics.collision.primitive.sphere import (
    capsule_capsule,
    sphere_box,
    sphere_capsule,
    sphere_cylinder,
    sphere_sphere,
)


class Collider(NamedTuple):
    """Narrow-phase function of two kinds of geoms, and the contact points that it returns.

    Attributes:
      collide: function `(Placed, Placed) -> Touch`. With `assets` it also takes these, and the
        distance below which contacts are detected, `[n, *W]`, -FAR for pairs to skip. Kinds with
        the same function are batched into one call.
      slots: number of contact points for a pair; or a function of the model's options.
      assets: function of the model that returns the data that `collide` needs besides placed
        geoms; None: nothing.
    """

    collide: Callable
    slots: int | Callable[[Options], int]
    assets: Callable[[Model], Any] | None = None

    def points(self, options: Options) -> int:
        """Return the number of contact points of a pair under the options of a model."""
        return self.slots if isinstance(self.slots, int) else self.slots(options)


PLANE, HFIELD, SPHERE = GeomType.PLANE, GeomType.HFIELD, GeomType.SPHERE
CAPSULE, ELLIPSOID, CYLINDER = GeomType.CAPSULE, GeomType.ELLIPSOID, GeomType.CYLINDER
BOX, MESH, SDF = GeomType.BOX, GeomType.MESH, GeomType.SDF

CONVEX = Collider(convex_convex, convex_slots, assets)
ON_FIELD = Collider(hfield_convex, lambda options: most_contacts(options.prisms), fields)
BY_DISTANCE = Collider(sdf_contacts, lambda options: options.sdf_initpoints, distance_fields)

COLLIDERS: dict[tuple[int, int], Collider] = {
    (PLANE, SPHERE): Collider(plane_sphere, 1),
    (PLANE, CAPSULE): Collider(plane_capsule, 2),
    (PLANE, ELLIPSOID): Collider(plane_ellipsoid, 1),
    (PLANE, CYLINDER): Collider(plane_cylinder, 4),
    (PLANE, BOX): Collider(plane_box, 4),
    (PLANE, MESH): Collider(plane_mesh, SLOTS, hulls),
    (PLANE, SDF): Collider(plane_mesh, SLOTS, hulls),
    (SPHERE, SPHERE): Collider(sphere_sphere, 1),
    (SPHERE, CAPSULE): Collider(sphere_capsule, 1),
    (SPHERE, CYLINDER): Collider(sphere_cylinder, 1),
    (SPHERE, BOX): Collider(sphere_box, 1),
    (SPHERE, SDF): BY_DISTANCE,
    (CAPSULE, CAPSULE): Collider(capsule_capsule, 2),
    (CAPSULE, BOX): Collider(capsule_box, 2),
    (CAPSULE, SDF): BY_DISTANCE,
    (ELLIPSOID, SDF): BY_DISTANCE,
    (CYLINDER, SDF): BY_DISTANCE,
    (BOX, BOX): Collider(box_box, 8),
    (SPHERE, ELLIPSOID): CONVEX,
    (SPHERE, MESH): CONVEX,
    (CAPSULE, ELLIPSOID): CONVEX,
    (CAPSULE, CYLINDER): CONVEX,
    (CAPSULE, MESH): CONVEX,
    (ELLIPSOID, ELLIPSOID): CONVEX,
    (ELLIPSOID, CYLINDER): CONVEX,
    (ELLIPSOID, BOX): CONVEX,
    (ELLIPSOID, MESH): CONVEX,
    (CYLINDER, CYLINDER): CONVEX,
    (CYLINDER, BOX): CONVEX,
    (CYLINDER, MESH): CONVEX,
    (BOX, MESH): CONVEX,
    (MESH, MESH): CONVEX,
    (BOX, SDF): BY_DISTANCE,
    (MESH, SDF): Collider(mesh_sdf, MOST, mesh_fields),
    (SDF, SDF): BY_DISTANCE,
}

# speculative contacts of geoms that move fast, see ahead/found.py
AHEAD_AT_POINT = Collider(single_points, 1)
AHEAD_AT_PATCH = Collider(flat_points, POINTS)
AHEAD_ON_PLANE = Collider(points_over_plane, POINTS)
ROUND = frozenset({SPHERE, ELLIPSOID})
COLLIDERS |= {(HFIELD, kind): ON_FIELD for kind in CONVEX_KINDS}
# Smooth contacts use all eight corners: a selection of four of them jumps with the state.
SMOOTH = {COLLIDERS[PLANE, BOX]: Collider(plane_box_corners, 8)}
# kinds that never touch, as in MuJoCo
NEVER = frozenset({(PLANE, PLANE), (PLANE, HFIELD), (HFIELD, HFIELD)})


def collider_ahead(kind: tuple[int, int], options: Options) -> Collider | None:
    """Return the collider of speculative contacts of two kinds of geoms; None: there is none."""
    first, second = kind
    if second not in CONVEX_KINDS or first not in (PLANE, *CONVEX_KINDS):
        return None
    if ROUND & {first, second}:
        return AHEAD_AT_POINT
    if first == PLANE:
        return AHEAD_ON_PLANE
    return AHEAD_AT_PATCH if convex_slots(options) > 1 else AHEAD_AT_POINT
