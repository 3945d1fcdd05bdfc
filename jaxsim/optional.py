"""Import optional dependencies, with an error that names the extra to install."""

import importlib
from types import ModuleType


class MissingExtra(ImportError):
    """A missing optional dependency; the message gives the command that installs it."""


def require(name: str, extra: str) -> ModuleType:
    """Import and return the module of an optional dependency.

    Args:
      name: module name.
      extra: name of the extra of this package that installs it.

    Raises:
      MissingExtra: the module is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra(
            f"this needs {name}: pip install 'jaxsim-engine[{extra}]' ({error})"
        ) from error
