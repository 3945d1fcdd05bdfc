"""One computation per kind of item: items are grouped by kind, computed, and permuted back."""

from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static


def compute_by_kind(kind: np.ndarray, table: Mapping[Any, Callable], like: Array) -> Array:
    """Compute values of items whose formula depends on their kind.

    Args:
      kind: kind of each item `[n]`, a constant table.
      table: formula of each kind, `ids [k] -> [k, *W]`.
      like: an array `[..., *W]`, for the worlds and the dtype.

    Returns:
      `[n, *W]`, in the order of the items.
    """
    ids = [np.flatnonzero(kind == k) for k in np.unique(kind)]
    pieces = [table[kind[i[0]]](i) for i in ids]
    if not pieces:
        return like[:0]
    return gather_static(concatenate_kinds(pieces), np.argsort(np.concatenate(ids)))


def concatenate_kinds(pieces: list) -> Array:
    """Concatenate arrays along the items; broadcast shared ones unless all are shared."""
    if len(pieces) == 1:
        return pieces[0]
    worlds = np.broadcast_shapes(*(p.shape[1:] for p in pieces))
    return jnp.concatenate([jnp.broadcast_to(p, (p.shape[0], *worlds)) for p in pieces])
