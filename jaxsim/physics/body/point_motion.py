"""Motion of points fixed in bodies: Jacobian, velocity and velocity-dependent acceleration."""

from typing import NamedTuple

import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather, gather_static, weighted_sum
from jaxsim.math import Spatial, Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.topology import ancestors


class PointMotion(NamedTuple):
    """Kinematics of n vectors x in world axes: x' = J qvel, x'' = J qacc + drift.

    Attributes:
      J: `[n, nv, *W]`.
      velocity: J qvel, `[n, *W]`.
      drift: J-dot qvel, `[n, *W]`.
    """

    J: Vec
    velocity: Vec
    drift: Vec


def point_motion(
    m: Model, d: Data, body: np.ndarray, point: Vec
) -> tuple[PointMotion, PointMotion]:
    """Compute the motion of points, and the rotation of their bodies.

        velocity v = u + w x r,   r from the reference point of the body's twist (w, u) to the point
        drift      = a + alpha x r + w x v,   (alpha, a) the sum of cdof_dot qvel over moving dofs

    Args:
      m: model.
      d: data with cdof, cdof_dot, cvel and subtree_com.
      body: constant `[n]` body of each point.
      point: position in the world `[n, *W]`.

    Returns:
      Linear [m, s] and angular [rad, s] motion.
    """
    # Jacobians of the points.
    linear, angular = point_jacobian(m, d, body, point)
    moves = ancestors(m)[body]
    arm = point - gather_static(d.subtree_com, m.body_rootid[body])
    twist = gather_static(d.cvel, body)
    velocity = twist.at(arm)
    # Sum of cdof_dot qvel over the moving dofs.
    drift = weighted_sum(moves, d.cdof_dot.scale(d.qvel))
    linear_drift = drift.at(arm) + twist.rot.cross(velocity)
    return PointMotion(linear, velocity, linear_drift), PointMotion(angular, twist.rot, drift.rot)


def point_jacobian(m: Model, d: Data, body: np.ndarray, point: Vec) -> tuple[Vec, Vec]:
    """Compute Jacobians of points, and of the rotation of their bodies; corresponds to `mj_jac`.

    Args:
      m: model.
      d: data with cdof and subtree_com.
      body: constant `[n]` body of each point.
      point: position in the world `[n, *W]`.

    Returns:
      Linear and angular velocity per unit velocity of each dof, `[n, nv, *W]`.
    """
    # Motion axes at the points, masked by the dofs that move each body.
    origin = gather_static(d.subtree_com, m.body_rootid[m.dof_bodyid])
    arms = Vec(*(p[:, None] - o[None] for p, o in zip(point.parts, origin.parts, strict=True)))
    axis = Spatial(*(a[None] for a in d.cdof.parts))
    mask = column(ancestors(m)[body], point)
    return axis.at(arms).scale(mask), axis.rot.scale(mask)


def chosen_velocity(m: Model, d: Data, body: Array, point: Vec) -> Spatial:
    """Return velocities of points on bodies of each world's own, and angular velocities.

    Args:
      m: model.
      d: data with cvel and subtree_com.
      body: int `[n, *W]`.
      point: position in the world `[n, *W]`.
    """
    v, root = gather(d.cvel, body), gather_static(d.subtree_com, m.body_rootid)
    return Spatial.of(v.rot, v.at(point - gather(root, body)))
