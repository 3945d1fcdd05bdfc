"""Configurations: TOML files read into dataclasses, every fault told with its line.

The form of a file is a frozen dataclass; its fields say type, default and range:

    @dataclass(frozen=True)
    class Drop:
        model: str = setting(doc="a file in MJCF")
        height: float = setting(1.0, doc="of the fall [m]", above=0)

A field's type is bool, int, float or str; `tuple[T, ...]` for a list; `dict[str, T]` for a table of
any names; another form for a table, a tuple of forms for an array of tables; or one of these and
None, for what may be left out. What is wrong is collected and raised together.
"""

import dataclasses
import tomllib
import types
import typing
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from jaxsim.errors import ConfigError, Place, Problem
from jaxsim.io.config.places import Path as KeyPath
from jaxsim.io.config.places import key_lines
from jaxsim.words import remedy

Form = TypeVar("Form")

WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class Rule:
    """What a setting may be.

    Attributes:
      doc: what it means.
      least, most: bounds that are allowed themselves.
      above: a bound that is not.
      choices: all values, or ().
    """

    doc: str = ""
    least: float | None = None
    most: float | None = None
    above: float | None = None
    choices: tuple[Any, ...] = ()

    def fault(self, value: Any) -> str | None:
        """What is wrong with a value of the right type, or None."""
        if self.choices and value not in self.choices:
            known = "; there are: " + ", ".join(map(str, self.choices))
            return f"no {value!r}{remedy(str(value), map(str, self.choices), known)}"
        if isinstance(value, (int, float)):
            if self.least is not None and not value >= self.least:
                return f"expected at least {self.least}, got {value}"
            if self.most is not None and not value <= self.most:
                return f"expected at most {self.most}, got {value}"
            if self.above is not None and not value > self.above:
                return f"expected more than {self.above}, got {value}"
        return None


def setting(default: Any = dataclasses.MISSING, *, doc: str, **rule: Any) -> Any:
    """A field of a form.

    Args:
      default: without it the file must have the setting; `dict`, or another form, is called.
      doc: what it means, with its unit.
      rule: `least`, `most`, `above` and `choices`; in a list or table they are those of each value.
    """
    metadata = {"rule": Rule(doc=doc, **rule)}
    if isinstance(default, type):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Places:
    """Where the settings of a configuration were written.

    Attributes:
      file: the file's name.
      lines: of each path of keys.
      changed: the paths that were set elsewhere, and where.
    """

    file: str
    lines: dict[KeyPath, int]
    changed: dict[KeyPath, str]

    def place(self, path: str | KeyPath) -> Place:
        """Where a setting, "cost.1.of" say, was written; if it was not, where its table begins."""
        keys = _keys(path) if isinstance(path, str) else path
        while True:
            if keys in self.changed:
                return Place(self.changed[keys])
            if keys in self.lines:
                return Place(self.file, self.lines[keys])
            keys = keys[:-1]

    def error(self, path: str | KeyPath, message: str) -> ConfigError:
        """The error of a setting that turns out wrong when it is used."""
        name = path if isinstance(path, str) else _name(path)
        return ConfigError(Problem(self.place(path), f"{name}: {message}"))

    @property
    def folder(self) -> Path:
        """The folder of the file: what it names is relative to this."""
        return Path(self.file).parent


def read_config(
    file: str | Path, form: type[Form], changes: Iterable[str] = ()
) -> tuple[Form, Places]:
    """A configuration.

    Args:
      file: a TOML file.
      form: a dataclass whose fields are `setting`s.
      changes: "train.worlds=64": settings that replace those of the file; the value is as in TOML,
        and a text may stand without quotes.

    Returns:
      The settings, and where each was written.

    Raises:
      ConfigError: all that is wrong, with the lines.
    """
    name = str(file)
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text in UTF-8"
        raise ConfigError(Problem(Place(name), f"cannot be read: {reason}")) from None
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(Problem(Place(name), f"not TOML: {error}")) from None
    changed = {}
    for change in changes:
        keys = _change(content, change)
        changed[keys] = f"--set {change}"
    places = Places(name, key_lines(text), changed)
    reader = _Reader(places, [])
    settings = reader.form(form, content, ())
    if reader.faults:
        raise ConfigError(reader.faults)
    return typing.cast(Form, settings), places


def _keys(path: str) -> KeyPath:
    return tuple(int(part) if part.isdigit() else part for part in path.split("."))


def _name(path: KeyPath) -> str:
    return ".".join(map(str, path))


def _change(content: dict[str, Any], change: str) -> KeyPath:
    """Puts one change into the content of a file; returns its path."""
    name, equals, text = change.partition("=")
    place = Place(f"--set {change}")
    if not equals or not name.strip():
        raise ConfigError(Problem(place, "expected NAME=VALUE, such as train.worlds=64"))
    try:
        value = tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        value = text
    *outer, last = keys = _keys(name.strip())
    node: Any = content
    for key in outer:
        node = node.setdefault(key, {}) if isinstance(node, dict) else _entry(node, key, place)
    if isinstance(node, list):
        _entry(node, last, place)
    elif not isinstance(node, dict):
        raise ConfigError(Problem(place, f"{_name(tuple(outer))} is not a table"))
    node[last] = value
    return tuple(keys)


def _entry(node: Any, key: Any, place: Place) -> Any:
    if not isinstance(node, list) or not isinstance(key, int) or key >= len(node):
        raise ConfigError(Problem(place, f"there is no entry {key!r}"))
    return node[key]


class _Reader:
    """Turns what TOML says into a form, and collects what is wrong."""

    def __init__(self, places: Places, faults: list[Problem]):
        self.places, self.faults = places, faults

    def form(self, form: Any, table: Any, path: KeyPath) -> Any:
        if not isinstance(table, dict):
            return self.wrong(path, f"expected a table, got {table!r}")
        kinds = typing.get_type_hints(form)
        fields = {f.name: f for f in dataclasses.fields(form)}
        for name in table.keys() - fields.keys():
            known = "; there are: " + ", ".join(fields)
            self.wrong((*path, name), f"there is no such setting{remedy(name, fields, known)}")
        given = {}
        for name, f in fields.items():
            rule = f.metadata.get("rule", Rule())
            if name in table:
                given[name] = self.value(kinds[name], table[name], (*path, name), rule)
            elif f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING:
                self.wrong((*path, name), f"is needed: {rule.doc}")
        return None if self.faults else form(**given)

    def value(self, kind: Any, value: Any, path: KeyPath, rule: Rule) -> Any:
        origin, inside = typing.get_origin(kind), typing.get_args(kind)
        if origin in (typing.Union, types.UnionType):  # with None, which TOML cannot say
            (kind,) = (k for k in inside if k is not type(None))
            return self.value(kind, value, path, rule)
        if dataclasses.is_dataclass(kind):
            return self.form(kind, value, path)
        if origin is tuple:
            if not isinstance(value, list):
                return self.wrong(path, f"expected a list, got {value!r}")
            return tuple(self.value(inside[0], x, (*path, i), rule) for i, x in enumerate(value))
        if origin is dict:
            if not isinstance(value, dict):
                table = f"{_name(path)}.NAME = ..."
                return self.wrong(path, f"expected a table ({table}), got {value!r}")
            return {k: self.value(inside[1], x, (*path, k), rule) for k, x in value.items()}
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            return self.wrong(path, f"expected {WORDS[kind]}, got {value!r}")
        if (fault := rule.fault(value)) is not None:
            return self.wrong(path, fault)
        return value

    def wrong(self, path: KeyPath, message: str) -> None:
        self.faults.append(Problem(self.places.place(path), f"{_name(path)}: {message}"))
