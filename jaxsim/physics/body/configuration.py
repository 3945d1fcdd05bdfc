"""Integration of a configuration along a velocity, and the difference of two configurations.

Positions are a product of vector spaces and rotation groups: orientations move by the exponential
map.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.enums import JointType
from jaxsim.math import Quat, Vec
from jaxsim.model.model import Model
from jaxsim.model.shaped import Float
from jaxsim.model.structure import Structure
from jaxsim.physics.topology import joints_of


def integrate_pos(
    m: Model,
    qpos: Float[Array, "nq"],
    qvel: Float[Array, "nv"],
    dt: Float[Array, ""],
) -> Float[Array, "nq"]:
    """Integrate qpos at a constant velocity over a time; corresponds to `mj_integratePos`.

    Scalar coordinates move linearly; orientations rotate by the exponential of the angular
    velocity, which is given in the moving frame.

    Args:
      m: model.
      qpos: configuration `[nq, *W]`.
      qvel: velocity `[nv, *W]`.
      dt: time `[1, *W]`.

    Returns:
      Configuration `[nq, *W]`; quaternions are normalized.
    """
    s = m.structure
    step = qvel * dt
    if not len(joints_of(s, JointType.FREE, JointType.BALL)):
        return qpos + step
    # Linear coordinates take the step of their dof, quaternions are replaced below.
    dof, linear = _linear(s)
    moved = qpos + jnp.where(_mask(linear, qpos), gather_static(step, dof), 0)
    # Quaternions rotate by the exponential map.
    adr, first = quaternion_addresses(s)
    q = Quat(*(gather_static(qpos, adr + k) for k in range(4)))
    turn = Quat.from_rotation_vector(Vec(*(gather_static(step, first + k) for k in range(3))))
    turned = (q.normalize() * turn).normalize()
    return replace_items(moved, adr, turned.parts)


def differentiate_pos(
    m: Model,
    dt: Float[Array, ""],
    qpos1: Float[Array, "nq"],
    qpos2: Float[Array, "nq"],
) -> Float[Array, "nv"]:
    """Compute the velocity between two configurations over a time; `[nv, *W]`.

    The inverse of `integrate_pos`, by the shorter rotation. Corresponds to `mj_differentiatePos`.
    """
    # Linear coordinates: plain differences.
    s = m.structure
    adr_of_dof, linear = linear_dofs(s)
    out = jnp.where(
        _mask(linear, qpos1), gather_static(qpos2, adr_of_dof) - gather_static(qpos1, adr_of_dof), 0
    )
    if len(joints_of(s, JointType.FREE, JointType.BALL)):
        # Rotations: logarithm of the relative rotation, in the frame of the first.
        adr, first = quaternion_addresses(s)
        a = Quat(*(gather_static(qpos1, adr + k) for k in range(4))).normalize()
        b = Quat(*(gather_static(qpos2, adr + k) for k in range(4))).normalize()
        turn = (a.conj * b).rotation_vector()
        out = replace_items(out, first, turn.parts)
    return out / dt


def normalize_quat(m: Model, qpos: Float[Array, "nq"]) -> Float[Array, "nq"]:
    """Normalize all quaternions of a configuration, `[nq, *W]`; corresponds to `mj_normalizeQuat`.

    A quaternion shorter than MINVAL becomes the identity.
    """
    if not len(joints_of(m.structure, JointType.FREE, JointType.BALL)):
        return qpos
    adr, _ = quaternion_addresses(m.structure)
    q = Quat(*(gather_static(qpos, adr + k) for k in range(4)))
    return replace_items(qpos, adr, q.normalize().parts)


def displacement_rate(m: Model, step: Array, qvel: Array) -> Array:
    """Compute the rate of the displacement from a fixed configuration to a moving one, `[nv, *W]`.

    The configuration is `integrate_pos(m, qpos, step, 1)` and moves with `qvel`. Linear coordinates
    have step_dot = qvel. A rotation vector u, with omega in the moving frame, has

        u_dot = omega + u x omega / 2 + c(|u|) u x (u x omega),   c(r) = (1 - r/2 cot(r/2)) / r^2

    the inverse of the exponential's differential (Munthe-Kaas, *Runge-Kutta methods on Lie groups*,
    BIT 38, 1998).

    Args:
      m: model.
      step: displacement `[nv, *W]`.
      qvel: velocity `[nv, *W]`.

    Returns:
      Rate of `step`, `[nv, *W]`.
    """
    s = m.structure
    if not len(joints_of(s, JointType.FREE, JointType.BALL)):
        return qvel
    # Displacement u and velocity omega of each rotation.
    _, first = quaternion_addresses(s)
    u, omega = (Vec(*(gather_static(x, first + k) for k in range(3))) for x in (step, qvel))
    square = u.dot(u)
    # c(r), by its power series near 0.
    small = square < 1e-3
    half = 0.5 * jnp.sqrt(jnp.where(small, 1.0, square))
    series = 1 / 12 + square / 720 + square * square / 30240
    c = jnp.where(small, series, (1 - half / jnp.tan(half)) / jnp.where(small, 1.0, square))
    # u_dot by the inverse differential of the exponential.
    across = u.cross(omega)
    rate = omega + across.scale(0.5) + u.cross(across).scale(c)
    return replace_items(qvel, first, rate.parts)


def replace_items(x: Array, first: np.ndarray, parts: list[Array] | tuple) -> Array:
    """Replace items `first + k` of `x` by part k, as a gather, which costs less than a scatter."""
    # Gather table that selects the new items.
    n, count = x.shape[0], len(first)
    source = np.arange(n)
    for k in range(len(parts)):
        source[first + k] = n + k * count + np.arange(count)
    return gather_static(jnp.concatenate([x, *parts]), source)


def quaternion_addresses(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Return addresses of the quaternions in qpos and of their angular velocities in qvel."""
    joint = joints_of(s, JointType.FREE, JointType.BALL)
    free = 3 * (s.jnt_type[joint] == JointType.FREE)
    return s.jnt_qposadr[joint] + free, s.jnt_dofadr[joint] + free


def _linear(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Return the dof of each coordinate, and a mask of the linear coordinates."""
    # Address of each coordinate's dof; quaternions have no linear dof.
    dof, linear = np.zeros(s.nq, int), np.ones(s.nq, bool)
    for j in range(s.njnt):
        q, v = s.jnt_qposadr[j], s.jnt_dofadr[j]
        n = 3 if s.jnt_type[j] == JointType.FREE else 1
        dof[q : q + n] = v + np.arange(n)
        quat = {JointType.FREE: q + 3, JointType.BALL: q}.get(JointType(s.jnt_type[j]))
        if quat is not None:
            linear[quat : quat + 4] = False
    return dof, linear


def linear_dofs(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinate of each dof, and a mask of the dofs with a linear coordinate."""
    dof, linear = _linear(s)
    adr, moves = np.zeros(s.nv, int), np.zeros(s.nv, bool)
    adr[dof[linear]] = np.flatnonzero(linear)
    moves[dof[linear]] = True
    return adr, moves


def _mask(table: np.ndarray, like: Array) -> np.ndarray:
    return table.reshape(-1, *(1,) * (like.ndim - 1))
