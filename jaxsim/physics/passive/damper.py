"""Dampers of dofs and tendons, including damping reflected by actuators.

MuJoCo's documentation, Computation: Polynomial forces. At a velocity v

    force = -(a v + b v |v| + c v^3)
"""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.enums import DisableBit
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.actuator.reflected_inertia import dof_damping, tendon_damping
from jaxsim.physics.tendon.path import tendon_pattern


def damper_force(m: Model, d: Data) -> Array:
    """Compute the generalized force of all dampers `[nv, *W]`."""
    if m.opt.disableflags & DisableBit.DAMPER:
        return jnp.zeros_like(d.qvel)
    force = -d.qvel * _damping_slope(jnp.abs(d.qvel), dof_damping(m))
    if m.ntendon:
        # Map tendon forces to the dofs through the tendon Jacobian.
        pattern = tendon_pattern(m)
        force = force + pattern.apply_transpose(pattern.entries(d.ten_J), tendon_damper(m, d))
    return force


def tendon_damper(m: Model, d: Data) -> Array:
    """Compute the damper force of each tendon along its length, `[ntendon, *W]` [N]."""
    if m.opt.disableflags & DisableBit.DAMPER:
        return jnp.zeros_like(d.ten_length)
    v = d.ten_velocity
    return -v * _damping_slope(jnp.abs(v), tendon_damping(m))


def dof_damping_rate(m: Model, d: Data) -> Array:
    """Return minus the derivative of the dofs' damper force by velocity, `[nv, *W]`."""
    a, b, c = dof_damping(m)
    v = jnp.abs(d.qvel)
    return a + v * (2 * b + v * 3 * c)


def tendon_damping_rate(m: Model, d: Data) -> Array:
    """Return minus the derivative of the tendons' damper force by velocity, `[ntendon, *W]`."""
    a, b, c = tendon_damping(m)
    v = jnp.abs(d.ten_velocity)
    return a + v * (2 * b + v * 3 * c)


def _damping_slope(speed: Array, coef: tuple[Array, Array, Array]) -> Array:
    """Return force over velocity."""
    a, b, c = coef
    return a + speed * (b + speed * c)
