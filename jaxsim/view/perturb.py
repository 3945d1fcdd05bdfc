"""Pulling and turning a body with a mouse; MuJoCo's `mjvPerturb` and what acts by it.

`init_perturb` takes hold of a point of a body, `move_perturb` moves the reference pose with the
mouse. From there either the body is put there (`apply_perturb_pose`: a mocap body, or a world that
stands still), or a spring and damper pull it there (`apply_perturb_force`). The formulas are those
that MuJoCo's functions are observed to have; a test compares both.
"""

from enum import IntFlag
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

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
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.api import jac, solve_m
from jaxsim.physics.arrays.array import Array
from jaxsim.view.body import MovingBody, moving_body
from jaxsim.view.camera import Camera
from jaxsim.view.frame import camera_frame, camera_frustum, is_orthographic
from jaxsim.view.mouse import FLAT, Mouse, align_to_camera, known_action

STIFFNESS, STIFFNESSROT = 100.0, 500.0  # MuJoCo's visual/map: 1/s^2, for each kilogram or inertia
WIDEST = 0.5 * np.pi  # angle that the reference may be away from the body [rad]


class PertBit(IntFlag):
    """What a perturbation acts on: MuJoCo's mjtPertBit."""

    TRANSLATE = 1
    ROTATE = 2


