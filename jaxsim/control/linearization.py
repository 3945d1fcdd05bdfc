"""One step near a state and a control, linearized for feedback and planning."""

import jax
import jax.numpy as jnp

from jaxsim.derivative.step_derivative import Linear, transition
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.record.check import brief_value
from jaxsim.physics.public.arguments import check_data, check_model


def linearize(m: Model, d: Data, ctrl: jax.Array | None = None, *, sensors: bool = False) -> Linear:
    """Return the derivative of one step with respect to state and control.

    `jaxsim.derivative.transition` at another control. For a trajectory use `jax.vmap` over its
    states and controls.

    Args:
      m: the model.
      d: the state.
      ctrl: the control, (nu,); None: that of `d`.
      sensors: also C and D.

    Returns:
      A Linear.

    Raises:
      ValueError: a shape or precision is wrong.

    Example:
      >>> linear = jax.jit(linearize)(m, d)
      >>> linear.A.shape, linear.B.shape
      ((2, 2), (2, 0))
    """
    check_model("linearize", m)
    check_data("linearize", m, d)
    ctrl = d.ctrl if ctrl is None else jnp.asarray(ctrl)
    if ctrl.shape != (m.nu,):
        raise ValueError(
            f"linearize: ctrl: expected shape ({m.nu},), got {brief_value(ctrl)}; for a trajectory "
            "use "
            "jax.vmap"
        )
    return transition(m, d.replace(ctrl=ctrl), sensors=sensors)
