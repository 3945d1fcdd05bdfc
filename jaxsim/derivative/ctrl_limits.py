"""Control limits, and a model without them for optimizers that enforce the limits themselves."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import DisableBit
from jaxsim.model.model import Model


def control_limits(m: Model) -> tuple[jax.Array, jax.Array]:
    """Return the smallest and largest control, (nu,) each; infinite without a limit.

    Example:
      >>> lower, upper = control_limits(m)
      >>> lower.shape
      (0,)
    """
    limited = np.asarray(m.actuator_ctrllimited).astype(bool)
    if m.opt.disableflags & DisableBit.CLAMPCTRL:
        limited = np.zeros_like(limited)
    lower, upper = m.actuator_ctrlrange[:, 0], m.actuator_ctrlrange[:, 1]
    return jnp.where(limited, lower, -jnp.inf), jnp.where(limited, upper, jnp.inf)


def clip_controls(m: Model, ctrl: jax.Array) -> jax.Array:
    """Clip controls to the limits of the model, (..., nu)."""
    lower, upper = control_limits(m)
    shape = (1,) * (ctrl.ndim - 1) + lower.shape
    return jnp.clip(ctrl, lower.reshape(shape), upper.reshape(shape))


def without_ctrl_clamp(m: Model) -> Model:
    """Return the model without the clamp of its controls.

    At a limit the clamp has two one-sided derivatives, and JAX returns their mean. An optimizer
    that enforces the limits itself needs the derivative from the inside.
    """
    return m.replace(opt=m.opt.replace(disableflags=m.opt.disableflags | DisableBit.CLAMPCTRL))
