"""Falling asleep: trees that rest for a while, with all that are tied to them.

MuJoCo's documentation, Programming: Sleeping islands, Sleeping.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import SleepPolicy
from jaxsim.model.data import AWAKE, Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import column
from jaxsim.physics.sleep.wake import calm


def fall_asleep(m: Model, d: Data) -> tuple[Array, Array]:
    """Counts the steps for which trees are calm; puts those to sleep that all are ready.

    Returns:
      The new `tree_asleep`, and the trees that fall asleep, bool; `[ntree, *W]` each.
    """
    number = d.tree_asleep
    rested = number + (number < -1).astype(number.dtype)
    rested = jnp.where(calm(m, d, m.opt.sleep_tolerance), rested, np.int32(AWAKE))
    return _by_island(d, jnp.where(number < 0, rested, number))


def start_asleep(m: Model, d: Data) -> tuple[Array, Array]:
    """The same at the start of a world: the trees that begin asleep are ready, others have begun
    to count. One that cannot sleep, because an island has others, is awake."""
    begins = column(m.tree_sleep_policy == SleepPolicy.INIT, d.qpos)
    rested = jnp.where(calm(m, d, m.opt.sleep_tolerance), np.int32(AWAKE + 1), np.int32(AWAKE))
    new, falls = _by_island(d, jnp.where(begins, np.int32(-1), rested))
    return jnp.where(begins & ~falls, np.int32(AWAKE), new), falls


def _by_island(d: Data, number: Array) -> tuple[Array, Array]:
    """Trees at -1 sleep if all of their island are there; each then has the number of the next.

    Where there are rows but no islands, which are off, nothing changes.
    """
    n = len(number)
    island = d.tree_island
    own = np.arange(n)
    same = (island[:, None] == island[None]) & (island[:, None] >= 0)
    same = same | column(own[:, None] == own[None], number)
    ready = number == -1
    falls = (ready[None] | ~same).all(axis=1)

    # distance to the next tree of the island, around the end; alone it is next to itself
    ahead = column(((own[None] - own[:, None] - 1) % n).astype(np.int32), number)
    steps = jnp.min(jnp.where(same, ahead, np.int32(n)), axis=1)
    follower = (steps + column(own.astype(np.int32), number) + 1) % n
    may = (d.nefc == 0) | (d.nisland > 0)
    falls = falls & may
    return jnp.where(falls, follower, jnp.where(may, number, d.tree_asleep)), falls
