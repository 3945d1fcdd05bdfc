"""Optional libraries, imported where they are used."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import jax


def extra(name: str) -> ModuleType:
    """An optional library.

    Raises:
      ImportError: it is not installed; says how it is.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ImportError(
            f"this needs {name}, of the extra 'control': pip install 'jaxsim-engine[control]'"
        ) from None


@contextmanager
def their_types() -> Iterator[None]:
    """Lets code of others promote types and ranks where the caller has forbidden it."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield
