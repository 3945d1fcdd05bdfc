"""Jacobians of points fixed in bodies, and of the momentum of subtrees, from the state alone.

A Jacobian is (nv, 3): a row is the velocity caused by unit velocity of one dof, in world axes.
MuJoCo's is (3, nv). Body or object ids may be traced and differ between worlds; for points whose
bodies are static see `body/point_motion.py`.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather, gather_static, weighted_sum
from jaxsim.enums import MINVAL
from jaxsim.math import Spatial, Vec, select_where
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.shaped import Float, Int
from jaxsim.physics.body.inertia import com_pos, motion_axes
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.body.point_motion import chosen_velocity
from jaxsim.physics.body.rne import com_vel
from jaxsim.physics.topology import ancestors, descendants, dofs_carrying


def jac(
    m: Model, d: Data, point: Float[Array, "3"], body: Int[Array, ""]
) -> tuple[Float[Array, "nv 3"], Float[Array, "nv 3"]]:
    """Compute the Jacobian of a point that moves with a body; corresponds to `mj_jac`.

    Args:
      m: model.
      d: data, of which qpos and the poses of mocap bodies are used.
      point: position in the world, (3,) [m].
      body: id or name of the body.

    Returns:
      jacp (nv, 3), jacr (nv, 3): velocity of the point and angular velocity of the body in world
      axes, per unit velocity of each dof.
    """
    d = com_pos(m, kinematics(m, d))
    return _columns(m, d, _vec(point), body)


def jac_of_poses(m: Model, d: Data, point: Array, body: Array) -> tuple[Array, Array]:
    """Compute `jac` at the poses stored in `d`, not at its qpos (after a step: before it)."""
    axes = motion_axes(m, d, gather_static(d.subtree_com, m.body_rootid))
    return _columns(m, d.replace(cdof=axes), _vec(point), body)


def jac_body(
    m: Model, d: Data, body: Int[Array, ""]
) -> tuple[Float[Array, "nv 3"], Float[Array, "nv 3"]]:
    """Compute the Jacobian of the origin of a body's frame; returns as `jac`."""
    return _object_jacobian(m, d, "xpos", np.arange(m.nbody), body)


def jac_body_com(
    m: Model, d: Data, body: Int[Array, ""]
) -> tuple[Float[Array, "nv 3"], Float[Array, "nv 3"]]:
    """Compute the Jacobian of a body's center of mass; returns as `jac`."""
    return _object_jacobian(m, d, "xipos", np.arange(m.nbody), body)


def jac_geom(
    m: Model, d: Data, geom: Int[Array, ""]
) -> tuple[Float[Array, "nv 3"], Float[Array, "nv 3"]]:
    """Compute the Jacobian of a geom's center; returns as `jac`."""
    return _object_jacobian(m, d, "geom_xpos", m.geom_bodyid, geom)


def jac_site(
    m: Model, d: Data, site: Int[Array, ""]
) -> tuple[Float[Array, "nv 3"], Float[Array, "nv 3"]]:
    """Compute the Jacobian of a site; returns as `jac`."""
    return _object_jacobian(m, d, "site_xpos", m.site_bodyid, site)


def jac_point_axis(
    m: Model,
    d: Data,
    point: Float[Array, "3"],
    axis: Float[Array, "3"],
    body: Int[Array, ""],
) -> tuple[Float[Array, "nv 3"], Float[Array, "nv 3"]]:
    """Compute the Jacobians of a point and of an axis that move with a body; `mj_jacPointAxis`.

    Args:
      m: model.
      d: data, of which qpos and the poses of mocap bodies are used.
      point: position in the world, (3,) [m].
      axis: vector in world axes, (3,), of any length.
      body: id or name of the body.

    Returns:
      jac_point (nv, 3), jac_axis (nv, 3): velocity of the point, and rate of change of the axis,
      per unit velocity of each dof.
    """
    d = com_pos(m, kinematics(m, d))
    linear, angular = _dof_twists(m, d, _vec(point), body)
    return linear.to_array(), angular.cross(_vec(axis)).to_array()


def jac_dot(
    m: Model, d: Data, point: Float[Array, "3"], body: Int[Array, ""]
) -> tuple[Float[Array, "nv 3"], Float[Array, "nv 3"]]:
    """Compute the time derivative of `jac` at `d.qpos` and `d.qvel`; corresponds to `mj_jacDot`.

    With the spatial axis S of a dof, carried by the velocity v, and the velocity p' of the point at
    p relative to the reference point of S:

        S' = v x S,   jacp' = S'_lin + S'_rot x p + S_rot x p',   jacr' = S'_rot

    The acceleration of the point is `jacp.T @ qacc + jacp_dot.T @ qvel`.

    Args:
      m: model.
      d: data, of which qpos, qvel and the poses of mocap bodies are used.
      point: position in the world, (3,) [m].
      body: id or name of the body.

    Returns:
      jacp (nv, 3), jacr (nv, 3), in the units of `jac` per second.
    """
    d = com_vel(m, com_pos(m, kinematics(m, d)))
    p = _vec(point)
    # Velocity of the body that each dof axis is carried by.
    carrier = weighted_sum(dofs_carrying(m), d.cdof.scale(d.qvel))
    rate = carrier.cross_motion(d.cdof)
    velocity = chosen_velocity(m, d, body, p).lin
    # Product rule, for the dofs that move the body.
    arm, moves = _arm(m, d, p), _moving_dofs(m, body, p)
    linear = rate.at(arm) + d.cdof.rot.cross(velocity)
    return linear.scale(moves).to_array(), rate.rot.scale(moves).to_array()


