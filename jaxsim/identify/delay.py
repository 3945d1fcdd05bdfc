"""Delays as differentiable parameters of controls and sensors.

A control that is held between two steps and delayed by n + f steps, 0 <= f < 1, has during the
first part f of a step its value of n + 1 steps ago, then that of n steps ago. The simulation uses
its mean over the step:

    u[k] <- (1 - f) u[k - n] + f u[k - n - 1]

The mean is continuous in the delay, and its derivative -(u[k - n] - u[k - n - 1]) is exact, except
at whole steps, where it is the one-sided derivative for a longer delay. A sensor is read at t -
delay, linearly interpolated between steps (residual.py).
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.identify.parameter import Parameter, Parameters
from jaxsim.identify.signals import timestep
from jaxsim.model.model import Model


def delay_controls(ctrl: jax.Array, history: int, tuning: tuple[jax.Array, ...]) -> jax.Array:
    """Return the delayed, scaled and shifted controls.

    Args:
      ctrl: commanded controls, (history + steps, nu).
      history: rows before the first step.
      tuning: gain, offset and delay [steps] of each control, (nu,) each.

    Returns:
      The controls that the simulation uses, (steps, nu).
    """
    gain, offset, delay = tuning
    whole = jnp.floor(delay)
    part = delay - whole
    now = jnp.arange(history, len(ctrl))[:, None] - whole.astype(int)[None]
    columns = jnp.arange(ctrl.shape[1])[None]
    later, before = (ctrl[jnp.maximum(now - k, 0), columns] for k in (0, 1))
    return gain[None] * ((1 - part)[None] * later + part[None] * before) + offset[None]


def max_delay_reach(m: Model, parameters: Parameters) -> tuple[int, dict[str, float]]:
    """Return the largest delays of controls and signals.

    Returns:
      Steps of controls that are needed before the start, and the largest delay in steps of each
      measured signal that may be late, by name.

    Raises:
      ValueError: a delay has no upper bound, or may be below 0.
    """
    h, controls, late = timestep(m), 0, {}
    for name, p in parameters.items():
        for signal, field in p.target.signals:
            if field != "delay":
                continue
            steps = _max_delay(name, p) / h
            if signal.startswith("ctrl:"):
                controls = max(controls, int(np.ceil(steps)) + 1)
            else:
                late[signal] = steps
    return controls, late


def _max_delay(name: str, p: Parameter) -> float:
    """Return the upper bound of a delay parameter [s]."""
    if p.form.frozen:
        return float(np.max(p.map.base * p.map.center))
    if p.form.low is None or p.form.high is None or p.form.low < 0 or p.form.kind == "scale":
        raise ValueError(f"{name}: a delay needs bounds, at least 0: linear(0, 0.05), in seconds")
    return float(p.form.high)
