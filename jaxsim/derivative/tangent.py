"""Tangent coordinates of a state: a small vector relative to another state.

Configurations contain quaternions, so that states cannot be subtracted. Derivatives and feedback
use MuJoCo's tangent coordinates instead,

    dx = (dq, dqvel, dact),   (nv + nv + na,)

where dq is a velocity held for one second. Time, controls and the solver's warm start are excluded.
"""

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.enums import JointType
from jaxsim.math import Quat
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.record.check import brief_value
from jaxsim.physics.body.configuration import (
    differentiate_pos,
    integrate_pos,
    linear_dofs,
    quaternion_addresses,
    replace_items,
)
from jaxsim.physics.public.arguments import check_data, check_model
from jaxsim.physics.topology import joints_of
from jaxsim.transforms.layout import batched


def apply_tangent(m: Model, d: Data, dx: jax.Array) -> Data:
    """Move the state of a world by tangent coordinates (the retraction of `difference`).

    Args:
      m: the model.
      d: the state to start from.
      dx: tangent coordinates, (2 nv + na,).

    Returns:
      `d` with another qpos, qvel and act. Its results are still those of the old state.

    Raises:
      ValueError: a shape or precision is wrong.

    Example:
      >>> there = apply_tangent(m, d, jnp.array([0.1, 0.5]))
      >>> round(float(there.qpos[0]), 3), round(float(there.qvel[0]), 3)
      (0.1, 0.5)
    """
    check_model("apply_tangent", m)
    check_data("apply_tangent", m, d)
    if jnp.shape(dx) != (tangent_size(m),):
        raise ValueError(
            f"apply_tangent: dx: expected shape ({tangent_size(m)},), that is 2 nv + na, got "
            f"{brief_value(dx)}"
        )
    qpos, qvel, act = _move_world(m, d, jnp.asarray(dx).astype(m.qpos0.dtype))
    return d.replace(qpos=qpos, qvel=qvel, act=act)


def difference(m: Model, d1: Data, d2: Data) -> jax.Array:
    """Compute the tangent coordinates from one state to another, (2 nv + na,).

    It is the inverse of `apply_tangent`; rotations take the shorter way.

    Args:
      m: the model.
      d1: where they start.
      d2: where they end.

    Raises:
      ValueError: a shape or precision is wrong.

    Example:
      >>> float(difference(m, d, d.replace(qpos=d.qpos + 0.25))[0])
      0.25
    """
    check_model("difference", m)
    check_data("difference", m, d1)
    check_data("difference", m, d2)
    return _difference(m, *state_arrays(d1), *state_arrays(d2))


def check_coordinates_complete(function: str, m: Model) -> None:
    """Raise ValueError if a step depends on more than these coordinates, such as past controls.

    MuJoCo rejects such models too.
    """
    if m.nhistory:
        raise ValueError(
            f"{function}: a step of this model depends on past controls or readings (nsample), "
            "which the state (qpos, qvel, act) does not have; remove nsample, or differentiate "
            "several steps with jax.grad"
        )


def tangent_size(m: Model) -> int:
    """Return the number of tangent coordinates of a state."""
    return 2 * m.nv + m.na


def state_arrays(d: Data) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the arrays of the state: qpos, qvel, act."""
    return d.qpos, d.qvel, d.act


def move_state(m: Model, qpos: Array, qvel: Array, act: Array, dx: Array) -> tuple:
    """Move a state by tangent coordinates, in the layout of the physics: arrays `[n, *W]`."""
    nv = m.nv
    one = jnp.ones_like(dx[:1])
    # Split the tangent vector into position, velocity and activation.
    dq, dqvel, dact = dx[:nv], dx[nv : 2 * nv], dx[2 * nv :]
    return integrate_pos(m, qpos, dq, one), qvel + dqvel, act + dact


def state_difference(
    m: Model, qpos1: Array, qvel1: Array, act1: Array, qpos2: Array, qvel2: Array, act2: Array
) -> Array:
    """Compute `difference` in the layout of the physics: arrays `[n, *W]`."""
    one = jnp.ones((1,) * qpos1.ndim, qpos1.dtype)
    dq = differentiate_pos(m, one, qpos1, qpos2)
    return jnp.concatenate([dq, qvel2 - qvel1, act2 - act1])


def state_rate(m: Model, qpos: Array, dqpos: Array, dqvel: Array, dact: Array) -> Array:
    """Convert a small change of a state's arrays to tangent coordinates `[nx, *W]`.

    For a unit quaternion q it is the rotation 2 vec(conj(q) dq).
    """
    s = m.structure
    adr_of_dof, _ = linear_dofs(s)
    # Scalar coordinates: rate of the coordinate itself.
    dq = gather_static(dqpos, adr_of_dof)
    if len(joints_of(s, JointType.FREE, JointType.BALL)):
        # Quaternions: rate to rotation vector.
        adr, first = quaternion_addresses(s)
        q, change = (Quat(*(gather_static(x, adr + k) for k in range(4))) for x in (qpos, dqpos))
        rotation_change = (q.conj * change).vec.scale(2.0)
        dq = replace_items(dq, first, rotation_change.parts)
    return jnp.concatenate([dq, dqvel, dact])


_move_arrays = batched(move_state)
_difference = batched(state_difference)


def _move_world(m: Model, d: Data, dx: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    return _move_arrays(m, *state_arrays(d), dx)
