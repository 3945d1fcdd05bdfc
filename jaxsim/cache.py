"""Caches of functions, each with a bound: a service that loads many models does not grow.

What belongs to one model is kept with its structure, `Structure.cache`, and goes with it. What is
keyed by something else is kept by `bounded`, which drops what was used longest ago. Programs are
keyed by structures: `jaxsim.physics.arrays.programs`.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def bounded(most: int) -> Callable[[Function], Function]:
    """Return a decorator that keeps the results of a function for its last arguments.

    Args:
      most: how many results are kept; 1 for a function without arguments.
    """
    if most < 1:
        raise ValueError(f"bounded: most: expected at least 1, got {most}")
    cached: Any = functools.lru_cache(maxsize=most)
    return cached
