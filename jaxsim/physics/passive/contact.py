"""Passive contacts of flexes: springs along the contact normals, without friction.

MuJoCo's documentation, XML reference: flex/contact/passive. With the Jacobian J of the motion along
the normal, the distance r of the surfaces and an effective mass m of the contact

    qfrc_spring += J' k max(-r, 0),   k = omega^2 m

For vertices m is the smallest mass of those in contact, or of those of the elements in contact. For
an interpolated flex, whose nodes have the masses m_i and the weights w_i in the motion of the
contact,

    m = (number of nodes / number of vertices) / sum(w_i^2 / m_i)

and for two sides the smaller. A mass is the inertia of the first dof of a body with three dofs;
other bodies do not count. The stiffness of all contacts contributes to the inertia of a discrete
step, including those whose surfaces are still apart (integrate/metric.py). Their energy is not
counted.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply, apply_transpose
from jaxsim.arrays.gather import column, diagonal, gather_static
from jaxsim.arrays.products import gram
from jaxsim.enums import DisableBit
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.contact_ids import IdArray
from jaxsim.physics.collision.contact_list import contacts_of
from jaxsim.physics.collision.driver import Contacts
from jaxsim.physics.collision.flex.flex_jacobian import corner_shares, node_shares
from jaxsim.physics.collision.flex.item import MAX_ELEMENT_VERTICES, item_corners, item_flex
from jaxsim.physics.collision.flex.passive import passive_contacts, passive_flexes
from jaxsim.physics.collision.smooth import smooth_distance
from jaxsim.physics.constraint.contact.basis import basis_jacobian

FREQUENCY_SQUARED = 5e7  # squared frequency [1/s^2]
NO_MASS = 1e30  # larger than any mass: points without a mass do not decide


class ContactSprings(NamedTuple):
    """Passive contacts of a state.

    Attributes:
      normal: J, `[ncontact, nv, *W]`.
      stiffness: k `[ncontact, *W]` [N/m]; 0 for a contact with rows, or that does not exist; for
        smoothed contacts (collision/smooth.py) minus the slope of the force.
      push: force along the normal, `[ncontact, *W]` [N].
    """

    normal: jax.Array
    stiffness: jax.Array
    push: jax.Array

    def force(self) -> Array:
        """Compute the generalized force `[nv, *W]`."""
        return apply_transpose(self.normal, self.push)

    def matrix(self) -> Array:
        """Compute J' k J, `[nv, nv, *W]`."""
        return gram(self.normal, self.stiffness[:, None] * self.normal)

    def times_velocity(self, velocity: Array) -> Array:
        """Compute J' k J times a velocity, `[nv, *W]`."""
        return apply_transpose(self.normal, self.stiffness * apply(self.normal, velocity))


def contact_springs(m: Model, d: Data) -> ContactSprings | None:
    """Return the passive contacts; None: not possible, or springs and dampers are both disabled."""
    off = DisableBit.SPRING | DisableBit.DAMPER
    if m.opt.disableflags & off == off or not m.nv or not passive_flexes(m.structure).any():
        return None
    c = contacts_of(m, d)
    passive = None if c is None else passive_contacts(m, c)
    if c is None or passive is None:
        return None
    (normal,) = basis_jacobian(m, d, c, 1)
    # k = omega^2 m of passive contacts; zero for contacts with constraint rows.
    stiffness = jnp.where(passive, FREQUENCY_SQUARED * _mass(m, d, c), 0)
    dist = jnp.where(passive, c.dist, 0)
    if c.smooth is None:
        return ContactSprings(normal, stiffness, stiffness * jnp.maximum(-dist, 0))
    dist, weight = smooth_distance(dist, c.smooth, passive)
    return ContactSprings(normal, stiffness * weight, stiffness * jnp.maximum(-dist, 0))


def _mass(m: Model, d: Data, c: Contacts) -> Array:
    """Compute the effective mass of contacts, `[ncontact, *W]`; 0 without any mass."""
    assert c.item is not None
    inertia = diagonal(d.M)
    least = jnp.full_like(c.dist, NO_MASS)
    # Take the smaller mass of the two sides, over plain and interpolated flexes.
    for item in c.item:
        if (np.asarray(m.flex_interp) == 0).any():
            least = jnp.minimum(least, item.take(_smallest_vertex_mass(m, inertia)))
        if (np.asarray(m.flex_interp) != 0).any():
            least = jnp.minimum(least, _node_effective_mass(m, d, c, item, inertia))
    # No body with a mass of its own touches: stiffness zero.
    return jnp.where(least < NO_MASS, least, 0)


def _smallest_vertex_mass(m: Model, inertia: Array) -> Array:
    """Return the smallest mass of each item's vertices, with an entry for no item, `[k, *W]`."""
    dof, own = _own_dofs(m, np.asarray(m.flex_vertbodyid))
    # Mass of each vertex: inertia of the first dof of a body with three dofs.
    of_vertex = jnp.where(column(own, inertia), gather_static(inertia, dof), NO_MASS)
    table = item_corners(m.structure)
    # Minimum over the corners of each element; the item of a single vertex repeats it.
    least = gather_static(of_vertex, table[:, 0])
    for k in range(1, MAX_ELEMENT_VERTICES):
        least = jnp.minimum(least, gather_static(of_vertex, table[:, k]))
    # The extra last entry represents "no item".
    return jnp.concatenate([least, jnp.full_like(inertia[:1], NO_MASS)])


def _node_effective_mass(m: Model, d: Data, c: Contacts, item: IdArray, inertia: Array) -> Array:
    """Compute the effective mass of interpolated flexes at contacts, `[ncontact, *W]`."""
    dof, own = _own_dofs(m, np.asarray(m.flex_nodebodyid))
    inverse = jnp.where(column(own, inertia), 1 / gather_static(inertia, dof), 0)
    # sum(w_i^2 / m_i) over the nodes, with the shares w_i of each node in the contact's motion.
    share = node_shares(m, item, *corner_shares(m, d, c, item))
    mobility = jnp.sum(share * share * inverse[None], axis=1)
    moves = mobility > 0
    # (number of nodes / number of vertices) of the flex.
    ratio = item.values(_nodes_by_vertex(m.structure), c.dist)
    return jnp.where(moves, ratio / jnp.where(moves, mobility, 1), NO_MASS)


def _own_dofs(m: Model, body: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first dof of bodies, and which bodies have three; -1 is no body."""
    own = (body >= 0) & (np.asarray(m.body_dofnum)[body] == 3)
    return np.where(own, np.asarray(m.body_dofadr)[body], 0), own


@cache_by_structure
def _nodes_by_vertex(s: Structure) -> np.ndarray:
    """Return the number of nodes with a mass per vertex, for the flex of each item."""
    body = np.asarray(s.flex_nodebodyid)
    own = np.asarray(s.body_dofnum)[body] == 3
    first = np.asarray(s.flex_nodeadr)
    count = [np.sum(own[a : a + n]) for a, n in zip(first, s.flex_nodenum, strict=True)]
    ratio = np.array(count, float) / np.asarray(s.flex_vertnum)
    # The extra last entry represents "no item".
    return np.append(ratio[item_flex(s)], 0.0)
