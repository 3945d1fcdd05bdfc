"""Perturb a body with the mouse; MuJoCo's `mjvPerturb` and its functions.

`init_perturb` selects a point of a body, `move_perturb` moves the reference pose with the mouse.
Then either the body is moved to the reference (`apply_perturb_pose`: a mocap body, or a paused
simulation), or pulled there by a spring and damper (`apply_perturb_force`). The formulas reproduce
the observed behavior of MuJoCo's functions; a test compares both.
"""

from enum import IntFlag
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.enums import MINVAL, JointType
from jaxsim.functions import (
    mul_quat,
    neg_quat,
    quat_integrate,
    rot_vec_quat,
    sub_quat,
)
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.names import name2id
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.support import jac, solve_m
from jaxsim.view.body import MovingBody, moving_body
from jaxsim.view.camera import Camera
from jaxsim.view.frame import camera_frame, camera_frustum, is_orthographic
from jaxsim.view.mouse import ORTHOGRAPHIC_STEP, Mouse, align_to_camera, check_action

STIFFNESS, STIFFNESSROT = 100.0, 500.0  # MuJoCo's visual/map: [1/s^2], per unit of mass or inertia
_MAX_REFERENCE_ANGLE = 0.5 * np.pi  # largest angle between the reference and the body [rad]


class PertBit(IntFlag):
    """Perturbed degrees of freedom: MuJoCo's mjtPertBit."""

    TRANSLATE = 1
    ROTATE = 2


class Perturb(NamedTuple):
    """A perturbed body and its reference pose; MuJoCo's `mjvPerturb`.

    Attributes:
      select: id of the body; 0 or less: none.
      active: bits of `PertBit`, () int; 0: inactive.
      refpos, refquat: reference pose of its inertial frame, in the world, (3,) [m] and (4,).
      refselpos: reference of the selected point, in the world, (3,) [m].
      localpos: the selected point in the body's frame, (3,) [m].
      localmass: effective mass at that point, () [kg].
      scale: motion of objects that follow the mouse over one window height, () [m].
    """

    select: jax.Array
    active: jax.Array
    refpos: jax.Array
    refquat: jax.Array
    refselpos: jax.Array
    localpos: jax.Array
    localmass: jax.Array
    scale: jax.Array


def init_perturb(
    m: Model, d: Data, camera: Camera, body: Array | int | str, localpos: Array, active: int = 0
) -> Perturb:
    """Return a perturbation of a body, with its present pose as the reference.

    Corresponds to `mjv_initPerturb` in MuJoCo. The effective mass at the point p is that of a free
    point with the mean mobility,

        3 / trace(J M^-1 J'),   J the Jacobian of p

    and 1 kg where nothing can move.

    Args:
      m: the model.
      d: data, of which qpos and qvel (and the poses of mocap bodies) are used.
      camera: the camera of the view.
      body: id () or name of the body, as from `select`.
      localpos: the selected point, in the body's frame, (3,) [m], as from `select`.
      active: bits of `PertBit`.
    """
    body = name2id(m, "body", body) if isinstance(body, str) else body
    body = jnp.asarray(body, jnp.int32)
    held = jnp.maximum(body, 0)
    at = moving_body(m, d, held)
    localpos = jnp.asarray(localpos, m.qpos0.dtype)
    point = at.xpos + at.xmat @ localpos
    frame, frustum = camera_frame(m, d, camera), camera_frustum(m, camera)
    flat = ORTHOGRAPHIC_STEP if is_orthographic(m, camera) else 1.0
    return Perturb(
        select=body,
        active=jnp.asarray(int(active), jnp.int32),
        refpos=at.xipos,
        refquat=at.xiquat,
        refselpos=point,
        localpos=localpos,
        localmass=_mass_at(m, d, point, held),
        scale=flat * frustum.height * jnp.dot(point - frame.pos, frame.forward),
    )


def move_perturb(
    m: Model,
    d: Data,
    camera: Camera,
    perturb: Perturb,
    action: Mouse | int,
    reldx: Array | float,
    reldy: Array | float,
) -> Perturb:
    """Return a perturbation with its reference moved by the mouse.

    Corresponds to `mjv_movePerturb` in MuJoCo.

      MOVE_V, MOVE_H          with the image: sideways, and along the vertical or the horizontal
      MOVE_V_REL, MOVE_H_REL  along the body's axes: y, and z or x
      ROTATE_V                about the vertical, and about the horizontal axis of the image
      ROTATE_H                about the horizontal view direction, and about the horizontal axis
      others                  no effect

    The reference is rotated by at most a quarter rotation from the body.

    Args:
      m, d: as for `init_perturb`.
      camera: the camera of the view.
      perturb: the perturbation.
      action: action of the motion. Known when traced.
      reldx, reldy: mouse motion, to the right and down, in heights of the window.

    Raises:
      ValueError: there is no such action.
    """
    action = check_action("move_perturb", action)
    x, y = (jnp.asarray(v, m.qpos0.dtype) for v in (reldx, reldy))
    at = moving_body(m, d, jnp.maximum(perturb.select, 0))
    zero = jnp.zeros_like(x)
    if action in BODY_AXES:
        way = at.xmat @ jnp.stack([y, x, zero] if action == Mouse.MOVE_H_REL else [zero, x, y])
        return _translate_reference(perturb, way)
    ways = {
        Mouse.MOVE_V: (x, zero, -y),
        Mouse.MOVE_H: (x, -y, zero),
        Mouse.ROTATE_V: (y, zero, x),
        Mouse.ROTATE_H: (y, x, zero),
    }
    if action not in ways:
        return perturb
    way = align_to_camera(jnp.stack(ways[action]), camera_frame(m, d, camera).forward)
    if action in (Mouse.MOVE_V, Mouse.MOVE_H):
        return _translate_reference(perturb, way)
    return perturb._replace(refquat=_rotate_reference(perturb.refquat, way, at))


BODY_AXES = (Mouse.MOVE_V_REL, Mouse.MOVE_H_REL)


def apply_perturb_pose(m: Model, d: Data, perturb: Perturb, flg_paused: bool = False) -> Data:
    """Return data with the body at the reference, if it is a mocap body or the simulation is
    paused.

    Corresponds to `mjv_applyPerturbPose` in MuJoCo. In a paused simulation the free joint at the
    root of the body's tree moves, so that the body reaches the reference; without a free joint
    nothing moves.

    Args:
      m: the model.
      d: data.
      perturb: the perturbation; an inactive one has no effect.
      flg_paused: whether the simulation is paused. Known when traced.

    Returns:
      Data with another `mocap_pos` and `mocap_quat`, or another `qpos`.
    """
    held = jnp.maximum(perturb.select, 0)
    acts = (perturb.select > 0) & (perturb.active != 0)
    mocap, free = (jnp.asarray(x)[held] for x in _body_handles(m.structure))
    if m.nmocap:
        there = acts & (mocap >= 0)
        k = jnp.maximum(mocap, 0)
        # the reference is a pose of the inertial frame
        body_quat = mul_quat(perturb.refquat, neg_quat(m.body_iquat[held]))
        body_pos = perturb.refpos - rot_vec_quat(m.body_ipos[held], body_quat)
        pos = jnp.where(there, body_pos, d.mocap_pos[k])
        quat = jnp.where(there, body_quat, d.mocap_quat[k])
        d = d.replace(mocap_pos=d.mocap_pos.at[k].set(pos), mocap_quat=d.mocap_quat.at[k].set(quat))
    if not flg_paused or not m.nq:
        return d
    there = acts & (mocap < 0) & (free >= 0)
    return d.replace(qpos=jnp.where(there, _move_root(m, d, perturb, held, free), d.qpos))


def apply_perturb_force(
    m: Model,
    d: Data,
    perturb: Perturb,
    stiffness: float = STIFFNESS,
    stiffnessrot: float = STIFFNESSROT,
) -> Data:
    """Return data with a spring-damper force that pulls the body to the reference.

    Corresponds to `mjv_applyPerturbForce` in MuJoCo. With the effective mass m at the point p, its
    velocity v and reference r, the rotational inertia I = 1 / `body_invweight0`, the rotation e
    from the body to the reference and the unit vector n along r - p:

        TRANSLATE:  force   m (k (r - p) - sqrt(k) v)
                    torque  (p - com) x force - I sqrt(kr) (omega . n) n
        ROTATE:     torque  I (kr e - sqrt(kr) omega)

    Args:
      m: the model.
      d: data, of which qpos and qvel (and the poses of mocap bodies) are used.
      perturb: the perturbation; an inactive one has no effect.
      stiffness: k [1/s^2], MuJoCo's visual/map/stiffness, which a Model does not store.
      stiffnessrot: kr [1/s^2], MuJoCo's visual/map/stiffnessrot.

    Returns:
      Data with another row of `xfrc_applied` for the body; other rows, and the force of a pure
        rotation, are unchanged.
    """
    held = jnp.maximum(perturb.select, 0)
    acts = perturb.select > 0
    moves = acts & ((perturb.active & PertBit.TRANSLATE) != 0)
    turns = acts & ((perturb.active & PertBit.ROTATE) != 0)
    at = moving_body(m, d, held)
    damping, damping_rot = (
        jnp.sqrt(jnp.asarray(k, d.qpos.dtype)) for k in (stiffness, stiffnessrot)
    )
    mobility = m.body_invweight0[held, 1]
    inertia = jnp.where(mobility > MINVAL, 1 / jnp.where(mobility > MINVAL, mobility, 1), 1)

    point = at.xpos + at.xmat @ perturb.localpos
    away = perturb.refselpos - point
    speed = at.linear + jnp.cross(at.angular, point - at.xipos)
    force = perturb.localmass * (stiffness * away - damping * speed)
    square = jnp.dot(away, away)
    some = square > MINVAL**2
    spin = jnp.where(some, jnp.dot(at.angular, away) / jnp.where(some, square, 1), 0)
    pull = jnp.cross(point - at.xipos, force) - inertia * damping_rot * spin * away

    turn = rot_vec_quat(sub_quat(perturb.refquat, at.xiquat), at.xiquat)
    twist = inertia * (stiffnessrot * turn - damping_rot * at.angular)

    row = d.xfrc_applied[held]
    torque = jnp.where(moves, pull, 0) + jnp.where(turns, twist, 0)
    new = jnp.concatenate(
        [jnp.where(moves, force, row[:3]), jnp.where(moves | turns, torque, row[3:])]
    )
    return d.replace(xfrc_applied=d.xfrc_applied.at[held].set(new))


def _mass_at(m: Model, d: Data, point: Array, body: Array) -> Array:
    """Return the effective mass at a point of a body [kg]."""
    if not m.nv:
        return jnp.ones((), m.qpos0.dtype)
    jacp, _ = jac(m, d, point, body)
    back = jax.vmap(lambda column: solve_m(m, d, column), in_axes=1, out_axes=1)(jacp)
    mobility = jnp.sum(jacp * back)
    moves = mobility > MINVAL
    return jnp.where(moves, 3 / jnp.where(moves, mobility, 1), 1)


def _translate_reference(perturb: Perturb, way: Array) -> Perturb:
    """Return the perturbation with its reference moved by a vector in heights of the window."""
    shift = perturb.scale * way
    return perturb._replace(refpos=perturb.refpos + shift, refselpos=perturb.refselpos + shift)


def _rotate_reference(quat: Array, way: Array, at: MovingBody) -> Array:
    """Return a reference rotated about a vector by its length in revolutions, limited relative to
    the body."""
    one = jnp.ones((), way.dtype)
    quat = quat_integrate(quat, rot_vec_quat(2 * np.pi * way, neg_quat(quat)), one)
    r = sub_quat(quat, at.xiquat)
    square = jnp.dot(r, r)
    far = square > _MAX_REFERENCE_ANGLE**2
    limited = r * _MAX_REFERENCE_ANGLE / jnp.sqrt(jnp.where(far, square, 1))
    return jnp.where(far, quat_integrate(at.xiquat, limited, one), quat)


def _move_root(m: Model, d: Data, perturb: Perturb, body: Array, free: Array) -> Array:
    """Return the coordinates with the root of a body's tree placed so that the body is at the
    reference.

    Args:
      m, d, perturb: as given.
      body: id of the body.
      free: address of the root's coordinates; negative: it is not free.
    """
    at = moving_body(m, d, body)
    adr = jnp.maximum(free, 0) + np.arange(7, dtype=np.int32)
    adr = jnp.minimum(adr, m.nq - 1)
    root = d.qpos[adr]
    # rotation of the tree about the center of mass of the body, then the translation
    turn = mul_quat(perturb.refquat, neg_quat(at.xiquat))
    pos = perturb.refpos + rot_vec_quat(root[:3] - at.xipos, turn)
    quat = mul_quat(turn, root[3:] / jnp.linalg.norm(root[3:]))
    return d.qpos.at[adr].set(jnp.concatenate([pos, quat]))


@cache_by_structure
def _body_handles(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Return for each body its mocap id, and the address of the free joint of its root; or -1.

    `[nbody]` each.
    """
    free = np.full(s.nbody, -1, np.int32)
    joints = np.flatnonzero(s.jnt_type == JointType.FREE)
    free[s.jnt_bodyid[joints]] = s.jnt_qposadr[joints]
    return s.body_mocapid.astype(np.int32), free[s.body_rootid]
