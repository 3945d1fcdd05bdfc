"""Collect the scales that `<frame scale>` elements define, and apply them to attributes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.element_pose import frame_pose, pose_of
from jaxsim.compile.geometry.orientation import mjcf_numbers, orientation
from jaxsim.compile.geometry.pose import FramePose
from jaxsim.compile.scale.dimension import Scale
from jaxsim.compile.scale.scales import UNIT_SCALE, Scales
from jaxsim.math.quaternion import IDENTITY, quat_to_matrix
from jaxsim.mjcf.element import AttrValue
from jaxsim.spec import SpecElement


def find_scales(c: Compilation) -> Scales:
    """Return the scales that the frames of the tree define; invalid ones are reported."""
    inside: dict[SpecElement, Scale] = {}
    own: dict[SpecElement, Scale] = {}
    named: dict[tuple[str, str], SpecElement] = {}
    stack = [(world, UNIT_SCALE) for world in reversed(c.spec.sections("worldbody"))]
    while stack:
        element, scale = stack.pop()
        if element.name and element.defined_kind:
            named[element.defined_kind, element.name] = element
        if scale != UNIT_SCALE:
            inside[element] = _along_axis(element, scale)
        turned = bool(scale.map) and not element.unframed
        within = scale.in_axes(quat_to_matrix(orientation(c, element))) if turned else scale
        if element.tag == "frame":
            within = _inside_frame(c, element, within)
        own[element] = within
        stack.extend(
            (child, own[_body_around(child)] if child.unframed else within)
            for child in reversed(element.children)
        )
    return Scales(inside, own, named)


def unframed_positions(c: Compilation) -> dict[SpecElement, np.ndarray]:
    """Return the positions, in the enclosing body, of the bodies to which no frame applies, (3,)
    each."""
    return {e: pose_of(c, e).pos for e in c.spec.walk() if e.unframed}


def reposition_unframed(
    c: Compilation, scales: Scales, places: Mapping[SpecElement, np.ndarray]
) -> None:
    """Set the positions of the bodies to which no frame applies, after everything else is
    scaled."""
    for body, pos in places.items():
        position = scales.own[_body_around(body)].linear @ pos
        inner = frame_pose(c, body).inverse().apply(FramePose(position, IDENTITY))
        body.attrs.update(pos=inner.pos, quat=inner.quat)
    c.frames.clear()


def _body_around(element: SpecElement) -> SpecElement:
    """Return the body that contains an element, skipping frames."""
    return next(ancestor for ancestor in element.ancestors() if ancestor.tag != "frame")


def _along_axis(element: SpecElement, scale: Scale) -> Scale:
    """Return the scale of a slide joint, whose coordinate is a length along its axis."""
    if not scale.map or element.tag != "joint" or element.get("type") != "slide":
        return scale
    axis = np.asarray(element.get("axis"), float)
    length = float(np.linalg.norm(axis))
    if length == 0:  # reported when it is compiled
        return scale
    return replace(scale, length=float(np.linalg.norm(scale.linear @ axis)) / length)


def _inside_frame(c: Compilation, frame: SpecElement, around: Scale) -> Scale:
    """Return the scale inside a frame; `around` is the outer scale in the frame's axes."""
    given = np.atleast_1d(frame.get("scale")).astype(float)
    mass = float(frame.get("massscale"))
    similar = frame.get("scaling") == "similar"
    if not (np.all(np.isfinite(given)) and np.all(given > 0)):
        c.fault(frame, f"scale='{mjcf_numbers(given)}' must be positive and finite")
    elif not (np.isfinite(mass) and mass >= 0):
        c.fault(frame, f"massscale='{mass:g}' must not be negative; 0 lets mass follow the volume")
    elif similar and np.any(given != given[0]):
        c.fault(
            frame,
            f"scale='{mjcf_numbers(given)}' stretches the axes differently, which forces cannot "
            "follow; "
            "give one number, or add scaling='geometry'",
        )
    else:
        lengths = np.full(3, given[0]) if len(given) == 1 else given
        return around.times(lengths, mass or float(np.prod(lengths)), forces=similar)
    return around


def transmission_scale(c: Compilation, actuator: SpecElement, scales: Scales) -> tuple[Scale, bool]:
    """Return the scale of the target of an actuator, and whether its coordinate is an angle."""
    for attr in ("joint", "jointinparent"):
        if actuator.get(attr):
            return scales.joint(actuator.get(attr))
    if actuator.get("tendon"):
        tendon = c.spec.find("tendon", actuator.get("tendon"))
        return (UNIT_SCALE, False) if tendon is None else scales.tendon(tendon)
    for attr in ("site", "cranksite", "body"):
        if actuator.get(attr):
            return scales.of(attr.removeprefix("crank"), actuator.get(attr)), False
    return UNIT_SCALE, False


def scale_attributes(
    element: SpecElement,
    scale: Scale,
    *,
    angular: bool = False,
    units: dict[str, str] | None = None,
    but: Collection[str] = (),
) -> None:
    """Multiply the attributes of an element by the factors of their units.

    Args:
      element: the element to scale.
      scale: its factors.
      angular: whether its coordinate is an angle.
      units: units that the schema does not specify.
      but: attributes that are not changed.
    """
    for attr in element.row.attrs.values():
        unit = (units or {}).get(attr.name, attr.unit)
        has_unit = attr.is_number and unit not in ("", "?") and attr.name not in but
        value = _value(element, attr.name) if has_unit else None
        if value is None or not np.any(value):
            continue
        factors = scale.factors(unit, np.size(value), angular=angular)
        if np.any(factors != 1):
            scaled = np.atleast_1d(value) * factors
            element.attrs[attr.name] = scaled if attr.is_array else float(scaled[0])


def _value(element: SpecElement, attr: str) -> AttrValue | None:
    """Return the effective value; for `springlength` as it is written, where one number is both
    ends."""
    if attr != "springlength":
        return element.get(attr)
    found = [layer.own(attr) for layer in element.layers() if layer.own(attr) is not None]
    return found[-1] if found else None
