"""Derivative of one step by finite differences, as in MuJoCo's `mjd_transitionFD`.

For comparison with the exact derivative (step_derivative.py), and for steps that are not smooth:
finite differences see contacts within the step size.
"""

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.derivative.ctrl_limits import control_limits
from jaxsim.derivative.step_derivative import Linear
from jaxsim.derivative.tangent import (
    apply_tangent,
    check_coordinates_complete,
    difference,
    tangent_size,
)
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.public.api import step
from jaxsim.physics.public.arguments import check_data, check_model


def transition_fd(
    m: Model,
    d: Data,
    eps: Array | float = 1e-6,
    flg_centered: bool = False,
    *,
    sensors: bool = True,
) -> Linear:
    """Compute `transition` by finite differences.

    A control is not moved beyond its limits: at a limit the difference is one-sided to the inside,
    and a control outside of its limits has derivative zero.

    Args:
      m: the model.
      d: state and control.
      eps: step of the differences, (). Single precision needs a larger one than double: 1e-3.
      flg_centered: centered differences, more precise at twice the cost; static.
      sensors: include C and D; static.

    Returns:
      A Linear.

    Raises:
      ValueError: a shape or precision is wrong.
    """
    check_model("transition_fd", m)
    check_data("transition_fd", m, d)
    check_coordinates_complete("transition_fd", m)
    eps = jnp.asarray(eps, m.qpos0.dtype)
    # Perturbations per coordinate, limited by the range of controls.
    upper, lower = _difference_steps(m, d, eps, flg_centered)
    d = d.replace(sensordata=jnp.zeros(m.nsensordata, eps.dtype)) if sensors else d
    nx = tangent_size(m)

    def end(z: Array) -> Data:
        return step(m, apply_tangent(m, d, z[:nx]).replace(ctrl=d.ctrl + z[nx:]))

    # One step per perturbed coordinate; one-sided differences share the unperturbed step.
    above = jax.vmap(end)(jnp.diag(upper))
    below = jax.vmap(end)(jnp.diag(lower)) if flg_centered else end(jnp.zeros_like(upper))
    worlds = 0 if flg_centered else None
    # A control that could not be moved has derivative zero.
    width = upper - lower
    scale = jnp.where(width == 0, 0, 1 / jnp.where(width == 0, 1, width))
    # Divided differences in tangent coordinates.
    state = jax.vmap(difference, (None, worlds, 0), 1)(m, below, above) * scale[None]
    A, B = state[:, :nx], state[:, nx:]
    if not sensors:
        return Linear(A, B)
    before = below.sensordata if flg_centered else below.sensordata[None]
    sensed = (above.sensordata - before).T * scale[None]
    return Linear(A, B, sensed[:, :nx], sensed[:, nx:])


def _difference_steps(m: Model, d: Data, eps: Array, centered: bool) -> tuple[Array, Array]:
    """Return the steps of each component of state and control, up and down, (nx + nu,) each.

    Forward differences use one side: down only where a control cannot go up.
    """
    low, high = control_limits(m)
    # Whether each control can be moved by eps in either direction.
    inside = (low <= d.ctrl) & (d.ctrl <= high)
    up = inside & (d.ctrl + eps <= high)
    down = inside & (d.ctrl - eps >= low)
    state = jnp.full(tangent_size(m), eps)
    further, back = jnp.where(up, eps, 0), jnp.where(down, -eps, 0)
    if centered:
        return jnp.append(state, further), jnp.append(-state, back)
    # One-sided: up where possible, else down.
    one_side = jnp.append(state, jnp.where(up, further, back))
    return one_side, jnp.zeros_like(one_side)
