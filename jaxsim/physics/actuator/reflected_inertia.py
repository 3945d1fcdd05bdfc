"""Armature and damping of actuators, reflected by their gears to joints and tendons.

MuJoCo's documentation, XML reference: actuator/general/armature, damping. A motor behind a gear
adds the squared gear times its own coefficients to the joint or tendon that it drives.
"""

import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static, weighted_sum
from jaxsim.enums import TrnType
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure


def dof_armature(m: Model) -> Array:
    """Return the diagonal armature, with that reflected by actuators; `[nv, *W]`."""
    (armature,) = _add_reflected(
        m, (m.dof_armature,), (m.actuator_armature,), _joint_reflections(m)
    )
    return armature


def tendon_armature(m: Model) -> Array:
    """Return the armature of tendons, with that reflected by actuators; `[ntendon, *W]`."""
    own, theirs = (m.tendon_armature,), (m.actuator_armature,)
    (armature,) = _add_reflected(m, own, theirs, _tendon_reflections(m))
    return armature


def has_drive(s: Structure) -> np.ndarray:
    """Return the tendons to which an actuator may reflect armature, [ntendon] bool."""
    return _tendon_reflections(s)[1].any(axis=1)


def dof_damping(m: Model) -> tuple:
    """Return damping coefficients (a, b, c) of dofs, with reflected ones; `[nv, *W]` each."""
    own = _polynomial(m.dof_damping, m.dof_dampingpoly)
    return _add_reflected(m, own, _drive_damping(m), _joint_reflections(m))


def tendon_damping(m: Model) -> tuple:
    """Return damping coefficients (a, b, c) of tendons, with reflected; `[ntendon, *W]` each."""
    own = _polynomial(m.tendon_damping, m.tendon_dampingpoly)
    return _add_reflected(m, own, _drive_damping(m), _tendon_reflections(m))


def _drive_damping(m: Model) -> tuple:
    return _polynomial(m.actuator_damping, m.actuator_dampingpoly)


def _polynomial(linear: Array, higher: Array) -> tuple:
    return linear, higher[:, 0], higher[:, 1]


def _add_reflected(
    m: Model, own: tuple, theirs: tuple, reflects: tuple[np.ndarray, np.ndarray]
) -> tuple:
    """Add the actuators' coefficients times their squared gears."""
    actuator, member = reflects
    # Reflected coefficients scale with the squared gear.
    if not len(actuator):
        return own
    gear = gather_static(m.actuator_gear[:, 0], m.actuator_outadr[actuator])
    return tuple(
        a + weighted_sum(member, gear * gear * gather_static(b, actuator))
        for a, b in zip(own, theirs, strict=True)
    )


@cache_by_structure
def _joint_reflections(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Return actuators of joints, and `[nv, k]`: 1 where an actuator reflects to a dof."""
    kind = np.isin(s.actuator_trntype, (TrnType.JOINT, TrnType.JOINTINPARENT))
    actuator = np.flatnonzero(kind & s.actuator_reflects)
    return actuator, 1.0 * (s.dof_jntid[:, None] == s.actuator_trnid[actuator, 0])


@cache_by_structure
def _tendon_reflections(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Return actuators of tendons, and `[ntendon, k]`: 1 where an actuator reflects to a tendon."""
    kind = s.actuator_trntype == TrnType.TENDON
    actuator = np.flatnonzero(kind & s.actuator_reflects)
    return actuator, 1.0 * (np.arange(s.ntendon)[:, None] == s.actuator_trnid[actuator, 0])
