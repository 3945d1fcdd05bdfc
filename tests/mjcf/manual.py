"""Facts of MuJoCo's manual on MJCF, extracted from the reStructuredText that its package ships."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import mujoco

_DOC = Path(mujoco.__file__).parent / "doc"
_OCCURS = {"|*|": "*", ":octicon:`dot`": "?", ":octicon:`sync`": "R", ":octicon:`star`": "!"}


@cache
def elements() -> dict[str, tuple[str, dict[str, str]]]:
    """Path of every element -> how often it occurs, and its attributes with their labels."""
    found: dict[str, tuple[str, dict[str, str]]] = {}
    open_: list[tuple[int, str]] = []
    for line in (_DOC / "XMLschema.rst").read_text().splitlines():
        indent, text = len(line) - len(line.lstrip()), line.strip()
        element = re.match(r"\.\. dropdown:: :ref:`([^<]*)<[^>]*>`(.*)", text)
        attribute = re.match(r":ref:`([^<]*)<([^>]*)>`", text)
        if element or attribute:
            while open_ and open_[-1][0] >= indent:
                open_.pop()
        if element:
            path = f"{open_[-1][1]}/{element[1]}" if open_ else element[1]
            found[path] = (_OCCURS[element[2].strip()], {})
            open_.append((indent, path))
        elif attribute:
            found[open_[-1][1]][1][attribute[1]] = attribute[2]
    return found


@cache
def declarations() -> dict[str, str]:
    """Label of an attribute -> its declaration, such as `real(3), "0 0 0"`.

    Attributes that are described together with others are left out.
    """
    found: dict[str, str] = {}
    labels: list[str] = []
    for line in (_DOC / "XMLreference.rst").read_text().splitlines():
        label = re.match(r"\.\. _([^:]+):\s*$", line)
        declared = re.match(r":at:`\w+`: :at-val:`([^`]*)`", line)
        if label:
            labels.append(label[1])
        elif declared and len(labels) == 1:
            found[labels[0]] = declared[1]
        if not label and line.strip():
            labels = []
    return found


@cache
def units() -> dict[str, list[dict[str, int]] | None]:
    """Label of an attribute -> the dimensions of its numbers, or None where they vary."""
    text = (_DOC / "XMLunits.rst").read_text()
    rows = re.findall(r"\* - :ref:`[^<]*<([^>]*)>`\n\s+- (.*)", text)
    return {label: _dimensions(value) for label, value in rows}


def _dimensions(text: str) -> list[dict[str, int]] | None:
    """`M\\,L^{2}` -> [{"M": 1, "L": 2}]; of alternatives the first."""
    if text.startswith("*"):
        return None
    text = text.split(" or ")[0].replace(":math:`", "").replace("`", "")
    numbers = text.replace("\\,", " ").replace("\\ ", " ").split(",")
    powers = (re.findall(r"([LMTAQF])(?:\^\{?(-?\d+)\}?)?", number) for number in numbers)
    return [{symbol: int(power or 1) for symbol, power in number} for number in powers]
