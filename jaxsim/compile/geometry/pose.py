"""The pose of a frame in another one, and of a tree of frames in the world."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxsim.math.quaternion import IDENTITY, quat_conjugate, quat_multiply, quat_rotate


class FramePose(NamedTuple):
    """A frame relative to another: origin (3,) and unit quaternion (4,)."""

    pos: np.ndarray
    quat: np.ndarray

    def apply(self, inner: FramePose) -> FramePose:
        """Return a pose given in this frame as a pose in the outer frame."""
        return FramePose(self.point(inner.pos), quat_multiply(self.quat, inner.quat))

    def point(self, p: np.ndarray) -> np.ndarray:
        """Return a point of this frame in the outer frame, (3,)."""
        return self.pos + quat_rotate(self.quat, p)

    def inverse(self) -> FramePose:
        """Return the pose of the outer frame in this one."""
        back = quat_conjugate(self.quat)
        return FramePose(-quat_rotate(back, self.pos), back)


def identity_pose() -> FramePose:
    """Return the identity pose."""
    return FramePose(np.zeros(3), IDENTITY.copy())


def chain_poses(
    parents: np.ndarray, pos: np.ndarray, quat: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the world positions (n, 3) and orientations (n, 4) of frames given in their parents.

    Parents precede their children; the first frame is the world.
    """
    xpos, xquat = np.zeros_like(pos), quat.copy()
    for frame, parent in enumerate(parents):
        if frame:
            xpos[frame] = xpos[parent] + quat_rotate(xquat[parent], pos[frame])
            xquat[frame] = quat_multiply(xquat[parent], quat[frame])
    return xpos, xquat
