"""Line numbers of the keys of a TOML file, for error messages.

The parser of the standard library discards line numbers. This scanner passes over the text once:
headers, keys, strings, lists and inline tables. It also detects nesting and numbers that exceed the
limits of the parser, whose own errors would name no line.
"""

import re
import tomllib

from jaxsim.errors import ConfigError, LocatedProblem, SourceLocation

Path = tuple[str | int, ...]

_MAX_NESTING = 32  # nesting depth of tables and lists
# Longest number, in characters; Python converts integers of up to 4300 digits.
_MAX_NUMBER_DIGITS = 1000

_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_LINE = re.compile(r"[^\n]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})|\'\'\'.*?\'\'\'(?:\'{0,2})'
    r'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'',
    re.DOTALL,
)
_BARE_VALUE = re.compile(r"[^,\]}\n#]+")


def key_lines(text: str, file: str = "") -> dict[Path, int]:
    """Return the line, from 1, of each table, key and entry of a list in a TOML text, by its path.

    A text that is not TOML is scanned up to its first fault.

    Raises:
      ConfigError: the text is nested too deeply, or has a number that is too long; with the line.

    Example:
      >>> key_lines('a = 1\\n[[b]]\\n[[b]]\\nc = [\\n  1,\\n]\\nd.e = 2')
      {(): 1, ('a',): 1, ('b', 0): 2, ('b', 1): 3, ('b', 1, 'c'): 4, ('b', 1, 'c', 0): 5, \
('b', 1, 'd'): 7, ('b', 1, 'd', 'e'): 7}
    """
    return _Scan(text, file).lines


def split_keys(text: str) -> list[str] | None:
    """Return the parts of a dotted key, quotes removed, or None if it is not one.

    Example:
      >>> split_keys('parameters."body:a.b/mass".low')
      ['parameters', 'body:a.b/mass', 'low']
    """
    found, at = [], 0
    while True:
        quoted = _STRING.match(text, at) if text[at : at + 1] in ('"', "'") else None
        end = quoted.end() if quoted else (text.find(".", at) if "." in text[at:] else len(text))
        part = text[at:end].strip()
        if not part:
            return None
        found.append(_unquote(part) if quoted else part)
        if end == len(text):
            return found
        if text[end] != ".":
            return None
        at = end + 1


def _unquote(part: str) -> str:
    try:
        return str(tomllib.loads(f"x = {part}")["x"])
    except tomllib.TOMLDecodeError:
        return part[1:-1]


class _NotTomlError(Exception):
    pass


class _Scan:
    """One pass over a text."""

    def __init__(self, text: str, file: str):
        self.text, self.file, self.at = text, file, 0
        self.lines: dict[Path, int] = {(): 1}
        self._line, self._counted = 1, 0  # line number of the offset `_counted`
        self._arrays: dict[Path, int] = {}  # number of tables in each array of tables so far
        table: Path = ()
        try:
            while self._skip(_SPACE) < len(text):
                if text[self.at] == "[":
                    table = self._header()
                else:
                    path = self._keys(table)
                    self._expect("=")
                    self._skip(_BLANK)
                    self._value(path)
        except _NotTomlError:
            pass

    def line(self) -> int:
        """Return the line of the current offset."""
        self._line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line

    def _skip(self, pattern: re.Pattern[str]) -> int:
        self.at = pattern.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.at

    def _expect(self, text: str) -> None:
        if not self.text.startswith(text, self.at):
            raise _NotTomlError
        self.at += len(text)

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if not found:
            raise _NotTomlError
        self.at = found.end()
        return found[0]

    def _note(self, path: Path) -> None:
        if len(path) > _MAX_NESTING:
            self._fail(f"nested more than {_MAX_NESTING} levels deep; flatten it")
        self.lines.setdefault(path, self.line())

    def _fail(self, message: str) -> None:
        raise ConfigError(
            LocatedProblem(SourceLocation(self.file, self.line()), f"cannot be parsed: {message}")
        )

    def _parts(self) -> list[str]:
        """Return a dotted key."""
        parts = []
        while True:
            self._skip(_BLANK)
            quoted = self.text[self.at : self.at + 1] in ('"', "'")
            part = self._match(_STRING if quoted else _BARE_KEY)
            parts.append(_unquote(part) if quoted else part)
            self._skip(_BLANK)
            if not self.text.startswith(".", self.at):
                return parts
            self.at += 1

    def _header(self) -> Path:
        """Return the path of the table that a header opens."""
        double = self.text.startswith("[[", self.at)
        self.at += 1 + double
        parts = self._parts()
        path: Path = ()
        for i, part in enumerate(parts):
            path += (part,)
            if double and i == len(parts) - 1:
                self._arrays[path] = self._arrays.get(path, 0) + 1
            if path in self._arrays:
                path += (self._arrays[path] - 1,)
        self._note(path)
        self._expect("]]" if double else "]")
        self._skip(_LINE)
        return path

    def _keys(self, path: Path) -> Path:
        """Return the path of a dotted key, noting every key on the way."""
        for part in self._parts():
            path += (part,)
            self._note(path)
        return path

    def _value(self, path: Path) -> None:
        """Scan a value with its nested lists and inline tables, which are kept on a stack."""
        opened: list[tuple[str, Path, int]] = []  # closing bracket, path, entries so far
        while True:
            first = self.text[self.at : self.at + 1]
            if first in ("[", "{"):
                opened.append(("]" if first == "[" else "}", path, 0))
                self.at += 1
            elif first in ('"', "'"):
                self._match(_STRING)
            elif len(self._match(_BARE_VALUE)) > _MAX_NUMBER_DIGITS:
                self._fail(
                    f"a value of more than {_MAX_NUMBER_DIGITS} characters that is no string"
                )
            # Close completed containers, then continue with the next entry of the open one.
            while opened:
                self._skip(_SPACE)
                if self.text.startswith(",", self.at):
                    self.at += 1
                    self._skip(_SPACE)
                if not self.text.startswith(opened[-1][0], self.at):
                    break
                self.at += 1
                opened.pop()
            if not opened:
                return
            bracket, outer, count = opened[-1]
            if bracket == "]":
                path = (*outer, count)
                opened[-1] = (bracket, outer, count + 1)
                self._note(path)
            else:
                path = self._keys(outer)
                self._expect("=")
                self._skip(_BLANK)
