"""Functions of MJX's inner modules whose arguments or results differ from those of `jaxsim`."""

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from jaxsim.enums import MINVAL, GeomType, JointType
from jaxsim.functions.pyramid import decode_pyramid as _decode
from jaxsim.functions.ray import ray_geom as _ray_geom
from jaxsim.mjx import math


def named_scope(f: Callable, name: str = "") -> Callable:
    """Return a function whose operations have its name in a profile."""

    @functools.wraps(f)
    def of(*args, **kwargs):
        with jax.named_scope(name or f.__name__):
            return f(*args, **kwargs)

    return of


def integrate_pos(
    jnt_typs: Sequence[int], qpos: jax.Array, qvel: jax.Array, dt: jax.Array
) -> jax.Array:
    """Return the configuration (nq,) after moving with `qvel` (nv,) for a time `dt` [s].

    Args:
      jnt_typs: types of the joints, `m.jnt_type`.
      qpos: configuration, (nq,).
      qvel: velocity, (nv,).
      dt: time, () [s].
    """
    parts, q, v = [], 0, 0
    for kind in map(JointType, jnt_typs):
        linear = 3 if kind == JointType.FREE else int(kind in (JointType.SLIDE, JointType.HINGE))
        parts.append(qpos[q : q + linear] + dt * qvel[v : v + linear])
        q, v = q + linear, v + linear
        if kind in (JointType.FREE, JointType.BALL):
            parts.append(math.quat_integrate(qpos[q : q + 4], qvel[v : v + 3], dt))
            q, v = q + 4, v + 3
    return jnp.concatenate(parts) if parts else jnp.zeros(0)


def local_to_global(
    world_pos: jax.Array, world_quat: jax.Array, local_pos: jax.Array, local_quat: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return position (3,) and orientation (3, 3) in the world of a frame in another frame."""
    pos = world_pos + math.rotate(local_pos, world_quat)
    return pos, math.quat_to_mat(math.quat_mul(world_quat, local_quat))


def ray_geom(size: jax.Array, pnt: jax.Array, vec: jax.Array, geomtype: GeomType) -> jax.Array:
    """Return the distance () along a ray to a geom in its own frame; infinite without a hit."""
    size = jnp.zeros(3, pnt.dtype).at[: size.shape[0]].set(size)
    hit = _ray_geom(jnp.zeros_like(pnt), jnp.eye(3, dtype=pnt.dtype), size, pnt, vec, geomtype)
    return jnp.where(hit.dist < 0, jnp.inf, hit.dist)


def decode_pyramid(pyramid: jax.Array, mu: jax.Array, condim: int) -> jax.Array:
    """Return force and torque (6,) of a contact from the forces on the edges of its pyramid."""
    edges = max(2 * (condim - 1), 1)
    force = _decode(pyramid[:edges], mu[: condim - 1])
    return jnp.zeros(6, force.dtype).at[: force.shape[0]].set(force)


def muscle_gain_length(length: jax.Array, lmin: jax.Array, lmax: jax.Array) -> jax.Array:
    """Return the active force of a muscle by its scaled length, 1 at length 1, 0 out of range."""
    low, high = 0.5 * (lmin + 1), 0.5 * (lmax + 1)  # where parabolas meet

    def parabola(distance: jax.Array, width: jax.Array) -> jax.Array:
        return 0.5 * (distance / jnp.maximum(width, MINVAL)) ** 2

    below = jnp.where(
        length <= low, parabola(length - lmin, low - lmin), 1 - parabola(1 - length, 1 - low)
    )
    above = jnp.where(
        length <= high, 1 - parabola(length - 1, high - 1), parabola(lmax - length, lmax - high)
    )
    inside = (lmin <= length) & (length <= lmax)
    return jnp.where(inside, jnp.where(length <= 1, below, above), 0.0)


def muscle_dynamics_timescale(
    dctrl: jax.Array, tau_act: jax.Array, tau_deact: jax.Array, smoothing_width: jax.Array
) -> jax.Array:
    """Return the time constant of a muscle's activation, smooth between rising and falling [s]."""
    s = jnp.clip(math.safe_div(dctrl, smoothing_width) + 0.5, 0, 1)
    rising = s**3 * (3 * s * (2 * s - 5) + 10)
    smooth = tau_deact + (tau_act - tau_deact) * rising
    return jnp.where(smoothing_width < MINVAL, jnp.where(dctrl > 0, tau_act, tau_deact), smooth)
