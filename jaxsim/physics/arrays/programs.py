"""Compiled programs of a function that lives as long as its module, of the last models only.

`jax.jit` of such a function keeps the programs of all models that it was ever called with. Here
each structure of arguments has a function of its own, of their leaves: when this cache drops it,
JAX drops its programs. The structure of arguments, which has that of the model in it, stays outside
of what `jax.jit` sees, since some of JAX's own caches keep what they saw.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax

from jaxsim.cache import bounded

MAX_PROGRAMS = 32  # structures of arguments that are kept, of each function


class Programs:
    """A function that is compiled as by `jax.jit`, for the structures that were used last.

    Args:
      function: takes arrays and trees of them, a Model among them.
      **options: those of `jax.jit`.
    """

    def __init__(self, function: Callable, **options: Any) -> None:
        @bounded(MAX_PROGRAMS)
        def of(structure: jax.tree_util.PyTreeDef) -> Callable:
            @functools.wraps(function)
            def own(*leaves: Any) -> Any:
                return function(*jax.tree.unflatten(structure, leaves))

            del own.__wrapped__  # its arguments are others
            return jax.jit(own, **options)

        self._of = of

    def __call__(self, *operands: Any) -> Any:
        """Return what the function does, by the program of these arguments."""
        leaves, structure = jax.tree.flatten(operands)
        return self._of(structure)(*leaves)
