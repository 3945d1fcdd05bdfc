"""Impedance and reference of a constraint row: from (solref, solimp) to (D, aref).

MuJoCo's documentation, Computation: Constraint model (Parameters, Impedance, Reference).
"""

from collections.abc import Sequence

import jax.numpy as jnp

from jaxsim.enums import MAXIMP, MINIMP, MINVAL, DisableBit
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array


def impedance(solimp: tuple[Array, ...], violation: Array) -> Array:
    """Constraint impedance at a violation.

        d(r) = d0 + y(|r| / width) (dwidth - d0),   y a power sigmoid through (midpoint, midpoint)

    Args:
      solimp: five arrays (d0, dwidth, width, midpoint, power), each `[n, *W]`.
      violation: position minus margin `[n, *W]`.

    Returns:
      Impedance in (0, 1), `[n, *W]`.
    """
    d0, dwidth, width, midpoint, power = solimp
    d0 = jnp.clip(d0, MINIMP, MAXIMP)
    dwidth = jnp.clip(dwidth, MINIMP, MAXIMP)
    midpoint = jnp.clip(midpoint, MINIMP, MAXIMP)
    width = jnp.maximum(width, 0)
    power = jnp.maximum(power, 1)
    flat = width <= MINVAL
    x = jnp.abs(violation) / jnp.where(flat, 1.0, width)
    inside = x < 1
    x = jnp.where(inside, x, 0.5)
    # a power of zero has no gradient: a row exactly at its margin is treated apart
    touching = x == 0
    x = jnp.where(touching, 0.5, x)
    rise = x**power / midpoint ** (power - 1)
    fall = 1 - (1 - x) ** power / (1 - midpoint) ** (power - 1)
    y = jnp.where(x <= midpoint, rise, fall)
    y = jnp.where(touching, 0.0, y)
    smooth = d0 + y * (dwidth - d0)
    return jnp.where(flat, 0.5 * (d0 + dwidth), jnp.where(inside, smooth, dwidth))


def stiffness_damping(m: Model, solref: Sequence[Array], dmax: Array) -> tuple[Array, Array]:
    """Stiffness and damping of the reference acceleration.

    Args:
      m: model, for the time step that limits the time constant.
      solref: two arrays `[n, *W]`: (time constant, damping ratio), or both negative:
        (-stiffness, -damping).
      dmax: impedance at full width, `[n, *W]`.

    Returns:
      (K, B), each `[n, *W]`.
    """
    time, ratio = solref
    dmax = jnp.clip(dmax, MINIMP, MAXIMP)
    standard = time > 0
    if not m.opt.disableflags & DisableBit.REFSAFE:
        time = jnp.where(standard, jnp.maximum(time, 2 * m.opt.timestep), time)
    tc = jnp.where(standard, time, 1.0)
    dr = jnp.where(standard, ratio, 1.0)
    K = jnp.where(standard, 1 / jnp.maximum(MINVAL, (dmax * tc * dr) ** 2), -time / dmax**2)
    damped = ratio > 0
    B = jnp.where(damped, 2 / jnp.maximum(MINVAL, dmax * tc), -ratio / dmax)
    return K, B


def regularize(imp: Array, diag: Array) -> Array:
    """D = 1 / R with R = (1 - d) / d times the approximate inverse inertia of the row."""
    return 1 / jnp.maximum(MINVAL, (1 - imp) / imp * diag)


def friction_terms(
    m: Model,
    solref: tuple[Array, Array],
    solimp: tuple[Array, ...],
    floss: Array,
    speed: Array,
    invweight: Array,
) -> tuple[Array, Array]:
    """D and aref `[n, *W]` of rows of dry friction, which only damp; no row where floss is zero."""
    _, B = stiffness_damping(m, solref, solimp[1])
    D = regularize(impedance(solimp, jnp.zeros_like(speed)), invweight)
    return jnp.where(floss > 0, D, 0), -B * speed


def columns(a: Array) -> tuple:
    """The parameters of an `[n, k, *W]` field as k arrays `[n, *W]`."""
    return tuple(a[:, k] for k in range(a.shape[1]))
