"""Convert the surface of a mesh from the frame of its file to its inertial frame.

The origin is the center of mass and the axes are the principal axes of inertia, largest moment
first; the mesh of a signed distance keeps the frame of that function. Lengths in m.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jaxsim.assets.mesh.hull import Hull
from jaxsim.assets.mesh.mass import Mass, check_moments, check_orientation, shell, solid
from jaxsim.assets.mesh.normals import normalize_or_z
from jaxsim.assets.mesh.surface import MeshSurface
from jaxsim.assets.mesh.triangles import normalize_rows
from jaxsim.compile.geometry.pose import FramePose, identity_pose
from jaxsim.compile.geometry.principal import principal_axes
from jaxsim.enums import MINVAL
from jaxsim.errors import AssetError
from jaxsim.math.quaternion import quat_to_matrix

# Products of inertia, relative to the largest moment, below which a mesh is not rotated: MuJoCo's
# value, so that rounding errors of single-precision files do not rotate an aligned mesh.
_ALIGNED_TOLERANCE = 1e-7
_MIN_NORMAL_LENGTH = MINVAL**0.5  # shortest normal that has a direction, as in MuJoCo
_MAX_COORDINATE = 1e30  # largest coordinate [m]; our own bound, well within single precision


@dataclass(frozen=True, eq=False)
class MeshPlacement:
    """Initial transformation of a mesh: p -> stretch (scale * R^T (p - refpos)).

    Attributes:
      refpos: origin in the file, (3,).
      refquat: orientation in the file, a unit quaternion, (4,).
      scale: nonzero factors along the new axes, (3,).
      stretch: linear map of the frames around a geom, (3, 3); None for the identity, or if it is
        part of `scale`.
    """

    refpos: np.ndarray
    refquat: np.ndarray
    scale: np.ndarray
    stretch: np.ndarray | None = None

    def point(self, p: np.ndarray) -> np.ndarray:
        """Return the points of the file (n, 3) in the new axes."""
        placed = ((p - self.refpos) @ quat_to_matrix(self.refquat)) * self.scale
        return placed if self.stretch is None else placed @ self.stretch.T

    def normal(self, n: np.ndarray) -> np.ndarray:
        """Return the normals of the file (n, 3) in the new axes, not of unit length.

        Normals are covectors: they scale inversely to the surface.
        """
        placed = n @ (quat_to_matrix(self.refquat) / self.scale)
        return placed if self.stretch is None else placed @ np.linalg.inv(self.stretch)

    @property
    def mirrors(self) -> bool:
        """Return whether the scale inverts the orientation of a surface."""
        return bool(np.prod(np.sign(self.scale)) < 0)

    def orient_faces(self, face: np.ndarray) -> np.ndarray:
        """Return the faces (n, 3) with the vertex order that keeps their outside."""
        return face[:, [0, 2, 1]] if self.mirrors else face


@dataclass(frozen=True, eq=False)
class Mesh:
    """A mesh in its own frame.

    Attributes:
      surface: its surface, as in the file.
      placement: the initial transformation.
      pose: the mesh's own frame in the frame after the placement.
      vertex: positions, (nvert, 3).
      content: volume [m^3], or area [m^2] of a shell.
      moments: principal moments per mass [m^2], descending, (3,).
      hull: the convex hull of the surface, None if it is not needed.
    """

    surface: MeshSurface
    placement: MeshPlacement
    pose: FramePose
    vertex: np.ndarray
    content: float
    moments: np.ndarray
    hull: Hull | None

    @property
    def normal(self) -> np.ndarray:
        """Return the unit normals of the surface, (nnormal, 3).

        Degenerate normals are replaced by the z axis after the placement.
        """
        placed = normalize_or_z(self.placement.normal(self.surface.normal), _MIN_NORMAL_LENGTH)
        return placed @ quat_to_matrix(self.pose.quat)

    def normals(self, normal: np.ndarray) -> np.ndarray:
        """Return face normals (n, 3) in the mesh's own frame."""
        return normalize_rows(self.placement.normal(normal) @ quat_to_matrix(self.pose.quat))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper corner of the bounding box, (3,) each."""
        return self.vertex.min(axis=0), self.vertex.max(axis=0)


def make_mesh(
    surface: MeshSurface, placement: MeshPlacement, inertia: str, hull: bool, *, fixed: bool = False
) -> Mesh:
    """Return a mesh in its own frame, with its mass properties.

    Args:
      surface: the surface in the frame of the file.
      placement: its scale and reference pose.
      inertia: mass distribution: a key of `_INERTIA_MODES`.
      hull: whether the hull is needed; it is also kept if inertia or faces are made of it.
      fixed: whether the frame after the placement is kept as the mesh's own. Its moments are then
        taken about its origin and axes, as in MuJoCo.

    Raises:
      AssetError: the mesh has no such inertia, or no hull.
    """
    vertex = placement.point(surface.vertex)
    if not np.abs(vertex).max() <= _MAX_COORDINATE:
        raise AssetError(f"its coordinates are beyond {_MAX_COORDINATE:g} m; check its scale")
    over_hull, distribution = _INERTIA_MODES[inertia]
    if hull:
        _ = surface.hull  # raises if there is no hull, whatever the inertia is made of
    face = surface.hull.face if over_hull else surface.face
    mass = distribution(vertex, placement.orient_faces(face))
    moments, quat = principal_axes(mass.tensor, _ALIGNED_TOLERANCE)
    check_moments(moments)
    pose = identity_pose() if fixed else FramePose(mass.center, quat)
    kept = hull or over_hull or not len(surface.source.face)
    return Mesh(
        surface=surface,
        placement=placement,
        pose=pose,
        vertex=(vertex - pose.pos) @ quat_to_matrix(pose.quat),
        content=mass.content,
        moments=moments / mass.content,
        hull=surface.hull if kept else None,
    )


def _exact_mass(vertex: np.ndarray, face: np.ndarray) -> Mass:
    check_orientation(face)
    return solid(vertex, face, signed=True)


def _hull_mass(vertex: np.ndarray, face: np.ndarray) -> Mass:
    return solid(vertex, face, signed=True)


def _legacy_mass(vertex: np.ndarray, face: np.ndarray) -> Mass:
    return solid(vertex, face, signed=False)


# For each keyword of `inertia`: whether to use the faces of the hull, and the function of mass
# properties.
_INERTIA_MODES: dict[str, tuple[bool, Callable[[np.ndarray, np.ndarray], Mass]]] = {
    "convex": (True, _hull_mass),
    "exact": (False, _exact_mass),
    "legacy": (False, _legacy_mass),
    "shell": (False, shell),
}