def apply_ft(
    m: Model,
    d: Data,
    force: Float[Array, "3"],
    torque: Float[Array, "3"],
    point: Float[Array, "3"],
    body: Int[Array, ""],
    qfrc_target: Float[Array, "nv"],
) -> Float[Array, "nv"]:
    """Add the generalized force of a force and a torque on a body; corresponds to `mj_applyFT`.

        qfrc_target + jacp force + jacr torque

    Args:
      m: model.
      d: data, of which qpos and the poses of mocap bodies are used.
      force: in world axes, (3,) [N].
      torque: in world axes, (3,) [N m].
      point: point of application, in the world, (3,) [m].
      body: id or name of the body.
      qfrc_target: generalized force to which it is added, (nv,), such as `d.qfrc_applied`.

    Returns:
      (nv,) [N or N m].
    """
    d = com_pos(m, kinematics(m, d))
    linear, angular = _dof_twists(m, d, _vec(point), body)
    return qfrc_target + linear.dot(_vec(force)) + angular.dot(_vec(torque))


def jac_subtree_com(m: Model, d: Data, body: Int[Array, ""]) -> Float[Array, "nv 3"]:
    """Compute the Jacobian of the center of mass of a body's subtree; `mj_jacSubtreeCom`.

    Args:
      m: model.
      d: data, of which qpos and the poses of mocap bodies are used.
      body: id of the body; 0 is the whole model.

    Returns:
      (nv, 3): velocity of `subtree_com` in world axes, per unit velocity of each dof. For a
      massless subtree it is that of the body's own center, as in `subtree_com` (MuJoCo: NaN).
    """
    d, momentum, mass = _momentum(m, d, body)
    heavy = mass > MINVAL
    # A massless subtree follows the body's own center.
    own, _ = _dof_twists(m, d, gather(d.xipos, body), body)
    center = momentum.lin.scale(1 / jnp.where(heavy, mass, 1.0))
    return select_where(heavy, center, own).to_array()


def angmom_mat(m: Model, d: Data, body: Int[Array, ""]) -> Float[Array, "nv 3"]:
    """Compute the angular momentum matrix of a body's subtree, about its center of mass.

    Corresponds to `mj_angmomMat` in MuJoCo.

    Args:
      m: model.
      d: data, of which qpos and the poses of mocap bodies are used.
      body: id of the body; 0 is the whole model.

    Returns:
      (nv, 3) [kg m^2/s]: in world axes, per unit velocity of each dof; `angmom_mat(...).T @ qvel`
      is the `subtree_angmom` of the body.
    """
    d, momentum, _ = _momentum(m, d, body)
    # Shift the reference point from the tree's to the subtree's center of mass.
    offset = gather(d.subtree_com, body) - gather_static(d.subtree_com, m.body_rootid[m.dof_bodyid])
    return (momentum.rot - offset.cross(momentum.lin)).to_array()


def _momentum(m: Model, d: Data, body: Array) -> tuple[Data, Spatial, Array]:
    """Compute a subtree's momentum per unit velocity of each dof, `[nv, *W]`, and its mass.

    Angular momentum is about the center of mass of each dof's tree. A dof in the subtree moves the
    bodies below it, a dof above the subtree all of it.
    """
    d = com_pos(m, kinematics(m, d))
    # Composite inertia of every subtree, and that of the requested one.
    composite = weighted_sum(descendants(m), d.cinert)
    whole = gather(composite, body)
    here = _one_hot(m, body, d.qpos)
    # Dofs within the subtree move what is below them; dofs above move the whole subtree.
    inside = weighted_sum(descendants(m).T[m.dof_bodyid], here) > 0
    above = weighted_sum(ancestors(m).T, here)
    below = gather_static(composite, m.dof_bodyid)
    spread = whole.map(lambda a: jnp.broadcast_to(a, below.shape))
    momentum = select_where(inside, below, spread.scale(above)) @ d.cdof
    return d, momentum, whole.mass


def _object_jacobian(
    m: Model, d: Data, positions: str, bodies: np.ndarray, index: Array
) -> tuple[Array, Array]:
    d = com_pos(m, kinematics(m, d))
    body = gather(jnp.asarray(column(bodies.astype(np.int32), index)), index)
    return _columns(m, d, gather(getattr(d, positions), index), body)


def _columns(m: Model, d: Data, point: Vec, body: Array) -> tuple[Array, Array]:
    """Compute jacp and jacr `[nv, 3, *W]` of a point `[1, *W]` of a body, int `[1, *W]`."""
    linear, angular = _dof_twists(m, d, point, body)
    return linear.to_array(), angular.to_array()


def _dof_twists(m: Model, d: Data, point: Vec, body: Array) -> tuple[Vec, Vec]:
    """Compute velocity of the point and angular velocity of the body per dof, `[nv, *W]`."""
    moves = _moving_dofs(m, body, point)
    return d.cdof.at(_arm(m, d, point)).scale(moves), d.cdof.rot.scale(moves)


def _arm(m: Model, d: Data, point: Vec) -> Vec:
    """Return the vectors from each dof's reference point to a point, `[nv, *W]`."""
    return point - gather_static(d.subtree_com, m.body_rootid[m.dof_bodyid])


def _moving_dofs(m: Model, body: Array, like: Vec) -> Array:
    """Return 1 for the dofs that move the body, `[nv, *W]`."""
    return weighted_sum(ancestors(m).T, _one_hot(m, body, like.x))


def _one_hot(m: Model, body: Array, like: Array) -> Array:
    """Return the one-hot vector of each world's body, `[nbody, *W]`."""
    return (column(np.arange(m.nbody, dtype=np.int32), body) == body).astype(like.dtype)


def _vec(x: Array) -> Vec:
    """Return a vector `[3, *W]` as one item of components `[1, *W]`."""
    return Vec(*(x[k : k + 1] for k in range(3)))
