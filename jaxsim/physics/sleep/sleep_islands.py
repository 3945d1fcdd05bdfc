"""Putting islands of resting trees to sleep.

MuJoCo's documentation, Programming: Sleeping islands, Sleeping; corresponds to `mj_sleep`.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column
from jaxsim.enums import SleepPolicy
from jaxsim.model.data import JUST_AWAKE, Data
from jaxsim.model.model import Model
from jaxsim.physics.sleep.wake import resting_trees


def fall_asleep(m: Model, d: Data) -> tuple[Array, Array]:
    """Count the steps for which trees are at rest, and put islands to sleep whose trees are ready.

    Returns:
      The new `tree_asleep`, and the trees that fall asleep, bool; `[ntree, *W]` each.
    """
    number = d.tree_asleep
    # Count up to -1 at rest; back to AWAKE otherwise.
    rested = number + (number < -1).astype(number.dtype)
    rested = jnp.where(resting_trees(m, d, m.opt.sleep_tolerance), rested, np.int32(JUST_AWAKE))
    return _sleep_by_island(d, jnp.where(number < 0, rested, number))


def start_asleep(m: Model, d: Data) -> tuple[Array, Array]:
    """Put trees with policy INIT to sleep at the start of a world.

    They count as ready, other trees start counting. A tree that cannot sleep, because others in its
    island do not, is awake. Returns as `fall_asleep`.
    """
    begins = column(m.tree_sleep_policy == SleepPolicy.INIT, d.qpos)
    # Trees that are not put to sleep start counting.
    rested = jnp.where(
        resting_trees(m, d, m.opt.sleep_tolerance), np.int32(JUST_AWAKE + 1), np.int32(JUST_AWAKE)
    )
    new, falls = _sleep_by_island(d, jnp.where(begins, np.int32(-1), rested))
    return jnp.where(begins & ~falls, np.int32(JUST_AWAKE), new), falls


def _sleep_by_island(d: Data, number: Array) -> tuple[Array, Array]:
    """Put trees at -1 to sleep if all of their island are at -1, linked in a cycle.

    In a world with rows but without islands (flag `island` off) nothing changes.
    """
    # A tree falls asleep if all trees of its island are ready.
    n = len(number)
    island = d.tree_island
    own = np.arange(n)
    same = (island[:, None] == island[None]) & (island[:, None] >= 0)
    same = same | column(own[:, None] == own[None], number)
    ready = number == -1
    falls = (ready[None] | ~same).all(axis=1)

    # Link each tree to the next one of its island, cyclically; a single tree to itself.
    ahead = column(((own[None] - own[:, None] - 1) % n).astype(np.int32), number)
    steps = jnp.min(jnp.where(same, ahead, np.int32(n)), axis=1)
    follower = (steps + column(own.astype(np.int32), number) + 1) % n
    may = (d.nefc == 0) | (d.nisland > 0)
    falls = falls & may
    return jnp.where(falls, follower, jnp.where(may, number, d.tree_asleep)), falls
