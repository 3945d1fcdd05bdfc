"""The pose of a frame in another one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxsim.compile.geometry.quaternion import IDENTITY, quat_conjugate, quat_multiply, quat_rotate


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
