"""Write changed values of the parts of a compiled model to their elements; see `write_back`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxsim.compile.asset.hfields import write_heights
from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.element_pose import pose_of
from jaxsim.compile.geometry.pose import FramePose
from jaxsim.compile.write.changes import Changes
from jaxsim.compile.write.frames import write_pose
from jaxsim.compile.write.general_actuator import rewrite_as_general
from jaxsim.compile.write.inertials import write_inertials
from jaxsim.enums import EqType, JointType, WrapType
from jaxsim.math.quaternion import quat_rotate
from jaxsim.spec import Body, SpecElement

_SCALAR = (JointType.HINGE, JointType.SLIDE)


def write_poses(c: Compilation, changes: Changes) -> None:
    """Write poses and sizes; frames have been removed before."""
    new = changes.new
    for kind, prefix in (("body", "body"), ("geom", "geom"), ("site", "site"), ("camera", "cam")):
        for i in changes.rows(f"{prefix}_pos", f"{prefix}_quat"):
            element: SpecElement = c.elements[kind][i]
            if element.parent is None or element.tag == "worldbody":
                continue
            pose = FramePose(new[f"{prefix}_pos"][i], new[f"{prefix}_quat"][i])
            if kind == "geom" and element.get("mesh") is not None:
                pose = pose.apply(_mesh_frame_offset(c, element, i).inverse())
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
        set_if_there(c.elements["joint"][i], "pos", new["jnt_pos"][i])
        set_if_there(c.elements["joint"][i], "axis", new["jnt_axis"][i])
    for i in changes.rows("light_pos", "light_dir"):
        c.elements["light"][i].update(pos=new["light_pos"][i], dir=new["light_dir"][i])


def _mesh_frame_offset(c: Compilation, element: SpecElement, i: int) -> FramePose:
    """Return the pose of a mesh geom's frame in the frame of its element."""
    compiled = FramePose(c.fields["geom_pos"][i], c.fields["geom_quat"][i])
    return pose_of(c, element).inverse().apply(compiled)


# Settings of the compiler that change written inertias, or prevent them from being read, with the
# values that do neither.
_INERTIA_SETTINGS = {
    "inertiafromgeom": "auto",
    "settotalmass": -1.0,
    "boundmass": 0.0,
    "boundinertia": 0.0,
    "balanceinertia": "false",
}


def write_inertia(c: Compilation, changes: Changes) -> None:
    """Write mass and inertia as `<inertial>`; of all bodies, if a setting would change them
    again."""
    rows = changes.rows("body_mass", "body_ipos", "body_iquat", "body_inertia")
    bodies: Sequence[Body] = [c.bodies[i] for i in rows if i > 0]
    used = [
        name
        for name, default in _INERTIA_SETTINGS.items()
        if c.spec.setting("compiler", name) != default
    ]
    if used:
        bodies = c.bodies[1:]
        for section in c.spec.sections("compiler"):
            for name in used:
                section.unset(name)
    write_inertials(c, bodies, changes.new)


# Fields `*_user` by their prefix, and the kinds of elements that have them.
_USER_DATA = {
    "body": "body",
    "jnt": "joint",
    "geom": "geom",
    "site": "site",
    "cam": "camera",
    "tendon": "tendon",
    "actuator": "actuator",
    "sensor": "sensor",
}

# Attributes copied unchanged that the compiler does not copy by a column table.
_COPIES = {
    "body_gravcomp": ("body", "gravcomp"),
    "geom_rgba": ("geom", "rgba"),
    "site_rgba": ("site", "rgba"),
    "tendon_rgba": ("tendon", "rgba"),
    "tendon_width": ("tendon", "width"),
    "hfield_size": ("hfield", "size"),
    **{f"{prefix}_user": (kind, "user") for prefix, kind in _USER_DATA.items()},
}
COPIED_FIELDS = tuple(_COPIES)


def write_copies(c: Compilation, changes: Changes) -> None:
    """Write gravity compensation, colors, sizes of height fields, and user data."""
    for field, (kind, attr) in _COPIES.items():
        for i in changes.rows(field):
            set_if_there(c.elements[kind][i], attr, changes.new[field][i])


def set_if_there(element: SpecElement, attr: str, value: np.ndarray) -> None:
    """Set an attribute, unless the element has no such attribute."""
    if element.row is not None and element.row.attribute(attr) is not None:
        element.set(attr, value)


GEOM_FIELDS = ("geom_fluid", "geom_surfacevel", "hfield_data")


def write_geoms(c: Compilation, changes: Changes) -> None:
    """Write fluid coefficients, surface velocities, and heights."""
    new = changes.new
    geoms: list[SpecElement] = c.elements["geom"]
    for i in changes.rows("geom_fluid"):
        immersed = new["geom_fluid"][i, 0] > 0
        geoms[i].set("fluidshape", "ellipsoid" if immersed else "none")
        geoms[i].set("fluidcoef", new["geom_fluid"][i, 1:6])
    for i in changes.rows("geom_surfacevel"):
        velocity = new["geom_surfacevel"][i]
        if geoms[i].get("mesh") is not None:  # from the frame of the mesh to that of the element
            pos, quat = _mesh_frame_offset(c, geoms[i], i)
            linear, angular = quat_rotate(quat, velocity[:3]), quat_rotate(quat, velocity[3:])
            velocity = np.concatenate([linear - np.cross(angular, pos), angular])
        geoms[i].set("surfacevel", velocity)
    changed = changes.rows("hfield_data")
    for i, element in enumerate(c.elements["hfield"]):
        adr, shape = new["hfield_adr"][i], (new["hfield_nrow"][i], new["hfield_ncol"][i])
        heights = new["hfield_data"][adr : adr + np.prod(shape)].reshape(shape)
        if any(adr <= row < adr + heights.size for row in changed):
            write_heights(element, heights)


