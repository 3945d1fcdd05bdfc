"""Convert a URDF joint to the MJCF joints of its child body, and `<mimic>` to an equality.

A planar joint becomes two slides and a hinge, named after it with `_TX`, `_TY` and `_RZ`; its range
applies to the first. `effort` becomes the range of the actuator force.
"""

from __future__ import annotations

import logging
from collections.abc import Set

import numpy as np

from jaxsim.math.quaternion import quat_from_z_axis, quat_to_matrix
from jaxsim.mjcf.element import AttrValue, Element
from jaxsim.mjcf.schema import ROOT
from jaxsim.mjcf.urdf.link import BODY_ROW

_log = logging.getLogger(__name__)

_TYPES = {
    "revolute": "hinge",
    "continuous": "hinge",
    "prismatic": "slide",
    "floating": "free",
    "spherical": "ball",
}
SINGLE_AXIS_TYPES = ("revolute", "continuous", "prismatic")
_EQUALITY = ROOT.children["equality"].children["joint"]


def read_joints(joint: Element, taken: set[str]) -> list[Element]:
    """Return the MJCF joints of a URDF joint; of several joints with one name, the first keeps
    it."""
    kind = str(joint.attrs.get("type", ""))
    passive, limits = _passive(joint), _limits(joint)
    axis = joint.find("axis")
    direction = np.array([1.0, 0.0, 0.0] if axis is None else axis.attrs.get("xyz", (1, 0, 0)))
    if kind in _TYPES:
        attrs = {"type": _TYPES[kind], **passive, **limits}
        if kind != "floating":
            attrs["axis"] = direction
        return [_make_named(joint, "", attrs, taken)]
    if kind != "planar":
        return []
    R = quat_to_matrix(quat_from_z_axis(direction))
    return [
        _make_named(joint, "_TX", {"type": "slide", "axis": R[:, 0], **passive, **limits}, taken),
        _make_named(joint, "_TY", {"type": "slide", "axis": R[:, 1], **passive}, taken),
        _make_named(joint, "_RZ", {"type": "hinge", "axis": direction, **passive}, taken),
    ]


def mimic(joint: Element, scalar: Set[str]) -> Element | None:
    """Return the equality constraint of a joint that follows another.

    Only joints with one coordinate can follow, and only those in `scalar` can be followed.
    """
    rule = joint.find("mimic")
    if rule is None or joint.attrs.get("type") not in SINGLE_AXIS_TYPES:
        return None
    leader = str(rule.attrs.get("joint", ""))
    if leader not in scalar:
        _log.warning(
            "%s: <mimic joint='%s'> of %s is ignored, as in MuJoCo: it must name a revolute, "
            "continuous or prismatic joint",
            rule.place,
            leader,
            joint.label,
        )
        return None
    offset, factor = rule.attrs.get("offset", 0.0), rule.attrs.get("multiplier", 1.0)
    attrs: dict[str, AttrValue] = {
        "joint1": str(joint.attrs.get("name", "")),
        "joint2": leader,
        "polycoef": np.array([offset, factor, 0.0, 0.0, 0.0], float),
    }
    return Element("joint", attrs, [], rule.place, _EQUALITY)


def _make_named(
    joint: Element, ending: str, attrs: dict[str, AttrValue], taken: set[str]
) -> Element:
    name = f"{joint.attrs.get('name', '')}{ending}"
    if name and name not in taken:
        attrs = {"name": name, **attrs}
        taken.add(name)
    return Element("joint", attrs, [], joint.place, BODY_ROW.children["joint"])


def _passive(joint: Element) -> dict[str, AttrValue]:
    dynamics = joint.find("dynamics")
    given = {} if dynamics is None else dynamics.attrs
    attrs: dict[str, AttrValue] = {}
    if "damping" in given:
        attrs["damping"] = np.array([given["damping"]], float)
    if "friction" in given:
        attrs["frictionloss"] = given["friction"]
    return attrs


def _limits(joint: Element) -> dict[str, AttrValue]:
    """Return the range and force of `<limit>`; the range applies if both ends are given in rising
    order."""
    limit = joint.find("limit")
    if limit is None:
        return {}
    given = limit.attrs
    attrs: dict[str, AttrValue] = {}
    low, high = (float(given.get(end, 0.0)) for end in ("lower", "upper"))
    if joint.attrs.get("type") != "continuous":
        attrs["range"] = np.array([low, high])
    if not {"lower", "upper"} <= given.keys() or low >= high or "range" not in attrs:
        attrs["limited"] = "false"
    effort = abs(float(given.get("effort", 0.0)))
    if effort > 0:
        attrs["actuatorfrcrange"] = np.array([-effort, effort])
    return attrs
