"""Typed element tree of a checked MJCF file, returned by reading and taken by writing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from jaxsim.errors import UNKNOWN_LOCATION, SourceLocation

if TYPE_CHECKING:
    from jaxsim.mjcf.schema import Row

AttrValue = int | float | str | np.ndarray


@dataclass(eq=False)
class Element:
    """One XML element whose attributes have the types of its schema row.

    `attrs` holds the attributes that were written and no others: an int or float where the row
    declares one number, a 1-D array (float64 or int64) of the given length where it declares
    several, a string for names, files and keywords.
    """

    tag: str
    attrs: dict[str, AttrValue] = field(default_factory=dict)
    children: list[Any] = field(default_factory=list)
    place: SourceLocation = UNKNOWN_LOCATION
    row: Row | None = None

    @property
    def label(self) -> str:
        """Return the element as shown in messages: `<joint name='elbow'>`, or `<joint>` without a
        name."""
        name = self.attrs.get("name")
        return f"<{self.tag} name='{name}'>" if name else f"<{self.tag}>"

    def find(self, tag: str) -> Self | None:
        """Return the first child with this tag."""
        return next((child for child in self.children if child.tag == tag), None)

    def find_all(self, tag: str) -> list[Self]:
        """Return all children with this tag, in document order."""
        return [child for child in self.children if child.tag == tag]

    def walk(self) -> Iterator[Self]:
        """Yield this element and everything below it, in document order."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(reversed(element.children))
