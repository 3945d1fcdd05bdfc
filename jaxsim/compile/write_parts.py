"""Writes changed numbers of the parts of a compiled model on their elements; see `write_back`."""

from __future__ import annotations

import numpy as np

from jaxsim.compile.changes import Changes
from jaxsim.compile.context import Compilation
from jaxsim.compile.frames import write_pose
from jaxsim.compile.general import as_general
from jaxsim.compile.inertials import write_inertials
from jaxsim.compile.pose import Pose, pose_of
from jaxsim.enums import EqType, JointType, WrapType
from jaxsim.spec import Spec, SpecElement

_SCALAR = (JointType.HINGE, JointType.SLIDE)


def write_poses(c: Compilation, changes: Changes, flat: Spec) -> None:
    """Poses and sizes; all elements are out of their frames."""
    new = changes.new
    for kind, prefix in (("body", "body"), ("geom", "geom"), ("site", "site"), ("camera", "cam")):
        for i in changes.rows(f"{prefix}_pos", f"{prefix}_quat"):
            element: SpecElement = c.elements[kind][i]
            pose = Pose(new[f"{prefix}_pos"][i], new[f"{prefix}_quat"][i])
            if kind == "geom" and element.get("mesh") is not None:
                pose = pose.apply(_shift(c, element, i).inverse())
            if element.get("fromto") is not None:
                element.set("size", changes.new[f"{prefix}_size"][i])
            write_pose(element, pose.pos, pose.quat)
    for kind in ("geom", "site"):
        for i in changes.rows(f"{kind}_size"):
            element = c.elements[kind][i]
            if element.get("fromto") is not None:
                write_pose(element, new[f"{kind}_pos"][i], new[f"{kind}_quat"][i])
            element.set("size", new[f"{kind}_size"][i])
    for i in changes.rows("jnt_pos", "jnt_axis"):
        c.elements["joint"][i].update(pos=new["jnt_pos"][i], axis=new["jnt_axis"][i])
    for i in changes.rows("light_pos", "light_dir"):
        c.elements["light"][i].update(pos=new["light_pos"][i], dir=new["light_dir"][i])


def _shift(c: Compilation, element: SpecElement, i: int) -> Pose:
    """Pose of the frame of a mesh geom in the frame that its element gives."""
    compiled = Pose(c.fields["geom_pos"][i], c.fields["geom_quat"][i])
    return pose_of(c, element).inverse().apply(compiled)


# Settings that change what inertias are written, or keep them from being read.
_WEIGHING = {
    "inertiafromgeom": "auto",
    "settotalmass": -1.0,
    "boundmass": 0.0,
    "boundinertia": 0.0,
    "balanceinertia": "false",
}


def write_inertia(c: Compilation, changes: Changes, flat: Spec) -> None:
    """Mass and inertia, as `<inertial>`; of all bodies, where a setting would change them again."""
    rows = changes.rows("body_mass", "body_ipos", "body_iquat", "body_inertia")
    bodies = [c.bodies[i] for i in rows]
    unlike = [name for name, none in _WEIGHING.items() if flat.setting("compiler", name) != none]
    if unlike:
        bodies = c.bodies[1:]
        for section in flat.sections("compiler"):
            for name in unlike:
                section.unset(name)
    write_inertials(c, bodies, changes.new)


# Attributes that are copied as they are, where the compiler does not do it by a table of its own.
_COPIES = {
    "body_gravcomp": ("body", "gravcomp"),
    "geom_rgba": ("geom", "rgba"),
    "site_rgba": ("site", "rgba"),
    "tendon_rgba": ("tendon", "rgba"),
    "hfield_size": ("hfield", "size"),
}
COPIED_FIELDS = tuple(_COPIES)


def write_copies(c: Compilation, changes: Changes, flat: Spec) -> None:
    """Gravity compensation, colours, sizes of height fields."""
    for field, (kind, attr) in _COPIES.items():
        for i in changes.rows(field):
            c.elements[kind][i].set(attr, changes.new[field][i])


