"""Awake masks of trees, dofs, coordinates and bodies.

MuJoCo's documentation, Programming: Sleeping islands. The sleep state of a world is `tree_asleep`:
for an awake tree a negative number that counts up to sleep, for a sleeping tree the id of the next
tree that fell asleep with it, so that these form a cycle (cycle.py has an example):

    fall_asleep (sleep_islands.py)             the wake_* functions (wake.py, sleeping_contacts.py)
    -11 -> -10 -> ... -> -1 -> id of the next  ->  -11
    at rest for ten steps, with its island         disturbed, or coupled to an awake tree

All worlds run the same program: sleeping trees are computed along with awake ones, and their
results are discarded. Where every tree of every world sleeps, stages are traced without what
follows from motion (trace_context.py).
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static, weighted_sum
from jaxsim.enums import EnableBit, SleepState
from jaxsim.model.data import JUST_AWAKE, Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.sleep.incidence import body_incidence
from jaxsim.trace_context import trace_context


def can_sleep(m: Model) -> bool:
    """Return True if the trees of a model may sleep."""
    return bool(m.opt.enableflags & EnableBit.SLEEP) and m.ntree > 0


def all_awake(m: Model, d: Data) -> Data:
    """Set all trees awake, for a model whose flag is off; such a model has no islands."""
    if d.tree_asleep is None or not m.ntree:
        return d
    awake = update_sleep_counts(m, d.replace(tree_asleep=jnp.full_like(d.tree_asleep, JUST_AWAKE)))
    none = jnp.zeros_like(awake.ntree_awake)
    return awake.replace(nisland=none, tree_island=jnp.full_like(d.tree_asleep, -1))


def can_wake(m: Model) -> bool:
    """Return True if trees can sleep and wake in the program being traced."""
    return can_sleep(m) and not trace_context().fully_asleep


def tree_awake(d: Data) -> Array:
    """Return which trees are awake, `[ntree, *W]` bool."""
    asleep = tree_asleep(d)
    return jnp.zeros(asleep.shape, bool) if trace_context().fully_asleep else asleep < 0


def tree_asleep(d: Data) -> Array:
    """Return `tree_asleep`, `[ntree, *W]`.

    Raises:
      ValueError: the data was made when the flag was off.
    """
    if d.tree_asleep is None:
        raise ValueError(
            "d.tree_asleep: this Data was made without the sleep flag; make it with make_data of "
            "the model that has it"
        )
    number: jax.Array = d.tree_asleep
    return number


def dof_awake(m: Model, d: Data) -> Array:
    """Return which dofs are awake, `[nv, *W]` bool."""
    return _awake_by_tree(d, m.dof_treeid)


def freeze_sleeping(m: Model, before: Data, d: Data, names: tuple[str, ...]) -> Data:
    """Restore results of sleeping dofs to those with which they fell asleep.

    Args:
      m: model.
      before: data with the old results; fields that it does not keep are new.
      d: data with the new results.
      names: fields `[nv, *W]`.
    """
    olds = {name: old for name in names if (old := getattr(before, name)) is not None}
    if trace_context().fully_asleep:
        return d.replace(**olds)
    # Old values where the dof sleeps.
    awake = dof_awake(m, d)
    return d.replace(
        **{name: jnp.where(awake, getattr(d, name), old) for name, old in olds.items()}
    )


def qpos_awake(m: Model, d: Data) -> Array:
    """Return which coordinates of qpos are awake, `[nq, *W]` bool."""
    return _awake_by_tree(d, qpos_tree(m))


def _awake_by_tree(d: Data, tree: np.ndarray) -> Array:
    """Return which objects of one tree each are awake, bool."""
    awake = tree_awake(d)
    return (
        jnp.zeros((len(tree), *awake.shape[1:]), bool)
        if trace_context().fully_asleep
        else gather_static(awake, tree)
    )


def trees_with_objects(tree: np.ndarray, objects: Array, ntree: int) -> Array:
    """Return which trees have at least one of some objects.

    Args:
      tree: constant `[n]`, tree of each object; -1: none.
      objects: mask of the objects, bool `[n, *W]`.
      ntree: number of trees.

    Returns:
      bool `[ntree, *W]`.
    """
    # Product with the membership table of trees and objects.
    member = tree[None] == np.arange(ntree)[:, None]
    return weighted_sum(member, objects.astype(jnp.float32)) > 0


@cache_by_structure
def qpos_tree(s: Structure) -> np.ndarray:
    """Return the tree of each coordinate of qpos [nq]."""
    joint = np.searchsorted(s.jnt_qposadr, np.arange(s.nq), side="right") - 1
    return s.body_treeid[s.jnt_bodyid[joint]]


def update_sleep_counts(m: Model, d: Data) -> Data:
    """Fill the fields that report the sleep state of trees, bodies and dofs."""
    # Static bodies have a state of their own.
    trees, of = tree_awake(d), body_incidence(m)
    static = (of.tree[:, 0] < 0) & ~of.always
    state = jnp.where(of.awake(trees), np.int32(SleepState.AWAKE), np.int32(SleepState.ASLEEP))
    state = jnp.where(column(static, state), np.int32(SleepState.STATIC), state)

    def number(mask: Array) -> Array:
        return jnp.sum(mask, axis=0, keepdims=True, dtype=jnp.int32)

    return d.replace(
        tree_awake=trees.astype(jnp.int32),
        body_awake=state,
        ntree_awake=number(trees),
        nbody_awake=number(state != SleepState.ASLEEP),
        nv_awake=number(dof_awake(m, d)),
    )
