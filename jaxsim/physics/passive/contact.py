"""Contacts of flexes that are passive forces: springs along their normals, without friction.

MuJoCo's documentation, XML reference: flex/contact/passive. With the Jacobian J of the motion along
the normal, the distance r of the surfaces and a mass m of what touches

    qfrc_spring += J' k max(-r, 0),   k = omega^2 m

Of vertices m is the least mass among those that touch, and of those of the elements that do; of an
interpolated flex, whose nodes have the masses m_i and the shares w_i in the motion of the contact,

    m = (number of nodes / number of vertices) / sum(w_i^2 / m_i)

and of two sides the less. A mass is the inertia of the first dof of a body with three; others have
none, and do not count. A step sees the stiffness of all contacts that there are, those also whose
surfaces are still apart (integrate/metric.py). Their energy is not counted.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import DisableBit
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.bilinear import apply, apply_transpose
from jaxsim.physics.arrays.products import gram
from jaxsim.physics.arrays.select import column, diagonal, take
from jaxsim.physics.collision.driver import Contacts
from jaxsim.physics.collision.flex.item import MOST, item_corners, item_flex
from jaxsim.physics.collision.flex.passive import passive_contacts, passive_flexes
from jaxsim.physics.collision.flex.shares import corner_shares, node_shares
from jaxsim.physics.collision.ids import Ids
from jaxsim.physics.collision.listed import contacts_of
from jaxsim.physics.collision.smooth import felt
from jaxsim.physics.constraint.contact.basis import basis_jacobian

OMEGA2 = 5e7  # the square of a frequency [1/s^2]
NO_MASS = 1e30  # more than any: what has none does not decide


class ContactSprings(NamedTuple):
    """The passive contacts of a state.

    Attributes:
      normal: J, `[ncontact, nv, *W]`.
      stiffness: k `[ncontact, *W]` [N/m]; 0 of a contact that has rows, or does not exist; of
        smooth contacts (collision/smooth.py) minus the slope of the force.
      push: the force along the normal, `[ncontact, *W]` [N].
    """

    normal: jax.Array
    stiffness: jax.Array
    push: jax.Array

    def force(self) -> Array:
        """Generalized force `[nv, *W]`."""
        return apply_transpose(self.normal, self.push)

    def matrix(self) -> Array:
        """J' k J, `[nv, nv, *W]`."""
        return gram(self.normal, self.stiffness[:, None] * self.normal)

    def along(self, velocity: Array) -> Array:
        """J' k J of a velocity, `[nv, *W]`."""
        return apply_transpose(self.normal, self.stiffness * apply(self.normal, velocity))


def contact_springs(m: Model, d: Data) -> ContactSprings | None:
    """The passive contacts; None: there can be none, or springs and dampers are both disabled."""
    off = DisableBit.SPRING | DisableBit.DAMPER
    if m.opt.disableflags & off == off or not m.nv or not passive_flexes(m.structure).any():
        return None
    c = contacts_of(m, d)
    passive = None if c is None else passive_contacts(m, c)
    if c is None or passive is None:
        return None
    (normal,) = basis_jacobian(m, d, c, 1)
    stiffness = jnp.where(passive, OMEGA2 * _mass(m, d, c), 0)
    dist = jnp.where(passive, c.dist, 0)
    if c.smooth is None:
        return ContactSprings(normal, stiffness, stiffness * jnp.maximum(-dist, 0))
    dist, weight = felt(dist, c.smooth, passive)
    return ContactSprings(normal, stiffness * weight, stiffness * jnp.maximum(-dist, 0))


def _mass(m: Model, d: Data, c: Contacts) -> Array:
    """The mass that the stiffness of contacts goes by, `[ncontact, *W]`; of none 0."""
    assert c.item is not None
    inertia = diagonal(d.M)
    least = jnp.full_like(c.dist, NO_MASS)
    for item in c.item:
        if (np.asarray(m.flex_interp) == 0).any():
            least = jnp.minimum(least, item.take(_of_items(m, inertia)))
        if (np.asarray(m.flex_interp) != 0).any():
            least = jnp.minimum(least, _of_nodes(m, d, c, item, inertia))
    return jnp.where(least < NO_MASS, least, 0)


def _of_items(m: Model, inertia: Array) -> Array:
    """The least mass of the vertices of each item, and of no item, `[k, *W]`."""
    dof, own = _own_dofs(m, np.asarray(m.flex_vertbodyid))
    of_vertex = jnp.where(column(own, inertia), take(inertia, dof), NO_MASS)
    table = item_corners(m.structure)
    least = take(of_vertex, table[:, 0])
    for k in range(1, MOST):
        least = jnp.minimum(least, take(of_vertex, table[:, k]))
    return jnp.concatenate([least, jnp.full_like(inertia[:1], NO_MASS)])


def _of_nodes(m: Model, d: Data, c: Contacts, item: Ids, inertia: Array) -> Array:
    """The mass of what moves with interpolated flexes, `[ncontact, *W]`."""
    dof, own = _own_dofs(m, np.asarray(m.flex_nodebodyid))
    inverse = jnp.where(column(own, inertia), 1 / take(inertia, dof), 0)
    share = node_shares(m, item, *corner_shares(m, d, c, item))
    mobility = jnp.sum(share * share * inverse[None], axis=1)
    moves = mobility > 0
    ratio = item.values(_nodes_by_vertex(m.structure), c.dist)
    return jnp.where(moves, ratio / jnp.where(moves, mobility, 1), NO_MASS)


def _own_dofs(m: Model, body: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first dof of bodies, and which bodies have three; -1 is no body."""
    own = (body >= 0) & (np.asarray(m.body_dofnum)[body] == 3)
    return np.where(own, np.asarray(m.body_dofadr)[body], 0), own


@derived
def _nodes_by_vertex(s: Structure) -> np.ndarray:
    """[nflexelem + nflexvert + 1]: nodes with a mass, for each vertex of the flex of an item."""
    body = np.asarray(s.flex_nodebodyid)
    own = np.asarray(s.body_dofnum)[body] == 3
    first = np.asarray(s.flex_nodeadr)
    count = [np.sum(own[a : a + n]) for a, n in zip(first, s.flex_nodenum, strict=True)]
    ratio = np.array(count, float) / np.asarray(s.flex_vertnum)
    return np.append(ratio[item_flex(s)], 0.0)
