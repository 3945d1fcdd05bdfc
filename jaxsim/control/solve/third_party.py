"""Code of other packages: relaxed promotion rules, and least squares by optimistix."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.control.solve.levenberg_marquardt import Solution
from jaxsim.optional import require


@contextmanager
def relaxed_promotion() -> Iterator[None]:
    """Allow third-party code to promote types and ranks where the caller forbids it."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def minimize_with_optimistix(
    residual: Callable[[jax.Array], jax.Array],
    solver: Any,
    x: jax.Array,
    *,
    iterations: int,
    extra: str,
) -> Solution:
    """Minimize half the sum of the squares of a residual by a least-squares solver of optimistix.

    Args:
      residual: from unknowns (n,) to rows; differentiated in forward mode.
      solver: a solver of optimistix.
      x: the start, (n,).
      iterations: maximal number of iterations.
      extra: the extra that installs optimistix, for the message if it is missing.

    Raises:
      ImportError: optimistix is not installed.
    """
    optimistix = require("optimistix", extra)
    with relaxed_promotion():
        found = optimistix.least_squares(
            lambda x, _: residual(x),
            solver,
            x,
            options={"jac": "fwd"},
            max_steps=iterations,
            throw=False,
        )
    r = residual(found.value)
    cost = 0.5 * jnp.sum(r * r)
    return Solution(
        found.value,
        jnp.where(jnp.isfinite(cost), cost, jnp.inf),
        jnp.full((iterations,), jnp.nan, x.dtype),
        jnp.asarray(found.stats["num_steps"], jnp.int32),
        found.result == optimistix.RESULTS.successful,
        None,
    )
