"""Lengths and moment arms of actuators in a given pose, for the derived constants.

One `Stretch` per force output: an orientation (so3) actuator has three, every other actuator one.
See MuJoCo's Computation chapter, "Actuation model", and the XML reference of `general/gear`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxsim.compile.reference.pose import Reference
from jaxsim.compile.reference.tendon_path import Stretch
from jaxsim.enums import JointType, TrnType
from jaxsim.math import quaternion

_NO_STRETCH = Stretch(0.0, np.zeros(0, dtype=np.int64), np.zeros(0))


def actuator_stretches(reference: Reference, tendons: list[Stretch]) -> list[Stretch]:
    """Return the length and moment of every force output."""
    f = reference.fields
    found = []
    for actuator, kind in enumerate(f["actuator_trntype"]):
        gear = f["actuator_gear"][f["actuator_outadr"][actuator]]
        found += _TRANSMISSIONS[kind](reference, actuator, gear, tendons)
    return found


def _joint(reference: Reference, actuator: int, gear: np.ndarray, _) -> list[Stretch]:
    f = reference.fields
    joint = f["actuator_trnid"][actuator, 0]
    kind, dof, adr = (f[name][joint] for name in ("jnt_type", "jnt_dofadr", "jnt_qposadr"))
    in_parent = f["actuator_trntype"][actuator] == TrnType.JOINTINPARENT
    if kind in (JointType.SLIDE, JointType.HINGE):
        return [Stretch(float(gear[0] * reference.qpos[adr]), np.array([dof]), gear[:1])]
    if kind == JointType.BALL:
        quat = quaternion.quat_normalize(reference.qpos[adr : adr + 4])
        axis = (
            quaternion.quat_rotate(quaternion.quat_conjugate(quat), gear[:3])
            if in_parent
            else gear[:3]
        )
        length = gear[:3] @ quaternion.quat_to_rotation_vector(quat)
        return [Stretch(float(length), dof + np.arange(3), axis)]
    quat = quaternion.quat_normalize(reference.qpos[adr + 3 : adr + 7])
    axis = (
        quaternion.quat_rotate(quaternion.quat_conjugate(quat), gear[3:]) if in_parent else gear[3:]
    )
    return [Stretch(0.0, dof + np.arange(6), np.concatenate([gear[:3], axis]))]


def _slider_crank(reference: Reference, actuator: int, gear: np.ndarray, _) -> list[Stretch]:
    """Return the position of a slider that is connected to the crank's pin by a rod.

    With a the slider's axis and v the vector from slider to pin, the rod of length r gives the
    position x along a:   |v - x a| = r,   x = a.v - sqrt((a.v)^2 + r^2 - |v|^2), with a negative
    radicand replaced by 0.
    """
    f = reference.fields
    crank, slider = f["actuator_trnid"][actuator]
    rod = f["actuator_cranklength"][actuator]
    axis = quaternion.quat_rotate(reference.site_xquat[slider], np.array([0.0, 0.0, 1.0]))
    v = reference.site_xpos[crank] - reference.site_xpos[slider]
    along = axis @ v
    under = along**2 + rod**2 - v @ v
    if under <= 0:
        length, per_v, per_axis = along, axis, v
    else:
        root = np.sqrt(under)
        length = along - root
        per_v = axis * (1 - along / root) + v / root
        per_axis = v * (1 - along / root)
    row = np.zeros(f["nv"])
    dofs, axes = _site_jacobian(reference, crank)
    row[dofs] += axes[:, 3:] @ per_v
    dofs, axes = _site_jacobian(reference, slider)
    row[dofs] += -axes[:, 3:] @ per_v + np.cross(axes[:, :3], axis) @ per_axis
    return [_sparse(gear[0] * length, gear[0] * row)]


def _tendon(reference: Reference, actuator: int, gear: np.ndarray, tendons) -> list[Stretch]:
    tendon = tendons[reference.fields["actuator_trnid"][actuator, 0]]
    return [Stretch(gear[0] * tendon.length, tendon.dofs, gear[0] * tendon.values)]


def _site(reference: Reference, actuator: int, gear: np.ndarray, _) -> list[Stretch]:
    f = reference.fields
    site, refsite = f["actuator_trnid"][actuator]
    frame = site if refsite < 0 else refsite
    wrench = quaternion.quat_rotate(reference.site_xquat[frame], gear.reshape(2, 3))
    row = np.zeros(f["nv"])
    dofs, axes = _site_jacobian(reference, site)
    row[dofs] = axes[:, 3:] @ wrench[0] + axes[:, :3] @ wrench[1]
    if refsite < 0:
        return [_sparse(0.0, row)]
    shared = dofs
    dofs, axes = _site_jacobian(reference, refsite)
    row[dofs] -= axes[:, 3:] @ wrench[0] + axes[:, :3] @ wrench[1]
    # dofs that move both sites cause no relative motion
    row[np.intersect1d(shared, dofs)] = 0.0
    offset = reference.site_xpos[site] - reference.site_xpos[refsite]
    rotation_vector = _relative_rotation(reference, site, refsite)
    length = offset @ wrench[0] + rotation_vector @ gear[3:]
    return [_sparse(length, row)]


def _body(*_) -> list[Stretch]:
    """Return zero length and moment: adhesion acts through contacts, of which the reference pose
    has none."""
    return [_NO_STRETCH]


def _orientation(reference: Reference, actuator: int, *_) -> list[Stretch]:
    """Return the rotation vector of a ball joint, or of a site relative to its refsite, in the
    child's frame.

    An orientation has no gear.
    """
    f = reference.fields
    target, refsite = f["actuator_trnid"][actuator]
    if refsite < 0:
        adr, dof = f["jnt_qposadr"][target], f["jnt_dofadr"][target]
        rotation_vector = quaternion.quat_to_rotation_vector(
            quaternion.quat_normalize(reference.qpos[adr : adr + 4])
        )
        rows = np.zeros((3, f["nv"]))
        rows[np.arange(3), dof + np.arange(3)] = 1.0
    else:
        rotation_vector = _relative_rotation(reference, target, refsite)
        rows = np.zeros((3, f["nv"]))
        axes = quaternion.quat_to_matrix(reference.site_xquat[target]).T
        dofs, jacobian = _site_jacobian(reference, target)
        rows[:, dofs] = axes @ jacobian[:, :3].T
        shared = dofs
        dofs, jacobian = _site_jacobian(reference, refsite)
        rows[:, dofs] -= axes @ jacobian[:, :3].T
        rows[:, np.intersect1d(shared, dofs)] = 0.0
    return [_sparse(rotation_vector[k], rows[k]) for k in range(3)]


def _relative_rotation(reference: Reference, site: int, refsite: int) -> np.ndarray:
    """Return the rotation vector of a site's frame relative to another's, (3,) [rad]."""
    quats = reference.site_xquat
    relative = quaternion.quat_multiply(quaternion.quat_conjugate(quats[refsite]), quats[site])
    return quaternion.quat_to_rotation_vector(quaternion.quat_normalize(relative))


def _site_jacobian(reference: Reference, site: int) -> tuple[np.ndarray, np.ndarray]:
    return reference.jacobian(reference.fields["site_bodyid"][site], reference.site_xpos[site])


def _sparse(length: float, row: np.ndarray) -> Stretch:
    dofs = np.flatnonzero(row)
    return Stretch(float(length), dofs, row[dofs])


_TRANSMISSIONS: dict[int, Callable[..., list[Stretch]]] = {
    TrnType.JOINT: _joint,
    TrnType.JOINTINPARENT: _joint,
    TrnType.SLIDERCRANK: _slider_crank,
    TrnType.TENDON: _tendon,
    TrnType.SITE: _site,
    TrnType.BODY: _body,
    TrnType.SO3: _orientation,
}
