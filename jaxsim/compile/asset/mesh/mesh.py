"""One mesh: from a surface as its file has it to the frame of its own mass.

The origin is in the center of mass and the axes are the principal axes of inertia, the largest
moment first; the mesh of a signed distance keeps the frame of that. Lengths in m.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jaxsim.assets.mesh.hull import Hull
from jaxsim.assets.mesh.mass import Mass, check_moments, check_orientation, shell, solid
from jaxsim.assets.mesh.normals import decided
from jaxsim.assets.mesh.surface import MeshSurface
from jaxsim.assets.mesh.triangles import units
from jaxsim.compile.geometry.pose import Pose, here
from jaxsim.compile.geometry.principal import principal_axes
from jaxsim.compile.geometry.quaternion import to_matrix
from jaxsim.enums import MINVAL
from jaxsim.errors import AssetError

# Products of inertia, relative to the largest moment, that leave a mesh as it is: MuJoCo's value,
# which keeps rounding errors of a file in single precision from turning a mesh that is aligned.
ALIGNED = 1e-7
SHORTEST_NORMAL = MINVAL**0.5  # from which on it has a direction, the oracle's
LARGEST = 1e30  # coordinate [m]; a bound of our own, well within single precision


@dataclass(frozen=True, eq=False)
class Placement:
    """How a mesh is moved before anything is worked out: p -> stretch (scale * R^T (p - refpos)).

    Attributes:
      refpos: origin in the file, (3,).
      refquat: orientation there, a unit quaternion, (4,).
      scale: factors along the new axes, none of them zero, (3,).
      stretch: what the frames around a geom do to it, (3, 3); None for nothing, or what `scale`
        has taken in.
    """

    refpos: np.ndarray
    refquat: np.ndarray
    scale: np.ndarray
    stretch: np.ndarray | None = None

    def point(self, p: np.ndarray) -> np.ndarray:
        """Return the points of the file (n, 3) in the new axes."""
        placed = ((p - self.refpos) @ to_matrix(self.refquat)) * self.scale
        return placed if self.stretch is None else placed @ self.stretch.T

    def normal(self, n: np.ndarray) -> np.ndarray:
        """Return the normals of the file (n, 3) in the new axes, not of unit length.

        They are covectors: a scale shrinks them where it stretches the surface.
        """
        placed = n @ (to_matrix(self.refquat) / self.scale)
        return placed if self.stretch is None else placed @ np.linalg.inv(self.stretch)

    @property
    def mirrors(self) -> bool:
        """Return whether the scale turns a surface inside out."""
        return bool(np.prod(np.sign(self.scale)) < 0)

    def turned(self, face: np.ndarray) -> np.ndarray:
        """Return the faces (n, 3) with the order of corners that leaves their outside where it
        was."""
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

    @property
    def normal(self) -> np.ndarray:
        """Return the unit normals of the surface, (nnormal, 3).

        The z axis after the placement stands for those that are without direction there.
        """
        placed = decided(self.placement.normal(self.surface.normal), SHORTEST_NORMAL)
        return placed @ to_matrix(self.pose.quat)

    def normals(self, normal: np.ndarray) -> np.ndarray:
        """Return the normals of sides (n, 3) in the mesh's own frame."""
        return units(self.placement.normal(normal) @ to_matrix(self.pose.quat))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper corner of the bounding box, (3,) each."""
        return self.vertex.min(axis=0), self.vertex.max(axis=0)


def make_mesh(
    surface: MeshSurface, placement: Placement, inertia: str, hull: bool, *, fixed: bool = False
) -> Mesh:
    """Work out a mesh.

    Args:
      surface: the surface in the frame of the file.
      placement: its scale and reference pose.
      inertia: what the mass is spread over: a key of `INERTIA`.
      hull: whether the hull is wanted; it is kept, too, where inertia or faces are made of it.
      fixed: whether the frame after the placement stays the mesh's own. Its moments are then taken
        for those about its origin and axes, as MuJoCo does.

    Raises:
      AssetError: the mesh has no such inertia, or no hull.
    """
    vertex = placement.point(surface.vertex)
    if not np.abs(vertex).max() <= LARGEST:
        raise AssetError(f"its coordinates are beyond {LARGEST:g} m; check its scale")
    over_hull, distribution = INERTIA[inertia]
    if hull:
        _ = surface.hull  # what has none is refused by that, whatever its inertia is made of
    face = surface.hull.face if over_hull else surface.face
    mass = distribution(vertex, placement.turned(face))
    moments, quat = principal_axes(mass.tensor, ALIGNED)
    check_moments(moments)
    pose = here() if fixed else Pose(mass.center, quat)
    kept = hull or over_hull or not len(surface.source.face)
    return Mesh(
        surface=surface,
        placement=placement,
        pose=pose,
        vertex=(vertex - pose.pos) @ to_matrix(pose.quat),
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
