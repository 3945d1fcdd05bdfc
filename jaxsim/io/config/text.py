"""Write settings as TOML text that `read_config` can parse."""

import dataclasses
import json
import re
from collections.abc import Iterator
from typing import Any


def config_text(settings: Any) -> str:
    """Return settings as TOML text, which `read_config` can parse; settings that are None are left
    out."""
    return "\n".join(_toml_lines(settings, ())) + "\n"


def _toml_lines(settings: Any, path: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of a table: its values first, then its tables."""
    values: dict[str, Any] = dict(settings) if isinstance(settings, dict) else vars(settings)
    values = {name: value for name, value in values.items() if value is not None}
    tables = {n: v for n, v in values.items() if isinstance(v, dict) or _is_form(v)}
    arrays = {n: v for n, v in values.items() if isinstance(v, tuple) and v and _is_form(v[0])}
    for name, value in values.items():
        if name not in tables and name not in arrays:
            yield f"{_key(name)} = {_value(value)}"
    for name, each in [*((n, (v,)) for n, v in tables.items()), *arrays.items()]:
        header = ".".join(_key(part) for part in (*path, name))
        for table in each:
            yield f"\n[[{header}]]" if name in arrays else f"\n[{header}]"
            yield from _toml_lines(table, (*path, name))


def _is_form(value: Any) -> bool:
    return dataclasses.is_dataclass(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    # JSON's strings, numbers and booleans are valid TOML, except for non-finite numbers.
    return str(value) if isinstance(value, float) else json.dumps(value)
