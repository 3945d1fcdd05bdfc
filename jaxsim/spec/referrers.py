"""Select the elements that refer to a part of the tree, and are copied or deleted with it.

A sensor, pair or tendon of a copy may also refer to the rest of the tree, if that precedes the
copies; an equality, an actuator or a tuple may not. These are MuJoCo's rules.
"""

from __future__ import annotations

from itertools import chain, takewhile

from jaxsim.spec.element import SpecElement
from jaxsim.spec.layout import record_layouts
from jaxsim.spec.references import Name, definition, references
from jaxsim.spec.tree import Tree

# Sections whose elements may refer to the tree, each after those it may refer to. Keyframes are not
# among them: a keyframe is defined for the whole model with all copies.
REFERRING_SECTIONS = ("deformable", "tendon", "contact", "equality", "actuator", "sensor", "custom")
# Sections whose elements must refer to the inside only.
_WHOLE_SECTIONS = ("equality", "actuator", "custom")
# Kinds that all copies share, and the world body.
_SHARED = ("default", "plugin", "material", "texture", "mesh", "hfield", "numeric", "text", "key")
WORLD: Name = ("body", "world")
# Kinds that elements use for appearance or shape; their users are not deleted.
_APPEARANCE = frozenset(("mesh", "hfield", "texture", "material", "plugin", "model", "default"))


def referenced_names(element: SpecElement) -> set[Name]:
    """Return everything that an element and its parts refer to."""
    return {name for part in element.walk() for _, name in references(part)}


def outside_references(element: SpecElement, inside: set[Name]) -> set[Name]:
    """Return the references of an element to the rest of the model."""
    return {name for name in referenced_names(element) - inside if name[0] not in _SHARED} - {WORLD}


def names_defined_before(tree: Tree, place: SpecElement) -> set[Name]:
    """Return the names defined before an element in the tree, and outside the tree."""
    bodies = (element for world in tree.sections("worldbody") for element in world.walk())
    before = takewhile(lambda element: element is not place, bodies)
    others = (element for section in REFERRING_SECTIONS for element in tree.section(section))
    return set(filter(None, map(definition, chain(before, others))))


def is_torn(section: str, element: SpecElement, inside: set[Name], *, moved: bool) -> bool:
    """Return whether an element that refers to both sides can belong to only one of them.

    Args:
      section: the section of the element.
      element: the element.
      inside: names of the copied elements.
      moved: whether the original is among the copies.
    """
    if section != "tendon":
        return section in _WHOLE_SECTIONS
    # Some wrap of a tendon must be inside together with its side site; if the original moves, no
    # tendon may refer to both sides.
    wraps = [{name for _, name in references(wrap)} for wrap in element.children]
    if moved and any(wrap & inside and not wrap <= inside for wrap in wraps):
        return True
    return not any(wrap and wrap <= inside for wrap in wraps)


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
    return {name for name in found if name[0] not in _APPEARANCE}


def _referring_elements(tree: Tree, gone: set[Name]) -> list[SpecElement]:
    """Return the elements of the sections that refer to a deleted element."""
    return [
        user
        for section in ("asset", *REFERRING_SECTIONS)
        for user in tree.section(section)
        if referenced_names(user) & gone
    ]
