"""Strict numbers for every test: float64, no rank promotion, no implicit dtype promotion.

Compiled programs are kept in `.cache/jax`, so that a second run of the tests only traces.
"""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import pytest

from jaxsim.errors import UnsupportedError, UnsupportedWarning
from jaxsim.model.make_data import make_data
from jaxsim.model.model import Model

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "jax"

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
jax.config.update("jax_platforms", "cpu")


@pytest.fixture(autouse=True, scope="module")
def programs_of_one_file() -> Iterator[None]:
    """Drops what a file has compiled: the programs of all files together take many gigabytes."""
    yield
    jax.clear_caches()
    gc.collect()


@pytest.fixture
def refused():
    """What a model cannot be simulated for: a warning when it is made, an error before it moves."""

    def messages(make: Callable[[], Model]) -> list[str]:
        with pytest.warns(UnsupportedWarning):
            m = make()
        with pytest.raises(UnsupportedError) as caught:
            make_data(m)
        return [str(problem) for problem in caught.value.problems]

    return messages