class Perturb(NamedTuple):
    """A body that somebody holds, and where they want it; MuJoCo's `mjvPerturb`.

    Attributes:
      select: number of the body; 0 or less: none.
      active: bits of `PertBit`: how it is pulled, () int; 0: not at all.
      refpos, refquat: where its inertial frame should be, in the world, (3,) [m] and (4,).
      refselpos: where the point that is held should be, in the world, (3,) [m].
      localpos: that point in the body's frame, (3,) [m].
      localmass: mass that is felt there, () [kg].
      scale: how far things move that follow the mouse through the window, () [m].
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
    """Take hold of a body: the reference is where it is.

    The mass that is felt at the point p is that of a free point with the mean mobility,

        3 / trace(J M^-1 J'),   J the Jacobian of p

    and 1 kg where nothing can move.

    Args:
      m: the model.
      d: data, of which qpos and qvel (and the poses of mocap bodies) count.
      camera: from where the mouse is seen.
      body: number () or name of the body, as from `select`.
      localpos: the point that is held, in the body's frame, (3,) [m], as from `select`.
      active: bits of `PertBit`.
    """
    body = name2id(m, "body", body) if isinstance(body, str) else body
    body = jnp.asarray(body, jnp.int32)
    held = jnp.maximum(body, 0)
    at = moving_body(m, d, held)
    localpos = jnp.asarray(localpos, m.qpos0.dtype)
    point = at.xpos + at.xmat @ localpos
    frame, frustum = camera_frame(m, d, camera), camera_frustum(m, camera)
    flat = FLAT if is_orthographic(m, camera) else 1.0
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
    """Move the reference with the mouse.

    MOVE_V, MOVE_H          with the picture: to the side, and along the vertical or the horizon
    MOVE_V_REL, MOVE_H_REL  along the body's axes: y, and z or x ROTATE_V                about the
    vertical, and about the side of the picture ROTATE_H                about the direction of the
    view in the horizontal, and about the side others                  do nothing

    The reference is turned no further than a quarter turn away from the body.

    Args:
      m, d: as for `init_perturb`.
      camera: from where the mouse is seen.
      perturb: the perturbation.
      action: what the movement means. Known when traced.
      reldx, reldy: how far the mouse moves, to the right and down, in heights of the window.

    Raises:
      ValueError: there is no such action.
    """
    action = known_action("move_perturb", action)
    x, y = (jnp.asarray(v, m.qpos0.dtype) for v in (reldx, reldy))
    at = moving_body(m, d, jnp.maximum(perturb.select, 0))
    zero = jnp.zeros_like(x)
    if action in BODY_AXES:
        way = at.xmat @ jnp.stack([y, x, zero] if action == Mouse.MOVE_H_REL else [zero, x, y])
        return _shifted(perturb, way)
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
        return _shifted(perturb, way)
    return perturb._replace(refquat=_turned(perturb.refquat, way, at))


BODY_AXES = (Mouse.MOVE_V_REL, Mouse.MOVE_H_REL)


def apply_perturb_pose(m: Model, d: Data, perturb: Perturb, flg_paused: bool = False) -> Data:
    """Put the body where it is wanted, if it is a mocap body or the world stands still.

    In a world that stands still the free joint at the root of the body's tree moves, so that the
    body comes to the reference; without one nothing moves.

    Args:
      m: the model.
      d: data.
      perturb: the perturbation; one that is not active does nothing.
      flg_paused: whether the world stands still. Known when traced.

    Returns:
      Data with another `mocap_pos` and `mocap_quat`, or another `qpos`.
    """
    held = jnp.maximum(perturb.select, 0)
    acts = (perturb.select > 0) & (perturb.active != 0)
    mocap, free = (jnp.asarray(x)[held] for x in _handles(m.structure))
    if m.nmocap:
        there = acts & (mocap >= 0)
        k = jnp.maximum(mocap, 0)
        # the reference is that of the inertial frame
        body_quat = mul_quat(perturb.refquat, neg_quat(m.body_iquat[held]))
        body_pos = perturb.refpos - rot_vec_quat(m.body_ipos[held], body_quat)
        pos = jnp.where(there, body_pos, d.mocap_pos[k])
        quat = jnp.where(there, body_quat, d.mocap_quat[k])
        d = d.replace(mocap_pos=d.mocap_pos.at[k].set(pos), mocap_quat=d.mocap_quat.at[k].set(quat))
    if not flg_paused or not m.nq:
        return d
    there = acts & (mocap < 0) & (free >= 0)
    return d.replace(qpos=jnp.where(there, _moved(m, d, perturb, held, free), d.qpos))


def apply_perturb_force(
    m: Model,
    d: Data,
    perturb: Perturb,
    stiffness: float = STIFFNESS,
    stiffnessrot: float = STIFFNESSROT,
) -> Data:
    """Pull the body towards where it is wanted, by a spring and damper.

    With the mass m that is felt at the point p, which moves at v, its reference r, the rotational
    inertia I = 1 / `body_invweight0`, the turn e from the body to the reference and the unit vector
    n along r - p:

        TRANSLATE:  force   m (k (r - p) - sqrt(k) v)
                    torque  (p - com) x force - I sqrt(kr) (omega . n) n
        ROTATE:     torque  I (kr e - sqrt(kr) omega)

    Args:
      m: the model.
      d: data, of which qpos and qvel (and the poses of mocap bodies) count.
      perturb: the perturbation; one that is not active does nothing.
      stiffness: k [1/s^2], MuJoCo's visual/map/stiffness, which a Model does not have.
      stiffnessrot: kr [1/s^2], likewise.

    Returns:
      Data with another row of `xfrc_applied`, that of the body; the others are as they were, and so
      is its force if it is only turned.
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
    """Return the mass that is felt at a point of a body [kg]."""
    if not m.nv:
        return jnp.ones((), m.qpos0.dtype)
    jacp, _ = jac(m, d, point, body)
    back = jax.vmap(lambda column: solve_m(m, d, column), in_axes=1, out_axes=1)(jacp)
    mobility = jnp.sum(jacp * back)
    moves = mobility > MINVAL
    return jnp.where(moves, 3 / jnp.where(moves, mobility, 1), 1)


def _shifted(perturb: Perturb, way: Array) -> Perturb:
    """Return the reference, moved by a vector in heights of the window."""
    shift = perturb.scale * way
    return perturb._replace(refpos=perturb.refpos + shift, refselpos=perturb.refselpos + shift)


def _turned(quat: Array, way: Array, at: MovingBody) -> Array:
    """Return a reference, turned about an axis by as many turns as it is long, near enough to the
    body."""
    one = jnp.ones((), way.dtype)
    quat = quat_integrate(quat, rot_vec_quat(2 * np.pi * way, neg_quat(quat)), one)
    r = sub_quat(quat, at.xiquat)
    square = jnp.dot(r, r)
    far = square > WIDEST**2
    limited = r * WIDEST / jnp.sqrt(jnp.where(far, square, 1))
    return jnp.where(far, quat_integrate(at.xiquat, limited, one), quat)


def _moved(m: Model, d: Data, perturb: Perturb, body: Array, free: Array) -> Array:
    """Return the coordinates with the root of a body's tree where the body comes to the reference.

    Args:
      m, d, perturb: as given.
      body: number of the body.
      free: address of the root's coordinates; below 0: it is not free.
    """
    at = moving_body(m, d, body)
    adr = jnp.maximum(free, 0) + np.arange(7, dtype=np.int32)
    adr = jnp.minimum(adr, m.nq - 1)
    root = d.qpos[adr]
    # the turn of everything about the center of mass of the body, then the way that this moves
    turn = mul_quat(perturb.refquat, neg_quat(at.xiquat))
    pos = perturb.refpos + rot_vec_quat(root[:3] - at.xipos, turn)
    quat = mul_quat(turn, root[3:] / jnp.linalg.norm(root[3:]))
    return d.qpos.at[adr].set(jnp.concatenate([pos, quat]))


@derived
def _handles(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Of each body, its number among mocap bodies, and where the free joint of its root is; or -1.

    `[nbody]` each.
    """
    free = np.full(s.nbody, -1, np.int32)
    joints = np.flatnonzero(s.jnt_type == JointType.FREE)
    free[s.jnt_bodyid[joints]] = s.jnt_qposadr[joints]
    return s.body_mocapid.astype(np.int32), free[s.body_rootid]
