"""Impedance and reference of a constraint row: from (solref, solimp) to its law.

MuJoCo's documentation, Computation: Constraint model (Parameters, Impedance, Reference).
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.enums import MAXIMP, MINIMP, MINVAL, DisableBit
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.discrete import is_discrete


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
    # x^p / mid^(p-1) up to the midpoint, 1 - (1-x)^p / (1-mid)^(p-1) beyond: one power for both,
    # which a CPU computes number by number
    rises = x <= midpoint
    end = jnp.where(rises, midpoint, 1 - midpoint)
    part = end * (jnp.where(rises, x, 1 - x) / end) ** power
    y = jnp.where(touching, 0.0, jnp.where(rises, part, 1 - part))
    smooth = d0 + y * (dwidth - d0)
    return jnp.where(flat, 0.5 * (d0 + dwidth), jnp.where(inside, smooth, dwidth))


class Law(NamedTuple):
    """How a row wants to move, as a function of its position and speed.

        aref = -damping speed - stiffness imp position

    Attributes:
      stiffness, damping: K and B of the documentation, `[n, *W]`.
      imp: impedance `[n, *W]`.
    """

    stiffness: jax.Array
    damping: jax.Array
    imp: jax.Array

    def reference(
        self, m: Model, position: Array | None, speed: Array, drift: Array | float = 0.0
    ) -> Array:
        """Reference acceleration at a position and speed, `[n, *W]`.

        Under the discrete integrator it is that at the end of the step: the a for which
        a = -B (v + h a) - K imp (r + h v + h^2 a) - drift.

        Args:
          m: model.
          position: r, position minus margin; None: zero.
          speed: v, along the row.
          drift: change of the speed without acceleration.
        """
        damped = -self.damping * speed - drift
        if is_discrete(m):
            ahead = m.opt.timestep * speed
            position = ahead if position is None else position + ahead
        if position is not None:
            damped = damped - self.stiffness * self.imp * position
        return self.yielding(m) * damped if is_discrete(m) else damped

    def yielding(self, m: Model) -> Array:
        """How much less a row accelerates that is evaluated at the end of the step, `[n, *W]`."""
        h = m.opt.timestep
        return 1 / (1 + h * (self.damping + h * self.stiffness * self.imp))

    def softness(self, m: Model) -> Array:
        """Regularization R of the row per unit of its inverse inertia, `[n, *W]`."""
        soft = (1 - self.imp) / self.imp
        if not is_discrete(m):
            return soft
        return jnp.maximum(self.yielding(m) * soft, (1 - MAXIMP) / MAXIMP)


class Pace(NamedTuple):
    """The first form of `solref`, (time constant, damping ratio).

    Attributes:
      given: rows that have this form, bool.
      time, ratio: [s], and without unit; one for the other rows.
    """

    given: jax.Array
    time: jax.Array
    ratio: jax.Array


def pace(m: Model, solref: Sequence[Array]) -> Pace:
    """Time constants and damping ratios as a step takes them: of at least two steps.

    The flag refsafe, disabled, and the discrete integrator leave them as they are.
    """
    time, ratio = solref
    given = time > 0
    if not m.opt.disableflags & DisableBit.REFSAFE and not is_discrete(m):
        time = jnp.where(given, jnp.maximum(time, 2 * m.opt.timestep), time)
    return Pace(given, jnp.where(given, time, 1.0), jnp.where(given, ratio, 1.0))


def law(m: Model, solref: Sequence[Array], dmax: Array, imp: Array, one_sided: bool = False) -> Law:
    """The law of rows from their parameters.

    A row that a step cannot resolve would gain energy, or rebound: the time constant is at least
    two steps. Under the discrete integrator none gains energy; of limits and contacts that a step
    cannot resolve the spring is the stiffest that does not rebound, K imp = 1 / h^2, at the
    damping ratio that was asked for. The flag refsafe, disabled, leaves all as they are.

    Args:
      m: model, for the time step.
      solref: two arrays `[n, *W]`: (time constant, damping ratio), or both negative:
        (-stiffness, -damping).
      dmax: impedance at full width, `[n, *W]`.
      imp: impedance, `[n, *W]`.
      one_sided: of limits, and normals of contacts.
    """
    time, ratio = solref
    h, (standard, tc, dr) = m.opt.timestep, pace(m, solref)
    dmax = jnp.clip(dmax, MINIMP, MAXIMP)
    K = jnp.where(standard, 1 / jnp.maximum(MINVAL, (dmax * tc * dr) ** 2), -time / dmax**2)
    damped = ratio > 0
    B = jnp.where(damped, 2 / jnp.maximum(MINVAL, dmax * tc), -ratio / dmax)
    if is_discrete(m) and one_sided and not m.opt.disableflags & DisableBit.REFSAFE:
        abrupt = standard & (time * ratio < h)
        firm = jnp.maximum(imp, MINIMP)  # a smooth contact that begins has less
        K = jnp.where(abrupt, 1 / (h * h * firm), K)
        B = jnp.where(abrupt, 2 * ratio / (h * jnp.sqrt(firm)), B)
    return Law(K, B, imp)


def regularization(soft: Array, weight: Array) -> Array:
    """R of rows: softness times inverse inertia, approximate or exact."""
    return jnp.maximum(MINVAL, soft * weight)


def columns(a: Array) -> tuple:
    """The parameters of an `[n, k, *W]` field as k arrays `[n, *W]`."""
    return tuple(a[:, k] for k in range(a.shape[1]))
