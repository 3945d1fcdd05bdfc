"""Items, slices and updates of arrays at traced indices that are never negative.

By default JAX lets a negative index count from the end, which takes a comparison, a sum and a
selection for each traced index: a seventh of the operations of a step with convex hulls. The
indices of the physics are not negative, so its code uses these functions. As in JAX, a slice that
would reach past the end begins earlier.
"""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array

dynamic_slice = functools.partial(lax.dynamic_slice, allow_negative_indices=False)
dynamic_slice_in_dim = functools.partial(lax.dynamic_slice_in_dim, allow_negative_indices=False)
dynamic_index_in_dim = functools.partial(lax.dynamic_index_in_dim, allow_negative_indices=False)
dynamic_update_slice = functools.partial(lax.dynamic_update_slice, allow_negative_indices=False)
dynamic_update_slice_in_dim = functools.partial(
    lax.dynamic_update_slice_in_dim, allow_negative_indices=False
)
dynamic_update_index_in_dim = functools.partial(
    lax.dynamic_update_index_in_dim, allow_negative_indices=False
)


def take(table: Array, *index: Array | np.ndarray | int) -> Array:
    """Return the items `table[index]`, all of which exist."""
    place = jnp.asarray(table).at[index]
    return place.get(mode="promise_in_bounds", wrap_negative_indices=False)


def take_clipped(table: Array, *index: Any) -> Array:
    """Return the items `table[index]`; an index past the end, or below 0, gives an end."""
    return jnp.asarray(table).at[index].get(mode="clip", wrap_negative_indices=False)
