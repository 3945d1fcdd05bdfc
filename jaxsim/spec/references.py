"""Names and references: the object an element defines, and the objects its attributes refer to.

The schema declares for each attribute whether it defines or refers to an object, and of which kind.
Copying with new names, renaming, and the search for unused elements are based on these two queries.
"""

from __future__ import annotations

from collections.abc import Iterator

from jaxsim.cache import bounded_cache
from jaxsim.mjcf.schema import walk
from jaxsim.spec.element import SpecElement

# A kind and a name, as in ("joint", "elbow").
Name = tuple[str, str]

# Kinds that share their names with another: an xbody is a body with its own frame.
_SAME_NAMES = {"xbody": "body"}


@bounded_cache(1)
def defined_kinds() -> frozenset[str]:
    """Return the kinds of objects that elements define: `body`, `joint`, `geom`, ..."""
    attrs = (attr for _, row in walk() for attr in row.attrs.values())
    return frozenset(attr.kind for attr in attrs if attr.type == "name")


def definition(element: SpecElement) -> Name | None:
    """Return the kind and name that an element defines, or None."""
    attr = element.row.attribute("name")
    name = element.attrs.get("name")
    return (attr.kind, name) if attr is not None and attr.type == "name" and name else None


def references(element: SpecElement) -> Iterator[tuple[str, Name]]:
    """Yield the attributes that refer to objects, each with a kind and a name; several for a
    list."""
    for name, value in element.attrs.items():
        attr = element.row.attribute(name)
        if attr is None or attr.type not in ("ref", "refs"):
            continue
        kind = element.attrs.get(attr.kind[1:], "") if attr.kind.startswith("@") else attr.kind
        for referred in value.split() if attr.type == "refs" else [value]:
            yield name, (_SAME_NAMES.get(kind, kind), referred)


def rename(root: SpecElement, new: dict[Name, str]) -> None:
    """Rename the objects that a tree defines and refers to, as given by `new`."""
    for element in root.walk():
        defined = definition(element)
        if defined in new:
            element.attrs["name"] = new[defined]
        for attr, name in list(references(element)):
            if name in new:
                words = element.attrs[attr]
                several = element.row.attrs[attr].type == "refs"
                parts = words.split() if several else [words]
                element.attrs[attr] = " ".join(new[name] if w == name[1] else w for w in parts)
