"""Terms common to rows of dry friction of dofs and tendons."""

from functools import partial

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.model.model import Model
from jaxsim.physics.constraint.cost import Huber
from jaxsim.physics.constraint.impedance import impedance, reference_law
from jaxsim.physics.constraint.rows import Terms


def friction_terms(
    m: Model,
    solref: tuple[Array, Array],
    solimp: tuple[Array, ...],
    floss: Array,
    speed: Array,
    invweight: Array,
) -> Terms:
    """Return the terms of dry friction rows, which only damp; inactive where floss is zero.

    Args:
      m: model.
      solref, solimp: parameters of the rows, by columns.
      floss: bound of their force `[n, *W]` [N or N m].
      speed: velocity along the rows.
      invweight: approximate inverse inertia.
    """
    # Dry friction has no stiffness: impedance at zero violation, damping only.
    imp = impedance(solimp, jnp.zeros_like(speed))
    damps = reference_law(m, solref, solimp[1], imp)._replace(stiffness=jnp.zeros_like(imp))
    aref, soft = damps.reference(m, None, speed), damps.softness(m)
    return Terms(partial(Huber, floss=floss), floss > 0, aref, soft, invweight)
