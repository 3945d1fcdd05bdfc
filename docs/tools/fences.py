"""Format the examples in docstrings for the site: an extension of Griffe.

A doctest in a docstring has no markup; Markdown would format it as text.
"""

from typing import Any

import griffe


class Fences(griffe.Extension):
    """Put each doctest of a docstring into a fenced block of code."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Replace the docstring of an object."""
        if obj.docstring is None or "Examples:" in obj.docstring.value:
            return  # Griffe formats the examples of such a section
        if ">>> " in obj.docstring.value:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Return a docstring with its doctests in fences; a doctest ends at an empty line."""
    lines: list[str] = []
    fence = ""  # the fence that is open, with its indentation
    for line in text.splitlines():
        if not fence and line.lstrip().startswith(">>> "):
            fence = line[: len(line) - len(line.lstrip())] + "```"
            lines += ["", f"{fence}pycon"]
        elif fence and not line.strip():
            lines.append(fence)
            fence = ""
        lines.append(line)
    return "\n".join([*lines, fence] if fence else lines)
