"""Muscle model: activation dynamics, and force as a function of length and velocity.

MuJoCo's documentation, Modeling: Muscles; the activation follows Millard et al., J. Biomech. Eng.
135 (2013). Internally lengths are in units of the optimal length, velocities of the maximal
shortening velocity, forces of the peak active force (`mju_muscleGain`, `mju_muscleBias`,
`mju_muscleDynamics`).
"""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.enums import MINVAL


def muscle_activation_rate(ctrl: Array, act: Array, prm: tuple[Array, Array, Array]) -> Array:
    """Compute the rate of change of muscle activation.

        act_dot = (ctrl - act) / tau,
        tau = tau_act (0.5 + 1.5 act) when it rises, tau_deact / (0.5 + 1.5 act) when it falls

    Args:
      ctrl: excitation `[n, *W]`, clamped to [0, 1].
      act: activation `[n, *W]`; clamped to [0, 1] where it scales the time constant.
      prm: (tau_act, tau_deact, width over which the two are blended), each `[n, *W]` [s, s, 1].
    """
    # Time constants depend on the activation.
    rise, fall, smooth = prm
    ctrl, level = jnp.clip(ctrl, 0, 1), jnp.clip(act, 0, 1)
    lag = 0.5 + 1.5 * level
    rise, fall = rise * lag, fall / lag
    # Blend the time constants by a quintic smoothstep around zero change.
    change = ctrl - act
    abrupt = smooth < MINVAL
    x = jnp.clip(change / jnp.where(abrupt, 1.0, smooth) + 0.5, 0, 1)
    blend = jnp.where(abrupt, (change > 0).astype(x.dtype), x**3 * (6 * x * x - 15 * x + 10))
    return change / _nonzero_divisor(fall + (rise - fall) * blend)


def scaled_length(length: Array, lengthrange: list[Array], prm: list[Array]) -> tuple[Array, Array]:
    """Return the length in units of the optimal length, and that optimal length.

    The range of the actuator's length corresponds to the range `prm[:2]` of scaled lengths.
    """
    lower, upper = prm[0], prm[1]
    optimal = (lengthrange[1] - lengthrange[0]) / _nonzero_divisor(upper - lower)
    return lower + (length - lengthrange[0]) / _nonzero_divisor(optimal), optimal


def peak_force(prm: list[Array], acc0: Array) -> Array:
    """Return the peak active force: given, or chosen from acc0, the acceleration per unit force."""
    force, scale = prm[2], prm[3]
    return jnp.where(force < 0, scale / _nonzero_divisor(acc0), force)


def active_muscle_force(
    length: Array, velocity: Array, lengthrange: list[Array], acc0: Array, prm: list[Array]
) -> Array:
    """Compute the active force per unit activation, `-F0 FL(s) FV(v)`; muscles pull.

    Args:
      length, velocity: of the actuator, `[n, *W]`.
      lengthrange: two arrays `[n, *W]`.
      acc0: acceleration from unit force, `[n, *W]`.
      prm: range (2), force, scale, lmin, lmax, vmax, fpmax, fvmax; each `[n, *W]`.
    """
    # Force-length and force-velocity curves.
    lmin, lmax, vmax, fvmax = prm[4], prm[5], prm[6], prm[8]
    s, optimal = scaled_length(length, lengthrange, prm)
    v = velocity / _nonzero_divisor(optimal * vmax)
    return -peak_force(prm, acc0) * _active_length(s, lmin, lmax) * _active_velocity(v, fvmax)


def passive_muscle_force(
    length: Array, lengthrange: list[Array], acc0: Array, prm: list[Array]
) -> Array:
    """Compute the passive force `-F0 FP(s)` of a stretched muscle; arguments as for
    `active_muscle_force`.

    FP rises as a parabola from the optimal length to fpmax / 2 midway to lmax, then linearly.
    """
    # Passive curve: parabola, then a line of equal slope.
    lmax, fpmax = prm[5], prm[7]
    s, _ = scaled_length(length, lengthrange, prm)
    b = 0.5 * (1 + lmax)
    x = (s - 1) / _nonzero_divisor(b - 1)
    far = (s - b) / _nonzero_divisor(b - 1)
    stretched = jnp.where(s <= b, 0.5 * x * x, 0.5 + far)
    return -peak_force(prm, acc0) * fpmax * jnp.where(s <= 1, 0, stretched)


def _active_length(s: Array, lmin: Array, lmax: Array) -> Array:
    """Evaluate the force-length curve, four parabolas: 0 at lmin and lmax, 1 at length 1."""
    # Two parabolas on each side of the optimal length.
    a, b = 0.5 * (lmin + 1), 0.5 * (1 + lmax)
    outer_low = 0.5 * _squared_ratio(s - lmin, a - lmin)
    inner_low = 1 - 0.5 * _squared_ratio(1 - s, 1 - a)
    inner_high = 1 - 0.5 * _squared_ratio(s - 1, b - 1)
    outer_high = 0.5 * _squared_ratio(lmax - s, lmax - b)
    bell = jnp.where(s <= a, outer_low, jnp.where(s <= 1, inner_low, inner_high))
    bell = jnp.where(s <= b, bell, outer_high)
    return jnp.where((s < lmin) | (s > lmax), 0, bell)


def _active_velocity(v: Array, fvmax: Array) -> Array:
    """Evaluate the force-velocity curve: 0 at full shortening, 1 at rest, up to fvmax beyond."""
    y = fvmax - 1
    lengthened = fvmax - (y - v) ** 2 / _nonzero_divisor(y)
    moving = jnp.where(v <= 0, (v + 1) ** 2, lengthened)
    return jnp.where(v <= -1, 0, jnp.where(y < v, fvmax, moving))


def _nonzero_divisor(x: Array) -> Array:
    """Bound a divisor away from zero."""
    return jnp.maximum(x, MINVAL)


def _squared_ratio(x: Array, width: Array) -> Array:
    return (x / _nonzero_divisor(width)) ** 2
