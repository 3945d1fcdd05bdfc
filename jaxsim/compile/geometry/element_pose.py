"""The pose of an element in its body, or of a body in its parent, with all frames resolved.

`<frame>` elements around an element are applied from the inside out. `fromto` defines pose and
length of a geom or site by two end points.
"""

from __future__ import annotations

from itertools import takewhile

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.orientation import MIN_SQUARED_LENGTH, mjcf_numbers, orientation
from jaxsim.compile.geometry.pose import FramePose, identity_pose
from jaxsim.math.quaternion import quat_from_z_axis
from jaxsim.spec import SpecElement


def pose_of(c: Compilation, element: SpecElement) -> FramePose:
    """Return the pose of an element in its body, or of a body in its parent."""
    own = written_pose(c, element)
    return own if element.holder.tag != "frame" else frame_pose(c, element).apply(own)


def written_pose(c: Compilation, element: SpecElement) -> FramePose:
    """Return the pose that the attributes of an element give, without the frames around it."""
    pos = element.get("pos")
    return FramePose(np.zeros(3) if pos is None else np.array(pos, float), orientation(c, element))


def frame_pose(c: Compilation, element: SpecElement) -> FramePose:
    """Return the pose, in the body, of the frame that an element is written in."""
    if element.parent is None or element.parent.tag != "frame":
        return identity_pose()
    unknown = list(takewhile(lambda frame: frame not in c.frames, element.frames()))
    for frame in reversed(unknown):
        own, around = written_pose(c, frame), c.frames.get(frame.holder)
        c.frames[frame] = own if around is None else around.apply(own)
    return c.frames[element.parent]


def fromto(c: Compilation, element: SpecElement) -> tuple[FramePose, float]:
    """Return the pose whose z axis joins the two points of `fromto`, and half their distance.

    The z axis points from the second point to the first, as in MuJoCo.
    """
    ends = np.array(element.get("fromto"), float)
    if np.any(element.get("pos")):
        c.fault(element, "both pos and fromto place it; remove one of them")
    along = ends[:3] - ends[3:]
    length = float(np.linalg.norm(along))
    if not along @ along >= MIN_SQUARED_LENGTH:
        c.fault(element, f"the points of fromto coincide ('{mjcf_numbers(ends)}'); move them apart")
        return identity_pose(), 0.0
    own = FramePose((ends[:3] + ends[3:]) / 2, quat_from_z_axis(along))
    return frame_pose(c, element).apply(own), length / 2
