"""A bounded cache of compiled programs, one per argument structure.

`jax.jit` of a function that lives as long as its module keeps the programs of all models that it
was ever called with. Here each structure of arguments, which includes that of the model, has a
jitted function of its leaves; when this cache drops the function, JAX drops its programs. The
structure itself stays outside of what `jax.jit` sees, since some of JAX's caches never drop what
they have seen.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax

from jaxsim.cache import bounded_cache

MAX_PROGRAMS = 32  # cached argument structures per function


class ProgramCache:
    """A function compiled as by `jax.jit`, for the most recently used argument structures.

    Args:
      function: takes pytrees of arrays, a Model among them.
      **options: those of `jax.jit`.
    """

    def __init__(self, function: Callable, **options: Any) -> None:
        """Create the cache of compiled functions."""

        @bounded_cache(MAX_PROGRAMS)
        def program_of(structure: jax.tree_util.PyTreeDef) -> Callable:
            @functools.wraps(function)
            def own(*leaves: Any) -> Any:
                return function(*jax.tree.unflatten(structure, leaves))

            del own.__wrapped__  # its signature differs: `own` takes leaves
            return jax.jit(own, **options)

        self._program_of = program_of

    def __call__(self, *operands: Any) -> Any:
        """Return the result of the function, from the program of these arguments."""
        leaves, structure = jax.tree.flatten(operands)
        return self._program_of(structure)(*leaves)
