"""Plastic springs: rest positions, and their update by a step.

MuJoCo's documentation, XML reference: joint springyield, tendon springyield. A spring is displaced
by x from its rest. Where a step ends with |x| above the threshold y, the rest follows, so that the
displacement is y again (return mapping of ideal plasticity):

    rest += x - y x / |x|,   where |x| > y

The rest is state, `d.plastic`: the position of a slide or hinge, the quaternion of a ball joint,
the two lengths between which a tendon is slack. Forces use its value at the start of a step.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.arrays.kind_dispatch import concatenate_kinds
from jaxsim.enums import DisableBit, JointType
from jaxsim.math import Quat, select_where
from jaxsim.math.guard import safe_divide
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.flex.frames import next_frames
from jaxsim.physics.flex.plastic import yielded_elements
from jaxsim.physics.sleep.incidence import tendon_path_incidence
from jaxsim.physics.sleep.trees import can_sleep, tree_awake
from jaxsim.physics.tendon.path import tendon_pattern

_SCALAR_JOINTS = (JointType.SLIDE, JointType.HINGE)


def rest_positions(m: Model, d: Data) -> Array:
    """Return the configuration in which the springs of the joints rest, `[nq, *W]`."""
    joints = np.flatnonzero(m.jnt_plasticadr >= 0)
    if not len(joints):
        return m.qpos_spring
    # Read yielding joints from `d.plastic`, all others from the model.
    source = np.arange(m.nq)
    for joint in joints:
        place = np.arange(JointType(m.jnt_type[joint]).nq)
        source[m.jnt_qposadr[joint] + place] = m.nq + m.jnt_plasticadr[joint] + place
    return gather_static(concatenate_kinds([m.qpos_spring, d.plastic]), source)


def rest_lengths(m: Model, d: Data) -> tuple[Array, Array]:
    """Return the lengths between which the tendon springs rest, `[ntendon, *W]` each [m]."""
    yields = m.tendon_plasticadr >= 0
    given = [m.tendon_lengthspring[:, k] for k in range(2)]
    if not yields.any():
        return given[0], given[1]
    # Elastic tendons keep their entry; yielding ones read their two lengths from `d.plastic`.
    place = m.ntendon + m.tendon_plasticadr
    lower, upper = (
        gather_static(
            concatenate_kinds([own, d.plastic]), np.where(yields, place + k, np.arange(m.ntendon))
        )
        for k, own in enumerate(given)
    )
    return lower, upper


def advance_plastic_state(m: Model, d: Data, qpos: Array, qvel: Array) -> Array:
    """Update the plastic state over a step, `[nplastic, *W]`.

    As in MuJoCo the length of a tendon at the end of the step is that to first order, ten_length +
    h ten_J qvel. Disabled springs do not yield, nor do sleeping tendons.

    Args:
      m: model.
      d: data at the start of the step, with the trees that sleep at its end.
      qpos: configuration at the end, `[nq, *W]`.
      qvel: velocity along which it moved there, `[nv, *W]`.
    """
    if not m.nplastic:
        return d.plastic
    # Rod frames advance even with springs disabled.
    plastic = next_frames(m, d)
    if m.opt.disableflags & DisableBit.SPRING:
        return plastic
    # Collect the new numbers of every kind; `order` is the source of each number of `plastic`.
    pieces, order = [plastic], np.arange(m.nplastic)
    number = m.nplastic
    for adr, found in (
        _scalar_joints(m, d, qpos),
        _ball_joints(m, d, qpos),
        _tendons(m, d, qvel),
        *yielded_elements(m, d, qvel),
    ):
        order[adr] = number + np.arange(len(adr))
        number += len(adr)
        pieces += found
    return gather_static(concatenate_kinds(pieces), order)


@cache_by_structure
def plastic_joints(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Return the scalar joints, and the ball joints, whose springs yield."""
    yields = s.jnt_plasticadr >= 0
    scalar = np.isin(s.jnt_type, _SCALAR_JOINTS)
    return np.flatnonzero(yields & scalar), np.flatnonzero(yields & ~scalar)


def _scalar_joints(m: Model, d: Data, qpos: Array) -> tuple[np.ndarray, list[Array]]:
    """Return addresses in the plastic state of scalar joints, and the new values."""
    joint, _ = plastic_joints(m)
    adr = m.jnt_plasticadr[joint]
    rest = gather_static(d.plastic, adr)
    x = gather_static(qpos, m.jnt_qposadr[joint]) - rest
    y = jnp.maximum(gather_static(m.jnt_springyield, joint), 0)
    # Return mapping: move the rest length so that |x| does not exceed y.
    return adr, [rest + jnp.maximum(x - y, 0) + jnp.minimum(x + y, 0)]


def _ball_joints(m: Model, d: Data, qpos: Array) -> tuple[np.ndarray, list[Array]]:
    """Return addresses of ball joints and new values; the rest rotates about the displacement."""
    _, joint = plastic_joints(m)
    adr = m.jnt_plasticadr[joint]
    now = Quat(*(gather_static(qpos, m.jnt_qposadr[joint] + k) for k in range(4)))
    before = Quat(*(gather_static(d.plastic, adr + k) for k in range(4)))
    rest = before.normalize()
    # Rotation from rest to the present orientation, as a vector.
    x = (rest.conj * now.normalize()).rotation_vector()
    angle = x.norm()
    # Rotate the rest by the part of the angle that exceeds the threshold.
    beyond = angle - jnp.maximum(gather_static(m.jnt_springyield, joint), 0)
    turn = Quat.from_rotation_vector(x.scale(safe_divide(beyond, angle)))
    new = select_where(beyond > 0, rest * turn, before)
    return np.concatenate([adr + k for k in range(4)]), [*new.parts]


def _tendons(m: Model, d: Data, qvel: Array) -> tuple[np.ndarray, list[Array]]:
    """Return addresses of tendons and new values.

    Beyond either end of the slack range both ends move. A tendon that is slack from length zero
    (`springlength="0 L"`) keeps the lower bound 0 when it is stretched.
    """
    tendon = np.flatnonzero(m.tendon_plasticadr >= 0)
    adr = m.tendon_plasticadr[tendon]
    if not len(tendon):
        return adr, []
    # First-order length at the end of the step.
    pattern = tendon_pattern(m)
    length = d.ten_length + m.opt.timestep * pattern.apply(pattern.entries(d.ten_J), qvel)
    length = gather_static(length, tendon)
    lower, upper = gather_static(d.plastic, adr), gather_static(d.plastic, adr + 1)
    y = jnp.maximum(gather_static(m.tendon_springyield, tendon), 0)
    # How far the tendon is beyond the slack range by more than the threshold, at either end.
    pulled = jnp.maximum(length - upper - y, 0)
    pushed = jnp.where(pulled > 0, 0, jnp.minimum(length - lower + y, 0))
    # A sleeping tendon does not yield.
    if can_sleep(m):
        awake = gather_static(tendon_path_incidence(m).awake(tree_awake(d)), tendon)
        pulled, pushed = jnp.where(awake, pulled, 0), jnp.where(awake, pushed, 0)
    # springlength="0 L": the lower end remains at zero.
    stays = (lower == 0) & (upper > 0)
    new = [lower + jnp.where(stays, 0, pulled) + pushed, upper + pulled + pushed]
    return np.concatenate([adr, adr + 1]), new
