"""Islands: trees that constraint rows tie together, directly or through others.

MuJoCo's documentation, Computation: Constraint islands. The solver takes all rows at once; islands
say which trees have to fall asleep together (sleep/asleep.py).
"""

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.enums import ConstraintType, DisableBit
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import column, pick, take
from jaxsim.physics.collision.driver import Contacts
from jaxsim.physics.constraint.rows import SingleRows
from jaxsim.physics.sleep.incidence import Incidence, bodies, dofs, equalities, joints, tendons
from jaxsim.physics.sleep.trees import in_trees

# what the rows of each type are of
OWNERS = {
    ConstraintType.EQUALITY: equalities,
    ConstraintType.FRICTION_DOF: dofs,
    ConstraintType.FRICTION_TENDON: tendons,
    ConstraintType.LIMIT_JOINT: joints,
    ConstraintType.LIMIT_TENDON: tendons,
}


def row_trees(m: Model, block: SingleRows) -> Incidence:
    """The trees that each row of a block touches."""
    return OWNERS[block.type](m).rows(block.ids)


def islands(m: Model, d: Data) -> Data:
    """Numbers the islands by their first trees; a tree without a row is in none.

    Needs the rows and contacts of `d`. Without the island flag there are none.
    """
    if m.opt.disableflags & DisableBit.ISLAND:
        none = jnp.zeros((1, *d.qpos.shape[1:]), jnp.int32)
        return d.replace(nisland=none, tree_island=jnp.full_like(d.tree_asleep, -1))
    bound, tied = _bound(m, d)
    own = column(np.arange(m.ntree, dtype=np.int32), d.tree_asleep)
    first = _connected(tied | (own[:, None] == own[None]))
    root = (bound & (first == own)).astype(jnp.int32)
    number = lax.cumsum(root) - 1
    return d.replace(
        nisland=jnp.sum(root, axis=0, keepdims=True, dtype=jnp.int32),
        tree_island=jnp.where(bound, pick(number, first), np.int32(-1)),
    )


def _bound(m: Model, d: Data) -> tuple[Array, Array]:
    """Trees that some row touches, `[ntree, *W]` bool; pairs of them, `[ntree, ntree, *W]`."""
    bound = jnp.zeros(d.tree_asleep.shape, bool)
    tied = jnp.zeros((m.ntree, *bound.shape), bool)
    for block in d.rows.single:
        active, tree = block.cost.D > 0, row_trees(m, block).tree
        for end in tree.T:
            bound = bound | in_trees(end, active, m.ntree)
        two = np.flatnonzero(tree[:, 1] >= 0)
        if len(two):
            ends = tree[two][:, :, None] == np.arange(m.ntree)
            ends = column(ends.any(axis=1), active)
            tied = tied | _pairs(take(active, two)[:, None] & ends)
    if d.found is not None:
        touches = _touched(m, d.found.contacts)
        bound, tied = bound | touches.any(axis=0), tied | _pairs(touches)
    return bound, tied


def _touched(m: Model, c: Contacts) -> Array:
    """Which trees each contact touches, `[ncontact, ntree, *W]` bool."""
    of_body = bodies(m).tree[:, 0].astype(np.int32)
    own = column(np.arange(m.ntree, dtype=np.int32), c.dist)[None]
    first, second = (body.values(of_body, c.dist)[:, None] == own for body in c.body)
    return (first | second) & c.active[:, None]


def _pairs(touches: Array) -> Array:
    """Trees that the same thing touches, `[n, ntree, *W]` bool -> `[ntree, ntree, *W]`."""
    touches = touches.astype(jnp.float32)
    return jnp.einsum("ci...,cj...->ij...", touches, touches) > 0


def _connected(near: Array) -> Array:
    """The first tree that each can be reached from, `[n, n, *W]` bool -> `[n, *W]`.

    Each tree takes the first of its neighbors, then what that one has, until nothing changes.
    """
    n = near.shape[0]
    own = column(np.arange(n, dtype=np.int32), near[0])

    def turn(state):
        label, _ = state
        least = jnp.min(jnp.where(near, label[None], np.int32(n)), axis=1)
        least = pick(least, least)
        return least, jnp.any(least != label)

    start = jnp.broadcast_to(own, near.shape[1:])
    label, _ = lax.while_loop(lambda state: state[1], turn, (start, jnp.array(True)))
    return label
