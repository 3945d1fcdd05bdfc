"""The scale of each element inside a `<frame scale>`, and of the elements that refer to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jaxsim.compile.scale.dimension import Scale
from jaxsim.spec import SpecElement

UNIT_SCALE = Scale()
_ANGULAR = ("hinge", "ball", "free")
_PATH = ("site", "geom")


@dataclass(frozen=True, eq=False)
class Scales:
    """The scale of every element of the tree.

    Attributes:
      inside: elements with a scale other than one, in document order; maps of positions are in the
        axes of the parent. The length of a slide joint's scale is the factor along its axis.
      own: the scale of the contents of a body or frame, in its own axes.
      named: all elements of the tree by kind and name.
    """

    inside: Mapping[SpecElement, Scale]
    own: Mapping[SpecElement, Scale]
    named: Mapping[tuple[str, str], SpecElement]

    def of(self, kind: str, name: str | None) -> Scale:
        """Return the scale of a named element; one for elements that are not scaled or do not
        exist.

        For a body it is the scale of its contents.
        """
        kind = "body" if kind == "xbody" else kind
        element = self.named.get((kind, name or ""))
        scales = self.own if kind == "body" else self.inside
        return UNIT_SCALE if element is None else scales.get(element, UNIT_SCALE)

    def joint(self, name: str | None) -> tuple[Scale, bool]:
        """Return the scale of a joint, and whether its coordinate is an angle."""
        element = self.named.get(("joint", name or ""))
        angular = element is None or element.tag == "freejoint" or element.get("type") in _ANGULAR
        return self.of("joint", name), angular

    def tendon(self, element: SpecElement) -> tuple[Scale, bool]:
        """Return the scale of a tendon if all objects on its path share it, and whether its length
        is an angle."""
        if element.tag == "fixed":
            found = [self.joint(e.get("joint")) for e in element.children]
        else:
            path = [e for e in element.children if e.tag in _PATH]
            found = [(self.of(e.tag, e.get(e.tag)), False) for e in path]
        parts = {(scale.overall, angular) for scale, angular in found}
        return parts.pop() if len(parts) == 1 else (UNIT_SCALE, False)


@dataclass(frozen=True, eq=False)
class KeyScales:
    """Factors of the numbers of keyframes: of each control, and of each actuator's activations."""

    control: np.ndarray
    activation: np.ndarray
