"""Rewrite a compiled model with its angles in radians.

The compiler's conversion from degrees is reproduced bit for bit by writing radians; the reverse
conversion would not be exact.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compile.body.joints import ANGULAR_JOINTS, JOINT_TYPE_BY_NAME
from jaxsim.compile.context import Compilation
from jaxsim.enums import JointType
from jaxsim.spec import SpecElement
from jaxsim.spec.defaults import MAIN_CLASS, class_elements

# Components of an orientation that are angles.
_SPELLED = {"axisangle": slice(3, 4), "euler": slice(0, 3)}

# Joint attributes that are angles for rotational joints, and their fields.
_JOINT = ("range", "ref", "springref", "springyield")


def write_radians(c: Compilation) -> None:
    """Convert all angles of the spec of a finished compilation to radians."""
    _joints(c)
    for element in c.spec.walk():
        settings = c.settings_of(element)
        for attr, where in _SPELLED.items():
            if attr in element.attrs and settings.degree:
                element.attrs[attr][where] = settings.radians(element.attrs[attr][where])
        if element.tag == "joint" and element.holder.tag == "default" and settings.degree:
            _convert_default_entry(c, element)
    for section in c.spec.sections("compiler"):
        section.unset("angle")
    c.spec.at("compiler").set("angle", "radian")
    c.use_radians()


def _joints(c: Compilation) -> None:
    """Write the angles of joints in degrees to the joints themselves."""
    f = c.fields
    for i, joint in enumerate(c.elements["joint"]):
        kind = JointType(f["jnt_type"][i])
        if joint.tag == "freejoint" or not c.settings_of(joint).degree:
            continue
        adr = f["jnt_qposadr"][i]
        values = {"range": f["jnt_range"][i], "springyield": f["jnt_springyield"][i]}
        if kind in (JointType.HINGE, JointType.SLIDE):
            values |= {"ref": f["qpos0"][adr], "springref": f["qpos_spring"][adr]}
        for attr, value in values.items():
            own = attr in joint.attrs
            if joint.is_set(attr) and (kind in ANGULAR_JOINTS or not own):
                joint.set(attr, value)


def _convert_default_entry(c: Compilation, entry: SpecElement) -> None:
    """Convert the entry of a default class, if its joints are rotational."""
    kind = "hinge"
    for part in class_elements(c.spec.root, entry.holder.attrs.get("class", MAIN_CLASS)):
        for other in part.find_all("joint"):
            kind = other.attrs.get("type", kind)
    if JOINT_TYPE_BY_NAME[kind] not in ANGULAR_JOINTS:
        return
    for attr in _JOINT:
        if attr in entry.attrs:
            angle = np.asarray(entry.attrs[attr], float)
            entry.set(attr, c.settings_of(entry).radians(angle))
