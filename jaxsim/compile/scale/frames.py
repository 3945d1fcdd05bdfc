"""`<frame scale massscale scaling>`: everything inside a frame made larger or heavier.

The numbers of the elements inside are multiplied as their units say (`dimension.py`), and with them
those of what acts on them from outside the tree (`scale_ties.py`) and of keyframes. Actuators
follow when they are compiled (`scale_actuators.py`). Under `scaling='geometry'` forces,
stiffnesses and gains stay as they are.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.scale.dimension import Scale
from jaxsim.compile.scale.factors import ONE, Scales, multiply
from jaxsim.compile.scale.ties import TIES
from jaxsim.enums import JointType
from jaxsim.spec import SpecElement

_ATTRS = ("scale", "massscale", "scaling")
_ANGULAR = ("hinge", "ball")

# Sizes that a shape has; others mean nothing and stay.
_SIZES = {"sphere": "m, 1, 1", "capsule": "m, m, 1", "cylinder": "m, m, 1"}


def scale_frames(c: Compilation) -> None:
    """Carries out the scales of the frames; `c.work["scales"]` keeps those of the elements."""
    frames = [e for e in c.spec.walk() if e.tag == "frame"]
    if not any({"scale", "massscale"} & e.attrs.keys() for e in frames):
        return
    scales = Scales(c)
    if len(c.problems):
        return
    c.work["scales"] = scales
    _scale_keys(c, scales)
    _scale_assets(c, scales)
    for element, scale in scales.inside.items():
        _scale_element(c, element, scale)
    for section, rules in TIES.items():
        for element in c.spec.section(section):
            rule = rules.get(element.tag) or rules.get("")
            if rule is not None:
                rule(c, element, scales)
    for frame in frames:
        for attr in _ATTRS:
            frame.attrs.pop(attr, None)


def _scale_element(c: Compilation, element: SpecElement, scale: Scale) -> None:
    """An element of the tree."""
    if element.tag in ("plugin", "flexcomp"):
        c.fault(element, "it cannot be scaled; take it out of the frame that has a scale")
    units = {}
    if element.tag == "geom":
        units["density"] = "kg/m^2" if element.get("shellinertia") == "true" else "kg/m^3"
    if element.tag in ("geom", "site"):
        units["size"] = _SIZES.get(str(element.get("type")), "m")
    if element.tag == "joint" and element.get("type") == "free":
        return  # its coordinates are both lengths and angles, and its parameters stay
    angular = element.tag == "joint" and element.get("type") in _ANGULAR
    multiply(element, scale, angular=angular, units=units)


def _scale_assets(c: Compilation, scales: Scales) -> None:
    """Meshes and height fields, one for each scale at which geoms and sites use them.

    The first scale keeps the name `a`; the others are called `a@1`, `a@2` and so on.
    """
    bodies = c.spec.bodies
    users = [e for group in ("geoms", "sites") for body in bodies for e in getattr(body, group)]
    for kind, attr in (("mesh", "scale"), ("hfield", "size")):
        assets = {e.asset_name: e for e in c.spec.section("asset") if e.tag == kind}
        lengths: dict[str, list[float]] = {name: [] for name in assets if name}
        instances: list[tuple[SpecElement, float]] = []
        for user in users:
            name, length = user.get(kind), scales.inside.get(user, ONE).length
            if name not in lengths:
                continue
            if length not in lengths[name]:
                lengths[name].append(length)
                instances.append((assets[name], length))
            number = lengths[name].index(length)
            if number:
                user.attrs[kind] = f"{name}@{number}"
        _make_instances(instances, attr)


def _make_instances(instances: list[tuple[SpecElement, float]], attr: str) -> None:
    """Gives assets their factors, in order of use; the second of an asset and more are copies."""
    written = {asset: np.asarray(asset.get(attr), float) for asset, _ in instances}
    made = dict.fromkeys(written, 0)
    for asset, length in instances:
        target = asset if made[asset] == 0 else asset.parent.adopt(asset.copy())
        if made[asset]:
            target.attrs["name"] = f"{asset.asset_name}@{made[asset]}"
        if length != 1 or made[asset]:
            target.attrs[attr] = written[asset] * length
        made[asset] += 1


def _scale_keys(c: Compilation, scales: Scales) -> None:
    """Positions and velocities of slide joints in keyframes, before the joints are scaled."""
    keys = c.spec.section("keyframe")
    joints = [joint for body in c.spec.bodies for joint in body.joints]
    for key in keys:
        own = joints if key.layout is None else key.layout.joints
        kinds = [JointType[(joint.get("type") or "free").upper()] for joint in own]
        for attr, sizes in (("qpos", [k.nq for k in kinds]), ("qvel", [k.nv for k in kinds])):
            value = key.own(attr)
            if value is None:
                continue
            parts = zip(own, kinds, sizes, strict=True)
            factors = np.concatenate([np.ones(0), *(_key_factors(*part, scales) for part in parts)])
            value = np.atleast_1d(value)
            n = min(len(value), len(factors))
            key.attrs[attr] = np.concatenate([value[:n] * factors[:n], value[n:]])


def _key_factors(joint: SpecElement, kind: JointType, n: int, scales: Scales) -> np.ndarray:
    """The factors of the n coordinates or velocities of a joint."""
    factors = np.ones(n)
    linear = {JointType.SLIDE: 1, JointType.FREE: 3}.get(kind, 0)
    factors[:linear] = scales.inside.get(joint, ONE).length
    return factors
