"""What refers to a part of the tree that is copied: which of it is copied along.

A sensor, pair or tendon may refer to the rest of the tree as well, as far as that stands before the
copies; an equality, an actuator or a tuple may not. These are MuJoCo's rules.
"""

from __future__ import annotations

from itertools import chain, takewhile

from jaxsim.spec.element import SpecElement
from jaxsim.spec.references import Name, definition, references
from jaxsim.spec.tree import Tree

# Sections whose elements may refer to the tree, each after those it may refer to. Keyframes are not
# among them: a key is of the whole model, with all copies in place.
SECTIONS = ("deformable", "tendon", "contact", "equality", "actuator", "sensor", "custom")
# Those whose elements must have all that they refer to inside.
_WHOLE = ("equality", "actuator", "custom")
# Kinds that no copy has of its own, and the body that there is once.
_SHARED = ("default", "plugin", "material", "texture", "mesh", "hfield", "numeric", "text", "key")
_WORLD: Name = ("body", "world")


def referred(element: SpecElement) -> set[Name]:
    """Return all that an element and its parts refer to."""
    return {name for part in element.walk() for _, name in references(part)}


def outside(element: SpecElement, inside: set[Name]) -> set[Name]:
    """What an element refers to in the rest of the model."""
    return {name for name in referred(element) - inside if name[0] not in _SHARED} - {_WORLD}


def known_before(tree: Tree, place: SpecElement) -> set[Name]:
    """What is defined before an element in the tree, and outside the tree."""
    bodies = (element for world in tree.sections("worldbody") for element in world.walk())
    before = takewhile(lambda element: element is not place, bodies)
    others = (element for section in SECTIONS for element in tree.section(section))
    return set(filter(None, map(definition, chain(before, others))))


def is_torn(section: str, element: SpecElement, inside: set[Name], *, moved: bool) -> bool:
    """Return whether an element that refers to both sides can only be on one of them.

    Args:
      section: where it stands.
      element: the element.
      inside: names of what is copied.
      moved: whether the original is among the copies.
    """
    if section != "tendon":
        return section in _WHOLE
    # Some wrap of a tendon must be inside with its side; none can be torn where the original goes.
    wraps = [{name for _, name in references(wrap)} for wrap in element.children]
    if moved and any(wrap & inside and not wrap <= inside for wrap in wraps):
        return True
    return not any(wrap and wrap <= inside for wrap in wraps)
