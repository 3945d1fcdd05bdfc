"""What the tables of a model say of its flexes, for the compiler, the options and the physics."""

from typing import Any

import numpy as np


def asks_passive(passive: Any, dim: Any, rigid: Any) -> np.ndarray:
    """Which flexes ask for passive contacts; of rods and of what is rigid it says nothing.

    Args:
      passive, dim, rigid: `flex_passive`, `flex_dim`, `flex_rigid`, of one flex or of several.
    """
    return (np.asarray(passive) != 0) & (np.asarray(dim) > 1) & ~np.asarray(rigid, bool)


def meet(m: Any, one: str, other: str) -> np.ndarray:
    """Which of one kind and of another have bits in common.

    Args:
      m: a model or its tables, of which `contype` and `conaffinity` count.
      one, other: "geom" or "flex".

    Returns:
      `[n, k]` bool: a bit of the type of one is in the affinity of the other.
    """
    type1, affinity1, type2, affinity2 = (
        np.asarray(getattr(m, f"{kind}_{what}"))
        for kind in (one, other)
        for what in ("contype", "conaffinity")
    )
    return ((type1[:, None] & affinity2) | (affinity1[:, None] & type2)) != 0
