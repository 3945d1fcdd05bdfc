"""Scale elements coupled to bodies inside a `<frame scale>`: tendons, pairs, equalities,
sensors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.scale.deformables import flex_scale, scale_flex, scale_skin
from jaxsim.compile.scale.dimension import Scale, mean_scale
from jaxsim.compile.scale.factors import scale_attributes, transmission_scale
from jaxsim.compile.scale.scales import UNIT_SCALE, Scales
from jaxsim.spec import SpecElement

# Units of `solimp` of a constraint on a distance: its width is a length.
_SOLIMP = "1, 1, m, 1, 1"

# Multiplies the numbers of one element outside the tree.
_ScaleRule = Callable[[Compilation, SpecElement, Scales], None]


def _tendon(c: Compilation, element: SpecElement, scales: Scales) -> None:
    """Scale a tendon; coefficients of slides convert their own lengths to those of the tendon."""
    scale, angular = scales.tendon(element)
    scale_attributes(element, scale, angular=angular)
    for part in element.children if element.tag == "fixed" else ():
        own, is_angular = scales.joint(part.get("joint"))
        if not is_angular and own.length != scale.length:
            part.attrs["coef"] = float(part.get("coef")) * scale.length / own.length


def _pair(c: Compilation, element: SpecElement, scales: Scales) -> None:
    """Scale a contact pair by the mean of its geoms."""
    one, other = (scales.of("geom", element.get(attr)) for attr in ("geom1", "geom2"))
    scale_attributes(element, mean_scale(one, other))


def _end_scales(element: SpecElement, scales: Scales) -> tuple[Scale, Scale]:
    """Return the scales of the two bodies or sites of a constraint."""
    kind = "site" if element.get("site1") else "body"
    first, second = (scales.of(kind, element.get(f"{kind}{i}")) for i in (1, 2))
    return first, second


def _connect(c: Compilation, element: SpecElement, scales: Scales) -> None:
    """Scale a connect constraint; its anchor is in the frame of the first body."""
    first, second = _end_scales(element, scales)
    own = mean_scale(first, second) if element.get("site1") else first
    anchor = element.get("anchor")
    scale_attributes(element, own, units={"solimp": _SOLIMP}, but=("anchor",))
    if anchor is not None:
        element.attrs["anchor"] = first.linear @ anchor


def _weld(c: Compilation, element: SpecElement, scales: Scales) -> None:
    """Scale a weld; the second body has its anchor, the first one its relative pose."""
    first, second = _end_scales(element, scales)
    anchor, relpose = element.get("anchor"), element.get("relpose")
    scale_attributes(element, mean_scale(first, second), units={"solimp": _SOLIMP})
    if anchor is not None and np.any(anchor):
        element.attrs["anchor"] = second.linear @ anchor
    if element.is_set("relpose"):
        element.attrs["relpose"] = np.concatenate([first.linear @ relpose[:3], relpose[3:]])


def _scale_coupling_polynomial(c: Compilation, element: SpecElement, scales: Scales) -> None:
    """Scale a joint or tendon as a polynomial of another: coefficient k is in Q1 / Q2^k."""
    kind = element.tag
    found = []
    for attr in (f"{kind}1", f"{kind}2"):
        name = element.get(attr)
        if kind == "joint":
            scale, angular = scales.joint(name)
        else:
            tendon = c.spec.find("tendon", name) if name else None
            scale, angular = (UNIT_SCALE, True) if tendon is None else scales.tendon(tendon)
        found.append((scale, angular))
    first, is_angular = found[0]
    units = [scale.factor("Q", angular=angular) for scale, angular in found]
    coefficients = np.asarray(element.get("polycoef"), float)
    powers = np.arange(len(coefficients))
    element.attrs["polycoef"] = coefficients * units[0] / units[1] ** powers
    scale_attributes(element, first, angular=is_angular, units={"solimp": "1, 1, Q, 1, 1"})


# Units of sensors that the schema does not specify.
_READINGS = {"rangefinder": {"cutoff": "m", "noise": "m"}, "normal": {"cutoff": "m"}}


def _sensor(c: Compilation, element: SpecElement, scales: Scales) -> None:
    """Scale cutoff and noise, in the unit of the reading."""
    scale, angular = UNIT_SCALE, False
    if element.get("joint"):
        scale, angular = scales.joint(element.get("joint"))
    elif element.get("tendon"):
        tendon = c.spec.find("tendon", element.get("tendon"))
        scale, angular = (UNIT_SCALE, False) if tendon is None else scales.tendon(tendon)
    elif element.get("actuator"):
        actuator = c.spec.find("actuator", element.get("actuator"))
        if actuator is not None:
            scale, angular = transmission_scale(c, actuator, scales)
    elif element.get("objname"):
        scale = scales.of(str(element.get("objtype")), element.get("objname"))
    else:
        kinds = ("site", "geom1", "body1", "geom2", "body2", "body", "geom", "camera")
        found = [
            scales.of(kind.rstrip("12"), element.get(kind)) for kind in kinds if element.get(kind)
        ]
        if found:
            scale = mean_scale(found[0], found[-1])
    units = _READINGS.get(element.tag, {})
    if element.tag in ("tactile", "plugin") and scale != UNIT_SCALE:
        c.fault(
            element,
            f"a {element.tag} sensor cannot be scaled; move the measured element out of the frame",
        )
    scale_attributes(element, scale, angular=angular, units=units)


def _scale_flex_constraint(c: Compilation, element: SpecElement, scales: Scales) -> None:
    """Scale a constraint of a whole flex."""
    flex = c.spec.find("flex", element.get("flex") or "")
    if flex is not None:
        scale_attributes(element, flex_scale(c, flex, scales), units={"solimp": _SOLIMP})


CONSTRAINT_RULES: dict[str, dict[str, _ScaleRule]] = {
    "asset": {"skin": scale_skin},
    "deformable": {"skin": scale_skin, "flex": scale_flex},
    "tendon": {"": _tendon},
    "contact": {"pair": _pair},
    "equality": {
        "connect": _connect,
        "weld": _weld,
        "joint": _scale_coupling_polynomial,
        "tendon": _scale_coupling_polynomial,
        "flex": _scale_flex_constraint,
        "flexstrain": _scale_flex_constraint,
    },
    "sensor": {"": _sensor},
}
