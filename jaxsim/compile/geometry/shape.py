"""The geometry and pose of one geom or site, from its type, size, pose and fromto."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.element_pose import fromto, pose_of
from jaxsim.compile.geometry.orientation import mjcf_numbers
from jaxsim.compile.geometry.pose import FramePose, identity_pose
from jaxsim.compile.geometry.primitive import Solid, primitive
from jaxsim.enums import GeomType
from jaxsim.spec import SpecElement

GEOM_TYPE_BY_NAME = {
    "plane": GeomType.PLANE,
    "hfield": GeomType.HFIELD,
    "sphere": GeomType.SPHERE,
    "capsule": GeomType.CAPSULE,
    "ellipsoid": GeomType.ELLIPSOID,
    "cylinder": GeomType.CYLINDER,
    "box": GeomType.BOX,
    "mesh": GeomType.MESH,
    "sdf": GeomType.SDF,
}

# Number of sizes that a shape needs, and their meaning.
_SIZES = {
    GeomType.SPHERE: (1, "the radius"),
    GeomType.CAPSULE: (2, "the radius and half the length of the straight part"),
    GeomType.ELLIPSOID: (3, "the three radii"),
    GeomType.CYLINDER: (2, "the radius and half the height"),
    GeomType.BOX: (3, "half the three sides"),
}

# Shapes that can be given by two end points, and the index of the size that is half their distance.
_STRETCHED = {
    GeomType.CAPSULE: 1,
    GeomType.CYLINDER: 1,
    GeomType.ELLIPSOID: 2,
    GeomType.BOX: 2,
}


@dataclass(frozen=True, eq=False)
class Geometry:
    """The geometry of a geom in its body.

    Attributes:
      kind: the type in the model; a primitive fitted to a mesh has the primitive's.
      size: MuJoCo's size parameters [m], (3,).
      pose: frame of the shape in the body.
      solid: mass distribution and bounds.
      dataid: id of the mesh or height field, -1 for a primitive.
      moved: pose of that frame in the frame of the element, None if they are equal.
    """

    kind: GeomType
    size: np.ndarray
    pose: FramePose
    solid: Solid
    dataid: int = -1
    moved: FramePose | None = None


def unknown_geometry(kind: GeomType) -> Geometry:
    """Return a placeholder for an invalid element, so that faults of others can still be
    reported."""
    return Geometry(kind, np.zeros(3), identity_pose(), Solid(0.0, np.zeros(3), np.zeros(6), 0.0))


def primitive_geometry(
    c: Compilation, element: SpecElement, kind: GeomType, shell: bool = False
) -> Geometry:
    """Return the geometry of a primitive with the size and pose of its element."""
    size, pose = size_and_pose(c, element, kind)
    check_size(c, element, kind, size)
    return Geometry(kind, size, pose, primitive(kind, size, shell))


def check_size(c: Compilation, element: SpecElement, kind: GeomType, size: np.ndarray) -> None:
    """Check that the sizes that a primitive needs are positive."""
    if kind in _SIZES:
        count, meaning = _SIZES[kind]
        if not np.all(size[:count] > 0):
            given = mjcf_numbers(size[:count])
            c.fault(element, f"size needs {meaning}, all positive; got '{given}'")
    elif not size[2] > 0:
        c.fault(
            element, "the third size of a plane, its grid spacing, must be positive, as in '0 0 1'"
        )


def size_and_pose(
    c: Compilation, element: SpecElement, kind: GeomType
) -> tuple[np.ndarray, FramePose]:
    """Return the three sizes and the pose, from `fromto` if it is given."""
    size = np.zeros(3)
    given = np.atleast_1d(element.get("size"))
    size[: len(given)] = given
    if element.get("fromto") is None:
        return size, pose_of(c, element)
    if kind not in _STRETCHED:
        c.fault(
            element, "fromto is for capsules, cylinders, boxes and ellipsoids; use pos and size"
        )
        return size, pose_of(c, element)
    pose, half = fromto(c, element)
    along = _STRETCHED[kind]
    size[1:along] = size[0]
    size[along] = half
    return size, pose
