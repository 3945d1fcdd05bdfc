"""Contacts of sleeping trees: only with awake objects, and these wake the trees.

MuJoCo runs its collision stage a second time when a tree has woken. Here all candidate contacts are
detected once, and only the selection among them is repeated. A flex is awake as soon as one of its
trees is, and then all of it can touch. As in MuJoCo mocap bodies do not wake flexes.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.collision.candidates.plan import CollisionLayout
from jaxsim.physics.collision.driver import (
    CandidatePoints,
    CollisionResult,
    choose_contacts,
    has_free_slots,
)
from jaxsim.physics.collision.flex.contact_bodies import set_contact_bodies
from jaxsim.physics.collision.params import ContactParams
from jaxsim.physics.sleep.cycle import woken_by
from jaxsim.physics.sleep.incidence import Incidence, body_incidence, surface_incidence
from jaxsim.physics.sleep.trees import tree_awake


def wake_by_contacts(
    m: Model,
    d: Data,
    points: CandidatePoints,
    lost: Array | int,
    params: ContactParams,
    plan: CollisionLayout,
) -> tuple[Data, CollisionResult]:
    """Select the contacts of a state, and wake the trees that they couple to awake ones.

    Args:
      m: model.
      d: data.
      points: candidate contacts of all geoms.
      lost: number of pairs dropped for lack of capacity.
      params: parameters of the candidate pairs.
      plan: plan of the collision stage.
    """
    # Contacts with at least one awake side wake the other side.
    one, both = _awake(m, d, plan)
    free = has_free_slots(m)
    touching = choose_contacts(_restrict_to_pairs(points, one), lost, params, plan, free)
    d = d.replace(tree_asleep=_wake_touched(m, d, touching))
    # Final contacts: no side asleep.
    one, both = _awake(m, d, plan)
    return d, choose_contacts(_restrict_to_pairs(points, one & both), lost, params, plan, free)


def _awake(m: Model, d: Data, plan: CollisionLayout) -> tuple[Array, Array]:
    """Return the pairs with an awake side, and those without a sleeping one; `[npairs, *W]`."""
    # Mocap bodies do not keep flexes awake.
    trees = tree_awake(d)
    soft = plan.pairs.geom2 >= m.ngeom
    sides = [surface_incidence(m).rows(ids) for ids in (plan.pairs.geom1, plan.pairs.geom2)]
    sides = [Incidence(side.tree, side.always & ~soft) for side in sides]
    first, second = (side.awake(trees) for side in sides)
    # Static objects do not sleep.
    still = [column((side.tree[:, 0] < 0) & ~side.always, trees) for side in sides]
    one, both = first | second, (first | still[0]) & (second | still[1])
    return one, jnp.where(column(soft, one), one, both) if soft.any() else both


def _restrict_to_pairs(points: CandidatePoints, pairs: Array) -> CandidatePoints:
    """Restrict the points to some pairs, `[npairs, *W]` bool."""
    return points._replace(found=points.found & points.pair.take(pairs))


def _wake_touched(m: Model, d: Data, found: CollisionResult) -> Array:
    """Return `tree_asleep` after contacts with awake objects."""
    # Bodies and trees of both sides of each contact.
    c, of = found.contacts, body_incidence(m)
    c = c if c.item is None else set_contact_bodies(m, c)
    first, second = (body.values(of.tree[:, 0].astype(np.int32), c.dist) for body in c.body)
    moved = [body.values(of.always, c.dist) for body in c.body]
    always = jnp.where(first >= 0, moved[1], moved[0])
    return woken_by(d.tree_asleep, first, second, c.exists, always)
