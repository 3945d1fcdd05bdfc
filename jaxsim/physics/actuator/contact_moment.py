"""Moments of actuators that act on the contacts of a body: adhesion.

MuJoCo's documentation, Computation: Transmission, body; XML reference: actuator/adhesion.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import sum_items
from jaxsim.arrays.products import gram
from jaxsim.enums import DisableBit
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.candidates.pairs import candidate_pairs
from jaxsim.physics.collision.candidates.plan import collision_layout
from jaxsim.physics.collision.contact_list import contacts_of
from jaxsim.physics.collision.driver import Contacts
from jaxsim.physics.collision.flex.contact_bodies import is_geom_contact
from jaxsim.physics.collision.smooth import smooth_distance
from jaxsim.physics.constraint.contact.basis import basis_jacobian
from jaxsim.physics.topology import ancestors


def contact_moment(m: Model, d: Data, body: np.ndarray) -> Array:
    """Compute the moments of a unit attraction that is shared by all contacts of a body.

        moment = -mean over the contacts of the body of their normal Jacobians

    Contacts in the gap are included, since the attraction acts across it. Without contacts the
    moment is zero. Smoothed contacts are weighted, so that distant ones have a part of the force.

    Args:
      m: model.
      d: data with contacts.
      body: constant `[k]` bodies.

    Returns:
      `[k, nv, *W]`.
    """
    c = contacts_of(m, d) if m.nv else None
    if c is None:
        return jnp.zeros((len(body), m.nv, *d.qpos.shape[1:]), d.qpos.dtype)
    (normal,) = basis_jacobian(m, d, c._replace(item=None), 1)  # flexes are excluded
    # Membership of contacts and bodies, weighted for smoothed contacts; then the mean.
    first, second = (c.each(b)[:, None] for b in c.body)
    wanted = body.astype(np.int32).reshape(1, -1, *(1,) * (c.dist.ndim - 1))
    member = ((first == wanted) | (second == wanted)) & _sharing_contacts(m, c)[:, None]
    member = member.astype(c.dist.dtype)
    if c.smooth is not None:
        member = member * smooth_distance(c.dist - c.includemargin, c.smooth, c.exists)[1][:, None]
    number = sum_items(member)[0]
    mean = gram(member, normal) / jnp.maximum(number, 1)[:, None]
    return -mean


def _sharing_contacts(m: Model, c: Contacts) -> Array:
    """Return the contacts that share the force, `[ncontact, *W]` bool.

    Excluded are contacts between geoms that no dof moves relative to each other, and, as in MuJoCo,
    those of flexes.
    """
    if c.item is not None:
        return c.exists & is_geom_contact(c) & (c.active | _is_in_gap(c))
    if collision_layout(m).moved.all():
        return c.exists
    return c.exists & (c.active | _is_in_gap(c))


def _is_in_gap(c: Contacts) -> Array:
    in_gap = c.dist >= c.includemargin
    return in_gap if c.adhesion is None else in_gap & (c.adhesion == 0)


@cache_by_structure
def touched_dofs(s: Structure) -> np.ndarray:
    """Return the dofs that a contact of a body can act on, with any flags, [nbody, nv] bool."""
    # Body pairs that can be in contact under any flags.
    pairs = candidate_pairs(s, int(DisableBit.FILTERPARENT))
    first, second = np.unique(
        np.stack([s.geom_bodyid[pairs.geom1], s.geom_bodyid[pairs.geom2]]), axis=1
    )
    moves = ancestors(s).astype(bool)
    # A contact acts on the dofs that move exactly one of the bodies.
    pushed = moves[first] ^ moves[second]
    touched = np.zeros((s.nbody, s.nv), bool)
    np.logical_or.at(touched, first, pushed)
    np.logical_or.at(touched, second, pushed)
    return touched
