"""Forces of the contacts in the list of a Data, for inspection.

They follow from what `d` carries: contacts, poses and velocities of the state in which the contacts
were detected, and `qacc`. With PGS, no-slip iterations, the flag diagexact, or the integrators RK4
and discrete the list stores them. They belong to the same state as the list: after `forward` to
that in `d`, after `step` to the one before it (with RK4 to its last stage).
"""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.model.contact import Contact
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.shaped import Float, Int
from jaxsim.physics.body.inertia import motion_axes
from jaxsim.physics.body.point_motion import chosen_velocity
from jaxsim.physics.collision.candidates.plan import collision_layout
from jaxsim.physics.collision.contact_list import contacts_from_list, gather_world_items
from jaxsim.physics.collision.driver import Contacts
from jaxsim.physics.constraint.contact.jacobian import contact_jacobian
from jaxsim.physics.constraint.contact.rows import basis_size, rows_at, surface_force


def contact_force(m: Model, d: Data, contact: Int[Array, ""]) -> Float[Array, "6"]:
    """Return force and torque of one contact on its second geom, in the contact frame.

    The force is that between the surfaces: with adhesion the normal force may be negative.
    Corresponds to `mj_contactForce` in MuJoCo.

    Args:
      m: model.
      d: data after `forward` or `step`.
      contact: its index in `d.contact`; the result is zero if there is no such contact.

    Returns:
      (6,): along normal and tangents [N], about them [N m].
    """
    count = d.contact.dist.shape[0]
    there = (contact >= 0) & (contact < count)
    if not count:
        return jnp.zeros((6, *d.qacc.shape[1:]), d.qacc.dtype)
    # An id out of range reads contact 0 and returns zero.
    at = jnp.broadcast_to(jnp.where(there, contact, 0), (1, *d.qacc.shape[1:]))
    return jnp.where(there, _forces(m, d, gather_world_items(d.contact, at))[0], 0)


def contact_forces(m: Model, d: Data) -> Float[Array, "ncontact 6"]:
    """Return forces and torques of all contacts in `d.contact`, (ncontact, 6), see `contact_force`.

    Entries without a contact are zero.
    """
    return _forces(m, d, d.contact)


def _forces(m: Model, d: Data, contact: Contact) -> Array:
    """Compute the forces of contacts, `[ncontact, 6, *W]`."""
    # The list stores the forces where they do not follow from qacc.
    if m.lists_contact_forces:
        if contact.force is None:
            raise ValueError(
                "contact_force: this Data was made for a model with other options, whose forces "
                "follow from qacc; use make_data"
            )
        return contact.force
    # Rebuild the rows of the listed contacts, and evaluate their cost at `qacc`.
    c = contacts_from_list(m, contact)
    if not m.nv or not len(collision_layout(m).pairs.dim):
        return jnp.zeros((len(c.dist), 6, *c.dist.shape[1:]), c.dist.dtype)
    d = d.replace(cdof=motion_axes(m, d, gather_static(d.subtree_com, m.body_rootid)))
    size = basis_size(m)
    J = contact_jacobian(m, d, c, size)
    velocity = _velocity(m, d, c)[:size] if c.item is None else J.times(d.qvel)
    rows = rows_at(m, d, c, J, velocity)
    # Force at the residual J qacc - aref.
    residual = rows.minus_reference(rows.J.times(d.qacc))
    force = surface_force(c, rows.cost.at(residual).force)
    zero = jnp.zeros_like(c.dist)
    return jnp.stack([*force, *[zero] * (6 - size)], axis=1)


def _velocity(m: Model, d: Data, c: Contacts) -> list:
    """Return the velocity of the second body relative to the first, in the contact frames."""
    first, second = (chosen_velocity(m, d, c.each(body), c.pos) for body in c.body)
    apart = second - first
    return [*(c.frame @ apart.lin).parts, *(c.frame @ apart.rot).parts]
