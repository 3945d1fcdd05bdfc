"""Compile joints and their degrees of freedom: `jnt_*`, `dof_*`, `qpos0` and `qpos_spring`."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxsim.compile.body.bodies import address_table, owners
from jaxsim.compile.columns import Column, copy_columns, polynomial_coefficients, user_data
from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.element_pose import frame_pose
from jaxsim.compile.geometry.orientation import IDENTITY, mjcf_numbers, normalize_direction
from jaxsim.compile.geometry.pose import FramePose
from jaxsim.compile.limit_flags import is_limited
from jaxsim.compile.step import declare_pass
from jaxsim.enums import JointType
from jaxsim.math.quaternion import quat_rotate
from jaxsim.spec import Body, SpecElement

JOINT_TYPE_BY_NAME = {
    "free": JointType.FREE,
    "ball": JointType.BALL,
    "slide": JointType.SLIDE,
    "hinge": JointType.HINGE,
}
ANGULAR_JOINTS = (JointType.HINGE, JointType.BALL)
_SCALAR_JOINTS = (JointType.HINGE, JointType.SLIDE)
_MAX_BODY_DOFS = 6  # largest number of dofs of one body

_JOINT_COLUMNS = (
    Column("jnt_group", "group", dtype=np.int32),
    Column("jnt_actgravcomp", "actuatorgravcomp", dtype=bool),
    Column("jnt_solref", "solreflimit", 2),
    Column("jnt_solimp", "solimplimit", 5),
    Column("jnt_stiffness", "stiffness"),
    Column("jnt_actfrcrange", "actuatorfrcrange", 2),
    Column("jnt_margin", "margin"),
)

_DOF_COLUMNS = (
    Column("dof_solref", "solreffriction", 2),
    Column("dof_solimp", "solimpfriction", 5),
    Column("dof_frictionloss", "frictionloss"),
    Column("dof_armature", "armature"),
    Column("dof_damping", "damping"),
)


@declare_pass(needs="read_settings bodies", gives="body dof jnt joint qpos qpos0")
def joints(c: Compilation) -> None:
    """Add all fields of joints and dofs that do not need the inertia."""
    elements = [joint for body in c.bodies for joint in body.joints]
    c.register("joint", elements, [joint.name for joint in elements])
    plain = [_convert_freejoint(c, joint) for joint in elements]
    kinds = [JOINT_TYPE_BY_NAME[joint.get("type")] for joint in plain]
    body = owners(c.bodies, "joints")
    _check_bodies(c, kinds)

    nq, nv = np.array([k.nq for k in kinds], int), np.array([k.nv for k in kinds], int)
    jnt_num, jnt_adr = address_table([b.joints for b in c.bodies])
    dofs = [sum(nv[jnt_adr[b.id] : jnt_adr[b.id] + jnt_num[b.id]]) for b in c.bodies]
    dof_num, dof_adr = address_table([range(n) for n in dofs])
    c.fields.update(
        njnt=len(kinds),
        nq=int(nq.sum()),
        nv=int(nv.sum()),
        body_jntnum=jnt_num,
        body_jntadr=jnt_adr,
        body_dofnum=dof_num,
        body_dofadr=dof_adr,
        jnt_type=np.array(kinds, np.int32),
        jnt_bodyid=body,
        jnt_qposadr=(np.cumsum(nq) - nq).astype(np.int32),
        jnt_dofadr=(np.cumsum(nv) - nv).astype(np.int32),
        jnt_actuatorid=np.full(len(kinds), -1, np.int32),
        dof_bodyid=np.repeat(body, nv).astype(np.int32),
        dof_jntid=np.repeat(np.arange(len(kinds)), nv).astype(np.int32),
    )
    copy_columns(c, plain, _JOINT_COLUMNS)
    copy_columns(
        c, [joint for joint, n in zip(plain, nv, strict=True) for _ in range(n)], _DOF_COLUMNS
    )
    c.fields["jnt_stiffnesspoly"] = polynomial_coefficients(plain, "stiffness")
    c.fields["dof_dampingpoly"] = np.repeat(polynomial_coefficients(plain, "damping"), nv, axis=0)
    _axes(c, plain, kinds)
    _limits(c, plain, kinds)
    _add_spring_yield(c, plain, kinds)
    _positions(c, plain, kinds)
    user_data(c, "jnt", plain)


def _convert_freejoint(c: Compilation, element: SpecElement) -> SpecElement:
    """Return a `<freejoint>` as the equivalent free `<joint>` without defaults."""
    if element.tag != "freejoint":
        return element
    attrs: dict[str, Any] = {
        name: element.attrs[name] for name in ("name", "group") if name in element.attrs
    }
    row = c.spec.root.row.children["worldbody"].children["body"].children["joint"]
    return SpecElement(tag="joint", attrs={**attrs, "type": "free"}, place=element.place, row=row)


def _check_bodies(c: Compilation, kinds: list[JointType]) -> None:
    """Report invalid combinations of joints in one body."""
    start = 0
    for body in c.bodies:
        own = kinds[start : start + len(body.joints)]
        start += len(own)
        if body.id == 0 and own:
            c.fault(body.joints[0], "the world cannot move; put the joint in a body")
        if JointType.FREE in own and body.depth > 1:
            c.fault(
                body.joints[own.index(JointType.FREE)],
                "a free joint is for children of the world only; "
                "move the body to the top, or use slide and ball joints",
            )
        if sum(kind.nv for kind in own) > _MAX_BODY_DOFS:
            total = sum(kind.nv for kind in own)
            c.fault(
                body.element,
                f"its joints have {total} dofs, more than {_MAX_BODY_DOFS}; remove some",
            )
        _check_ball(c, body, own)


def _check_ball(c: Compilation, body: Body, own: list[JointType]) -> None:
    """Check that no rotation follows a ball joint in the same body."""
    if JointType.BALL not in own:
        return
    for kind, joint in list(zip(own, body.joints, strict=True))[own.index(JointType.BALL) + 1 :]:
        if kind in ANGULAR_JOINTS:
            c.fault(joint, "a rotation after a ball joint of the same body is redundant; remove it")


def _axes(c: Compilation, joints: list[SpecElement], kinds: list[JointType]) -> None:
    """Add `jnt_pos` and `jnt_axis` in the body frame; a free joint is at the origin."""
    pos, axis = np.zeros((len(joints), 3)), np.tile([0.0, 0.0, 1.0], (len(joints), 1))
    for i, (joint, kind) in enumerate(zip(joints, kinds, strict=True)):
        if kind == JointType.FREE:
            continue
        frame: FramePose = frame_pose(c, joint)
        pos[i] = frame.point(np.array(joint.get("pos"), float))
        if kind in _SCALAR_JOINTS:
            value = np.array(joint.get("axis"), float)
            direction = normalize_direction(c, joint, "axis", value)
            if direction is not None:
                axis[i] = quat_rotate(frame.quat, direction)
    c.fields.update(jnt_pos=pos, jnt_axis=axis)


def _limits(c: Compilation, joints: list[SpecElement], kinds: list[JointType]) -> None:
    """Add `jnt_range` [m or rad, as written if not limited], `jnt_limited`, `jnt_actfrclimited`."""
    ranges = np.zeros((len(joints), 2))
    limited = np.zeros(len(joints), bool)
    actfrclimited = np.zeros(len(joints), bool)
    for i, (joint, kind) in enumerate(zip(joints, kinds, strict=True)):
        written = np.array(joint.get("range"), float)
        if kind != JointType.FREE:
            rising = kind != JointType.BALL
            limited[i] = is_limited(c, joint, "limited", "range", rising=rising)
        # The range of a joint without limits keeps its unit, degrees or not.
        ranges[i] = (
            c.settings_of(joint).radians(written)
            if limited[i] and kind in ANGULAR_JOINTS
            else written
        )
        if kind in _SCALAR_JOINTS:
            actfrclimited[i] = is_limited(c, joint, "actuatorfrclimited", "actuatorfrcrange")
        if kind == JointType.BALL and limited[i] and ranges[i, 0] != 0:
            c.fault(
                joint, f"range of a ball joint must begin with 0, got '{mjcf_numbers(written)}'"
            )
    c.fields.update(jnt_range=ranges, jnt_limited=limited, jnt_actfrclimited=actfrclimited)


def _add_spring_yield(c: Compilation, joints: list[SpecElement], kinds: list[JointType]) -> None:
    """Add `jnt_springyield` [m or rad] and the address of the plastic state, `jnt_plasticadr`."""
    threshold, sizes = np.zeros(len(joints)), np.zeros(len(joints), int)
    for i, (joint, kind) in enumerate(zip(joints, kinds, strict=True)):
        value = float(joint.get("springyield") or 0.0)
        if value < 0:
            c.fault(joint, f"springyield='{value:g}' must not be negative; 0 disables yielding")
        if value > 0 and kind == JointType.FREE:
            c.fault(joint, "a free joint has no springyield; remove it")
        if value > 0 and kind != JointType.FREE:
            threshold[i] = c.settings_of(joint).radians(value) if kind in ANGULAR_JOINTS else value
            sizes[i] = kind.nq
    adr = np.where(sizes > 0, np.cumsum(sizes) - sizes, -1)
    c.fields.update(
        jnt_springyield=threshold, jnt_plasticadr=adr.astype(np.int32), nplastic=int(sizes.sum())
    )


def _positions(c: Compilation, joints: list[SpecElement], kinds: list[JointType]) -> None:
    """Add `qpos0` and `qpos_spring`: the reference configuration, and that of the springs at
    rest."""
    qpos0: list[np.ndarray] = []
    spring: list[np.ndarray] = []
    for joint, kind, body in zip(joints, kinds, c.fields["jnt_bodyid"], strict=True):
        if kind in _SCALAR_JOINTS:
            values = np.array([joint.get("ref"), joint.get("springref")], float)
            if kind == JointType.HINGE:
                values = c.settings_of(joint).radians(values)
            qpos0.append(values[:1])
            spring.append(values[1:])
            continue
        pose = IDENTITY
        if kind == JointType.FREE:
            pose = np.concatenate([c.fields["body_pos"][body], c.fields["body_quat"][body]])
        qpos0.append(pose)
        spring.append(pose)
    c.fields["qpos0"] = np.concatenate([*qpos0, np.zeros(0)])
    c.fields["qpos_spring"] = np.concatenate([*spring, np.zeros(0)])
