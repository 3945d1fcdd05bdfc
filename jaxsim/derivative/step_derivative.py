"""Exact derivative of one step, in tangent coordinates.

The step is differentiated in forward mode along all directions of state and control at once (a
`vmap` of JVPs), which share one evaluation of the step. Batches of worlds have the batch axis last,
as in the rest of the physics (jaxsim/transforms/layout.py).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.derivative.ctrl_limits import clip_controls, without_ctrl_clamp
from jaxsim.derivative.tangent import (
    check_coordinates_complete,
    move_state,
    state_arrays,
    state_rate,
    tangent_size,
)
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.public.arguments import check_data, check_model
from jaxsim.physics.step import step
from jaxsim.transforms.layout import batched


class Linear(NamedTuple):
    """Linearization of one step: dx_next = A dx + B du, dy = C dx + D du.

    Attributes:
      A: (nx, nx), with nx = 2 nv + na.
      B: (nx, nu).
      C: of the sensors, (nsensordata, nx); None unless requested.
      D: of the sensors, (nsensordata, nu); None unless requested.
    """

    A: jax.Array
    B: jax.Array
    C: jax.Array | None = None
    D: jax.Array | None = None


def transition(m: Model, d: Data, *, sensors: bool = True) -> Linear:
    """Compute the derivative of one step with respect to state and control.

    MuJoCo's `mjd_transitionFD`, exact instead of by differences, for every integrator. The state is
    (dq, qvel, act), in tangent coordinates. The solver's warm start is not part of it: the
    derivative is that of the converged step, which does not depend on where the solver starts.
    Sensors are those of the step: of the state before it, as MuJoCo has them.

    At a limit of a control the derivative is that from the inside. Of a control outside of its
    limits it is zero. For many states use `jax.vmap`.

    Args:
      m: the model.
      d: state and control.
      sensors: also C and D. Static.

    Returns:
      A Linear.

    Raises:
      ValueError: a shape or precision is wrong; there is a history (delays).

    Example:
      >>> linear = jax.jit(jaxsim.derivative.transition)(m, d)
      >>> linear.A.shape, linear.B.shape
      ((2, 2), (2, 0))
    """
    check_model("transition", m)
    check_data("transition", m, d)
    check_coordinates_complete("transition", m)
    # Differentiate without the clamp at the clipped control, then zero the controls out of range.
    inside = clip_controls(m, d.ctrl)
    state, sensed = _derivatives[sensors](without_ctrl_clamp(m), d, inside)
    nx = tangent_size(m)
    free = (inside == d.ctrl).astype(state.dtype)[None, :]
    A, B, C, D = state[:, :nx], state[:, nx:] * free, sensed[:, :nx], sensed[:, nx:] * free
    return Linear(A, B, C, D) if sensors else Linear(A, B)


class Derivative(NamedTuple):
    """Outputs of a step besides the state, and all derivatives, in the layout of the physics.

    Attributes:
      values: the outputs `[k, *W]`.
      state: derivative of the next state, in tangent coordinates, `[nx, nx + nu, *W]`.
      outputs: derivative of the outputs, `[k, nx + nu, *W]`.
    """

    values: Array
    state: Array
    outputs: Array


def derivative_of_step(
    m: Model, d: Data, ctrl: Array, outputs: Callable[[Data, Data], Array]
) -> Derivative:
    """Differentiate a step along state and control, in the layout of the physics.

    Args:
      m, d: model and data in the layout of the physics.
      ctrl: `[nu, *W]`.
      outputs: (before, after) -> `[k, *W]`, from the world before the step and after it.
    """
    nx, n = tangent_size(m), tangent_size(m) + m.nu
    rest = d.qpos.shape[1:]

    # The step as a function of tangent coordinates and controls.
    def function(z: Array) -> tuple:
        qpos, qvel, act = move_state(m, *state_arrays(d), z[:nx])
        before = d.replace(qpos=qpos, qvel=qvel, act=act, ctrl=ctrl + z[nx:])
        after = step(m, before)
        return (*state_arrays(after), outputs(before, after))

    def jvp_along(direction: Array) -> tuple[Array, Array, Array]:
        # One direction: outputs, tangent of the next state, tangent of the outputs.
        column = direction.reshape(n, *(1,) * len(rest))
        now, rate = jax.jvp(function, (zero,), (jnp.broadcast_to(column, zero.shape),))
        return now[3], state_rate(m, now[0], *rate[:3]), rate[3]

    zero = jnp.zeros((n, *rest), d.qpos.dtype)
    # The outputs are the same for every direction and evaluated once.
    each = jax.vmap(jvp_along, out_axes=(None, 1, 1))
    return Derivative(*each(jnp.eye(n, dtype=zero.dtype)))


def _state_derivative(m: Model, d: Data, ctrl: Array) -> tuple[Array, Array]:
    found = derivative_of_step(m, d, ctrl, lambda _, after: after.qpos[:0])
    return found.state, found.outputs


def _sensor_derivative(m: Model, d: Data, ctrl: Array) -> tuple[Array, Array]:
    none = jnp.zeros((m.nsensordata, *d.qpos.shape[1:]), d.qpos.dtype)
    d = d.replace(sensordata=none)
    found = derivative_of_step(m, d, ctrl, lambda _, after: after.sensordata)
    return found.state, found.outputs


_derivatives = {False: batched(_state_derivative), True: batched(_sensor_derivative)}
