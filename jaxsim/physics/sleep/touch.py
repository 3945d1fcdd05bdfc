"""Contacts of trees that sleep: there are none but with what is awake, and those wake the trees.

MuJoCo looks for contacts a second time when some tree has woken. Here the points at which things
may touch are found once, and only the choice among them is made again.

A flex is awake as soon as one of its trees is, and then all of it may touch. MuJoCo does not wake
it by a mocap body.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import column
from jaxsim.physics.collision.candidates.plan import Layout
from jaxsim.physics.collision.driver import Found, Points, choose, has_free_places
from jaxsim.physics.collision.flex.sides import with_sides
from jaxsim.physics.collision.params import ContactParams
from jaxsim.physics.sleep.cycle import woken_by
from jaxsim.physics.sleep.incidence import Incidence, bodies, surfaces
from jaxsim.physics.sleep.trees import tree_awake


def rouse(
    m: Model, d: Data, points: Points, lost: Array | int, params: ContactParams, plan: Layout
) -> tuple[Data, Found]:
    """The contacts of a state, and the trees that they wake.

    Args:
      m: model.
      d: data.
      points: candidate contacts of all geoms.
      lost: number of pairs for which there was no place.
      params: parameters of the candidate pairs.
      plan: the plan of the collisions.
    """
    one, both = _awake(m, d, plan)
    free = has_free_places(m)
    touching = choose(_only(points, one), lost, params, plan, free)
    d = d.replace(tree_asleep=_woken(m, d, touching))
    one, both = _awake(m, d, plan)
    return d, choose(_only(points, one & both), lost, params, plan, free)


def _awake(m: Model, d: Data, plan: Layout) -> tuple[Array, Array]:
    """Of which pairs one side is awake, and of which none is asleep; `[npairs, *W]` bool."""
    trees = tree_awake(d)
    soft = plan.pairs.geom2 >= m.ngeom
    sides = [surfaces(m).rows(ids) for ids in (plan.pairs.geom1, plan.pairs.geom2)]
    sides = [Incidence(side.tree, side.always & ~soft) for side in sides]
    first, second = (side.awake(trees) for side in sides)
    # what has no tree does not sleep
    still = [column((side.tree[:, 0] < 0) & ~side.always, trees) for side in sides]
    one, both = first | second, (first | still[0]) & (second | still[1])
    return one, jnp.where(column(soft, one), one, both) if soft.any() else both


def _only(points: Points, pairs: Array) -> Points:
    """The points of some pairs, `[npairs, *W]` bool."""
    return points._replace(found=points.found & points.pair.take(pairs))


def _woken(m: Model, d: Data, found: Found) -> Array:
    """`tree_asleep` after contacts with what is awake."""
    c, of = found.contacts, bodies(m)
    c = c if c.item is None else with_sides(m, c)
    first, second = (body.values(of.tree[:, 0].astype(np.int32), c.dist) for body in c.body)
    moved = [body.values(of.always, c.dist) for body in c.body]
    always = jnp.where(first >= 0, moved[1], moved[0])
    return woken_by(d.tree_asleep, first, second, c.exists, always)
