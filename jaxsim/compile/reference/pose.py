"""The model in its reference pose `qpos0`: positions, joint axes and Jacobians.

All quantities that MuJoCo derives once per model (fields ending in 0, inverse weights, statistics)
are functions of this pose; the rest lengths of springs are functions of `qpos_spring`. A joint at
`qpos0` is not displaced, so most poses follow from `body_pos` and `body_quat` alone, level by
level; only displaced joints are processed one by one. The input is a table of MuJoCo-named arrays,
the compiler's `fields`.

Formulas: Featherstone, *Rigid Body Dynamics Algorithms*, ch. 6 (composite inertia); MuJoCo's
documentation, Computation chapter, for the spatial vectors (rotation first, about a tree's center
of mass).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jaxsim.enums import MINVAL, JointType
from jaxsim.math import quaternion

Fields = Mapping[str, Any]


@dataclass(eq=False)
class Reference:
    """Kinematics at one position, in the world frame, lengths in m."""

    fields: Fields
    qpos: np.ndarray  # (nq,)
    xpos: np.ndarray  # (nbody, 3)
    xquat: np.ndarray  # (nbody, 4)
    xipos: np.ndarray  # (nbody, 3) centers of mass
    subtree_com: np.ndarray  # (nbody, 3)
    xanchor: np.ndarray  # (njnt, 3)
    xaxis: np.ndarray  # (njnt, 3)

    @cached_property
    def xmat(self) -> np.ndarray:
        """Return the orientation of the bodies, (nbody, 3, 3)."""
        return quaternion.quat_to_matrix(self.xquat)

    @cached_property
    def geom_xpos(self) -> np.ndarray:
        """Return the centers of the geoms, (ngeom, 3)."""
        return self.world_position(self.fields["geom_bodyid"], self.fields["geom_pos"])

    @cached_property
    def geom_xquat(self) -> np.ndarray:
        """Return the orientations of the geoms, (ngeom, 4)."""
        return self.world_rotation(self.fields["geom_bodyid"], self.fields["geom_quat"])

    @cached_property
    def site_xpos(self) -> np.ndarray:
        """Return the positions of the sites, (nsite, 3)."""
        return self.world_position(self.fields["site_bodyid"], self.fields["site_pos"])

    @cached_property
    def site_xquat(self) -> np.ndarray:
        """Return the orientations of the sites, (nsite, 4)."""
        return self.world_rotation(self.fields["site_bodyid"], self.fields["site_quat"])

    def world_position(self, body: np.ndarray, pos: np.ndarray) -> np.ndarray:
        """Return world positions of points given in body frames."""
        return self.xpos[body] + quaternion.quat_rotate(self.xquat[body], pos)

    def world_rotation(self, body: np.ndarray, quat: np.ndarray) -> np.ndarray:
        """Return world orientations of frames given in body frames."""
        return quaternion.quat_multiply(self.xquat[body], quat)

    @cached_property
    def cdof(self) -> np.ndarray:
        """Return the motion axes of the dofs about their tree's center of mass, rotation first,
        (nv, 6)."""
        f = self.fields
        cdof = np.zeros((f["nv"], 6))
        kind, first, body = f["jnt_type"], f["jnt_dofadr"], f["jnt_bodyid"]
        to_com = self.subtree_com[f["body_rootid"][body]] - self.xanchor

        slide, hinge = kind == JointType.SLIDE, kind == JointType.HINGE
        cdof[first[slide], 3:] = self.xaxis[slide]
        cdof[first[hinge], :3] = self.xaxis[hinge]
        cdof[first[hinge], 3:] = quaternion.cross_arrays(self.xaxis[hinge], to_com[hinge])

        # a free joint translates along the world axes, then rotates about those of the body
        free, ball = kind == JointType.FREE, kind == JointType.BALL
        three = np.arange(3)
        cdof[first[free, None] + three, 3:] = np.eye(3)
        turning = np.where(free, first + 3, first)[free | ball, None] + three
        axes = np.swapaxes(self.xmat[body[free | ball]], 1, 2)
        cdof[turning, :3] = axes
        cdof[turning, 3:] = quaternion.cross_arrays(axes, to_com[free | ball, None])
        return cdof

    @cached_property
    def lineage(self) -> list[np.ndarray]:
        """Return for each body the dofs that move it, root first."""
        return lineage(self.fields)

    def jacobian(self, body: int, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the Jacobian of a world point fixed to a body.

        Returns:
          Its dofs, (n,), and the derivative (n, 6): rotation, then translation of the point.
        """
        dofs = self.lineage[body]
        axes = self.cdof[dofs].copy()
        from_com = point - self.subtree_com[self.fields["body_rootid"][body]]
        axes[:, 3:] += quaternion.cross_arrays(axes[:, :3], from_com)
        return dofs, axes


