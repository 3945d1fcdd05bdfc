"""Terms common to limits of joints and tendons: sides, distances and rows."""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column
from jaxsim.model.model import Model
from jaxsim.physics.constraint.cost import OneSided
from jaxsim.physics.constraint.impedance import impedance, reference_law
from jaxsim.physics.constraint.rows import Terms


def limit_sides(limited: np.ndarray, hasmargin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return limited objects once per row, and the side: -1 lower, 1 upper, 0 the nearer one.

    Without a margin only one side can be active at a time, so that one row serves both.
    """
    # Objects with one row come first, then lower and upper sides of the others.
    both = hasmargin[limited].astype(bool)
    ones = np.ones(both.sum(), int)
    item = np.concatenate([limited[~both], limited[both], limited[both]])
    return item, np.concatenate([np.zeros((~both).sum(), int), -ones, ones])


def signed_limit_distance(value: Array, span: Array, side: np.ndarray) -> tuple[Array, Array]:
    """Return the distance of a value to the limit of its range, and the sign of its derivative.

    Args:
      value: `[n, *W]`.
      span: lower and upper bound `[n, 2, *W]`.
      side: constant `[n]`, as from `limit_sides`.

    Returns:
      Distance `[n, *W]`, negative outside; 1 for the lower side and -1 for the upper, `[n, *W]`.
    """
    # Select the side of each row, or the nearer one.
    below, above = value - span[:, 0], span[:, 1] - value
    which = column(side, value)
    upper = jnp.where(which == 0, above < below, which > 0)
    return jnp.where(upper, above, below), jnp.where(upper, -1.0, 1.0).astype(value.dtype)


def limit_terms(
    m: Model,
    solref: tuple[Array, Array],
    solimp: tuple[Array, ...],
    dist: Array,
    margin: Array,
    speed: Array,
    invweight: Array,
) -> Terms:
    """Return the terms of limit rows, which are active within their margin.

    Args:
      m: model.
      solref, solimp: parameters of the rows, by columns, `[n, *W]` each.
      dist: distance to the limit, `[n, *W]` [m or rad].
      margin: distance at which the limit becomes active, `[n, *W]` [m or rad].
      speed: rate of change of the distance, `[n, *W]` [m/s or rad/s].
      invweight: approximate inverse inertia, `[n, *W]` [1/kg or 1/(kg m^2)].
    """
    # Limits are one-sided rows in the distance less the margin.
    beyond = dist - margin
    spring = reference_law(m, solref, solimp[1], impedance(solimp, beyond), one_sided=True)
    aref, soft = spring.reference(m, beyond, speed), spring.softness(m)
    return Terms(OneSided, dist < margin, aref, soft, invweight, dist, margin)
