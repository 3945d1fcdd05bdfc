"""Select the elements that refer to a copied part of the tree and are copied with it.

A sensor, pair or tendon may also refer to the rest of the tree, if that precedes the copies; an
equality, an actuator or a tuple may not. These are MuJoCo's rules.
"""

from __future__ import annotations

from itertools import chain, takewhile

from jaxsim.spec.element import SpecElement
from jaxsim.spec.references import Name, definition, references
from jaxsim.spec.tree import Tree

# Sections whose elements may refer to the tree, each after those it may refer to. Keyframes are not
# among them: a keyframe is defined for the whole model with all copies.
REFERRING_SECTIONS = ("deformable", "tendon", "contact", "equality", "actuator", "sensor", "custom")
# Sections whose elements must refer to the inside only.
_WHOLE_SECTIONS = ("equality", "actuator", "custom")
# Kinds that all copies share, and the world body.
_SHARED = ("default", "plugin", "material", "texture", "mesh", "hfield", "numeric", "text", "key")
_WORLD: Name = ("body", "world")


def referenced_names(element: SpecElement) -> set[Name]:
    """Return everything that an element and its parts refer to."""
    return {name for part in element.walk() for _, name in references(part)}


def outside_references(element: SpecElement, inside: set[Name]) -> set[Name]:
    """Return the references of an element to the rest of the model."""
    return {name for name in referenced_names(element) - inside if name[0] not in _SHARED} - {
        _WORLD
    }


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
