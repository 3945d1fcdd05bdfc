"""Code of others under the strict rules of a caller."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax


@contextmanager
def their_types() -> Iterator[None]:
    """Let code of others promote types and ranks where the caller has forbidden it."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield
