"""Velocities of joints as slopes of lines through samples of their positions.

Quaternions of balls and free joints are compared in the tangent space of one of them: the line is
fitted to rotation vectors relative to the sample in the middle. A rotation between the samples is
below half a revolution at any rate that can measure it.
"""

import numpy as np

from jaxsim.enums import JointType
from jaxsim.identify.signals import QPOS_WIDTHS, QVEL_WIDTHS
from jaxsim.model.model import Model

# Squared sine of a half angle below which a rotation vector is twice the vector of its quaternion.
_SMALL_SINE = 1e-24


def joint_slices(m: Model, joint: int) -> tuple[slice, slice]:
    """Return the positions and the velocities of a joint, in qpos and in qvel."""
    kind = int(m.jnt_type[joint])
    q, v = int(m.jnt_qposadr[joint]), int(m.jnt_dofadr[joint])
    return slice(q, q + QPOS_WIDTHS[kind]), slice(v, v + QVEL_WIDTHS[kind])


def line_velocity(m: Model, joint: int, times: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return the velocity of a joint as the slope of a line through samples, (dofs,).

    Args:
      m: the model.
      joint: id of the joint.
      times: times of the samples, (n,), two or more.
      positions: positions of the joint at these times, (n, width). Angular velocities are in the
        frame of the middle sample, as in qvel.

    Example:
      >>> import numpy as np
      >>> angles = np.array([[0.0], [0.1], [0.2]])
      >>> line_velocity(m, 0, np.array([0.0, 1.0, 2.0]), angles).round(3).tolist()
      [0.1]
    """
    kind = JointType(int(m.jnt_type[joint]))
    if kind == JointType.FREE:
        moved = np.concatenate([positions[:, :3], _rotation_vectors(positions[:, 3:])], 1)
    else:
        moved = _rotation_vectors(positions) if kind == JointType.BALL else positions
    centered = times - times.mean()
    slope: np.ndarray = centered @ moved / (centered @ centered)
    return slope


def _rotation_vectors(quats: np.ndarray) -> np.ndarray:
    """Return rotation vectors relative to the middle one of quaternions, in its frame, (n, 3)."""
    quats = quats / np.linalg.norm(quats, axis=1, keepdims=True)
    w, x, y, z = quats[len(quats) // 2] * [1, -1, -1, -1]
    inverse = np.array([[w, -x, -y, -z], [x, w, -z, y], [y, z, w, -x], [z, -y, x, w]])
    relative = quats @ inverse.T
    # both signs of a quaternion are the same rotation; take the shorter one
    relative = relative * np.where(relative[:, :1] < 0, -1, 1)
    sine2 = np.sum(relative[:, 1:] ** 2, axis=1, keepdims=True)
    sine = np.sqrt(np.maximum(sine2, _SMALL_SINE))
    factor = np.where(sine2 > _SMALL_SINE, 2 * np.arctan2(sine, relative[:, :1]) / sine, 2)
    vectors: np.ndarray = factor * relative[:, 1:]
    return vectors
