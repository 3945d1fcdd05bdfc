"""Impedance and reference acceleration of constraint rows, from solref and solimp.

MuJoCo's documentation, Computation: Constraint model (Parameters, Impedance, Reference).
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.enums import MAXIMP, MINIMP, MINVAL, DisableBit
from jaxsim.model.model import Model
from jaxsim.physics.integrate.discrete import is_discrete


def impedance(solimp: tuple[Array, ...], violation: Array) -> Array:
    """Compute the constraint impedance at a violation.

        d(r) = d0 + y(|r| / width) (dwidth - d0),   y a power sigmoid through (midpoint, midpoint)

    Args:
      solimp: five arrays (d0, dwidth, width, midpoint, power), each `[n, *W]`.
      violation: position minus margin `[n, *W]`.

    Returns:
      Impedance in (0, 1), `[n, *W]`.
    """
    # Clamp the parameters to their valid ranges, as MuJoCo does.
    d0, dwidth, width, midpoint, power = solimp
    d0 = jnp.clip(d0, MINIMP, MAXIMP)
    dwidth = jnp.clip(dwidth, MINIMP, MAXIMP)
    midpoint = jnp.clip(midpoint, MINIMP, MAXIMP)
    width = jnp.maximum(width, 0)
    power = jnp.maximum(power, 1)
    flat = width <= MINVAL
    # Normalized violation in [0, 1).
    x = jnp.abs(violation) / jnp.where(flat, 1.0, width)
    inside = x < 1
    x = jnp.where(inside, x, 0.5)
    # 0 ** p has no gradient: rows exactly at their margin are computed separately.
    touching = x == 0
    x = jnp.where(touching, 0.5, x)
    # Power sigmoid: x^p / mid^(p-1) up to the midpoint, 1 - (1-x)^p / (1-mid)^(p-1) beyond. Both
    # sides share one power, which a CPU evaluates element by element.
    rises = x <= midpoint
    end = jnp.where(rises, midpoint, 1 - midpoint)
    part = end * (jnp.where(rises, x, 1 - x) / end) ** power
    y = jnp.where(touching, 0.0, jnp.where(rises, part, 1 - part))
    smooth = d0 + y * (dwidth - d0)
    return jnp.where(flat, 0.5 * (d0 + dwidth), jnp.where(inside, smooth, dwidth))


class ReferenceLaw(NamedTuple):
    """Reference acceleration of a row as a function of its position and velocity.

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
        """Compute the reference acceleration at a position and velocity, `[n, *W]`.

        Under the discrete integrator it is that at the end of the step: the a for which a = -B (v +
        h a) - K imp (r + h v + h^2 a) - drift.

        Args:
          m: model.
          position: r, position minus margin; None: zero.
          speed: v, along the row.
          drift: change of the velocity without acceleration.
        """
        damped = -self.damping * speed - drift
        # Discrete: evaluate the position at the end of the step.
        if is_discrete(m):
            ahead = m.opt.timestep * speed
            position = ahead if position is None else position + ahead
        if position is not None:
            damped = damped - self.stiffness * self.imp * position
        return self.yielding(m) * damped if is_discrete(m) else damped

    def yielding(self, m: Model) -> Array:
        """Return 1 / (1 + h B + h^2 K imp), the factor of rows implicit in the step, `[n, *W]`."""
        h = m.opt.timestep
        return 1 / (1 + h * (self.damping + h * self.stiffness * self.imp))

    def softness(self, m: Model) -> Array:
        """Return the regularization R of the row per unit of its inverse inertia, `[n, *W]`."""
        # R / A = (1 - d) / d; discrete: reduced by the implicit factor.
        soft = (1 - self.imp) / self.imp
        if not is_discrete(m):
            return soft
        return jnp.maximum(self.yielding(m) * soft, (1 - MAXIMP) / MAXIMP)


class Pace(NamedTuple):
    """Standard form of `solref`, (time constant, damping ratio).

    Attributes:
      given: rows that have this form, bool.
      time, ratio: [s], and dimensionless; 1 for the other rows.
    """

    given: jax.Array
    time: jax.Array
    ratio: jax.Array


def time_constants(m: Model, solref: Sequence[Array]) -> Pace:
    """Return time constants and damping ratios as a step uses them: at least two time steps.

    With the flag refsafe disabled, and under the discrete integrator, they are unchanged.
    """
    time, ratio = solref
    given = time > 0
    if not m.opt.disableflags & DisableBit.REFSAFE and not is_discrete(m):
        time = jnp.where(given, jnp.maximum(time, 2 * m.opt.timestep), time)
    return Pace(given, jnp.where(given, time, 1.0), jnp.where(given, ratio, 1.0))


def reference_law(
    m: Model, solref: Sequence[Array], dmax: Array, imp: Array, one_sided: bool = False
) -> ReferenceLaw:
    """Return the law of rows from their parameters.

    A row that is too fast for the time step would gain energy, or rebound: the time constant is at
    least two steps (refsafe). Under the discrete integrator none gains energy; limits and contacts
    that are too fast get the stiffest spring that does not rebound, K imp = 1 / h^2, at the
    specified damping ratio. With the flag refsafe disabled all are unchanged.

    Args:
      m: model, for the time step.
      solref: two arrays `[n, *W]`: (time constant, damping ratio), or both negative: (-stiffness,
        -damping).
      dmax: impedance at full width, `[n, *W]`.
      imp: impedance, `[n, *W]`.
      one_sided: True for limits, and normals of contacts.
    """
    # The time constant is limited to two steps (refsafe).
    time, ratio = solref
    h, (standard, tc, dr) = m.opt.timestep, time_constants(m, solref)
    dmax = jnp.clip(dmax, MINIMP, MAXIMP)
    # K and B of the standard and of the direct form.
    K = jnp.where(standard, 1 / jnp.maximum(MINVAL, (dmax * tc * dr) ** 2), -time / dmax**2)
    damped = ratio > 0
    B = jnp.where(damped, 2 / jnp.maximum(MINVAL, dmax * tc), -ratio / dmax)
    # Discrete: the stiffest spring without rebound.
    if is_discrete(m) and one_sided and not m.opt.disableflags & DisableBit.REFSAFE:
        abrupt = standard & (time * ratio < h)
        firm = jnp.maximum(imp, MINIMP)  # a contact in its smoothing range has a smaller impedance
        K = jnp.where(abrupt, 1 / (h * h * firm), K)
        B = jnp.where(abrupt, 2 * ratio / (h * jnp.sqrt(firm)), B)
    return ReferenceLaw(K, B, imp)


def regularization(soft: Array, weight: Array) -> Array:
    """Compute R of rows: softness times inverse inertia, approximate or exact."""
    return jnp.maximum(MINVAL, soft * weight)


def split_columns(a: Array) -> tuple:
    """Split an `[n, k, *W]` parameter field into k arrays `[n, *W]`."""
    return tuple(a[:, k] for k in range(a.shape[1]))
