"""Escape text from files for the output format: terminal, Markdown, HTML or Matplotlib.

Models, recordings and configurations may come from untrusted sources, and their names may hold any
character: HTML markup, ANSI escape sequences, bidirectional control characters, line breaks that
forge a table row. Every output passes such text through the function of its own syntax below. All
of these functions first escape nonprintable characters, by the rule of `repr`, and cut the middle
out of text that is too long.
"""

import html as _html
import string
from collections.abc import Iterable

MAX_NAME = 80  # characters of a name in output
MAX_LABEL = 40  # characters of a label in a plot
MAX_MESSAGE = 4000  # characters of a message
ELLIPSIS = "…"
# Punctuation that is syntax within a line; marks with a meaning only at its start stay readable.
_SYNTAX = {ord(c): f"&#{ord(c)};" for c in string.punctuation if c not in ".,-()"}


def line(text: str, most: int = MAX_NAME) -> str:
    """Return text on one line of visible characters, at most `most` of them and an ellipsis.

    Characters without a picture are written as Python writes them: line breaks, control characters,
    the beginning of an ANSI escape, marks of direction, lone surrogates.

    Example:
      >>> line("a\\x1b[31m\\nb")
      'a\\\\x1b[31m\\\\nb'
    """
    shown = _escape_invisible(text if len(text) <= most else _shorten(text, most))
    return shown if len(shown) <= most + 1 else _shorten(shown, most)


def block(text: str) -> str:
    """Return text with its line breaks and tabs, and all other nonprintable characters escaped."""
    return _escape_invisible(text, "\n\t\r")


def markdown(text: str, most: int = MAX_NAME) -> str:
    """Return text that renders literally in Markdown, also where HTML is allowed and in tables.

    Put it after other text of its line. Punctuation becomes a character reference, which is never
    syntax (CommonMark, 2.5).
    """
    return line(text, most).translate(_SYNTAX)


def html(text: str, most: int = MAX_NAME) -> str:
    """Return text that renders literally in HTML, inside an element or a quoted attribute."""
    return _html.escape(line(text, most))


def mathtext(text: str, most: int = MAX_LABEL) -> str:
    """Return text that Matplotlib renders literally: no formula, and never dropped from a legend.

    Matplotlib reads text with an even number of unescaped dollar signs as a formula, and a legend
    drops labels that begin with an underscore.
    """
    shown = line(text, most).replace("$", r"\$")
    return f"\u2009{shown}" if shown.startswith("_") else shown


def unique(labels: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return one-line labels for a list of choices, numbered where two are equal.

    Args:
      labels: text of each choice.
      taken: labels that other choices have already.
    """
    used, found = set(taken), []
    for label in labels:
        first = shown = line(label)
        number = 2
        while shown in used:
            shown, number = f"{first} ({number})", number + 1
        used.add(shown)
        found.append(shown)
    return found


def _escape_invisible(text: str, also: str = "") -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in also else _escape_character(c) for c in text)


def _escape_character(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _shorten(text: str, most: int) -> str:
    """Return the beginning and the end of a text, joined by an ellipsis, in at most `most`
    characters."""
    end = most // 3
    return f"{text[: most - end]}{ELLIPSIS}{text[len(text) - end :]}"
