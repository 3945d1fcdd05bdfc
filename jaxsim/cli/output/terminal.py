"""Escape control characters in what the command prints: names from files may hold any."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from jaxsim.escape import block


class Visible:
    """A stream of text that escapes control characters, and what its encoding does not have.

    Lines, tabs and the carriage returns of a progress bar stay as they are; all else is as that of
    the stream.
    """

    def __init__(self, stream: TextIO):
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text; return its length, as streams do."""
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        shown = block(text).encode(encoding, "backslashreplace").decode(encoding)
        self._stream.write(shown)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def visible_output() -> Iterator[None]:
    """Escape what is printed, and what is warned of, while a command runs."""
    out: Any = Visible(sys.stdout)
    err: Any = Visible(sys.stderr)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield
