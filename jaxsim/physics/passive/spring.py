"""Springs of joints and tendons: their forces and the energy they store.

MuJoCo's documentation, Computation: Passive forces, Polynomial forces. At a displacement x

    force = -(k x + b x^2 + c x^3),   energy = k x^2 / 2 + b x^3 / 3 + c x^4 / 4

The displacement of a ball joint, and of each half of a free joint, is a vector: force and energy
are functions of its norm, the force is along it. Plastic springs are displaced from their present
rest (plastic.py).
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static, sum_items
from jaxsim.arrays.kind_dispatch import concatenate_kinds
from jaxsim.enums import DisableBit, JointType
from jaxsim.math import Quat, Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.passive.plastic import rest_lengths, rest_positions
from jaxsim.physics.tendon.path import tendon_pattern
from jaxsim.physics.topology import joints_of


def passive_spring_force(m: Model, d: Data) -> Array:
    """Compute the generalized force of all springs `[nv, *W]`."""
    if m.opt.disableflags & DisableBit.SPRING or not m.nv:
        return jnp.zeros_like(d.qvel)
    pieces = []
    # Evaluate the spring law per group: scalar joints, translations, rotations.
    for motion, joint in spring_groups(m):
        x, coef = _displacement(m, d, motion, joint), _joint_coef(m, joint)
        if isinstance(x, Vec):
            pieces += [*(-x.scale(_stiffness_slope(x.norm(), coef))).parts]
        else:
            pieces.append(-x * _stiffness_slope(x, coef))
    # Reorder from groups to dofs, then add the tendons.
    force = gather_static(concatenate_kinds(pieces), _dof_order(m))
    if m.ntendon:
        pattern = tendon_pattern(m)
        force = force + pattern.apply_transpose(pattern.entries(d.ten_J), tendon_spring(m, d))
    return force


def tendon_spring(m: Model, d: Data) -> Array:
    """Compute the spring force of each tendon along its length, `[ntendon, *W]` [N]."""
    if m.opt.disableflags & DisableBit.SPRING:
        return jnp.zeros_like(d.ten_length)
    x = _stretch(m, d)
    return -x * _stiffness_slope(x, _tendon_coef(m))


def dof_spring_rate(m: Model, d: Data) -> Array:
    """Return minus the derivative of the joints' spring force by displacement, `[nv, *W]`.

    As in MuJoCo's discrete integrator the rate along a vector displacement applies to all its
    directions, and a negative rate is replaced by zero.
    """
    if m.opt.disableflags & DisableBit.SPRING or not m.nv:
        return jnp.zeros_like(d.qvel)
    pieces = []
    for motion, joint in spring_groups(m):
        x = _displacement(m, d, motion, joint)
        length = x.norm() if isinstance(x, Vec) else x
        # A vector displacement has one rate for all its dofs.
        pieces += [_rate(length, _joint_coef(m, joint))] * motion.size
    return gather_static(concatenate_kinds(pieces), _dof_order(m))


def tendon_spring_rate(m: Model, d: Data) -> Array:
    """Return minus the derivative of the tendons' spring force by length, `[ntendon, *W]`.

    It is zero where the spring is at rest.
    """
    if m.opt.disableflags & DisableBit.SPRING:
        return jnp.zeros_like(d.ten_length)
    x = _stretch(m, d)
    return jnp.where(x == 0, 0, _rate(x, _tendon_coef(m)))


def spring_energy(m: Model, d: Data) -> Array:
    """Compute the energy stored in all springs, `[1, *W]` [J]."""
    if m.opt.disableflags & DisableBit.SPRING or not m.nv:
        return jnp.zeros_like(d.time)
    energy = 0 * d.time
    for motion, joint in spring_groups(m):
        x = _displacement(m, d, motion, joint)
        length = x.norm() if isinstance(x, Vec) else x
        energy = energy + sum_items(_stored_energy(length, _joint_coef(m, joint)))
    if m.ntendon:
        energy = energy + sum_items(_stored_energy(_stretch(m, d), _tendon_coef(m)))
    return energy


class SpringMotion(NamedTuple):
    """Part of a joint's motion to which one spring law applies.

    Attributes:
      kinds: joint types that have it.
      qpos, dof: its offset among the joint's coordinates and dofs, by type.
      size: number of its dofs.
    """

    kinds: tuple[JointType, ...]
    qpos: dict[JointType, int]
    dof: dict[JointType, int]
    size: int


_SCALAR_MOTION = SpringMotion((JointType.SLIDE, JointType.HINGE), {}, {}, 1)
_FREE_TRANSLATION = SpringMotion((JointType.FREE,), {}, {}, 3)
_BALL_ROTATION = SpringMotion(
    (JointType.BALL, JointType.FREE), {JointType.FREE: 3}, {JointType.FREE: 3}, 3
)


@cache_by_structure
def spring_groups(s: Structure) -> list[tuple[SpringMotion, np.ndarray]]:
    """Return the joints of each kind of motion in the model."""
    groups = [
        (motion, joints_of(s, *motion.kinds))
        for motion in (_SCALAR_MOTION, _FREE_TRANSLATION, _BALL_ROTATION)
    ]
    return [(motion, joint) for motion, joint in groups if len(joint)]


@cache_by_structure
def _dof_order(s: Structure) -> np.ndarray:
    """Return the index of each dof in the concatenated parts of `spring_groups`, [nv]."""
    dofs = []
    for motion, joint in spring_groups(s):
        first = s.jnt_dofadr[joint] + _offset(s, motion.dof, joint)
        dofs += [first + k for k in range(motion.size)]
    return np.argsort(np.concatenate(dofs))


def _offset(s: Model | Structure, table: dict[JointType, int], joint: np.ndarray) -> np.ndarray:
    return np.array([table.get(JointType(k), 0) for k in s.jnt_type[joint]], int)


def _displacement(m: Model, d: Data, motion: SpringMotion, joint: np.ndarray) -> Array | Vec:
    """Return joint positions relative to their rest: `[k, *W]`, or a Vec of them."""
    # Address of the first coordinate of each joint's spring.
    adr = m.jnt_qposadr[joint] + _offset(m, motion.qpos, joint)
    at_rest = rest_positions(m, d)
    # Rotations: rotation vector from rest to the present orientation.
    if motion is _BALL_ROTATION:
        now, rest = (
            Quat(*(gather_static(q, adr + k) for k in range(4))) for q in (d.qpos, at_rest)
        )
        return (rest.conj * now.normalize()).rotation_vector()
    # Translations: difference of the coordinates.
    shift = [
        gather_static(d.qpos, adr + k) - gather_static(at_rest, adr + k) for k in range(motion.size)
    ]
    return shift[0] if motion is _SCALAR_MOTION else Vec(*shift)


def _stretch(m: Model, d: Data) -> Array:
    """Return tendon lengths beyond the range in which the spring is slack, `[ntendon, *W]`."""
    lower, upper = rest_lengths(m, d)
    return jnp.maximum(d.ten_length - upper, 0) + jnp.minimum(d.ten_length - lower, 0)


def _joint_coef(m: Model, joint: np.ndarray) -> tuple[Array, Array, Array]:
    poly = gather_static(m.jnt_stiffnesspoly, joint)
    return gather_static(m.jnt_stiffness, joint), poly[:, 0], poly[:, 1]


def _tendon_coef(m: Model) -> tuple[Array, Array, Array]:
    return m.tendon_stiffness, m.tendon_stiffnesspoly[:, 0], m.tendon_stiffnesspoly[:, 1]


def _stiffness_slope(x: Array, coef: tuple[Array, Array, Array]) -> Array:
    """Return force over displacement."""
    k, b, c = coef
    return k + x * (b + x * c)


def _rate(x: Array, coef: tuple[Array, Array, Array]) -> Array:
    """Return the derivative of the force's magnitude by displacement, at least 0."""
    k, b, c = coef
    return jnp.maximum(k + x * (2 * b + x * 3 * c), 0)


def _stored_energy(x: Array, coef: tuple[Array, Array, Array]) -> Array:
    k, b, c = coef
    return x * x * (k / 2 + x * (b / 3 + x * c / 4))
