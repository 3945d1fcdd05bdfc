"""Expand `<frame scale massscale scaling>`: scale the lengths and masses of all elements inside.

The numbers of the elements inside are multiplied by the factors of their units (`dimension.py`),
together with those of the elements outside the tree that act on them (`couplings.py`) and of
keyframes. Actuators follow when they are compiled (`actuators.py`). With `scaling='geometry'`
forces, stiffnesses and gains are unchanged.
"""

from __future__ import annotations

from jaxsim.compile.context import Compilation
from jaxsim.compile.scale.assets import scale_assets
from jaxsim.compile.scale.couplings import CONSTRAINT_RULES
from jaxsim.compile.scale.dimension import Scale
from jaxsim.compile.scale.factors import (
    find_scales,
    reposition_unframed,
    scale_attributes,
    unframed_positions,
)
from jaxsim.compile.scale.keys import scale_keys
from jaxsim.compile.scale.stretch import STRETCHED_ATTRS, stretch
from jaxsim.compile.step import declare_pass
from jaxsim.spec import SpecElement

_ATTRS = ("scale", "massscale", "scaling")
_ANGULAR = ("hinge", "ball")

# Sizes that a shape uses; unused ones are unchanged.
_SIZES = {"sphere": "m, 1, 1", "capsule": "m, m, 1", "cylinder": "m, m, 1"}


@declare_pass(needs="read_settings", gives="scales spec stretched")
def scale_frames(c: Compilation) -> None:
    """Apply the scales of the frames, and keep those of the elements for later passes."""
    c.scales, c.stretched = None, {}
    frames = [e for e in c.spec.walk() if e.tag == "frame"]
    if not any({"scale", "massscale"} & e.attrs.keys() for e in frames):
        return
    unframed = unframed_positions(c)
    c.frames.clear()  # cached poses change
    scales = find_scales(c)
    if len(c.problems):
        return
    c.scales = scales
    scale_keys(c, scales)
    scale_assets(c, scales)
    for element, scale in scales.inside.items():
        _scale_element(c, element, scale)
    reposition_unframed(c, scales, unframed)
    for section, rules in CONSTRAINT_RULES.items():
        for element in c.spec.section(section):
            rule = rules.get(element.tag) or rules.get("")
            if rule is not None:
                rule(c, element, scales)
    for frame in frames:
        for attr in _ATTRS:
            frame.attrs.pop(attr, None)


def _scale_element(c: Compilation, element: SpecElement, scale: Scale) -> None:
    """Scale an element of the tree."""
    if element.tag == "plugin":
        c.fault(element, "it cannot be scaled; take it out of the frame that has a scale")
    units = {}
    if element.tag == "geom":
        units["density"] = "kg/m^2" if element.get("shellinertia") == "true" else "kg/m^3"
    if element.tag in ("geom", "site"):
        units["size"] = _SIZES.get(str(element.get("type")), "m")
    if element.tag == "joint" and element.get("type") == "free":
        return  # its coordinates are both lengths and angles, and its parameters are unchanged
    angular = element.tag == "joint" and element.get("type") in _ANGULAR
    if scale.map:
        stretch(c, element, scale)
    scale_attributes(
        element, scale, angular=angular, units=units, but=STRETCHED_ATTRS if scale.map else ()
    )
