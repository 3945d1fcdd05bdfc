"""Jacobians of inverse dynamics in tangent coordinates, exact and by finite differences.

Seven Jacobians of MuJoCo's `mjd_inverseFD`. The exact ones use forward mode over all 3 nv
directions at once, since inverse dynamics has about as many outputs as inputs.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.actuator.actuation import actuation
from jaxsim.physics.body.configuration import integrate_pos
from jaxsim.physics.inverse import continuous_acceleration
from jaxsim.physics.inverse import inverse as inverse_dynamics
from jaxsim.physics.pipeline.stages import STAGES
from jaxsim.physics.public.arguments import check_data, check_model
from jaxsim.physics.public.wrapper import check_carries
from jaxsim.physics.sensor.sensor import sensor_acc
from jaxsim.transforms.layout import batched


class InverseDerivative(NamedTuple):
    """Derivatives of inverse dynamics: force f and sensors s by position, velocity, acceleration.

    In the convention of control theory: a row is an output, a column an input. MuJoCo's arrays are
    the transposes.

    Attributes:
      DfDq, DfDv, DfDa: of the force, (nv, nv).
      DsDq, DsDv, DsDa: of the sensors, (nsensordata, nv).
      DmDq: of the mass matrix, (nv, nv, nv), the position last.
    """

    DfDq: jax.Array
    DfDv: jax.Array
    DfDa: jax.Array
    DsDq: jax.Array
    DsDv: jax.Array
    DsDa: jax.Array
    DmDq: jax.Array


def inverse(m: Model, d: Data, flg_actuation: bool = False) -> InverseDerivative:
    """Compute the derivatives of `jaxsim.inverse` with respect to qpos, qvel and qacc.

    MuJoCo's `mjd_inverseFD`, exact instead of by differences. Positions move in tangent
    coordinates. Differentiated in forward mode, along all directions at once.

    Args:
      m: the model.
      d: state and acceleration; sensors of actuators have the forces that `d` carries.
      flg_actuation: subtract the forces of the actuators at the state and controls, so that they
        do not count as external; sensors of actuators then follow the state. Static.

    Returns:
      An InverseDerivative.

    Raises:
      ValueError: a shape or precision is wrong, or `d` does not carry what inverse dynamics reads.

    Example:
      >>> jax.jit(jaxsim.derivative.inverse)(m, jaxsim.forward(m, d)).DfDq.shape
      (1, 1)
    """
    _check("inverse", m, d)
    return InverseDerivative(*_exact[bool(flg_actuation)](m, d))


def inverse_fd(
    m: Model, d: Data, eps: Array | float = 1e-6, flg_actuation: bool = False
) -> InverseDerivative:
    """Compute the derivatives of `inverse` by forward differences; MuJoCo's `mjd_inverseFD`.

    Args:
      m, d, flg_actuation: see `inverse`.
      eps: step of the differences, (). Single precision needs a larger one than double: 1e-3.
    """
    _check("inverse_fd", m, d)
    eps = jnp.asarray(eps, m.qpos0.dtype)
    outputs = _values[bool(flg_actuation)]
    # One column of the identity per perturbed coordinate; all perturbed runs share one program.
    unit = jnp.eye(3 * m.nv, dtype=eps.dtype)
    there = jax.vmap(lambda z: outputs(m, d, z))(eps * unit)
    here = outputs(m, d, jnp.zeros(3 * m.nv, eps.dtype))
    # Divided differences, with the direction as last axis.
    rates = jax.tree.map(lambda a, b: jnp.moveaxis((a - b[None]) / eps, 0, -1), there, here)
    return InverseDerivative(*_parts(m, *rates))


def _check(name: str, m: Model, d: Data) -> None:
    check_model(name, m)
    check_data(name, m, d)
    check_carries(name, m, d, STAGES["inverse"].fields)


def _derivative_functions(flg_actuation: bool) -> tuple[Callable, Callable]:
    """Return functions for values and exact derivatives, in the layout of the physics."""

    def values(m: Model, d: Data, z: Array) -> tuple[Array, Array, Array]:
        """Compute force `[nv, *W]`, sensors and M, at (q, v, a) moved by `z` `[3 nv, *W]`."""
        nv = m.nv
        none = jnp.zeros((m.nsensordata, *d.qpos.shape[1:]), d.qpos.dtype)
        # Move the state and acceleration by z in tangent coordinates.
        moved = d.replace(
            qpos=integrate_pos(m, d.qpos, z[:nv], jnp.ones_like(z[:1])) if nv else d.qpos,
            qvel=d.qvel + z[nv : 2 * nv],
            qacc=d.qacc + z[2 * nv :],
            sensordata=none,
        )
        found = inverse_dynamics(m, moved)
        # Without actuation, the outputs are those of inverse dynamics.
        if not flg_actuation:
            return found.qfrc_inverse, found.sensordata, found.M
        found = actuation(m, found)
        force = found.qfrc_inverse - found.qfrc_actuator
        # Actuator sensors see the recomputed forces.
        sensed = sensor_acc(m, found.replace(qacc=continuous_acceleration(m, found)))
        return force, sensed.sensordata, found.M

    def exact(m: Model, d: Data) -> tuple[Array, ...]:
        n, rest = 3 * m.nv, d.qpos.shape[1:]
        zero = jnp.zeros((n, *rest), d.qpos.dtype)
        if not n:  # no direction to go in
            force, sensed, M = values(m, d, zero)
            return _parts(m, force[:, None][:, :0], sensed[:, None][:, :0], M[:, :, None])

        def jvp_along(direction: Array) -> tuple[Array, Array, Array]:
            column = jnp.broadcast_to(direction.reshape(n, *(1,) * len(rest)), zero.shape)
            return jax.jvp(lambda z: values(m, d, z), (zero,), (column,))[1]

        # One forward-mode pass per direction, vectorized.
        each = jax.vmap(jvp_along, out_axes=(1, 1, 2))
        return _parts(m, *each(jnp.eye(n, dtype=zero.dtype)))

    return batched(values), batched(exact)


def _parts(m: Model, force: Array, sensed: Array, M: Array) -> tuple[Array, ...]:
    """Split derivatives along (q, v, a) into the seven Jacobians: `[k, 3 nv, *W]`, M has 2 axes."""
    nv = m.nv
    q, v, a = slice(0, nv), slice(nv, 2 * nv), slice(2 * nv, 3 * nv)
    return (*(f[:, s] for f in (force, sensed) for s in (q, v, a)), M[:, :, q])


_both = {flag: _derivative_functions(flag) for flag in (False, True)}
_values = {flag: both[0] for flag, both in _both.items()}
_exact = {flag: both[1] for flag, both in _both.items()}
