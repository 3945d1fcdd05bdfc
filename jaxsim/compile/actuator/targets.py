"""Compile the transmission of an actuator, and the range that a servo inherits from its target."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxsim.compile.actuator.actuator_type import ActuatorType
from jaxsim.compile.constraints.tendons import wraps_geom
from jaxsim.compile.context import Compilation
from jaxsim.enums import BiasType, GainType, JointType, TrnType
from jaxsim.spec import SpecElement


class Transmission(NamedTuple):
    """Transmission type, and the ids of the target object and of a second one, or -1."""

    kind: TrnType
    first: int
    second: int = -1


def actuator_target(c: Compilation, e: SpecElement, t: ActuatorType) -> Transmission:
    """Return the transmission of the actuator; exactly one attribute must name the target."""
    given = [attr for attr in _TARGETS if e.own(attr)]
    if len(given) != 1:
        has = f"it has {' and '.join(given)}" if given else "it has none"
        c.fault(e, f"one of {', '.join(_TARGETS)} must name its target, but {has}")
        return Transmission(TrnType.UNDEFINED, -1)
    (attr,) = given
    kind, element_kind = _TARGETS[attr]
    first, second = c.resolve_attribute(element_kind, e, attr), -1
    if kind == TrnType.SLIDERCRANK:
        second = _slider(c, e)
    elif e.own("slidersite") or e.own("cranklength") is not None:
        c.fault(e, "slidersite and cranklength need cranksite; remove them")
    if kind == TrnType.SITE:
        second = c.resolve_attribute("site", e, "refsite")
    elif e.own("refsite"):
        c.fault(e, "refsite needs site; remove it")
    if t.gaintype == GainType.SO3:
        _check_orientation(c, e, kind, first, second)
        kind = TrnType.SO3
    for attr in ("damping", "armature"):
        if np.any(e.get(attr)) and kind not in _REFLECTING:
            c.fault(e, f"{attr} needs a joint or a tendon to act on; remove it")
    if kind == TrnType.TENDON and first >= 0 and e.get("armature") and wraps_geom(c.fields, first):
        c.fault(e, "a tendon that wraps around geoms cannot have armature; remove it")
    return Transmission(kind, first, second)


# Attributes that name the target: the type of transmission, and the kind of the target.
_TARGETS = {
    "joint": (TrnType.JOINT, "joint"),
    "jointinparent": (TrnType.JOINTINPARENT, "joint"),
    "tendon": (TrnType.TENDON, "tendon"),
    "cranksite": (TrnType.SLIDERCRANK, "site"),
    "site": (TrnType.SITE, "site"),
    "body": (TrnType.BODY, "body"),
}
# Transmissions whose damping and armature act on their target.
_REFLECTING = (TrnType.JOINT, TrnType.JOINTINPARENT, TrnType.TENDON, TrnType.SO3, TrnType.UNDEFINED)


def _slider(c: Compilation, e: SpecElement) -> int:
    """Return the id of the slider site of a slider-crank, or -1."""
    if not e.own("slidersite"):
        c.fault(e, "a slider-crank needs slidersite, the site of the slider")
    if not e.get("cranklength") > 0:
        c.fault(e, f"cranklength='{e.get('cranklength'):g}' must be positive")
    return c.resolve_attribute("site", e, "slidersite")


def _check_orientation(
    c: Compilation, e: SpecElement, kind: TrnType, first: int, refsite: int
) -> None:
    """Check that an orientation acts on a ball joint, or on a site with a reference site."""
    if kind == TrnType.SITE and refsite < 0:
        c.fault(e, "an orientation of a site needs refsite, the site it is measured from")
    elif kind not in (TrnType.SITE, TrnType.JOINT):
        c.fault(e, "an orientation actuator acts on a ball joint, or on a site with a refsite")
    elif kind == TrnType.JOINT and first >= 0 and c.fields["jnt_type"][first] != JointType.BALL:
        c.fault(e, f"joint='{e.own('joint')}' must be a ball joint for an orientation actuator")


_RANGES = {
    TrnType.JOINT: "jnt_range",
    TrnType.JOINTINPARENT: "jnt_range",
    TrnType.TENDON: "tendon_range",
}


def inherited_range(
    c: Compilation, e: SpecElement, t: ActuatorType, target: Transmission
) -> np.ndarray | None:
    """Return the range that `inheritrange` requests, (2,), or None.

    It is the range of the target, scaled about its center, and only for position servos.
    """
    fixed = t.gaintype == GainType.FIXED and t.gainprm[0] == -t.biasprm[1]
    servo = t.biastype == BiasType.AFFINE and (fixed or t.gaintype == GainType.PID)
    if not t.inheritrange > 0 or not servo or target.first < 0:
        return None
    joint = target.kind in (TrnType.JOINT, TrnType.JOINTINPARENT)
    scalar = not joint or c.fields["jnt_type"][target.first] in (JointType.SLIDE, JointType.HINGE)
    if target.kind not in _RANGES or not scalar:
        c.fault(e, "inheritrange needs a hinge or slide joint, or a tendon; give the range itself")
        return None
    low, high = c.fields[_RANGES[target.kind]][target.first]
    if low == high:
        c.fault(e, "inheritrange needs a target with a range, and it has none")
    middle, half = 0.5 * (low + high), 0.5 * (high - low) * t.inheritrange
    return np.array([middle - half, middle + half])
