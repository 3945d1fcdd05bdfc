"""Escape control characters in the output of the command line: names in files may contain any."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from jaxsim.escape import block


class Visible:
    """Text stream that escapes control characters, and characters its encoding cannot represent.

    Line breaks, tabs and the carriage returns of a progress bar are passed on; all other attributes
    are those of the underlying stream.
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
    """Escape printed text and warnings while a command runs."""
    out: Any = Visible(sys.stdout)
    err: Any = Visible(sys.stderr)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield
