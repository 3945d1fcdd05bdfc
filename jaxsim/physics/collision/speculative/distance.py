"""The effective distance of a speculative contact: a constraint that stops exactly the overshoot.

MuJoCo's documentation, Computation: Speculative contacts (Effective contact distance).
"""

from collections.abc import Sequence

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.enums import MAXIMP, MINIMP, MINVAL, DisableBit
from jaxsim.model.model import Model
from jaxsim.physics.collision.params import ContactParams
from jaxsim.physics.constraint.impedance import time_constants
from jaxsim.physics.discrete import is_discrete


def effective_distance(m: Model, params: ContactParams, t: Array, closing: Array) -> Array:
    """Return the distance at which a row removes 1 - t of the approach speed in one step.

        dist = margin - closing (1 - t - b) / k

    with stiffness k and damping b of one step. Under the discrete integrator, which divides by 1 +
    b + k, the numerator is 1 - t - t (b + k). Without stiffness it is one impedance width below the
    margin.

    Args:
      m: model.
      params: parameters of the pairs, `[n, *W]`.
      t: time of impact, as a fraction of the step.
      closing: approach speed, per step [m].
    """
    k, b = _row_stiffness_damping(m, params.solref, params.solimp[1])
    damped = t * (b + k) if is_discrete(m) else b
    firm = k > MINVAL
    depth = closing * (1 - t - damped) / jnp.where(firm, k, 1.0)
    return params.margin - jnp.where(firm, depth, params.solimp[2])


def _row_stiffness_damping(m: Model, solref: Sequence[Array], dmax: Array) -> tuple[Array, Array]:
    """Return stiffness h^2 K d^2 and damping h B d of a row, d its largest impedance.

    They are those of the rows (constraint/impedance.py), which are limited to stable values unless
    the flag refsafe is disabled.
    """
    # Standard (positive) or direct (negative) format of solref.
    time, ratio = solref
    h, (standard, tc, dr) = m.opt.timestep, time_constants(m, solref)
    k = jnp.where(standard, (h / jnp.maximum(MINVAL, tc * dr)) ** 2, -time * h * h)
    b = jnp.where(ratio > 0, 2 * h / tc, -ratio * h)
    if is_discrete(m) and not m.opt.disableflags & DisableBit.REFSAFE:
        # Refsafe: limit the stiffness and keep the damping ratio.
        stiffest = jnp.clip(dmax, MINIMP, MAXIMP)
        abrupt = standard & (k > stiffest)
        b = jnp.where(abrupt, 2 * dr * jnp.sqrt(stiffest), b)
        k = jnp.where(abrupt, stiffest, k)
    return k, b
