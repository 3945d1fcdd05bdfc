"""Where the keys of a TOML file stand, so that a fault can be told with its line.

The parser of the standard library keeps no lines. A TOML file is a list of statements (a header, or
a key with its value); each is parsed alone, with as many lines as it needs to be complete.
"""

import tomllib
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]


def key_lines(text: str) -> dict[Path, int]:
    """The line, from 1, of each table and key of a valid TOML text, by its path.

    Example:
      >>> key_lines('a = 1\\n[[b]]\\n[[b]]\\nc = [\\n  1,\\n]\\nd.e = 2')
      {(): 1, ('a',): 1, ('b', 0): 2, ('b', 1): 3, ('b', 1, 'c'): 4, ('b', 1, 'd'): 7, \
('b', 1, 'd', 'e'): 7}
    """
    found: dict[Path, int] = {(): 1}
    table: Path = ()
    tables: dict[Path, int] = {}  # how many there are of each array of tables, so far
    for line, statement, content in _statements(text):
        if statement.startswith("["):
            table = _header(content, tables)
            found.setdefault(table, line)
        else:
            for path in _paths(content):
                found.setdefault(table + path, line)
    return found


def _statements(text: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Each statement of a text: its first line, its words, its content."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        first, statement = at, lines[at].strip()
        at += 1
        while (content := _parsed(statement)) is None and at < len(lines):
            statement += "\n" + lines[at]
            at += 1
        if content:
            yield first + 1, statement, content


def _parsed(statement: str) -> dict[str, Any] | None:
    """The content of a statement; None: it is not complete."""
    try:
        return tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return None


def _header(content: dict[str, Any], tables: dict[Path, int]) -> Path:
    """The path of the table that a header opens."""
    path: Path = ()
    node: Any = content
    while isinstance(node, dict) and node:
        ((name, node),) = node.items()
        path += (name,)
        if isinstance(node, list):  # `[[name]]` opens another one
            tables[path] = tables.get(path, 0) + 1
            node = node[0]
        if path in tables:
            path += (tables[path] - 1,)
    return path


def _paths(node: Any) -> Iterator[Path]:
    """The paths of all keys inside a value, the outer ones first."""
    if isinstance(node, dict):
        each: Any = node.items()
    elif isinstance(node, list) and any(isinstance(x, dict) for x in node):
        each = enumerate(node)
    else:
        return
    for name, value in each:
        yield (name,)
        for rest in _paths(value):
            yield (name, *rest)
