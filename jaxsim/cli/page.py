"""Generate the reference page of the public names, in the order of `jaxsim/__init__.py`.

python -m jaxsim.cli.page > docs/reference/api.md
"""

import ast
import dataclasses
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from jaxsim.model.data import Data
from jaxsim.physics.stage import STAGES

_PACKAGE = Path(__file__).resolve().parent.parent
_HEAD = """# Public names of jaxsim

Made from `jaxsim/__init__.py` and the docstrings by `python -m jaxsim.cli.page`; do not edit.
The docstrings have the details: `help(jaxsim.step)`. The fields of the records are in
`docs/reference/fields.md`, the equations in `docs/physics/`.
"""


class Name(NamedTuple):
    """A public name, the module that defines it, and its value."""

    name: str
    module: str
    value: Any


def reference() -> str:
    """Return the page, in Markdown."""
    parts = [_HEAD]
    for part, names in groupby(public_names(), key=lambda n: n.module.split(".")[1]):
        home = importlib.import_module(f"jaxsim.{part}")
        parts += [f"## {part}\n", f"{_summary(home)}\n"]
        for name in names:
            parts += _entry(name)
    return "\n".join(parts).rstrip("\n") + "\n"


def public_names() -> list[Name]:
    """Return the exported names except version and modules (docs/spec.md), in order."""
    root = ast.parse((_PACKAGE / "__init__.py").read_text())
    exports = [node for node in root.body if isinstance(node, ast.ImportFrom)]
    names = [
        Name(alias.asname, str(node.module), _value(str(node.module), alias.name))
        for node in exports
        for alias in node.names
        if alias.asname and not alias.asname.startswith("_")
    ]
    return [name for name in names if not inspect.ismodule(name.value)]


def _value(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def _entry(name: Name) -> Iterator[str]:
    """Yield the entry of one name: heading, signature, summary, `FACTS`, and the methods of a
    class."""
    yield f"### {name.name}\n"
    yield f"```python\n{_code(name.name, name.value)}\n```\n"
    yield f"{_summary(name.value)}\n"
    for fact in FACTS:
        yield from fact(name)
    if inspect.isclass(name.value):
        methods = [*_methods(name.value)]
        yield from methods
        if methods:
            yield ""


def _defined_in(name: Name) -> Iterator[str]:
    path = Path(inspect.getsourcefile(inspect.unwrap(name.value)) or "")
    yield f"Defined in `{path.relative_to(_PACKAGE.parent).as_posix()}`.\n"


def _reads_and_writes(name: Name) -> Iterator[str]:
    """Yield the declared reads and writes of a stage that can be called standalone."""
    function = inspect.unwrap(name.value)
    stage = STAGES.get(getattr(function, "__name__", ""))
    if stage is not None and hasattr(name.value, "carries"):
        for what, fields in (("Reads", stage.reads), ("Writes", stage.writes)):
            if fields:
                yield f"{what}: {', '.join(f'`{field}`' for field in _in_order(fields))}.\n"


def _in_order(fields: frozenset[str]) -> list[str]:
    """Return the fields of Data in the order of their declaration, then the working values."""
    return [field for field in (*Data.fields, *Data.working) if field in fields]


# Facts below the summary of a name; each function yields lines of Markdown.
FACTS: tuple[Callable[[Name], Iterator[str]], ...] = (_reads_and_writes, _defined_in)


def _methods(cls: type) -> Iterator[str]:
    """Yield the public methods that a class defines itself."""
    for name, member in vars(cls).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        # A function may also be the default of a field with another name.
        if not name.startswith("_") and getattr(function, "__name__", "") == name:
            yield f"- `{_on_one_line(_header(name, function))}`: {_summary(function)}"


def _code(name: str, value: Any) -> str:
    """Return a definition as in the source."""
    if not inspect.isclass(value):
        return _header(name, value)
    bases = [base.__name__ for base in value.__bases__ if base is not object]
    line = f"class {name}({', '.join(bases)})" if bases else f"class {name}"
    if dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
        fields = inspect.get_annotations(value).items()
        line = line.replace("(tuple)", "(NamedTuple)")
        return "\n".join(
            [f"{line}:", *(f"    {n}: {getattr(t, '__name__', t)}" for n, t in fields)]
        )
    made = vars(value).get("__init__")
    return line if made is None else f"{line}\n{textwrap.indent(_header('__init__', made), '    ')}"


def _header(name: str, function: Any) -> str:
    """Return the header of a function's definition, under another name."""
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
    node = next(n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef))
    lines = source.splitlines()[node.lineno - 1 : node.body[0].lineno - 1]
    head = re.sub(r"def \w+", f"def {name}", "\n".join(lines), count=1).rstrip(":")
    return re.sub(r"\) ->", f"{_added(function)}) ->", head)


def _added(function: Any) -> str:
    """Return the arguments that a function has in addition to those in its source
    (physics/public.py)."""
    known = inspect.signature(inspect.unwrap(function)).parameters
    more = [p for n, p in inspect.signature(function).parameters.items() if n not in known]
    added = "".join(f", {p.name}: {p.annotation} = {p.default}" for p in more)
    return f", *{added}" if more else ""


def _on_one_line(header: str) -> str:
    """Return a header on one line, without `def` and `self`."""
    text = " ".join(header.removeprefix("def ").split()).replace("( ", "(")
    text = text.replace(", )", ")").replace(" )", ")")
    return re.sub(r"\((self|cls)(, )?", "(", text, count=1)


def _summary(value: Any) -> str:
    """Return the first paragraph of a docstring, on one line."""
    doc = inspect.getdoc(value) or ""
    return " ".join(doc.partition("\n\n")[0].split())


if __name__ == "__main__":
    sys.stdout.write(reference())
