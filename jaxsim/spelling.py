"""Spelling suggestions for error messages about unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from jaxsim.escape import line

# Similarity thresholds of `difflib`: close enough to suggest, and close enough to be sure.
_NEAR, _SURE = 0.6, 0.8


def suggest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word of which `word` is most likely a misspelling, or None."""
    known = list(known)
    lowered = {name.lower(): name for name in known}
    if word.lower() in lowered:
        return lowered[word.lower()]
    return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=_NEAR)), None)


def remedy(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the end of a message: `; did you mean 'elbow'?`, or `otherwise` if no word is near."""
    near = suggest(word, known)
    return otherwise if near is None else f"; did you mean '{line(near)}'?"


def is_misspelling(word: str, known: Iterable[str]) -> bool:
    """Return whether a word is so near to a known one that it must be a misspelling."""
    return bool(difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=_SURE))


def check_options(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise TypeError, with the nearest known name, if an option is not known.

    Example:
      >>> check_options("receding", ["iteration"], ["iterations", "tolerance"])
      Traceback (most recent call last):
      TypeError: receding: no option 'iteration'; did you mean 'iterations'?
    """
    known = list(known)
    for name in given:
        if name not in known:
            names = "; there are: " + ", ".join(known) if known else "; there are none"
            raise TypeError(f"{function}: no option '{name}'{remedy(name, known, names)}")
