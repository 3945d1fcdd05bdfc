"""The limits of controls, and a model whose limits are kept by the optimiser."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import DisableBit
from jaxsim.model.model import Model


def control_limits(m: Model) -> tuple[jax.Array, jax.Array]:
    """The least and largest control, (nu,) each; infinite where the model has no limit.

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


def clipped(m: Model, ctrl: jax.Array) -> jax.Array:
    """Controls within the limits of the model, (..., nu)."""
    lower, upper = control_limits(m)
    shape = (1,) * (ctrl.ndim - 1) + lower.shape
    return jnp.clip(ctrl, lower.reshape(shape), upper.reshape(shape))


def unclamped(m: Model) -> Model:
    """The model without the clamp of its controls.

    At a limit the clamp has two slopes, and JAX takes their mean: half of the actuator. An
    optimiser that keeps the limits itself needs the slope from the inside.
    """
    return m.replace(opt=m.opt.replace(disableflags=m.opt.disableflags | DisableBit.CLAMPCTRL))
