"""Bounded caches of function results, so that a service that loads many models does not grow.

Results that belong to one model are stored with its structure (`Structure.cache`) and freed with
it. Results keyed by anything else use `bounded_cache`, which drops the least recently used entry.
Compiled programs are keyed by structures: see `jaxsim.transforms.program_cache`.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

_FunctionT = TypeVar("_FunctionT", bound=Callable[..., Any])


def bounded_cache(most: int) -> Callable[[_FunctionT], _FunctionT]:
    """Return a decorator that caches the results of a function, least recently used dropped first.

    Args:
      most: maximum number of cached results; 1 for a function without arguments.

    Raises:
      ValueError: `most` is less than 1.
    """
    if most < 1:
        raise ValueError(f"bounded: most: expected at least 1, got {most}")
    cached: Any = functools.lru_cache(maxsize=most)
    return cached
