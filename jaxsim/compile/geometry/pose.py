"""The pose of a frame in another one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxsim.compile.geometry.quaternion import IDENTITY, conjugate, multiply, rotate


class Pose(NamedTuple):
    """A frame relative to another: origin (3,) and unit quaternion (4,)."""

    pos: np.ndarray
    quat: np.ndarray

    def apply(self, inner: Pose) -> Pose:
        """Return a pose given in this frame as a pose in the outer frame."""
        return Pose(self.point(inner.pos), multiply(self.quat, inner.quat))

    def point(self, p: np.ndarray) -> np.ndarray:
        """Return a point of this frame in the outer frame, (3,)."""
        return self.pos + rotate(self.quat, p)

    def inverse(self) -> Pose:
        """Return the pose of the outer frame in this one."""
        back = conjugate(self.quat)
        return Pose(-rotate(back, self.pos), back)


def here() -> Pose:
    """Return the identity pose."""
    return Pose(np.zeros(3), IDENTITY.copy())
