"""Which function finds the contacts of two kinds of geoms, and how many there can be."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxsim.enums import GeomType
from jaxsim.model.model import Model
from jaxsim.physics.collision.convex.convex import convex_convex, convex_slots
from jaxsim.physics.collision.convex.hfield import hfield_convex
from jaxsim.physics.collision.convex.hull import hulls
from jaxsim.physics.collision.convex.plane_mesh import SLOTS, plane_mesh
from jaxsim.physics.collision.convex.prisms import fields, most_contacts
from jaxsim.physics.collision.convex.solid import CONVEX as CONVEX_KINDS
from jaxsim.physics.collision.convex.solid import assets
from jaxsim.physics.collision.options import Options
from jaxsim.physics.collision.primitive.box_box import box_box
from jaxsim.physics.collision.primitive.capsule_box import capsule_box
from jaxsim.physics.collision.primitive.plane import (
    plane_box,
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
    """How the contacts of two kinds of geoms are found.

    Attributes:
      collide: function `(Placed, Placed) -> Touch`; with assets it gets these as well, and how
        far contacts reach, `[n, *W]`, which is -FAR for pairs that are not asked for. Kinds with
        the same function go through it together.
      slots: number of contact points it gives for a pair; or a function of the model's options.
      assets: what it needs of the model besides placed geoms, a function of it; None: nothing.
    """

    collide: Callable
    slots: int | Callable[[Options], int]
    assets: Callable[[Model], Any] | None = None

    def points(self, options: Options) -> int:
        """The number of contact points under the options of a model."""
        return self.slots if isinstance(self.slots, int) else self.slots(options)


PLANE, SPHERE, CAPSULE = GeomType.PLANE, GeomType.SPHERE, GeomType.CAPSULE
ELLIPSOID, CYLINDER, BOX = GeomType.ELLIPSOID, GeomType.CYLINDER, GeomType.BOX
MESH, SDF = GeomType.MESH, GeomType.SDF
CONVEX = Collider(convex_convex, convex_slots, assets)

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
    (CAPSULE, CAPSULE): Collider(capsule_capsule, 2),
    (CAPSULE, BOX): Collider(capsule_box, 2),
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
}

HFIELD = GeomType.HFIELD
ON_FIELD = Collider(hfield_convex, lambda options: most_contacts(options.prisms), fields)
COLLIDERS |= {(HFIELD, kind): ON_FIELD for kind in CONVEX_KINDS}
# kinds that never touch, in MuJoCo too
NEVER = frozenset({(PLANE, PLANE), (PLANE, HFIELD), (HFIELD, HFIELD)})
