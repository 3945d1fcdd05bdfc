"""Scale keyframes of bodies inside a `<frame>` with a scale."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.element_pose import written_pose
from jaxsim.compile.geometry.pose import FramePose, identity_pose
from jaxsim.compile.scale.scales import UNIT_SCALE, Scales
from jaxsim.enums import JointType
from jaxsim.math.quaternion import quat_to_matrix
from jaxsim.spec import SpecElement


def scale_keys(c: Compilation, scales: Scales) -> None:
    """Map the positions and velocities in keyframes, before anything else is scaled."""
    joints = [joint for body in c.spec.bodies for joint in body.joints]
    mocaps = [body.element for body in c.spec.bodies if body.element.get("mocap") == "true"]
    for key in c.spec.section("keyframe"):
        layout = key.layout
        own = joints if layout is None else layout.joints
        kinds = [JointType[(joint.get("type") or "free").upper()] for joint in own]
        if (qpos := key.own("qpos")) is not None:
            parts = _parts(qpos, [kind.nq for kind in kinds])
            for joint, kind, part in zip(own, kinds, parts, strict=False):
                _scale_position(c, joint, kind, part, scales)
            key.attrs["qpos"] = np.concatenate(parts)
        if (qvel := key.own("qvel")) is not None:
            parts = _parts(qvel, [kind.nv for kind in kinds])
            for joint, kind, part in zip(own, kinds, parts, strict=False):
                _scale_velocity(c, joint, kind, part, scales)
            key.attrs["qvel"] = np.concatenate(parts)
        if (mpos := key.own("mpos")) is not None:
            moved = mocaps if layout is None else layout.mocaps
            parts = _parts(mpos, [3] * len(moved))
            for body, part in zip(moved, parts, strict=False):
                if len(part) == 3 and body in scales.inside:
                    part[:] = _PoseMap.of(c, body, scales).map(part)
            key.attrs["mpos"] = np.concatenate(parts)


def _parts(numbers: np.ndarray, sizes: list[int]) -> list[np.ndarray]:
    """Return copies of the numbers of each object, and of superfluous ones, which are reported
    later."""
    return np.split(np.array(np.atleast_1d(numbers), float), np.cumsum(sizes))


def _scale_position(
    c: Compilation, joint: SpecElement, kind: JointType, part: np.ndarray, scales: Scales
) -> None:
    if len(part) != kind.nq or joint not in scales.inside:
        return
    if kind == JointType.SLIDE:
        part *= scales.inside[joint].length
    if kind == JointType.FREE:
        part[:3] = _PoseMap.of(c, joint.holder, scales).map(part[:3])


def _scale_velocity(
    c: Compilation, joint: SpecElement, kind: JointType, part: np.ndarray, scales: Scales
) -> None:
    if len(part) != kind.nv or joint not in scales.inside:
        return
    if kind == JointType.SLIDE:
        part *= scales.inside[joint].length
    if kind == JointType.FREE:
        part[:3] = _PoseMap.of(c, joint.holder, scales).linear @ part[:3]


@dataclass(frozen=True, eq=False)
class _PoseMap:
    """Affine map of world positions inside a frame of the world.

    Attributes:
      start: origin of the innermost frame before scaling, (3,).
      end: origin of that frame after scaling, (3,).
      linear: linear map of differences of positions, (3, 3).
    """

    start: np.ndarray
    end: np.ndarray
    linear: np.ndarray

    @classmethod
    def of(cls, c: Compilation, body: SpecElement, scales: Scales) -> _PoseMap:
        """Return the map of a body of the world that is inside frames."""
        pose, end = identity_pose(), np.zeros(3)
        chain = [*reversed(body.frames()), body]
        linear = np.eye(3)
        for element, inner in pairwise(chain):
            own = written_pose(c, element)
            # a frame is scaled only by the outer ones
            end = end + linear @ (pose.point(own.pos) - pose.pos)
            pose = FramePose(pose.point(own.pos), pose.apply(own).quat)
            R = quat_to_matrix(pose.quat)
            linear = R @ scales.inside.get(inner, UNIT_SCALE).linear @ R.T
        return cls(pose.pos, end, linear)

    def map(self, position: np.ndarray) -> np.ndarray:
        """Return the mapped position, in the world, (3,)."""
        return self.end + self.linear @ (position - self.start)
