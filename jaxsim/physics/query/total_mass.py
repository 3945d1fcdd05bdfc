"""Total mass of a model."""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.enums import MINVAL
from jaxsim.model.model import Model
from jaxsim.model.shaped import Float
from jaxsim.physics.public.arguments import check_model


def get_total_mass(m: Model) -> Float[Array, ""]:
    """Return the sum of the masses of all bodies, () [kg]."""
    check_model("get_total_mass", m)
    return jnp.sum(m.body_mass)


def set_total_mass(m: Model, newmass: Float[Array, ""] | float) -> Model:
    """Return the model with all masses and inertias scaled to a given total mass.

    Derived fields (`body_subtreemass`, inverse weights, ...) are unchanged: call `jaxsim.set_const`
    afterwards, as in MuJoCo.

    Args:
      m: the model.
      newmass: total mass of all bodies, () [kg].
    """
    check_model("set_total_mass", m)
    mass = jnp.asarray(newmass, m.body_mass.dtype)
    scale = jnp.maximum(mass, MINVAL) / jnp.maximum(jnp.sum(m.body_mass), MINVAL)
    return m.replace(body_mass=m.body_mass * scale, body_inertia=m.body_inertia * scale)
