"""Delete an element, with everything inside it and everything that depends on it."""

from __future__ import annotations

from jaxsim.spec.element import SpecElement
from jaxsim.spec.layout import record_layouts
from jaxsim.spec.references import Name, definition, references
from jaxsim.spec.tree import Tree

# Sections outside the tree whose elements connect, drive or measure elements of it.
_SECTIONS = ("asset", "deformable", "tendon", "contact", "equality", "actuator", "sensor", "custom")

# Kinds that elements use for appearance or shape; their users are not deleted.
_MATERIAL = frozenset(("mesh", "hfield", "texture", "material", "plugin", "model", "default"))


def delete(tree: Tree, element: SpecElement) -> list[SpecElement]:
    """Delete an element; see `Spec.delete`."""
    if element.spec is not tree or element.parent is None:
        where = "is the model itself" if element is tree.root else "is not part of this model"
        raise ValueError(f"{element.label} {where}; delete one of the elements of spec.walk()")
    record_layouts(tree.root)
    gone = _definitions(element)
    element.remove()
    along: list[SpecElement] = []
    while users := _referring_elements(tree, gone):
        for user in users:
            gone |= _definitions(user)
            user.remove()
        along += users
    return along


def _definitions(element: SpecElement) -> set[Name]:
    found = {name for e in element.walk() if (name := definition(e))}
    return {name for name in found if name[0] not in _MATERIAL}


def _referring_elements(tree: Tree, gone: set[Name]) -> list[SpecElement]:
    """Return the elements of the sections that refer to a deleted element."""
    return [
        user
        for section in _SECTIONS
        for user in tree.section(section)
        if any(name in gone for e in user.walk() for _, name in references(e))
    ]
