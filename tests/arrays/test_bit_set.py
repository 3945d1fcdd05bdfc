"""Sets of numbers in two words, against sets of Python."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.bit_set import bit_set, count_members, is_empty, pop_first


def test_members_are_popped_in_ascending_order():
    rng = np.random.default_rng(0)
    pop = jax.jit(pop_first)
    for share in (0.0, 0.1, 0.5, 1.0):
        flags = rng.random(60) < share
        flags[[0, 31, 32]] |= share > 0  # the ends of the words
        members = bit_set(jnp.asarray(flags)[:, None])
        assert int(count_members(members)) == flags.sum()
        popped = []
        while not is_empty(members):
            member, members = pop(members)
            popped.append(int(member))
        assert popped == np.flatnonzero(flags).tolist()
