"""Identities of objects, which persist when ids and names change between compilations.

An object is identified by its source element in the spec. Several objects of one element, such as
the copies of a `<replicate>`, are distinguished by their order, and objects made by the compiler
are identified by name or, without one, by the element that contains them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from jaxsim.spec import SpecElement

# Kinds of objects that have state.
IDENTITY_KINDS = ("body", "joint", "tendon", "actuator", "sensor", "equality", "flex", "plugin")

# Source element, name, or parent; and the number of earlier objects of the kind with the same one.
Identity = tuple[Hashable, int]


def identities(
    elements: Mapping[str, Sequence[SpecElement | None]], names: Mapping[str, Sequence[str]]
) -> dict[str, tuple[Identity, ...]]:
    """Return the identity of each object, by kind and in the order of ids."""
    return {
        kind: _count_occurrences(
            [_element_identity(e, name) for e, name in zip(objects, names[kind], strict=True)]
        )
        for kind, objects in elements.items()
        if kind in IDENTITY_KINDS
    }


def identities_by_name(names: Sequence[str]) -> tuple[Identity, ...]:
    """Return the identities of objects of which only the names are known."""
    return _count_occurrences(names)


def _element_identity(element: SpecElement | None, name: str) -> Hashable:
    if element is None:
        return name
    if element.source is not None:
        return element.source
    if name:
        return name
    inside = (e.source for e in element.ancestors() if e.source is not None)
    return element.tag, next(inside, None)


def _count_occurrences(keys: Sequence[Hashable]) -> tuple[Identity, ...]:
    """Return the keys, each with the number of its earlier occurrences."""
    seen: dict[Hashable, int] = {}
    found = []
    for key in keys:
        seen[key] = seen.get(key, -1) + 1
        found.append((key, seen[key]))
    return tuple(found)
