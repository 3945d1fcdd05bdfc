"""Adhesion of contacts, the attraction as a passive force.

MuJoCo's documentation, Computation: Constraint model, Adhesion. The other part is the reference of
the normal rows (constraint/contact/rows.py), which lets them balance this force but not exceed it.
"""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply_transpose
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.collision.contact_list import contacts_of
from jaxsim.physics.collision.flex.passive import passive_contacts
from jaxsim.physics.collision.params import has_adhesion
from jaxsim.physics.constraint.contact.basis import basis_jacobian


def adhesion_force(m: Model, d: Data) -> Array:
    """Compute the generalized force of attraction of adhesive contacts, `[nv, *W]`.

    qfrc_adhesion = -sum over contacts of (normal Jacobian)' adhesion
    """
    c = contacts_of(m, d) if m.nv and has_adhesion(m) else None
    if c is None or c.adhesion is None:
        return jnp.zeros_like(d.qvel)
    passive = passive_contacts(m, c)  # passive contacts do not adhere
    sticks = c.exists if passive is None else c.exists & ~passive
    (normal,) = basis_jacobian(m, d, c, 1)
    # Adhesion acts along the negative normal.
    return -apply_transpose(normal, jnp.where(sticks, c.adhesion, 0))
