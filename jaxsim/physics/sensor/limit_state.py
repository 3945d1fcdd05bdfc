"""Distances to the limits of joints and tendons, for the limit sensors.

A limit is active when its distance is below the margin; the sensors read the distance minus the
margin and its rate of change, or zero while no limit is active. If both sides are active, the lower
one is read.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.arrays.kind_dispatch import compute_by_kind
from jaxsim.enums import DisableBit, JointType
from jaxsim.math import Quat, Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model


class LimitState(NamedTuple):
    """Distance minus margin `[n, *W]`, and its rate; zero where no limit is active."""

    pos: jax.Array
    vel: jax.Array


def joint_limit(m: Model, d: Data, joint: np.ndarray) -> LimitState:
    """Return the limit state of joints (slide, hinge, ball)."""
    margin = gather_static(m.jnt_margin, joint)
    lower, upper = (gather_static(m.jnt_range[:, k], joint) for k in range(2))

    def scalar(i: np.ndarray) -> LimitState:
        value = gather_static(d.qpos, m.jnt_qposadr[joint[i]])
        rate = gather_static(d.qvel, m.jnt_dofadr[joint[i]])
        return _two_sided_limit(
            value, rate, gather_static(lower, i), gather_static(upper, i), gather_static(margin, i)
        )

    def ball(i: np.ndarray) -> LimitState:
        # Ball joint: rotation angle against the larger of the two limits.
        adr, dof = m.jnt_qposadr[joint[i]], m.jnt_dofadr[joint[i]]
        turn = (
            Quat(*(gather_static(d.qpos, adr + k) for k in range(4))).normalize().rotation_vector()
        )
        rate = turn.normalize().dot(Vec(*(gather_static(d.qvel, dof + k) for k in range(3))))
        limit = jnp.maximum(gather_static(lower, i), gather_static(upper, i))
        return _one_sided_limit(limit - turn.norm(), -rate, gather_static(margin, i))

    kinds = {JointType.SLIDE: scalar, JointType.HINGE: scalar, JointType.BALL: ball}
    # Unlimited joints and disabled limits read zero.
    off = DisableBit.LIMIT | DisableBit.CONSTRAINT
    limited = m.jnt_limited[joint].astype(bool) & (not m.opt.disableflags & off)
    return _select_kind(m.jnt_type[joint], kinds, limited, d.qpos)


def tendon_limit(m: Model, d: Data, tendon: np.ndarray) -> LimitState:
    """Return the limit state of tendons."""
    off = DisableBit.LIMIT | DisableBit.CONSTRAINT
    limited = m.tendon_limited[tendon].astype(bool) & (not m.opt.disableflags & off)

    def both(i: np.ndarray) -> LimitState:
        t = tendon[i]
        lower, upper = (gather_static(m.tendon_range[:, k], t) for k in range(2))
        length, rate = gather_static(d.ten_length, t), gather_static(d.ten_velocity, t)
        return _two_sided_limit(length, rate, lower, upper, gather_static(m.tendon_margin, t))

    return _select_kind(np.zeros(len(tendon), int), {0: both}, limited, d.qpos)


def _select_kind(kind: np.ndarray, kinds: dict, limited: np.ndarray, like: Array) -> LimitState:
    def read(name: str) -> Array:
        table = {k: lambda i, f=f: getattr(f(i), name) for k, f in kinds.items()}
        return compute_by_kind(kind, table, like)

    values = (read(name) for name in LimitState._fields)
    return LimitState(*(jnp.where(column(limited, v), v, 0) for v in values))


def _two_sided_limit(
    value: Array, rate: Array, lower: Array, upper: Array, margin: Array
) -> LimitState:
    low, high = (
        _one_sided_limit(value - lower, rate, margin),
        _one_sided_limit(upper - value, -rate, margin),
    )
    # The lower limit takes precedence where both are active.
    below = value - lower < margin
    return LimitState(*(jnp.where(below, a, b) for a, b in zip(low, high, strict=True)))


def _one_sided_limit(distance: Array, rate: Array, margin: Array) -> LimitState:
    active = distance < margin
    return LimitState(jnp.where(active, distance - margin, 0), jnp.where(active, rate, 0))
