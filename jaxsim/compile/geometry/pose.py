"""A pose: where a frame stands in another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxsim.compile.geometry.quaternion import IDENTITY, conjugate, multiply, rotate


class Pose(NamedTuple):
    """A frame relative to another: origin (3,) and unit quaternion (4,)."""

    pos: np.ndarray
    quat: np.ndarray

    def apply(self, inner: Pose) -> Pose:
        """Return a pose that is given in this frame, in the frame around it."""
        return Pose(self.point(inner.pos), multiply(self.quat, inner.quat))

    def point(self, p: np.ndarray) -> np.ndarray:
        """Return a point of this frame in the frame around it, (3,)."""
        return self.pos + rotate(self.quat, p)

    def inverse(self) -> Pose:
        """Return the outer frame as seen from this one."""
        back = conjugate(self.quat)
        return Pose(-rotate(back, self.pos), back)


def here() -> Pose:
    """Return the pose that changes nothing."""
    return Pose(np.zeros(3), IDENTITY.copy())
