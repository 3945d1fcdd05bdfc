"""Packages of others that only some users need."""

import importlib
from types import ModuleType


class MissingExtra(ImportError):
    """A package that only some users need is not installed; the message says how to get it."""


def needed(name: str, extra: str) -> ModuleType:
    """Return a package of an extra.

    Raises:
      MissingExtra: it is not installed; names the extra.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra(
            f"this needs {name}: pip install 'jaxsim-engine[{extra}]' ({error})"
        ) from error
