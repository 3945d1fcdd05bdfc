"""Making a value once.

XLA's loop fusion on CPU recomputes a cheap value in every loop that uses it, and along a chain of
values the repetitions multiply. A value that passes through a conditional is made once, whatever its
users. The predicate has to be unknown to the compiler and true: a comparison with a number of the state.
On other platforms fusion does not duplicate work that way, and a conditional there would wait for
the host; there `pin` does nothing.
"""

import jax
import jax.numpy as jnp
from jax import lax


def pin(tree, witness):
    """The same values, each computed exactly once.

    Args:
      tree: arrays to keep.
      witness: an array with worlds last, of which one finite number is read.
    """
    if jax.default_backend() != "cpu" or witness.ndim < 2:
        return tree
    true = witness.reshape(-1)[0] < jnp.inf
    return lax.cond(true, lambda t: t, lambda t: jax.tree.map(lambda a: a * jnp.nan, t), tree)
