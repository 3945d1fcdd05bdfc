"""Points fixed in bodies: how fast each dof moves them, and their acceleration at qacc = 0."""

import numpy as np

from jaxsim.data import Data
from jaxsim.math import Spatial, Vec
from jaxsim.model import Model
from jaxsim.physics.layout import ancestors
from jaxsim.physics.tree import column, take, weighted_sum


def point_jacobian(m: Model, d: Data, body: np.ndarray, point: Vec) -> tuple[Vec, Vec]:
    """Velocity of points, and angular velocity of their bodies, per unit speed of each dof.

    Args:
      m: model.
      d: data with cdof and subtree_com.
      body: constant `[n]` body of each point.
      point: position in the world `[n, *W]`.

    Returns:
      Linear [m or m/rad] and angular [rad/m or 1] columns in world axes, each `[n, nv, *W]`.
    """
    origin = take(d.subtree_com, m.body_rootid[m.dof_bodyid])
    arm = Vec(*(p[:, None] - o[None] for p, o in zip(point.parts, origin.parts, strict=True)))
    axis = Spatial(*(a[None] for a in d.cdof.parts))
    moves = column(ancestors(m)[body], point)
    return axis.at(arm).scale(moves), axis.rot.scale(moves)


def point_drift(m: Model, d: Data, body: np.ndarray, point: Vec) -> tuple[Vec, Vec]:
    """Acceleration of points and angular acceleration of their bodies at qacc = 0: J-dot qvel.

        linear = a + alpha x r + omega x v,   r from the reference point of (alpha, a) to the point

    Args and frames as in `point_jacobian`; `d` has cvel and cdof_dot too.

    Returns:
      Linear [m/s^2] and angular [rad/s^2] acceleration, each `[n, *W]`.
    """
    arm = point - take(d.subtree_com, m.body_rootid[body])
    acceleration = weighted_sum(ancestors(m)[body], d.cdof_dot.scale(d.qvel))
    velocity = take(d.cvel, body)
    return acceleration.at(arm) + velocity.rot.cross(velocity.at(arm)), acceleration.rot
