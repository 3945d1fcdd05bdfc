"""Constants derived from the reference pose: masses of subtrees, lengths, inverse weights.

Corresponds to `mj_setConst` in MuJoCo. The constants follow from the other fields alone:

    body_subtreemass, tendon_length0, actuator_length0, dof_M0, dof_length,
    dof_invweight0, body_invweight0, tendon_invweight0, actuator_acc0, eq_data
    and the poses of cameras and lights (views.py)

With M the inertia matrix at `qpos0`, including the armature of tendons, and J the Jacobian of a
quantity, an inverse weight is the mean of the diagonal of J M^-1 J^T: the response of the quantity
to a unit force. `actuator_acc0` is |M^-1 moment|, the joint acceleration from a unit force.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jaxsim.compile.reference.mass_matrix import MassMatrix
from jaxsim.compile.reference.pose import Fields, Reference, reference_pose, subtree_sum
from jaxsim.compile.reference.tendon_path import Stretch, tendon_stretches
from jaxsim.compile.reference.transmission import actuator_stretches
from jaxsim.compile.reference.views import views
from jaxsim.enums import MINVAL, EqType, JointType, ObjType, TrnType
from jaxsim.math import quaternion
from jaxsim.model.derived import MIN_BODY_SIZE, SLIDERS_ONLY

_ON_JOINT = (TrnType.JOINT, TrnType.JOINTINPARENT)


@dataclass(eq=False)
class Constants:
    """A model at `qpos0`, from which each derived field is computed."""

    fields: Fields

    @cached_property
    def reference(self) -> Reference:
        """Return the model at `qpos0`."""
        return reference_pose(self.fields)

    @cached_property
    def tendons(self) -> list[Stretch]:
        """Return the length and Jacobian of each tendon."""
        return tendon_stretches(self.reference)

    @cached_property
    def actuators(self) -> list[Stretch]:
        """Return the length and moment of each force output."""
        return actuator_stretches(self.reference, self.tendons)

    @cached_property
    def joint_inertia(self) -> MassMatrix:
        """Return M without the armature of tendons."""
        return MassMatrix(self.reference, _dof_armature(self.fields))

    @cached_property
    def inertia(self) -> MassMatrix:
        """Return M."""
        armature = _tendon_armature(self.fields)
        if not armature.any():
            return self.joint_inertia
        matrix = MassMatrix(self.reference, _dof_armature(self.fields))
        for tendon, own in zip(self.tendons, armature, strict=True):
            if own:
                matrix.add_outer(tendon.dofs, tendon.values, own)
        return matrix

    def all(self) -> dict[str, np.ndarray]:
        """Return the derived fields by name."""
        return {
            "body_subtreemass": subtree_sum(self.fields["body_parentid"], self.fields["body_mass"]),
            "tendon_length0": np.array([tendon.length for tendon in self.tendons], np.float64),
            "actuator_length0": np.array([output.length for output in self.actuators], np.float64),
            "dof_M0": self.joint_inertia.diagonal(),
            "dof_length": self.dof_length(),
            "dof_invweight0": self.dof_invweight0(),
            "body_invweight0": self.body_invweight0(),
            "tendon_invweight0": self.tendon_invweight0(),
            "actuator_acc0": self.actuator_acc0(),
            "eq_data": self.eq_data(),
            **views(self.reference),
        }

    def _sliding(self, bodies: np.ndarray) -> np.ndarray:
        """Return which bodies have only slides; their inverse weights are 1 / mass, without
        armature."""
        return self.fields["body_simple"][bodies] == SLIDERS_ONLY

    def dof_invweight0(self) -> np.ndarray:
        """Return the diagonal of M^-1, averaged over each three dofs of ball and free joints,
        (nv,)."""
        f = self.fields
        weight = self.inertia.inverse_diagonal()
        free, ball = f["jnt_type"] == JointType.FREE, f["jnt_type"] == JointType.BALL
        first = np.concatenate([f["jnt_dofadr"][free | ball], f["jnt_dofadr"][free] + 3])
        three = first[:, None] + np.arange(3)
        weight[three] = weight[three].mean(axis=1, keepdims=True)
        body = f["dof_bodyid"]
        slides = self._sliding(body)
        weight[slides] = 1.0 / np.maximum(f["body_mass"][body[slides]], MINVAL)
        return weight

    def body_invweight0(self) -> np.ndarray:
        """Return the inverse weight of each body's center of mass: translation, rotation, (nbody,
        2)."""
        f, weight = self.fields, np.zeros((self.fields["nbody"], 2))
        slides = self._sliding(np.arange(f["nbody"]))
        for body in range(1, f["nbody"]):
            if f["body_weldid"][body] == 0 or not len(self.reference.lineage[body]):
                continue
            if slides[body]:
                weight[body, 0] = 1.0 / max(f["body_mass"][body], MINVAL)
                continue
            dofs, axes = self.reference.jacobian(body, self.reference.xipos[body])
            mobility = np.diagonal(self.inertia.sandwich(dofs, axes.T))
            weight[body] = mobility[3:].mean(), mobility[:3].mean()
        return weight

    def tendon_invweight0(self) -> np.ndarray:
        """Return J M^-1 J^T of each tendon, (ntendon,)."""
        return np.array([self._mobility(tendon) for tendon in self.tendons], np.float64)

    def _mobility(self, stretch: Stretch) -> float:
        return self.inertia.sandwich(stretch.dofs, stretch.values[None])[0, 0]

    def actuator_mobility(self) -> np.ndarray:
        """Return J M^-1 J^T of each force output, the inverse of the inertia it drives, (nout,)."""
        return np.array([self._mobility(output) for output in self.actuators], np.float64)

    def actuator_acc0(self) -> np.ndarray:
        """Return the norm of the joint acceleration from a unit force at each force output,
        (nout,)."""
        outputs = self.actuators
        rows = [self.inertia.solve(output.dofs, output.values[None])[0] for output in outputs]
        return np.array([np.linalg.norm(row) for row in rows], np.float64)

    def eq_data(self) -> np.ndarray:
        """Return `eq_data`, completed by the anchors and poses of connects and welds at `qpos0`,
        (neq, 12).

        For a connect the anchor in body 1 is given and that in body 2 computed; for a weld the
        reverse, with the orientation of body 2 in body 1, unless its pose was given.
        """
        f, pose = self.fields, self.reference
        data = np.array(f["eq_data"], np.float64)
        of_bodies = f["eq_objtype"] == ObjType.BODY
        connect = of_bodies & (f["eq_type"] == EqType.CONNECT)
        weld = of_bodies & (f["eq_type"] == EqType.WELD) & (data[:, 11] != 0)
        for k in np.flatnonzero(connect | weld):
            ends = [f["eq_obj1id"][k], f["eq_obj2id"][k]]
            known, other = ends if connect[k] else ends[::-1]
            point = pose.world_position(known, data[k, :3]) - pose.xpos[other]
            data[k, 3:6] = quaternion.quat_rotate(
                quaternion.quat_conjugate(pose.xquat[other]), point
            )
            if weld[k]:
                first, second = pose.xquat[ends]
                data[k, 6:10] = quaternion.quat_multiply(quaternion.quat_conjugate(first), second)
        return data

    @cached_property
    def body_length(self) -> np.ndarray:
        """Return the size of each body [m]: the largest distance from its com to a geom bound or
        joint.

        Joints are its own and those of its children. Edges of flexes count with their length.
        """
        f, xipos = self.fields, self.reference.xipos
        length = np.full(f["nbody"], MIN_BODY_SIZE)
        geom_body, joint_body = f["geom_bodyid"], f["jnt_bodyid"]
        far = np.linalg.norm(self.reference.geom_xpos - xipos[geom_body], axis=1)
        np.maximum.at(length, geom_body, far + f["geom_rbound"])
        for body in (joint_body, f["body_parentid"][joint_body]):
            far = np.linalg.norm(self.reference.xanchor - xipos[body], axis=1)
            np.maximum.at(length, body, far)
        for flex, vertadr in enumerate(f["flex_vertadr"]):
            first = f["flex_edgeadr"][flex]
            edges = slice(first, first + f["flex_edgenum"][flex])
            body = f["flex_vertbodyid"][vertadr + f["flex_edge"][edges]]
            if f["flex_interp"][flex] == 0:
                np.maximum.at(length, body, f["flexedge_length0"][edges, None])
        return length

    def dof_length(self) -> np.ndarray:
        """Return the length scale of each dof: 1 for translations, the body's size for rotations,
        (nv,)."""
        f = self.fields
        joint = f["dof_jntid"]
        kind, offset = f["jnt_type"][joint], np.arange(f["nv"]) - f["jnt_dofadr"][joint]
        slides = (kind == JointType.SLIDE) | ((kind == JointType.FREE) & (offset < 3))
        return np.where(slides, 1.0, self.body_length[f["dof_bodyid"]])


def _dof_armature(f: Fields) -> np.ndarray:
    """Return the armature of each dof, including that reflected by actuators, (nv,)."""
    armature = np.array(f["dof_armature"], np.float64)
    for actuator, own in enumerate(f["actuator_armature"]):
        if own and f["actuator_trntype"][actuator] in _ON_JOINT:
            joint = f["actuator_trnid"][actuator, 0]
            first = f["jnt_dofadr"][joint]
            dofs = slice(first, first + JointType(f["jnt_type"][joint]).nv)
            armature[dofs] += own * f["actuator_gear"][f["actuator_outadr"][actuator], 0] ** 2
    return armature


def _tendon_armature(f: Fields) -> np.ndarray:
    """Return the armature of each tendon, including that reflected by actuators, (ntendon,)."""
    armature = np.array(f["tendon_armature"], np.float64)
    for actuator, own in enumerate(f["actuator_armature"]):
        if own and f["actuator_trntype"][actuator] == TrnType.TENDON:
            gear = f["actuator_gear"][f["actuator_outadr"][actuator], 0]
            armature[f["actuator_trnid"][actuator, 0]] += own * gear**2
    return armature
