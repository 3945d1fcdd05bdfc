"""One mesh: from a surface as its file has it to the frame of its own mass.

The origin is in the center of mass and the axes are the principal axes of inertia, the largest
moment first. Lengths in m.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jaxsim.assets.mesh.hull import Hull
from jaxsim.assets.mesh.mass import Mass, check_moments, check_orientation, shell, solid
from jaxsim.assets.mesh.surface import MeshSurface
from jaxsim.assets.mesh.triangles import units
from jaxsim.compile.pose import Pose
from jaxsim.compile.principal import principal_axes
from jaxsim.compile.quaternion import to_matrix
from jaxsim.errors import AssetError

# Products of inertia, relative to the largest moment, that leave a mesh as it is: MuJoCo's value,
# which keeps rounding errors of a file in single precision from turning a mesh that is aligned.
ALIGNED = 1e-7
LARGEST = 1e30  # coordinate [m]; a bound of our own, well within single precision


@dataclass(frozen=True, eq=False)
class Placement:
    """How a mesh is moved before anything is worked out: p -> scale * R^T (p - refpos).

    Attributes:
      refpos: origin in the file, (3,).
      refquat: orientation there, a unit quaternion, (4,).
      scale: factors along the new axes, none of them zero, (3,).
    """

    refpos: np.ndarray
    refquat: np.ndarray
    scale: np.ndarray

    @property
    def mirrors(self) -> bool:
        """Whether the scale turns a surface inside out."""
        return bool(np.prod(np.sign(self.scale)) < 0)

    def turned(self, face: np.ndarray) -> np.ndarray:
        """Faces (n, 3) with the order of corners that leaves their outside where it was."""
        return face[:, [0, 2, 1]] if self.mirrors else face


@dataclass(frozen=True, eq=False)
class Mesh:
    """A mesh in its own frame.

    Attributes:
      surface: what it is made of, as the file has it.
      placement: how that was moved and scaled.
      pose: the mesh's own frame in the frame after the placement.
      vertex: positions, (nvert, 3).
      content: volume [m^3], or area [m^2] of a shell.
      moments: principal moments per mass [m^2], falling, (3,).
      hull: the convex hull of the surface, None where nothing needs it.
    """

    surface: MeshSurface
    placement: Placement
    pose: Pose
    vertex: np.ndarray
    content: float
    moments: np.ndarray
    hull: Hull | None

    def normals(self, normal: np.ndarray) -> np.ndarray:
        """Normals of the surface (n, 3) in the mesh's own frame.

        They are covectors: a scale shrinks them where it stretches the surface.
        """
        scaled = normal @ (to_matrix(self.placement.refquat) / self.placement.scale)
        return units(scaled @ to_matrix(self.pose.quat))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of the bounding box, (3,) each."""
        return self.vertex.min(axis=0), self.vertex.max(axis=0)


def make_mesh(surface: MeshSurface, placement: Placement, inertia: str, hull: bool) -> Mesh:
    """Works out a mesh.

    Args:
      surface: the surface in the frame of the file.
      placement: its scale and reference pose.
      inertia: what the mass is spread over: a key of `INERTIA`.
      hull: whether the hull is wanted; it is kept, too, where inertia or faces are made of it.

    Raises:
      AssetError: the mesh has no such inertia, or no hull.
    """
    R = to_matrix(placement.refquat)
    vertex = ((surface.vertex - placement.refpos) @ R) * placement.scale
    if not np.abs(vertex).max() <= LARGEST:
        raise AssetError(f"its coordinates are beyond {LARGEST:g} m; check its scale")
    over_hull, distribution = INERTIA[inertia]
    face = surface.hull.face if over_hull else surface.face
    mass = distribution(vertex, placement.turned(face))
    moments, quat = principal_axes(mass.tensor, ALIGNED)
    check_moments(moments)
    kept = hull or over_hull or not len(surface.source.face)
    return Mesh(
        surface=surface,
        placement=placement,
        pose=Pose(mass.center, quat),
        vertex=(vertex - mass.center) @ to_matrix(quat),
        content=mass.content,
        moments=moments / mass.content,
        hull=surface.hull if kept else None,
    )


def _exact(vertex: np.ndarray, face: np.ndarray) -> Mass:
    check_orientation(face)
    return solid(vertex, face, signed=True)


def _hull(vertex: np.ndarray, face: np.ndarray) -> Mass:
    return solid(vertex, face, signed=True)


def _legacy(vertex: np.ndarray, face: np.ndarray) -> Mass:
    return solid(vertex, face, signed=False)


# By keyword of `inertia`: whether the faces are those of the hull, and what they make up.
INERTIA: dict[str, tuple[bool, Callable[[np.ndarray, np.ndarray], Mass]]] = {
    "convex": (True, _hull),
    "exact": (False, _exact),
    "legacy": (False, _legacy),
    "shell": (False, shell),
}