def write_joints(c: Compilation, changes: Changes) -> None:
    """Write ranges, references and yields of joints; angles are in radians."""
    new = changes.new
    joints: list[SpecElement] = c.elements["joint"]
    for i in changes.rows("jnt_range"):
        set_if_there(joints[i], "range", new["jnt_range"][i])
    for i in changes.rows("jnt_springyield"):
        set_if_there(joints[i], "springyield", new["jnt_springyield"][i])
    owner = {int(adr): i for i, adr in enumerate(new["jnt_qposadr"])}
    for field, attr in (("qpos0", "ref"), ("qpos_spring", "springref")):
        for adr in changes.rows(field):
            i = owner.get(adr, -1)
            if i >= 0 and new["jnt_type"][i] in _SCALAR:
                joints[i].set(attr, new[field][adr])


def write_tendons(c: Compilation, changes: Changes) -> None:
    """Write spring lengths, coefficients of joints and divisors of pulleys."""
    new = changes.new
    for i in changes.rows("tendon_lengthspring"):
        c.elements["tendon"][i].set("springlength", new["tendon_lengthspring"][i])
    path = [wrap for tendon in c.elements["tendon"] for wrap in tendon.children]
    attrs = {WrapType.JOINT: "coef", WrapType.PULLEY: "divisor"}
    for i in changes.rows("wrap_prm"):
        attr = attrs.get(new["wrap_type"][i])
        if attr is not None:
            path[i].set(attr, new["wrap_prm"][i])


_PARAMETERS = tuple(f"actuator_{name}" for name in ("dynprm", "gainprm", "biasprm"))
# Fields with a row per control or output, and the address of the first row of each actuator.
_BLOCKS = {
    "actuator_ctrlrange": "actuator_ctrladr",
    "actuator_gear": "actuator_outadr",
    "actuator_lengthrange": "actuator_outadr",
}
ACTUATOR_FIELDS = (*_PARAMETERS, *_BLOCKS, "actuator_forcerange", "actuator_actrange")


def write_actuators(c: Compilation, changes: Changes) -> None:
    """Write parameters, as `<general>`, and the values per control or output."""
    new = changes.new
    general = set(changes.rows(*_PARAMETERS, "actuator_forcerange", "actuator_actrange"))
    first = {f: {int(adr): i for i, adr in enumerate(new[of])} for f, of in _BLOCKS.items()}
    for row in changes.rows("actuator_ctrlrange"):
        starts = first["actuator_ctrlrange"]
        general.add(starts[max(adr for adr in starts if adr <= row)])
    for i in sorted(general):
        rewrite_as_general(c, i, new)
    for field in ("actuator_gear", "actuator_lengthrange"):
        for row in changes.rows(field):
            if row in first[field]:
                i = first[field][row]
                attr = field.removeprefix("actuator_")
                set_if_there(c.elements["actuator"][i], attr, new[field][row])


# Slices of `eq_data` that hold the attributes of a constraint.
_EQUALITY = {
    EqType.CONNECT: {"anchor": slice(0, 3)},
    EqType.WELD: {"anchor": slice(0, 3), "relpose": slice(3, 10), "torquescale": slice(10, 11)},
    EqType.JOINT: {"polycoef": slice(0, 5)},
    EqType.TENDON: {"polycoef": slice(0, 5)},
}


def write_equalities(c: Compilation, changes: Changes) -> None:
    """Write anchors, poses and polynomials; constraints between sites are defined by the sites."""
    for i in changes.rows("eq_data"):
        element: SpecElement = c.elements["equality"][i]
        data, old = changes.new["eq_data"][i], changes.base["eq_data"][i]
        for attr, where in _EQUALITY.get(changes.base["eq_type"][i], {}).items():
            between_sites = "site1" in element.attrs and attr != "torquescale"
            if not between_sites and not np.array_equal(data[where], old[where]):
                element.set(attr, data[where])


_FLEX_ATTRIBUTES = {"flex_radius": "radius", "flex_rgba": "rgba"}
# The points of a flex: the attribute, the fields, and their address and count.
_POINTS = {
    "flex_vert": ("vertex", "flex_vertadr", "flex_vertnum"),
    "flex_node": ("nodecoord", "flex_nodeadr", "flex_nodenum"),
}
FLEX_FIELDS = (*_FLEX_ATTRIBUTES, *_POINTS, "flex_yield")


def write_flexes(c: Compilation, changes: Changes) -> None:
    """Write radii, colors, yield strains, and positions of points in their bodies."""
    new = changes.new
    elements: list[SpecElement] = c.elements["flex"]
    for field, attr in _FLEX_ATTRIBUTES.items():
        for i in changes.rows(field):
            elements[i].set(attr, new[field][i])
    for i in changes.rows("flex_yield"):
        part = elements[i].find("elasticity") or elements[i].add("elasticity")
        part.set("yield", new["flex_yield"][i])
    for field, (attr, start, number) in _POINTS.items():
        rows = changes.rows(field)
        for i, element in enumerate(elements):
            adr, count = int(new[start][i]), int(new[number][i])
            if any(adr <= row < adr + count for row in rows):
                element.set(attr, new[field][adr : adr + count].ravel())
