"""Packages of others that only some users need."""

import importlib
from types import ModuleType


def needed(name: str, extra: str) -> ModuleType:
    """A package of an extra.

    Raises:
      ImportError: it is not installed; names the extra.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"this needs {name}: pip install 'jaxsim-engine[{extra}]' ({error})"
        ) from error
