"""Constraint islands of a state, independent of sleeping."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.model.data import JUST_AWAKE, Data
from jaxsim.model.model import Model
from jaxsim.model.shaped import Int
from jaxsim.physics.constraint.cone import Pyramid
from jaxsim.physics.constraint.island import islands, smallest_label, touched_trees
from jaxsim.physics.query.constraint_rows import add_ordered_rows


class Island(NamedTuple):
    """Constraint islands, with MuJoCo's numbering.

    Attributes:
      nisland: number of islands, ().
      tree_island: island of each tree, (ntree,); -1: no constraint.
      dof_island: island of each dof, (nv,); -1: no constraint.
      efc_island: island of each row of `constraint_rows`, (n,); -1: not active.
    """

    nisland: Int[Array, ""]
    tree_island: Int[Array, "ntree"]
    dof_island: Int[Array, "nv"]
    efc_island: Int[Array, "rows"]


def island(m: Model, d: Data) -> Island:
    """Find the constraint islands at the state of `d`; none without the flag `island`.

    Corresponds to `mj_island` in MuJoCo.
    """
    if d.tree_asleep is None:
        awake = jnp.full((m.ntree, *d.qpos.shape[1:]), JUST_AWAKE, jnp.int32)
        d = d.replace(tree_asleep=awake)
    d = islands(m, add_ordered_rows(m, d))
    of_tree = d.tree_island
    return Island(d.nisland[0], of_tree, gather_static(of_tree, m.dof_treeid), _row_islands(m, d))


def _row_islands(m: Model, d: Data) -> Array:
    """Return the island of each row in MuJoCo's order, by the trees that it touches."""
    # Trees without constraints get a label above all islands.
    none = np.int32(m.ntree)
    label = jnp.where(d.tree_island < 0, none, d.tree_island)
    # Label of each row: the island of the first tree that it acts on.
    *rows, last = [label[:0], *(smallest_label(trees, label) for trees in touched_trees(m, d))]
    if d.rows.contact is None:
        out = gather_static(jnp.concatenate([*rows, last]), d.rows.order)
    else:
        cost = d.rows.contact.cost
        # Rows of contacts are active where their D is positive.
        D = [edge.D for edge in cost.rows] if isinstance(cost, Pyramid) else cost.D
        of_contacts = jnp.where(jnp.stack(D, axis=1) > 0, last[:, None], none)
        single = gather_static(jnp.concatenate(rows), d.rows.order)
        out = jnp.concatenate([single, of_contacts.reshape(-1, *last.shape[1:])])
    return jnp.where(out == none, np.int32(-1), out)