def write_joints(c: Compilation, changes: Changes, flat: Spec) -> None:
    """Ranges, references and yields of joints; angles are in radians."""
    new = changes.new
    joints: list[SpecElement] = c.elements["joint"]
    for i in changes.rows("jnt_range"):
        joints[i].set("range", new["jnt_range"][i])
    for i in changes.rows("jnt_springyield"):
        joints[i].set("springyield", new["jnt_springyield"][i])
    owner = {int(adr): i for i, adr in enumerate(new["jnt_qposadr"])}
    for field, attr in (("qpos0", "ref"), ("qpos_spring", "springref")):
        for adr in changes.rows(field):
            i = owner.get(adr, -1)
            if i >= 0 and new["jnt_type"][i] in _SCALAR:
                joints[i].set(attr, new[field][adr])


def write_tendons(c: Compilation, changes: Changes, flat: Spec) -> None:
    """Spring lengths, widths, coefficients of joints and divisors of pulleys."""
    new = changes.new
    for i in changes.rows("tendon_lengthspring"):
        c.elements["tendon"][i].set("springlength", new["tendon_lengthspring"][i])
    for i in changes.rows("tendon_width"):
        c.elements["tendon"][i].set("width", new["tendon_width"][i])
    path = [wrap for tendon in c.elements["tendon"] for wrap in tendon.children]
    attrs = {WrapType.JOINT: "coef", WrapType.PULLEY: "divisor"}
    for i in changes.rows("wrap_prm"):
        attr = attrs.get(new["wrap_type"][i])
        if attr is not None:
            path[i].set(attr, new["wrap_prm"][i])


_PARAMETERS = tuple(f"actuator_{name}" for name in ("dynprm", "gainprm", "biasprm"))
_BLOCKS = {
    "actuator_ctrlrange": "actuator_ctrladr",
    "actuator_gear": "actuator_outadr",
    "actuator_lengthrange": "actuator_outadr",
}
ACTUATOR_FIELDS = (*_PARAMETERS, *_BLOCKS, "actuator_forcerange", "actuator_actrange")


def write_actuators(c: Compilation, changes: Changes, flat: Spec) -> None:
    """Parameters, as `<general>`, and what there is one of for each control or output."""
    new = changes.new
    general = set(changes.rows(*_PARAMETERS, "actuator_forcerange", "actuator_actrange"))
    first = {f: {int(adr): i for i, adr in enumerate(new[of])} for f, of in _BLOCKS.items()}
    for row in changes.rows("actuator_ctrlrange"):
        starts = first["actuator_ctrlrange"]
        general.add(starts[max(adr for adr in starts if adr <= row)])
    for i in sorted(general):
        as_general(c, i, new)
    for field in ("actuator_gear", "actuator_lengthrange"):
        for row in changes.rows(field):
            if row in first[field]:
                i = first[field][row]
                c.elements["actuator"][i].set(field.removeprefix("actuator_"), new[field][row])


# Where the attributes of a constraint stand in `eq_data`.
_EQUALITY = {
    EqType.CONNECT: {"anchor": slice(0, 3)},
    EqType.WELD: {"anchor": slice(0, 3), "relpose": slice(3, 10), "torquescale": slice(10, 11)},
    EqType.JOINT: {"polycoef": slice(0, 5)},
    EqType.TENDON: {"polycoef": slice(0, 5)},
}


def write_equalities(c: Compilation, changes: Changes, flat: Spec) -> None:
    """Anchors, poses and polynomials; constraints between sites have theirs in the sites."""
    for i in changes.rows("eq_data"):
        element: SpecElement = c.elements["equality"][i]
        data, old = changes.new["eq_data"][i], changes.base["eq_data"][i]
        for attr, where in _EQUALITY.get(changes.base["eq_type"][i], {}).items():
            between_sites = "site1" in element.attrs and attr != "torquescale"
            if not between_sites and not np.array_equal(data[where], old[where]):
                element.set(attr, data[where])


_USERS = {
    "body": "body",
    "jnt": "joint",
    "geom": "geom",
    "site": "site",
    "cam": "camera",
    "tendon": "tendon",
    "actuator": "actuator",
    "sensor": "sensor",
}
USER_FIELDS = tuple(f"{prefix}_user" for prefix in _USERS)


def write_user(c: Compilation, changes: Changes, flat: Spec) -> None:
    """The user's numbers."""
    for prefix, kind in _USERS.items():
        for i in changes.rows(f"{prefix}_user"):
            c.elements[kind][i].set("user", changes.new[f"{prefix}_user"][i])
