"""Remove the frames of a compiled model: their contents get poses relative to the body."""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.element_pose import frame_pose, pose_of
from jaxsim.compile.geometry.orientation import SPELLINGS
from jaxsim.compile.geometry.pose import FramePose
from jaxsim.compile.write.inertials import write_inertials
from jaxsim.spec import Spec, SpecElement

_POSED = ("body", "geom", "site", "camera", "inertial")


def write_frames(c: Compilation) -> None:
    """Replace every frame of the spec of a finished compilation by its contents."""
    frames = [element for element in c.spec.walk() if element.tag == "frame"]
    framed = [child for frame in frames for child in frame.children if child.tag != "frame"]
    poses = {e: pose_of(c, e) for e in framed if e.tag in _POSED and e.get("fromto") is None}
    outer = {e: frame_pose(c, e) for e in framed}
    stretched = [e for e in framed if e.get("fromto") is not None]
    for element in stretched:
        _write_ends(element, outer[element])
    for element, pose in poses.items():
        write_pose(element, pose.pos, pose.quat)
    for i, joint in enumerate(c.elements["joint"]):
        if joint in outer and joint.tag == "joint":
            joint.set("pos", c.fields["jnt_pos"][i])
            joint.set("axis", c.fields["jnt_axis"][i])
    for i, light in enumerate(c.elements["light"]):
        if light in outer:
            light.set("pos", c.fields["light_pos"][i])
            light.set("dir", c.fields["light_dir"][i])
    for frame in frames:
        _replace_frame_by_contents(frame)
    full = [body for body in c.bodies if body.inertial in outer and _is_full(body.inertial)]
    write_inertials(c, full)


def write_fromto(spec: Spec) -> None:
    """Move every `fromto` from the default classes to the elements that inherit it.

    An element cannot unset an attribute of its class, and a pose excludes `fromto`.
    """
    elements = [e for e in spec.walk() if e.tag in ("geom", "site")]
    for element in elements:
        if element.holder.tag != "default" and element.is_set("fromto"):
            element.set("fromto", element.get("fromto"))
    for element in elements:
        if element.holder.tag == "default":
            element.unset("fromto")


def write_pose(element: SpecElement, pos: np.ndarray, quat: np.ndarray) -> None:
    """Set the pose of an element in its parent, replacing all its pose attributes."""
    for attr in (*SPELLINGS, "fromto"):
        element.unset(attr)
    element.set("pos", pos)
    element.set("quat", quat)


def _write_ends(element: SpecElement, frame: FramePose) -> None:
    """Write the two end points of an element, relative to the body."""
    ends = np.asarray(element.get("fromto"), float)
    element.set("fromto", np.concatenate([frame.point(ends[:3]), frame.point(ends[3:])]))


def _is_full(inertial: SpecElement | None) -> bool:
    return inertial is not None and "fullinertia" in inertial.attrs


def _replace_frame_by_contents(frame: SpecElement) -> None:
    """Replace a frame by its contents, which keep the class inherited from it."""
    parent = frame.holder
    index = parent.children.index(frame)
    childclass = frame.attrs.get("childclass")
    for i, child in enumerate(list(frame.children)):
        inside = child.row.attribute("childclass") is not None
        attr = "childclass" if inside else "class"
        if childclass is not None and child.row.attribute(attr) is not None:
            child.attrs.setdefault(attr, childclass)
        parent.adopt(child, index + i)
    frame.remove()
