"""Table of colliders by the types of two geoms, with the contact points of each.

Corresponds to `mjCOLLISIONFUNC` in MuJoCo. Kinds without a closed form use the general convex
collider (GJK/EPA); `sdf` geoms a search by signed distance.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxsim.enums import GeomType
from jaxsim.model.model import Model
from jaxsim.physics.collision.candidates.options import Options
from jaxsim.physics.collision.convex.convex import convex_convex, convex_slots
from jaxsim.physics.collision.convex.hfield import hfield_convex
from jaxsim.physics.collision.convex.hull.hulls import hulls
from jaxsim.physics.collision.convex.patch import MAX_PATCH_POINTS
from jaxsim.physics.collision.convex.plane_mesh import PLANE_MESH_SLOTS, plane_mesh
from jaxsim.physics.collision.convex.prisms import hfield_tables, max_prism_contacts
from jaxsim.physics.collision.convex.solid import CONVEX_TYPES as CONVEX_KINDS
from jaxsim.physics.collision.convex.solid import convex_assets
from jaxsim.physics.collision.field.fields import sdf_tables as distance_fields
from jaxsim.physics.collision.field.mesh import MAX_MESH_CONTACTS, mesh_sdf, mesh_sdf_tables
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
from jaxsim.physics.collision.speculative.impact_points import (
    flat_points,
    plane_patch_points,
    single_points,
)


class PairCollider(NamedTuple):
    """Narrow-phase function of two kinds of geoms, and the contact points that it returns.

    Attributes:
      collide: function `(PlacedGeoms, PlacedGeoms) -> ContactPoints`. With `assets` it also takes
        these, and the distance below which contacts are detected, `[n, *W]`, -NO_CONTACT_DISTANCE
        for pairs to skip. Kinds with the same function are batched into one call.
      slots: number of contact points for a pair; or a function of the model's options.
      assets: function of the model that returns the data that `collide` needs besides placed
        geoms; None: nothing.
      by_lane: `collide` also takes pairs of mixed worlds, `[n]`, if all worlds share the assets.
    """

    collide: Callable
    slots: int | Callable[[Options], int]
    assets: Callable[[Model], Any] | None = None
    by_lane: bool = False

    def points(self, options: Options) -> int:
        """Return the number of contact points of a pair under the options of a model."""
        return self.slots if isinstance(self.slots, int) else self.slots(options)


PLANE, HFIELD, SPHERE = GeomType.PLANE, GeomType.HFIELD, GeomType.SPHERE
CAPSULE, ELLIPSOID, CYLINDER = GeomType.CAPSULE, GeomType.ELLIPSOID, GeomType.CYLINDER
BOX, MESH, SDF = GeomType.BOX, GeomType.MESH, GeomType.SDF

_CONVEX_COLLIDER = PairCollider(convex_convex, convex_slots, convex_assets, by_lane=True)
_PLANE_MESH_COLLIDER = PairCollider(plane_mesh, PLANE_MESH_SLOTS, hulls, by_lane=True)
_HFIELD_COLLIDER = PairCollider(
    hfield_convex, lambda options: max_prism_contacts(options.prisms), hfield_tables
)
BY_DISTANCE = PairCollider(sdf_contacts, lambda options: options.sdf_initpoints, distance_fields)

COLLIDERS: dict[tuple[int, int], PairCollider] = {
    (PLANE, SPHERE): PairCollider(plane_sphere, 1),
    (PLANE, CAPSULE): PairCollider(plane_capsule, 2),
    (PLANE, ELLIPSOID): PairCollider(plane_ellipsoid, 1),
    (PLANE, CYLINDER): PairCollider(plane_cylinder, 4),
    (PLANE, BOX): PairCollider(plane_box, 4),
    (PLANE, MESH): _PLANE_MESH_COLLIDER,
    (PLANE, SDF): _PLANE_MESH_COLLIDER,
    (SPHERE, SPHERE): PairCollider(sphere_sphere, 1),
    (SPHERE, CAPSULE): PairCollider(sphere_capsule, 1),
    (SPHERE, CYLINDER): PairCollider(sphere_cylinder, 1),
    (SPHERE, BOX): PairCollider(sphere_box, 1),
    (SPHERE, SDF): BY_DISTANCE,
    (CAPSULE, CAPSULE): PairCollider(capsule_capsule, 2),
    (CAPSULE, BOX): PairCollider(capsule_box, 2),
    (CAPSULE, SDF): BY_DISTANCE,
    (ELLIPSOID, SDF): BY_DISTANCE,
    (CYLINDER, SDF): BY_DISTANCE,
    (BOX, BOX): PairCollider(box_box, 8),
    (SPHERE, ELLIPSOID): _CONVEX_COLLIDER,
    (SPHERE, MESH): _CONVEX_COLLIDER,
    (CAPSULE, ELLIPSOID): _CONVEX_COLLIDER,
    (CAPSULE, CYLINDER): _CONVEX_COLLIDER,
    (CAPSULE, MESH): _CONVEX_COLLIDER,
    (ELLIPSOID, ELLIPSOID): _CONVEX_COLLIDER,
    (ELLIPSOID, CYLINDER): _CONVEX_COLLIDER,
    (ELLIPSOID, BOX): _CONVEX_COLLIDER,
    (ELLIPSOID, MESH): _CONVEX_COLLIDER,
    (CYLINDER, CYLINDER): _CONVEX_COLLIDER,
    (CYLINDER, BOX): _CONVEX_COLLIDER,
    (CYLINDER, MESH): _CONVEX_COLLIDER,
    (BOX, MESH): _CONVEX_COLLIDER,
    (MESH, MESH): _CONVEX_COLLIDER,
    (BOX, SDF): BY_DISTANCE,
    (MESH, SDF): PairCollider(mesh_sdf, MAX_MESH_CONTACTS, mesh_sdf_tables),
    (SDF, SDF): BY_DISTANCE,
}

# speculative contacts of geoms that move fast, see speculative/contacts.py
_SPECULATIVE_POINT = PairCollider(single_points, 1)
_SPECULATIVE_PATCH = PairCollider(flat_points, MAX_PATCH_POINTS)
_SPECULATIVE_ON_PLANE = PairCollider(plane_patch_points, MAX_PATCH_POINTS)
_ROUND_TYPES = frozenset({SPHERE, ELLIPSOID})
COLLIDERS |= {(HFIELD, kind): _HFIELD_COLLIDER for kind in CONVEX_KINDS}
# Smooth contacts use all eight corners: a selection of four of them jumps with the state.
SMOOTHED_COLLIDERS = {COLLIDERS[PLANE, BOX]: PairCollider(plane_box_corners, 8)}
# kinds that never touch, as in MuJoCo
NON_COLLIDING_TYPES = frozenset({(PLANE, PLANE), (PLANE, HFIELD), (HFIELD, HFIELD)})


def speculative_collider(kind: tuple[int, int], options: Options) -> PairCollider | None:
    """Return the collider of speculative contacts of two kinds of geoms; None: there is none."""
    first, second = kind
    if second not in CONVEX_KINDS or first not in (PLANE, *CONVEX_KINDS):
        return None
    if _ROUND_TYPES & {first, second}:
        return _SPECULATIVE_POINT
    if first == PLANE:
        return _SPECULATIVE_ON_PLANE
    return _SPECULATIVE_PATCH if convex_slots(options) > 1 else _SPECULATIVE_POINT
