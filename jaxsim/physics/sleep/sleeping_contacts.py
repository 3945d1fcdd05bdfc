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
from jaxsim.physics.collision.driver import CollisionResult, choose_contacts, has_free_slots
from jaxsim.physics.collision.flex.contact_bodies import set_contact_bodies
from jaxsim.physics.collision.params import ContactParams
from jaxsim.physics.collision.shape import CandidatePoints
from jaxsim.physics.sleep.cycle import woken_by
from jaxsim.physics.sleep.incidence import Incidence, body_incidence, surface_incidence
from jaxsim.physics.sleep.trees import tree_awake


def wake_by_contacts(
    m: Model,
    d: Data,
    points: CandidatePoints,
    dropped: Array | int,
    params: ContactParams,
    plan: CollisionLayout,
) -> tuple[Data, CollisionResult]:
    """Select the contacts of a state, and wake the trees that they couple to awake ones.

    Args:
      m: model.
      d: data.
      points: candidate contacts of all geoms.
      dropped: number of pairs beyond a budget.
      params: parameters of the candidate pairs.
      plan: plan of the collision stage.
    """
    may_move = has_free_slots(m)
    # Contacts with at least one awake side wake the other side.
    one, _ = _pairs_awake(m, d, plan)
    touching = choose_contacts(_restrict_to_pairs(points, one), dropped, params, plan, may_move)
    d = d.replace(tree_asleep=_wake_touched(m, d, touching))
    # Final contacts: no side asleep.
    one, both = _pairs_awake(m, d, plan)
    awake = _restrict_to_pairs(points, one & both)
    return d, choose_contacts(awake, dropped, params, plan, may_move)


def _pairs_awake(m: Model, d: Data, plan: CollisionLayout) -> tuple[Array, Array]:
    """Return the pairs with an awake side, and those without a sleeping one; `[npairs, *W]`."""
    # Mocap bodies do not keep flexes awake.
    trees = tree_awake(d)
    of_flex = plan.pairs.geom2 >= m.ngeom
    sides = [surface_incidence(m).rows(ids) for ids in (plan.pairs.geom1, plan.pairs.geom2)]
    sides = [Incidence(side.tree, side.always & ~of_flex) for side in sides]
    first, second = (side.awake(trees) for side in sides)
    # Static objects do not sleep.
    static = [column((side.tree[:, 0] < 0) & ~side.always, trees) for side in sides]
    one, both = first | second, (first | static[0]) & (second | static[1])
    return one, jnp.where(column(of_flex, one), one, both) if of_flex.any() else both


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
