"""Convert the text of an attribute to a value of its schema type, as strictly as MuJoCo's reader.

Real numbers are decimal or hexadecimal, `inf` or `nan`; integers are decimal; both are separated by
white space only. Keywords are exact. Empty text counts as an omitted attribute.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np

from jaxsim.mjcf.element import AttrValue
from jaxsim.mjcf.parse import clip
from jaxsim.mjcf.schema import Attr
from jaxsim.spelling import remedy


class BadValue(Exception):
    """A text that is no value of the attribute; the message gives the reason."""


def read_value(attr: Attr, text: str) -> AttrValue | None:
    """Return the value, or None if the text is empty and means no value.

    Raises:
      BadValue: the text does not have the form that the attribute requires.
    """
    return _READERS[attr.type](attr, text)


def _split_words(text: str) -> list[str]:
    """Return the words between white space as defined by XML and C; str.split would include
    Unicode's."""
    return text.split() if text.isascii() else [t for t in re.split(r"[ \t\n\r\f\v]+", text) if t]


def _read_real(attr: Attr, text: str) -> AttrValue | None:
    tokens = _split_words(text)
    if not tokens:
        return None
    try:
        # float() also accepts 1_000 and the digits of other scripts; XML numbers do not.
        numbers = list(map(float, tokens)) if text.isascii() and "_" not in text else None
    except ValueError:
        numbers = None
    if numbers is None or math.inf in numbers or -math.inf in numbers:
        numbers = [_parse_real(attr, token) for token in tokens]
    _check_count(attr, len(numbers), text)
    return np.array(numbers, np.float64) if attr.is_array else numbers[0]


_HEXADECIMAL = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)([pP][+-]?\d+)?")
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_NOT_A_NUMBER = re.compile(r"[+-]?nan(\(\w*\))?", re.IGNORECASE)


def _parse_real(attr: Attr, token: str) -> float:
    """Return one number if the fast conversion failed or overflowed."""
    if _HEXADECIMAL.fullmatch(token):
        return _from_hexadecimal(attr, token)
    if _NOT_A_NUMBER.fullmatch(token):
        return math.nan
    if not token.isascii() or "_" in token:
        raise _not_a_number(attr, token, "numbers")
    try:
        number = float(token)
    except ValueError:
        raise _not_a_number(attr, token, "numbers") from None
    if math.isinf(number) and not _INFINITE.fullmatch(token):
        raise BadValue(f"{attr.name}: {clip(token)!r} is too large for a number")
    return number


def _from_hexadecimal(attr: Attr, token: str) -> float:
    try:
        return float.fromhex(token)
    except OverflowError:
        raise BadValue(f"{attr.name}: {clip(token)!r} is too large for a number") from None


_INTEGER = re.compile(r"[+-]?[0-9]+")
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1


def _read_int(attr: Attr, text: str) -> AttrValue | None:
    tokens = _split_words(text)
    if not tokens:
        return None
    numbers = []
    for token in tokens:
        if not _INTEGER.fullmatch(token):
            raise _not_a_number(attr, token, "whole numbers")
        # Check the length first: Python refuses to convert thousands of digits.
        number = int(token) if len(token) < 32 else _INT_MAX + 1
        if not _INT_MIN <= number <= _INT_MAX:
            raise BadValue(f"{attr.name}: {clip(token)!r} is too large for a whole number")
        numbers.append(number)
    _check_count(attr, len(numbers), text)
    return np.array(numbers, np.int64) if attr.is_array else numbers[0]


def _not_a_number(attr: Attr, token: str, wanted: str) -> BadValue:
    if attr.count == (1, 1):
        wanted = "a " + wanted.removesuffix("s")
    hint = "; separate numbers by spaces" if re.search(r"[,;]", token) else ""
    return BadValue(f"{attr.name} needs {wanted}, got {clip(token)!r}{hint}")


def _check_count(attr: Attr, n: int, text: str) -> None:
    least, most = attr.count
    if n < least or (most is not None and n > most):
        if least == most:
            wanted = f"{least} number" + "s" * (least != 1)
        else:
            wanted = f"{max(least, 1)} to {most} numbers" if most else f"at least {least} numbers"
        raise BadValue(f"{attr.name} needs {wanted}, got {n} ({clip(text)!r})")


def _read_keyword(attr: Attr, text: str) -> str:
    if text not in attr.keywords:
        raise _unknown_word(attr, text, attr.keywords)
    return text


def _read_keywords(attr: Attr, text: str) -> str | None:
    words = _split_words(text)
    if not words:
        return None
    if len(words) == 1 and words[0] in attr.alone:
        return words[0]
    for word in words:
        if word in attr.alone:
            raise BadValue(f"{attr.name}: '{word}' stands alone, got {clip(text)!r}")
        if word not in attr.keywords:
            raise _unknown_word(attr, word, (*attr.keywords, *attr.alone))
        if words.count(word) > 1:
            raise BadValue(f"{attr.name} names '{word}' twice ({clip(text)!r})")
    in_order = " ".join(word for word in attr.keywords if word in words)
    if attr.ordered and " ".join(words) != in_order:
        raise BadValue(f"{attr.name} must be in order: write '{in_order}', not {clip(text)!r}")
    return " ".join(words)


def _unknown_word(attr: Attr, word: str, known: tuple[str, ...]) -> BadValue:
    choices = f"; it is one of: {', '.join(known)}"
    return BadValue(f"{attr.name} cannot be {clip(word)!r}{remedy(word.strip(), known, choices)}")


def _read_text(attr: Attr, text: str) -> str | None:
    if attr.pattern and not re.fullmatch(attr.pattern, text, re.ASCII):
        raise BadValue(f"{attr.name} needs {attr.form}, got {clip(text)!r}")
    return text


def _read_name(attr: Attr, text: str) -> str | None:
    return text or None


_READERS: dict[str, Callable[[Attr, str], AttrValue | None]] = {
    "real": _read_real,
    "int": _read_int,
    "keyword": _read_keyword,
    "keywords": _read_keywords,
    "string": _read_text,
    "file": _read_name,
    "name": _read_name,
    "ref": _read_name,
    "refs": _read_name,
}
