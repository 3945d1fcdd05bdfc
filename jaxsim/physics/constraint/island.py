"""Constraint islands: connected components of trees coupled by constraint rows.

MuJoCo's documentation, Computation: Constraint islands; corresponds to `mj_island`. Islands
determine which trees must fall asleep together (sleep/sleep_islands.py), and the convergence tests
of methods that end before the minimum (solver/islands.py). Newton's method takes all rows at once.
Components are found by label propagation, in a loop whose shape does not depend on the state.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather, running_sum
from jaxsim.enums import ConstraintType, DisableBit
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.collision.driver import Contacts
from jaxsim.physics.collision.flex.contact_bodies import item_trees
from jaxsim.physics.collision.flex.passive import passive_contacts
from jaxsim.physics.constraint.jacobian import DofJacobian
from jaxsim.physics.constraint.rows import ConstraintBlocks, RowBlock, SingleRows
from jaxsim.physics.integrate.discrete import is_discrete
from jaxsim.physics.integrate.tree_couplings import flex_couplings, metric_couplings
from jaxsim.physics.sleep.incidence import (
    Incidence,
    body_incidence,
    dof_incidence,
    equality_incidence,
    joint_incidence,
    tendon_incidence,
)
from jaxsim.trace_context import trace_context

# Incidence of the objects that own the rows of each type.
_ROW_OBJTYPES = {
    ConstraintType.EQUALITY: equality_incidence,
    ConstraintType.FRICTION_DOF: dof_incidence,
    ConstraintType.FRICTION_TENDON: tendon_incidence,
    ConstraintType.LIMIT_JOINT: joint_incidence,
    ConstraintType.LIMIT_TENDON: tendon_incidence,
}


def row_trees(m: Model, block: SingleRows) -> Incidence:
    """Return the trees that each row of a block touches."""
    return _ROW_OBJTYPES[block.type](m).rows(block.ids)


def touched_trees(m: Model, d: Data) -> list[Array]:
    """Return which trees rows, or contacts, touch, block by block `[n, ntree, *W]` bool.

    Inactive rows touch none.
    """
    trees = [_trees_of_rows(m, block) for block in d.rows.single]
    if d.rows.contact is not None:
        trees.append(_trees_of_contacts(m, d.found.contacts))
    pairs = zip(d.rows.blocks, trees, strict=True)
    return [_active(block)[:, None] & of_block for block, of_block in pairs]


def passive_couplings(m: Model, d: Data) -> list[Array]:
    """Return the trees that passive contacts couple, `[ncontact, ntree, *W]` bool; or []."""
    # Pairs of trees of contacts that act passively.
    c = None if d.found is None else d.found.contacts
    passive = None if c is None else passive_contacts(m, c)
    if c is None or passive is None:
        return []
    ties = _trees_of_contacts(m, c) & passive[:, None]
    return [ties & (jnp.sum(ties, axis=1, keepdims=True) > 1)]


def connected_components(rows: ConstraintBlocks, touched: list[Array], ties: list[Array]) -> Array:
    """Return the first tree of each tree's connected component, `[ntree, *W]`.

    Label propagation: each row gives the smallest label of its trees to the others, until no label
    changes; pointer jumping shortens long chains.

    Args:
      rows: the rows of a state, not empty.
      touched: trees that they touch, see `touched_trees`.
      ties: further sets of coupled trees, `[n, ntree, *W]` bool each.
    """
    # Initial labels: each tree is its own component.
    like = [*touched, *ties][0]
    count, *worlds = like.shape[1:]
    own = column(np.arange(count, dtype=np.int32), like[0])
    start = jnp.broadcast_to(own, (count, *worlds))
    blocks = zip(rows.blocks, touched, strict=True)
    several = ties + [t for block, t in blocks if not isinstance(block.J, DofJacobian)]
    if not several:
        return start
    tied = jnp.concatenate(several)

    def propagate_labels(state: tuple[Array, Array]) -> tuple[Array, Array]:
        label, _ = state
        # Propagate the smallest label over each row, then replace each label by its label's label.
        offered = jnp.where(tied, smallest_label(tied, label)[:, None], np.int32(count)).min(axis=0)
        least = jnp.minimum(label, offered)
        least = gather(least, least)
        return least, jnp.any(least != label)

    return lax.while_loop(lambda state: state[1], propagate_labels, (start, jnp.array(True)))[0]


def smallest_label(touched: Array, label: Array) -> Array:
    """Return the smallest label of the trees that each row touches, `[n, *W]`; ntree for none."""
    return jnp.where(touched, label[None], np.int32(len(label))).min(axis=1)


def islands(m: Model, d: Data) -> Data:
    """Number the islands by their first trees; a tree without a row is in none.

    Requires the rows and contacts of `d`. Without the island flag there are no islands, nor among
    sleeping trees. Corresponds to `mj_island` in MuJoCo.
    """
    # Sources of coupling besides rows.
    soft: list[Array] = []
    if not trace_context().fully_asleep:
        soft = [*flex_couplings(m, d.tree_asleep < 0), *passive_couplings(m, d)]
    alone = soft if is_discrete(m) else []  # these make islands without any row
    if (d.rows.empty and not alone) or m.opt.disableflags & DisableBit.ISLAND:
        none = jnp.zeros((1, *d.qpos.shape[1:]), jnp.int32)
        return d.replace(nisland=none, tree_island=jnp.full_like(d.tree_asleep, -1))
    # Trees that are in some island.
    touched, ties = touched_trees(m, d), [*metric_couplings(m, d.qpos), *soft]
    some = d.nefc > 0
    for tie in alone:
        some = some | tie.any(axis=(0, 1))[None]
    bound = jnp.concatenate([*touched, *ties]).any(axis=0) & some
    # Islands are numbered in the order of their first trees.
    first = connected_components(d.rows, touched, ties)
    root = bound & (first == column(np.arange(m.ntree, dtype=np.int32), first))
    number = running_sum(root.astype(jnp.int32)) - 1
    return d.replace(
        nisland=jnp.sum(root, axis=0, keepdims=True, dtype=jnp.int32),
        tree_island=jnp.where(bound, gather(number, first), np.int32(-1)),
    )


def _active(block: RowBlock) -> Array:
    """Return the active rows, or contacts: `[n, *W]` bool."""
    D = block.cost.D
    return (D[0] if isinstance(D, list) else D) > 0


def _trees_of_rows(m: Model, block: SingleRows) -> Array:
    """Return which trees rows touch, `[n, ntree, *W]` bool."""
    ends = row_trees(m, block).tree[:, :, None] == np.arange(m.ntree)
    return jnp.asarray(column(ends.any(axis=1), block.cost.D))


def _trees_of_contacts(m: Model, c: Contacts) -> Array:
    """Return which trees contacts touch, `[ncontact, ntree, *W]` bool."""
    of_body = body_incidence(m).tree[:, 0].astype(np.int32)
    # Trees of both bodies, and of all bodies of a flex element.
    own = column(np.arange(m.ntree, dtype=np.int32), c.dist)[None]
    first, second = (body.values(of_body, c.dist)[:, None] == own for body in c.body)
    touched = first | second
    for item in c.item or ():  # a flex element touches the trees of all its vertices' bodies
        touched = touched | (item.bits(item_trees(m.structure), c.dist) > 0)
    return touched
