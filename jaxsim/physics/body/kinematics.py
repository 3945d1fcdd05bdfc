"""Forward kinematics: poses of bodies, joints, geoms and sites in the world.

A body's pose in its parent depends on its own joints only, so that all of them are computed at
once. Poses in the world are one scan over the levels of the tree.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.arrays.linear import bind_gather
from jaxsim.enums import JointType
from jaxsim.math import Quat, Vec, concat, select_where
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.topology import body_levels, joint_slot, joint_table, joints_of
from jaxsim.transforms.materialize import materialize
from jaxsim.transforms.platform import platform


def kinematics(m: Model, d: Data) -> Data:
    """Compute forward kinematics (MuJoCo's documentation, Computation: Kinematics).

    xpos[b], xquat[b] = pose of parent * pose of b in its parent, joints applied in order

    Corresponds to `mj_kinematics` in MuJoCo.
    """
    # Poses in the parents, then in the world.
    pos, quat, anchor, axis = _local_poses(m, d)
    xpos, xquat = _compose_poses(m, pos, quat)

    # Joint anchors and axes are known in the parent's frame.
    parent = m.body_parentid[m.jnt_bodyid]
    ppos, pquat = gather_static((xpos, xquat), parent)

    # Poses of geoms and sites are fixed in their bodies.
    gpos, gquat = gather_static((xpos, xquat), m.geom_bodyid)
    spos, squat = gather_static((xpos, xquat), m.site_bodyid)
    return d.replace(
        xpos=xpos,
        xquat=xquat,
        xmat=xquat.matrix(),
        xanchor=ppos + pquat.rotate(anchor),
        xaxis=pquat.rotate(axis),
        xipos=xpos + xquat.rotate(m.body_ipos),
        ximat=(xquat * m.body_iquat).matrix(),
        geom_xpos=gpos + gquat.rotate(m.geom_pos),
        geom_xmat=(gquat * m.geom_quat).matrix(),
        site_xpos=spos + squat.rotate(m.site_pos),
        site_xmat=(squat * m.site_quat).matrix(),
    )


def _local_poses(m: Model, d: Data) -> tuple[Vec, Quat, Vec, Vec]:
    """Return body poses in their parents, and joint anchors and axes in the parent of the body."""
    # Poses without joints: from the model, or from mocap inputs.
    shape = (m.nbody, *d.qpos.shape[1:])
    pos = m.body_pos.map(lambda a: jnp.broadcast_to(a, shape))
    quat = m.body_quat.map(lambda a: jnp.broadcast_to(a, shape))
    if m.nmocap:
        pos, quat = _mocap_body_pose(m, d, pos, quat)
    if not m.njnt:
        return pos, quat, pos[:0], pos[:0]
    # Apply the joints of each body in order; free joints set the pose.
    pos, quat, anchor, axis = _apply_joints(m, d, pos, quat)
    free = joints_of(m.structure, JointType.FREE)
    if len(free):
        pos, quat = _free_body_pose(m, d, free, pos, quat)
        # A free joint has the body's position as anchor and the vertical as axis, as in MuJoCo.
        is_free = column(m.jnt_type == JointType.FREE, pos)
        anchor = select_where(is_free, gather_static(pos, m.jnt_bodyid), anchor)
        up = (0.0, 0.0, 1.0)
        axis = Vec(*(jnp.where(is_free, u, a) for u, a in zip(up, axis.parts, strict=True)))
    return pos, quat, anchor, axis


def _apply_joints(m: Model, d: Data, pos: Vec, quat: Quat) -> tuple[Vec, Quat, Vec, Vec]:
    """Move all bodies by their first joints, then by their second ones, and so on.

    Returns the poses, and each joint's anchor and axis before it is applied.
    """
    # Joints by slot: first, second, ... of each body.
    has, joint = joint_table(m)
    slots = len(joint)
    motion = (m.jnt_pos, m.jnt_axis, *materialize(_joint_motion(m, d), d.qpos))
    motion = jax.tree.map(
        lambda a: a.reshape(slots, m.nbody, *a.shape[1:]), gather_static(motion, joint.ravel())
    )

    # Rotate about the anchor, translate along the axis.
    def move(pose, slot):
        pos, quat = pose
        has, point, axis, turn, shift = slot
        anchor, axis = pos + quat.rotate(point), quat.rotate(axis)
        turned = quat * turn
        moved = anchor + axis.scale(shift) - turned.rotate(point)
        pose = select_where(has, moved, pos), select_where(has, turned, quat)
        return pose, (anchor, axis)

    # A single slot needs no scan.
    rank = has.shape + (1,) * (d.qpos.ndim - 1)
    if slots == 1:
        first = jax.tree.map(lambda a: a[0], (has.reshape(rank), *motion))
        (pos, quat), met = move((pos, quat), first)
    else:
        (pos, quat), met = lax.scan(
            move, (pos, quat), (has.reshape(rank), *motion), unroll=_unroll_count()
        )
        met = jax.tree.map(lambda a: a.reshape(slots * m.nbody, *a.shape[2:]), met)
    anchor, axis = gather_static(met, joint_slot(m) * m.nbody + m.jnt_bodyid)
    return pos, quat, anchor, axis


def _joint_motion(m: Model, d: Data) -> tuple[Quat, jax.Array]:
    """Return each joint's rotation, and its translation along its axis; none for a free joint."""
    # Scalar joints: position relative to qpos0, as angle or shift.
    kind = m.jnt_type
    scalar = np.isin(kind, (JointType.SLIDE, JointType.HINGE))
    adr = np.where(scalar, m.jnt_qposadr, 0)
    value = gather_static(d.qpos, adr) - gather_static(m.qpos0, adr)
    angle = jnp.where(column(kind == JointType.HINGE, value), value, 0)
    shift = jnp.where(column(kind == JointType.SLIDE, value), value, 0)
    turn = Quat.from_axis_angle(m.jnt_axis, angle)
    # Ball joints: the quaternion itself.
    ball = kind == JointType.BALL
    if ball.any():
        adr = np.where(ball, m.jnt_qposadr, 0)
        own = Quat(*(gather_static(d.qpos, np.minimum(adr + k, m.nq - 1)) for k in range(4)))
        turn = select_where(column(ball, value), own.normalize(), turn)
    return turn, shift


def _free_body_pose(m: Model, d: Data, free: np.ndarray, pos: Vec, quat: Quat) -> tuple[Vec, Quat]:
    """Set the poses of free bodies from qpos."""
    adr = np.zeros(m.nbody, int)
    adr[m.jnt_bodyid[free]] = m.jnt_qposadr[free]
    here = np.zeros(m.nbody, bool)
    here[m.jnt_bodyid[free]] = True
    mask = column(here, pos)
    q = [gather_static(d.qpos, adr + k) for k in range(7)]
    return select_where(mask, Vec(*q[:3]), pos), select_where(mask, Quat(*q[3:]).normalize(), quat)


def _mocap_body_pose(m: Model, d: Data, pos: Vec, quat: Quat) -> tuple[Vec, Quat]:
    """Set the poses of mocap bodies from their inputs."""
    index = np.maximum(m.body_mocapid, 0)
    mask = column(m.body_mocapid >= 0, pos)
    pos = select_where(mask, gather_static(d.mocap_pos, index), pos)
    return pos, select_where(mask, gather_static(d.mocap_quat.normalize(), index), quat)


def _compose_poses(m: Model, pos: Vec, quat: Quat) -> tuple[Vec, Quat]:
    """Compose poses in the world from poses in the parents, level by level."""
    # The world and its children.
    tree = body_levels(m)
    world = pos.map(lambda a: jnp.zeros_like(a[:1]))
    upright = Quat(*(jnp.full_like(world.x, k == 0) for k in range(4)))
    pieces = [(world, upright), (gather_static(pos, tree.roots), gather_static(quat, tree.roots))]
    depth, width = tree.body.shape
    # Scan over the deeper levels; each body gathers its parent in the level above.
    if depth:

        def descend(above, level):
            parent, p, q = level
            ppos, pquat = jax.tree.map(lambda a: bind_gather(a, parent), above)
            here = (ppos + pquat.rotate(p), pquat * q)
            return here, here

        # Local poses and parents, level by level.
        start = jax.tree.map(lambda a: _widen_level(a, width, tree.parent[0]), pieces[1])
        parents = tree.parent.copy()
        if len(tree.roots) > width:
            parents[0] = np.arange(width)
        local = jax.tree.map(
            lambda a: a.reshape(*tree.body.shape, *a.shape[1:]),
            gather_static((pos, quat), tree.body.ravel()),
        )
        _, poses = lax.scan(descend, start, (parents, *local), unroll=_unroll_count())
        pieces.append(jax.tree.map(lambda a: a.reshape(depth * width, *a.shape[2:]), poses))
    return gather_static(concat(pieces), tree.order)


def _unroll_count() -> int:
    """Return the unroll factor of scans: the depth of most robots where loops cost much."""
    return 1 if platform().scans else 8


def _widen_level(roots: Array, width: int, parent: np.ndarray) -> Array:
    """Pad the level of the roots to the width of the deeper ones, or gather the used parents."""
    n = roots.shape[0]
    if n > width:
        return roots[parent]
    return jnp.pad(roots, [(0, width - n)] + [(0, 0)] * (roots.ndim - 1))
