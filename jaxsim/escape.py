"""Text from files, escaped for the place where it is shown: terminal, Markdown, HTML, plots.

A model, a recording or a configuration may come from anybody, and its names may hold any character:
markup that a browser runs, sequences that a terminal obeys, marks that reverse the order of what
follows, line breaks that forge a row of a table. Every output passes such text through the function
of its own syntax below. All of them escape first what has no picture of its own, by the rule of
`repr`, and cut the middle out of what is too long.
"""

import html as _html
import string
from collections.abc import Iterable

MAX_NAME = 80  # characters of a name that are shown
MAX_LABEL = 40  # characters of a label in a plot
MAX_MESSAGE = 4000  # characters of a message
ELLIPSIS = "…"
# marks that are syntax within a line; those that are only at its beginning stay readable
_SYNTAX = {ord(c): f"&#{ord(c)};" for c in string.punctuation if c not in ".,-()"}


def line(text: str, most: int = MAX_NAME) -> str:
    """Return text on one line of visible characters, at most `most` of them and an ellipsis.

    Characters without a picture are written as Python writes them: line breaks, control characters,
    the beginning of an ANSI escape, marks of direction, lone surrogates.

    Example:
      >>> line("a\\x1b[31m\\nb")
      'a\\\\x1b[31m\\\\nb'
    """
    shown = _visible(text if len(text) <= most else _cut(text, most))
    return shown if len(shown) <= most + 1 else _cut(shown, most)


def block(text: str) -> str:
    """Return text with its lines and tabs, all else that has no picture escaped."""
    return _visible(text, "\n\t\r")


def markdown(text: str, most: int = MAX_NAME) -> str:
    """Return text that Markdown, with HTML in it or not, shows as it is, in a table as well.

    Put it behind other text of its line. Punctuation becomes a character reference, which is never
    syntax (CommonMark, 2.5).
    """
    return line(text, most).translate(_SYNTAX)


def html(text: str, most: int = MAX_NAME) -> str:
    """Return text that HTML shows as it is, inside of an element or of a quoted attribute."""
    return _html.escape(line(text, most))


def mathtext(text: str, most: int = MAX_LABEL) -> str:
    """Return text that Matplotlib shows as it is: no formula, and never left out of a legend.

    Matplotlib reads text with an even number of unescaped dollars as a formula, and a legend leaves
    out what begins with an underscore.
    """
    shown = line(text, most).replace("$", r"\$")
    return f"\u2009{shown}" if shown.startswith("_") else shown


def unique(labels: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return labels for a list of choices, on one line each, numbered where two are the same.

    Args:
      labels: what is shown of each choice.
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


def _visible(text: str, also: str = "") -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in also else _written(c) for c in text)


def _written(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _cut(text: str, most: int) -> str:
    """Return the beginning and the end of a text."""
    end = most // 3
    return f"{text[: most - end]}{ELLIPSIS}{text[len(text) - end :]}"
