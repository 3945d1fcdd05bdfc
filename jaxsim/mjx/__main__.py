"""Run an unmodified program written for MJX on jaxsim: `python -m jaxsim.mjx program.py [...]`.

Before the run, names of MJX in the program without a counterpart are listed, with a replacement
for each; after it, names without a counterpart that the program or its imports looked up.
"""

import ast
import importlib
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

from jaxsim.mjx.inner.missing_names import MJX_PACKAGE, asked_names
from jaxsim.mjx.replace_imports import MJX_MODULE, replace_mjx_modules

USAGE = "usage: python -m jaxsim.mjx PROGRAM.py [ARGUMENT ...]"


def main(arguments: list[str]) -> int:
    """Run a program; return the exit status if it does not begin."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print_message(USAGE)
        return 0 if arguments else 2
    program = Path(arguments[0])
    if not program.is_file():
        print_message(f"{program}: no such file; {USAGE}")
        return 2
    replace_mjx_modules()
    lacking = list(lacking_names(program))
    for line, message in lacking:
        print_message(f"{program}:{line}: {message}")
    asked_names.clear()
    sys.argv = arguments
    sys.path.insert(0, str(program.parent))
    try:
        runpy.run_path(str(program), run_name="__main__")
    finally:
        printed = {message for _, message in lacking}
        for message in asked_names.values():
            if message not in printed:
                print_message(f"{program}: asked for in vain: {message}")
    return 0


def print_message(line: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"{line}\n")


def lacking_names(program: Path) -> Iterator[tuple[int, str]]:
    """Yield line and message of each name of MJX in a program that has no counterpart."""
    tree = ast.parse(program.read_text(), str(program))
    known: dict[str, str] = {}  # modules or names of MJX by the names in the program
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == MJX_MODULE or alias.name.startswith(f"{MJX_MODULE}."):
                    known[alias.asname or alias.name] = alias.name
                    yield from _missing_name_messages(node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if name == MJX_MODULE or name.startswith(f"{MJX_MODULE}."):
                    known[alias.asname or alias.name] = name
                    yield from _missing_name_messages(node.lineno, name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            first, _, rest = ast.unparse(node).partition(".")
            if first in known and _name_exists(known[first]):
                yield from _missing_name_messages(
                    node.lineno, f"{known[first]}.{rest}", single=True
                )


def _missing_name_messages(line: int, name: str, single: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the message for a dotted name of MJX if a part of it does not exist."""
    try:
        _resolve(name, single)
    except (AttributeError, ImportError) as error:
        yield line, str(error)


def _name_exists(name: str) -> bool:
    return not list(_missing_name_messages(0, name))


def _resolve(name: str, single: bool) -> None:
    """Look up a name of MJX in jaxsim.mjx; of a chain, only the attributes of modules."""
    owner = importlib.import_module(MJX_PACKAGE)
    *path, last = name.removeprefix(MJX_MODULE).split(".")[1:] or [""]
    for part in path:
        owner = getattr(owner, part)
        if not hasattr(owner, "__path__"):
            return  # an attribute of an object, not of a module
    if last:
        getattr(owner, last)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
