"""States that a constant control holds: no velocity, no acceleration."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.control.motion import carrying
from jaxsim.control.problem import Problem
from jaxsim.control.solve.least_squares import least_squares
from jaxsim.derivative.tangent import moved, state_size
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.api import forward
from jaxsim.physics.arguments import check_count, check_data, check_model


class Equilibrium(NamedTuple):
    """A state at rest.

    Attributes:
      d: the world: its pose, its control, and activations that no longer change.
      acceleration: the largest that is left, () [m/s^2 or rad/s^2].
    """

    d: Data
    acceleration: jax.Array


def equilibrium(
    m: Model, d: Data, *, pose: float | jax.Array = 1e-3, iterations: int = 100
) -> Equilibrium:
    """Return the control and the pose, near those of `d`, at which nothing accelerates.

    Least squares over (dq, dact, du):

        min |qacc|^2 + |act_dot|^2,   near the start as far as `pose` holds it there

    Contacts count: a body stands where it has sunk into the floor. Controls stay within their
    limits. `pose` is the weight of the displacement in the first of two solutions; the second,
    which begins there, has no such weight, so that it does not disturb the balance.

    Args:
      m: the model.
      d: the world to begin with; its velocity is taken as zero. Forces applied to it count.
      pose: how strongly the pose is held in the first solution, a number or (nv,); infinite weights
        are not needed: 1e3 holds.
      iterations: most turns of each solution.

    Returns:
      An Equilibrium. Ask for its acceleration: what cannot be held is not.

    Raises:
      ValueError: a shape or precision is wrong.
    """
    check_model("equilibrium", m)
    check_data("equilibrium", m, d)
    iterations = check_count("equilibrium: iterations", iterations)
    lower, upper = Problem().limits(m)
    nv, na, nx = m.nv, m.na, state_size(m)
    dtype = m.qpos0.dtype
    d = d.replace(qvel=jnp.zeros_like(d.qvel), ctrl=jnp.clip(d.ctrl, lower, upper))
    hold = jnp.broadcast_to(jnp.asarray(pose).astype(dtype), (nv,))

    def world(x: jax.Array) -> Data:
        dx = jnp.concatenate([x[:nv], jnp.zeros(nv, dtype), x[nv : nv + na]])
        u = jnp.clip(d.ctrl + x[nv + na :], lower, upper)
        return moved(m, d, dx).replace(ctrl=u)

    def accelerations(x: jax.Array) -> jax.Array:
        found = forward(m, carrying(m, world(x), "qacc act_dot"))
        beyond = d.ctrl + x[nv + na :]  # a slope back into the limits
        beyond = beyond - jnp.clip(beyond, lower, upper)
        return jnp.concatenate([found.qacc, found.act_dot, beyond])

    def solve(x: jax.Array, hold: jax.Array) -> tuple[jax.Array, None]:
        def residuals(x: jax.Array) -> jax.Array:
            return jnp.concatenate([accelerations(x), hold * x[:nv]])

        return least_squares(residuals, x, iterations), None

    # one program for both
    start = jnp.zeros(nx - nv + m.nu, dtype)
    x, _ = lax.scan(solve, start, jnp.stack([hold, jnp.zeros_like(hold)]))
    end = forward(m, carrying(m, world(x), "qacc act_dot"))
    left = jnp.max(jnp.abs(jnp.concatenate([end.qacc, end.act_dot])), initial=0)
    return Equilibrium(world(x), left)
