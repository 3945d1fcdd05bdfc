"""Lowest versions of all packages that pyproject.toml asks for, one line each, for pip.

    python tests/minimum.py > minimum.txt

`make test-minimum` installs them and runs MINIMUM_TESTS of the Makefile: what pyproject.toml
promises is what has been run.
"""

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
# Extras whose packages are large, and those of developers: they are not in this environment.
LEFT_OUT = ("suite", "brax", "dm-env", "playground", "sb3", "bench", "dev", "docs", "export")
_REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+)\s*(>=|==|~=)\s*([0-9][0-9.]*)(,\s*<[0-9.]+)?")


def requirements() -> dict[str, list[str]]:
    """Return the requirements of pyproject.toml by list: "" for the core, else the extra."""
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    return {"": project["dependencies"], **project["optional-dependencies"]}


def lowest(requirement: str) -> tuple[str, str]:
    """The package of a requirement, and its lowest version.

    Raises:
      ValueError: it has none.
    """
    found = _REQUIREMENT.fullmatch(requirement)
    if found is None:
        raise ValueError(f"'{requirement}': expected a name, >= and the lowest version")
    return found[1].lower().replace("_", "-"), found[3]


def minimum() -> dict[str, str]:
    """The lowest version of every package of the environment, by name."""
    lists = [given for extra, given in requirements().items() if extra not in LEFT_OUT]
    return dict(lowest(requirement) for given in lists for requirement in given)


if __name__ == "__main__":
    print("\n".join(f"{name}=={version}" for name, version in sorted(minimum().items())))
