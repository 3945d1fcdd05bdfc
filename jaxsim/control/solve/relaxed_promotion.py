"""Third-party code under a caller's strict promotion rules."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax


@contextmanager
def relaxed_promotion() -> Iterator[None]:
    """Allow third-party code to promote types and ranks where the caller forbids it."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield
