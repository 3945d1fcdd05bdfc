"""Import optional dependencies, with an error that gives the command that installs them."""

import importlib
import importlib.metadata
import re
from types import ModuleType

DISTRIBUTION = "jaxsim-engine"
_REQUIREMENT_OF_EXTRA = re.compile(r"(?P<package>[^;]+?)\s*;\s*extra == ['\"](?P<extra>.+)['\"]")


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
        raise MissingExtra(f"this needs {name}; {install_hint(extra)} ({error})") from error


def install_hint(extra: str) -> str:
    """Return how to install an extra: "install the extra 'images': pip install 'pillow>=10.0'".

    The command names the packages, because `pip install 'jaxsim-engine[images]'` needs a package
    index that has jaxsim, and `pip install '.[images]'` needs a clone as working directory.

    Args:
      extra: name of the extra. If the metadata of the installed distribution does not list it
        (not installed, or installed before the extra was added), the command is that of a clone.
    """
    packages = [f"'{package}'" for package in _packages_of_extra(extra)]
    what = " ".join(packages) or f"'.[{extra}]' in a clone of jaxsim"
    return f"install the extra '{extra}': pip install {what}"


def _packages_of_extra(extra: str) -> list[str]:
    """Return the requirements of an extra, as "pillow>=10.0", of the installed distribution."""
    try:
        requirements = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    matches = map(_REQUIREMENT_OF_EXTRA.fullmatch, requirements)
    return [match["package"] for match in matches if match and match["extra"] == extra]
