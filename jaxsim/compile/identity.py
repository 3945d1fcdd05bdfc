"""Identities of objects, which stay when ids and names change from one compilation to the next.

An object is the element of the spec that it was written as. Several objects of one element, such as
the copies of a `<replicate>`, are distinguished by their order, and those that the compiler has
made are known by name or, without one, by the element that they are in.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from jaxsim.spec import SpecElement

# Kinds of objects that have a state.
KINDS = ("body", "joint", "tendon", "actuator", "sensor", "equality", "flex", "plugin")

# an element of the spec, a name, or a parent; and how many objects of the kind have it before
Identity = tuple[Hashable, int]


def identities(
    elements: Mapping[str, Sequence[SpecElement | None]], names: Mapping[str, Sequence[str]]
) -> dict[str, tuple[Identity, ...]]:
    """Return the identity of each object, by kind and in the order of ids."""
    return {
        kind: _counted([_of(e, name) for e, name in zip(objects, names[kind], strict=True)])
        for kind, objects in elements.items()
        if kind in KINDS
    }


def by_name(names: Sequence[str]) -> tuple[Identity, ...]:
    """Return the identities of objects of which nothing but their names is known."""
    return _counted(names)


def _of(element: SpecElement | None, name: str) -> Hashable:
    if element is None:
        return name
    if element.source is not None:
        return element.source
    if name:
        return name
    inside = (e.source for e in element.ancestors() if e.source is not None)
    return element.tag, next(inside, None)


def _counted(keys: Sequence[Hashable]) -> tuple[Identity, ...]:
    """Return the keys, each with how often it has come before."""
    seen: dict[Hashable, int] = {}
    found = []
    for key in keys:
        seen[key] = seen.get(key, -1) + 1
        found.append((key, seen[key]))
    return tuple(found)