def reference_pose(fields: Fields, qpos: np.ndarray | None = None) -> Reference:
    """Return the forward kinematics at `qpos0`, or at another position (nq,), level by level."""
    f, nbody = fields, fields["nbody"]
    qpos = f["qpos0"] if qpos is None else qpos
    pos, quat = _body_offsets(f, qpos)
    xpos, xquat = np.zeros((nbody, 3)), np.tile(quaternion.IDENTITY, (nbody, 1))
    displaced = _displacements(f, qpos)
    anchor, axis = f["jnt_pos"].copy(), f["jnt_axis"].copy()
    done = np.zeros(len(anchor), dtype=bool)
    for level in depth_levels(f["body_parentid"])[1:]:
        above = f["body_parentid"][level]
        xpos[level] = xpos[above] + quaternion.quat_rotate(xquat[above], pos[level])
        xquat[level] = quaternion.quat_normalize(
            quaternion.quat_multiply(xquat[above], quat[level])
        )
        for body in level:
            if body in displaced:
                joints = np.arange(f["body_jntnum"][body]) + f["body_jntadr"][body]
                done[joints] = True
                _apply_joints(f, body, joints, displaced[body], xpos, xquat, anchor, axis)

    # joints without displacement, all at once
    body = f["jnt_bodyid"]
    still = ~done
    anchor[still] = (xpos[body] + quaternion.quat_rotate(xquat[body], f["jnt_pos"]))[still]
    axis[still] = quaternion.quat_rotate(xquat[body], f["jnt_axis"])[still]

    xipos = xpos + quaternion.quat_rotate(xquat, f["body_ipos"])
    mass = subtree_sum(f["body_parentid"], f["body_mass"])
    moment = subtree_sum(f["body_parentid"], f["body_mass"][:, None] * xipos)
    heavy = mass[:, None] >= MINVAL
    com = np.where(heavy, moment / np.where(heavy, mass[:, None], 1.0), xipos)
    return Reference(f, qpos, xpos, xquat, xipos, com, anchor, axis)


def _body_offsets(f: Fields, qpos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pose of each body in its parent before joint motion; for a free joint its
    coordinates."""
    pos, quat = f["body_pos"].copy(), f["body_quat"].copy()
    free = f["jnt_type"] == JointType.FREE
    body, adr = f["jnt_bodyid"][free], f["jnt_qposadr"][free, None]
    pos[body] = qpos[adr + np.arange(3)]
    quat[body] = qpos[adr + 3 + np.arange(4)]
    return pos, quaternion.quat_normalize(quat)


def _displacements(f: Fields, qpos: np.ndarray) -> dict[int, list[np.ndarray]]:
    """Return for each body with a displaced joint the quaternion or offset (1,) of each of its
    joints."""
    kind, adr, body = f["jnt_type"], f["jnt_qposadr"], f["jnt_bodyid"]
    ball, scalar = kind == JointType.BALL, np.isin(kind, (JointType.SLIDE, JointType.HINGE))
    turned = (qpos[adr[ball, None] + np.arange(4)] != quaternion.IDENTITY).any(axis=1)
    moved = qpos[adr[scalar]] != f["qpos0"][adr[scalar]]
    found = np.concatenate([body[ball][turned], body[scalar][moved]])

    def value(joint: int) -> np.ndarray:
        if kind[joint] == JointType.BALL:
            return qpos[adr[joint] : adr[joint] + 4]
        same = kind[joint] == JointType.FREE
        return np.zeros(1) if same else qpos[adr[joint], None] - f["qpos0"][adr[joint], None]

    first, count = f["body_jntadr"], f["body_jntnum"]
    return {int(b): [value(first[b] + k) for k in range(count[b])] for b in set(found.tolist())}


def _apply_joints(f, body, joints, values, xpos, xquat, anchor, axis) -> None:
    """Move one body by its joints in order, and record each joint's anchor and axis."""
    for joint, value in zip(joints, values, strict=True):
        anchor[joint] = xpos[body] + quaternion.quat_rotate(xquat[body], f["jnt_pos"][joint])
        axis[joint] = quaternion.quat_rotate(xquat[body], f["jnt_axis"][joint])
        kind = f["jnt_type"][joint]
        if kind == JointType.FREE:
            continue
        if kind == JointType.SLIDE:
            xpos[body] += axis[joint] * value
            continue
        turn = (
            value
            if kind == JointType.BALL
            else quaternion.quat_from_axis_angle(f["jnt_axis"][joint], value[0])
        )
        xquat[body] = quaternion.quat_normalize(quaternion.quat_multiply(xquat[body], turn))
        xpos[body] = anchor[joint] - quaternion.quat_rotate(xquat[body], f["jnt_pos"][joint])


def depth_levels(parents: np.ndarray) -> list[np.ndarray]:
    """Return the bodies grouped by their depth in the tree, the world alone first."""
    depth = np.zeros(len(parents), dtype=np.int32)
    for body in range(1, len(parents)):
        depth[body] = depth[parents[body]] + 1
    order = np.argsort(depth, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)


def subtree_sum(parents: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the sums over each body and all its descendants, (nbody, ...)."""
    total = np.array(values, dtype=np.float64)
    for body in range(len(parents) - 1, 0, -1):
        total[parents[body]] += total[body]
    return total


def lineage(fields: Fields) -> list[np.ndarray]:
    """Return for each body the dofs that move it, root first."""
    parents, owned, first = fields["body_parentid"], fields["body_dofnum"], fields["body_dofadr"]
    found = [np.zeros(0, dtype=np.int32)]
    for body in range(1, len(parents)):
        above = found[parents[body]]
        own = np.arange(owned[body], dtype=np.int32) + first[body]
        found.append(np.concatenate([above, own]) if len(own) else above)
    return found
