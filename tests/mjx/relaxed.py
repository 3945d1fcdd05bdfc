"""MJX as it is used: without the strictness of these tests."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax


@contextmanager
def as_mjx_is_used() -> Iterator[None]:
    """Types and ranks are promoted, which MJX counts on."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield
