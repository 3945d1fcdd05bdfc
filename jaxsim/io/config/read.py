"""Configurations: TOML files parsed into dataclasses and written; every error gives the line.

The schema of a file is a frozen dataclass, a form; its fields declare type, default and range:

    @dataclass(frozen=True)
    class Drop:
        model: str = setting(doc="a file in MJCF")
        height: float = setting(1.0, doc="of the fall [m]", above=0)

A field's type is bool, int, float or str; `tuple[T, ...]` for a list; `dict[str, T]` for a table
with arbitrary keys; another form for a table, a tuple of forms for an array of tables; one of these
or None, if it may be left out; or a union of them that differ in TOML. All errors are collected and
raised together.
"""

import dataclasses
import json
import math
import re
import tomllib
import types
import typing
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from jaxsim.errors import ConfigError, LocatedProblem, SourceLocation
from jaxsim.io.config.toml_lines import Path as KeyPath
from jaxsim.io.config.toml_lines import key_lines, split_keys
from jaxsim.spelling import remedy

_FormT = TypeVar("_FormT")

_MAX_FILE_BYTES = 2**24  # size limit of a file
MAX_INT = 2**63 - 1  # largest integer that TOML requires
_MAX_QUOTED_CHARS = 120  # characters of a value or a name that a message repeats
_MAX_PATH_CHARS = 200  # characters of the path of a file that a message repeats

TYPE_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
TYPE_WORDS |= {tuple: "a list", dict: "a table"}
_TOML_TYPES = {tuple: list, dict: dict}  # TOML's counterparts of generic types


@dataclass(frozen=True)
class SettingRule:
    """Allowed values of a setting.

    Attributes:
      doc: meaning.
      least, most: inclusive bounds.
      above: exclusive lower bound.
      choices: all allowed values, or ().
    """

    doc: str = ""
    least: float | None = None
    most: float | None = None
    above: float | None = None
    choices: tuple[Any, ...] = ()

    def fault(self, value: Any) -> str | None:
        """Return the fault of a value of the right type, or None."""
        if self.choices and value not in self.choices:
            known = "; there are: " + ", ".join(map(str, self.choices))
            near = remedy(str(value)[:_MAX_QUOTED_CHARS], map(str, self.choices), known)
            return f"no {_format_value(value)}{near}"
        if isinstance(value, (int, float)):
            if math.isnan(value):
                return "expected a number, got nan"
            if self.least is not None and not value >= self.least:
                return f"expected at least {self.least}, got {value}"
            if self.most is not None and not value <= self.most:
                return f"expected at most {self.most}, got {value}"
            if self.above is not None and not value > self.above:
                return f"expected more than {self.above}, got {value}"
        return None


def setting(default: Any = dataclasses.MISSING, *, doc: str, **rule: Any) -> Any:
    """Return a dataclass field of a form.

    Args:
      default: default value; without it the setting is required. `dict`, or another form, is
        called.
      doc: meaning, with its unit.
      rule: `least`, `most`, `above` and `choices`; in a list or table they apply to each value.
    """
    metadata = {"rule": SettingRule(doc=doc, **rule)}
    if isinstance(default, type):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class SettingLocations:
    """Source locations of the settings of a configuration.

    Attributes:
      file: name of the file.
      lines: line of each path of keys.
      changed: paths that were set elsewhere, and where.
    """

    file: str
    lines: dict[KeyPath, int]
    changed: dict[KeyPath, str]

    def locate(self, path: str | KeyPath) -> SourceLocation:
        """Return the location of a setting, such as "cost.1.of"; of its table if it was not
        written."""
        keys = _keys(path) if isinstance(path, str) else path
        while True:
            if keys in self.changed:
                return SourceLocation(self.changed[keys])
            if keys in self.lines:
                return SourceLocation(self.file, self.lines[keys])
            keys = keys[:-1]

    def error(self, path: str | KeyPath, message: str) -> ConfigError:
        """Return the error for a setting that turns out wrong when it is used."""
        name = path if isinstance(path, str) else _name(path)
        return ConfigError(LocatedProblem(self.locate(path), f"{name}: {message}"))

    @contextmanager
    def blame(
        self,
        path: str | KeyPath,
        kinds: type[Exception] | tuple[type[Exception], ...] = ValueError,
    ) -> Iterator[None]:
        """Raise the errors of a block, `with locations.blame("smooth"): ...`, as errors of a
        setting."""
        try:
            yield
        except kinds as error:
            raise self.error(path, str(error)) from None

    @property
    def folder(self) -> Path:
        """Return the folder of the file, to which its paths are relative."""
        return Path(self.file).parent

    def existing_file(self, path: str | KeyPath, name: str) -> Path:
        """Return the file that a setting names; raise ConfigError if there is none."""
        file = self.folder / name
        try:
            exists = file.is_file()
        except (OSError, ValueError):  # the name is too long, or has a null byte
            exists = False
        if not exists:
            raise self.error(path, f"there is no file {str(file)[:_MAX_PATH_CHARS]!r}")
        return file


def read_config(
    file: str | Path, form: type[_FormT], changes: Iterable[str] = (), swept: Iterable[str] = ()
) -> tuple[_FormT, SettingLocations]:
    """Return the settings of a configuration file, and their source locations.

    Args:
      file: a TOML file.
      form: a dataclass whose fields are `setting`s.
      changes: settings that replace those of the file, "train.worlds=64"; the value is written as
        in TOML, and strings may be unquoted. Errors locate them at the option `--set`.
      swept: further ones, applied after `changes`. Errors locate them at the option `--over`.

    Returns:
      The settings, and their source locations.

    Raises:
      ConfigError: lists all errors, with their lines.
    """
    name = str(file)
    text = _read_text(file, name)
    lines = key_lines(text, name)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_not_toml(name, text, error)) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(LocatedProblem(SourceLocation(name), f"not TOML: {error}")) from None
    changed = {}
    for option, texts in (("--set", changes), ("--over", swept)):
        for change in texts:
            keys = _apply_change(content, change, option)
            changed[keys] = _shorten(f"{option} {change}")
    locations = SettingLocations(name, lines, changed)
    reader = _Reader(locations, [])
    settings = reader.form(form, content, ())
    if reader.faults:
        raise ConfigError(reader.faults)
    return typing.cast(_FormT, settings), locations


def _read_text(file: str | Path, name: str) -> str:
    """Return the text of a file with Unix line breaks and without a byte order mark."""
    try:
        with open(file, "rb") as stream:
            data = stream.read(_MAX_FILE_BYTES + 1)
        if len(data) > _MAX_FILE_BYTES:
            raise ConfigError(
                LocatedProblem(
                    SourceLocation(name), f"larger than the limit of {_MAX_FILE_BYTES:,} bytes"
                )
            )
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(LocatedProblem(SourceLocation(name, line), "not UTF-8 text")) from None
    except OSError as error:
        raise ConfigError(
            LocatedProblem(SourceLocation(name), f"cannot be read: {error.strerror}")
        ) from None
    except ValueError as error:  # a name with a null byte
        raise ConfigError(
            LocatedProblem(SourceLocation(name), f"cannot be read: {error}")
        ) from None


def _not_toml(name: str, text: str, error: tomllib.TOMLDecodeError) -> LocatedProblem:
    """Return the parser's error as a fault with a line number."""
    message = str(error)
    found = re.search(r" \(at line (\d+), column \d+\)$", message)
    line = int(found[1]) if found else text.rstrip("\n").count("\n") + 1
    said = message[: found.start()] if found else message.removesuffix(" (at end of document)")
    return LocatedProblem(SourceLocation(name, line), f"not TOML: {said}")


def _keys(path: str) -> KeyPath:
    parts = path.split(".")
    return tuple(int(p) if p.isascii() and p.isdigit() else p for p in parts)


def _name(path: KeyPath) -> str:
    return _shorten(".".join(map(str, path)))


def _shorten(text: str) -> str:
    """Return a text for a message: on one line and of limited length."""
    text = text.replace("\n", "\\n")
    return text if len(text) <= _MAX_QUOTED_CHARS else f"{text[:_MAX_QUOTED_CHARS]}..."


def _format_value(value: Any) -> str:
    return _shorten(repr(value))


def _apply_change(content: dict[str, Any], change: str, option: str) -> KeyPath:
    """Apply one change to the content of a file; return its path."""
    parts, text = split_change(change, option)
    place = SourceLocation(_shorten(f"{option} {change}"))
    value = parse_value(text, place)
    path: list[str | int] = []
    node: Any = content
    for i, part in enumerate(parts):
        key: str | int = part
        if isinstance(node, list):
            key = _index(node, part, place)
        elif not isinstance(node, dict):
            raise ConfigError(LocatedProblem(place, f"{_name(tuple(path))} is not a table"))
        path.append(key)
        if i == len(parts) - 1:
            node[key] = value
        else:
            node = node.setdefault(key, {}) if isinstance(node, dict) else node[key]
    return tuple(path)


def split_change(
    change: str, option: str, example: str = "NAME=VALUE, such as train.worlds=64"
) -> tuple[list[str], str]:
    """Split a change at its first unquoted `=`.

    Args:
      change: the change, "train.worlds=64".
      option: option of the command line that specifies it.
      example: expected form, for the error.

    Returns:
      The keys of the setting, and the text of its value.

    Raises:
      ConfigError: it is not a change, or has bytes that are not UTF-8, which Python represents by
        surrogates.
    """
    if re.search("[\ud800-\udfff]", change):
        place = SourceLocation(_shorten(f"{option} {change}"))
        raise ConfigError(LocatedProblem(place, "not UTF-8 text"))
    found = re.match(r"""((?:"(?:\\.|[^"\\])*"|'[^']*'|[^"'=])*)=""", change, re.DOTALL)
    parts = split_keys(found[1].strip()) if found else None
    if found is None or parts is None:
        place = SourceLocation(_shorten(f"{option} {change}"))
        raise ConfigError(LocatedProblem(place, f"expected {example}"))
    return parts, change[found.end() :]


def parse_value(text: str, place: SourceLocation) -> Any:
    """Return the TOML value of a text; text that is not TOML is a string.

    Raises:
      ConfigError: the text is more than one value, or exceeds the limits of the parser.
    """
    statement = f"x = {text}"
    try:
        lines = key_lines(statement)
        content = tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return text
    except ConfigError as error:
        raise ConfigError(LocatedProblem(place, error.problems[0].message)) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(LocatedProblem(place, f"not TOML: {error}")) from None
    if content.keys() != {"x"} or any(path[:1] not in ((), ("x",)) for path in lines):
        message = "expected one value; repeat the option for another setting"
        raise ConfigError(LocatedProblem(place, message))
    return content["x"]


def _index(node: list[Any], part: str, place: SourceLocation) -> int:
    number = part.isascii() and part.isdigit() and len(part) < 10
    if not number or int(part) >= len(node):
        entries = f"the list has {len(node)}, counted from 0" if node else "the list is empty"
        shown = part if number else repr(part)
        raise ConfigError(LocatedProblem(place, f"there is no entry {_shorten(shown)}; {entries}"))
    return int(part)


class _Reader:
    """Convert TOML content to a form, and collect the errors."""

    def __init__(self, locations: SettingLocations, faults: list[LocatedProblem]):
        self.locations, self.faults = locations, faults

    def form(self, form: Any, table: Any, path: KeyPath) -> Any:
        if not isinstance(table, dict):
            return self.wrong(path, f"expected a table, got {_format_value(table)}")
        kinds = typing.get_type_hints(form)
        fields = {f.name: f for f in dataclasses.fields(form)}
        for name in (n for n in table if n not in fields):
            known = "; there are: " + ", ".join(fields)
            self.wrong(
                (*path, name), f"unknown setting{remedy(name[:_MAX_QUOTED_CHARS], fields, known)}"
            )
        given = {}
        for name, f in fields.items():
            rule = f.metadata.get("rule", SettingRule())
            if name in table:
                given[name] = self.value(kinds[name], table[name], (*path, name), rule)
            elif f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING:
                self.wrong((*path, name), f"is needed: {rule.doc}")
        return None if self.faults else form(**given)

    def value(self, kind: Any, value: Any, path: KeyPath, rule: SettingRule) -> Any:
        origin, inside = typing.get_origin(kind), typing.get_args(kind)
        if origin in (typing.Union, types.UnionType):  # None cannot be written in TOML
            kinds = [k for k in inside if k is not type(None)]
            own = [k for k in kinds if type(value) is _TOML_TYPES.get(typing.get_origin(k), k)]
            if len(kinds) > 1 and not own:
                words = " or ".join(TYPE_WORDS[typing.get_origin(k) or k] for k in kinds)
                return self.wrong(path, f"expected {words}, got {_format_value(value)}")
            return self.value((own or kinds)[0], value, path, rule)
        if dataclasses.is_dataclass(kind):
            return self.form(kind, value, path)
        if origin is tuple:
            if not isinstance(value, list):
                return self.wrong(path, f"expected a list, got {_format_value(value)}")
            return tuple(self.value(inside[0], x, (*path, i), rule) for i, x in enumerate(value))
        if origin is dict:
            if not isinstance(value, dict):
                table = f"{_name(path)}.NAME = ..."
                return self.wrong(path, f"expected a table ({table}), got {_format_value(value)}")
            return {k: self.value(inside[1], x, (*path, k), rule) for k, x in value.items()}
        if type(value) is int and abs(value) > MAX_INT:
            shown = f"a whole number of {len(str(abs(value)))} digits"
            return self.wrong(path, f"expected {TYPE_WORDS[kind]}, got {shown}")
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            return self.wrong(path, f"expected {TYPE_WORDS[kind]}, got {_format_value(value)}")
        if (fault := rule.fault(value)) is not None:
            return self.wrong(path, fault)
        return value

    def wrong(self, path: KeyPath, message: str) -> None:
        self.faults.append(LocatedProblem(self.locations.locate(path), f"{_name(path)}: {message}"))


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
            yield f"{_toml_key(name)} = {toml_value(value)}"
    for name, each in [*((n, (v,)) for n, v in tables.items()), *arrays.items()]:
        header = ".".join(_toml_key(part) for part in (*path, name))
        for table in each:
            yield f"\n[[{header}]]" if name in arrays else f"\n[{header}]"
            yield from _toml_lines(table, (*path, name))


def _is_form(value: Any) -> bool:
    return dataclasses.is_dataclass(value)


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml_string(name)


def toml_value(value: Any) -> str:
    """Return a setting that is neither a table nor None as TOML text."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, str):
        return _toml_string(value)
    # JSON's numbers and booleans are valid TOML, except for non-finite numbers.
    return str(value) if isinstance(value, float) else json.dumps(value)


def _toml_string(text: str) -> str:
    """Return a basic string of TOML.

    It differs from JSON's in two ways: a character outside the basic plane of Unicode is written
    itself, not as two surrogates, and the delete character needs an escape.
    """
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
