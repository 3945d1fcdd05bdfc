"""The scale of each element inside a `<frame scale>`, and of what refers to such elements."""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.orientation import numbers
from jaxsim.compile.scale.dimension import Scale
from jaxsim.mjcf.element import Value
from jaxsim.spec import SpecElement

ONE = Scale()
_ANGULAR = ("hinge", "ball", "free")
_PATH = ("site", "geom")


class Scales:
    """The scale of every element of the tree.

    Attributes:
      inside: elements with a scale other than one, in document order.
      named: all elements of the tree by kind and name.
    """

    def __init__(self, c: Compilation):
        self.inside: dict[SpecElement, Scale] = {}
        self.named: dict[tuple[str, str], SpecElement] = {}
        stack = [(world, ONE) for world in reversed(c.spec.sections("worldbody"))]
        while stack:
            element, scale = stack.pop()
            if element.name and element.defined_kind:
                self.named[element.defined_kind, element.name] = element
            if scale != ONE:
                self.inside[element] = scale
            within = _within(c, element, scale) if element.tag == "frame" else scale
            stack.extend((child, within) for child in reversed(element.children))

    def of(self, kind: str, name: str | None) -> Scale:
        """The scale of a named element; one for what is not scaled or not there."""
        kind = "body" if kind == "xbody" else kind
        element = self.named.get((kind, name or ""))
        return ONE if element is None else self.inside.get(element, ONE)

    def joint(self, name: str | None) -> tuple[Scale, bool]:
        """The scale of a joint, and whether its coordinate is an angle."""
        element = self.named.get(("joint", name or ""))
        angular = element is None or element.tag == "freejoint" or element.get("type") in _ANGULAR
        return self.of("joint", name), angular

    def tendon(self, element: SpecElement) -> tuple[Scale, bool]:
        """The scale of a tendon if all on its path have the same, and whether it is an angle."""
        if element.tag == "fixed":
            parts = {self.joint(e.get("joint")) for e in element.children}
        else:
            parts = {
                (self.of(e.tag, e.get(e.tag)), False) for e in element.children if e.tag in _PATH
            }
        return parts.pop() if len(parts) == 1 else (ONE, False)


def _within(c: Compilation, frame: SpecElement, around: Scale) -> Scale:
    """The scale inside a frame."""
    given = np.atleast_1d(frame.get("scale")).astype(float)
    mass = float(frame.get("massscale"))
    if not (np.all(np.isfinite(given)) and np.all(given > 0)):
        c.fault(frame, f"scale='{numbers(given)}' must be positive and finite")
        return around
    if not (np.isfinite(mass) and mass >= 0):
        c.fault(frame, f"massscale='{mass:g}' must not be negative; 0 lets mass follow the volume")
        return around
    if np.any(given != given[0]):
        c.fault(
            frame,
            f"scale='{numbers(given)}' stretches the axes differently, which is not supported; "
            "give one number",
        )
        return around
    length = float(given[0])
    return around.times(length, mass or length**3, forces=frame.get("scaling") == "similar")


def transmission_scale(c: Compilation, actuator: SpecElement, scales: Scales) -> tuple[Scale, bool]:
    """The scale of what an actuator drives, and whether its coordinate is an angle."""
    for attr in ("joint", "jointinparent"):
        if actuator.get(attr):
            return scales.joint(actuator.get(attr))
    if actuator.get("tendon"):
        tendon = c.spec.find("tendon", actuator.get("tendon"))
        return (ONE, False) if tendon is None else scales.tendon(tendon)
    for attr in ("site", "cranksite", "body"):
        if actuator.get(attr):
            return scales.of(attr.removeprefix("crank"), actuator.get(attr)), False
    return ONE, False


def multiply(
    element: SpecElement,
    scale: Scale,
    *,
    angular: bool = False,
    units: dict[str, str] | None = None,
) -> None:
    """Multiplies the attributes of an element as their units say; `units` has those unknown."""
    for attr in element.row.attrs.values():
        unit = (units or {}).get(attr.name, attr.unit)
        value = _value(element, attr.name) if attr.is_number and unit not in ("", "?") else None
        if value is None:
            continue
        factors = scale.factors(unit, np.size(value), angular=angular)
        if np.any(factors != 1):
            scaled = np.atleast_1d(value) * factors
            element.attrs[attr.name] = scaled if attr.is_array else float(scaled[0])


def _value(element: SpecElement, attr: str) -> Value | None:
    """The value in effect; of `springlength` as it is written, where one number is both ends."""
    if attr != "springlength":
        return element.get(attr)
    found = [layer.own(attr) for layer in element.layers() if layer.own(attr) is not None]
    return found[-1] if found else None
