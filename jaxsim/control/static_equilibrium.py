"""Equilibria under constant control: no velocity, no acceleration."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.control.kinematics import INITIAL_DAMPING
from jaxsim.control.motion import carry_results
from jaxsim.control.problem import Problem
from jaxsim.control.solve.levenberg_marquardt import levenberg_marquardt
from jaxsim.derivative.tangent import apply_tangent, tangent_size
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.public.api import forward
from jaxsim.physics.public.arguments import check_count, check_data, check_model


class Equilibrium(NamedTuple):
    """An equilibrium state.

    Attributes:
      d: the world: its pose, its control, and stationary activations.
      acceleration: largest remaining acceleration, () [m/s^2 or rad/s^2].
    """

    d: Data
    acceleration: jax.Array


def equilibrium(
    m: Model, d: Data, *, pose: float | jax.Array = 1e-3, iterations: int = 100
) -> Equilibrium:
    """Return the pose and control near those of `d` at which nothing accelerates.

    Least squares over (dq, dact, du):

        min |qacc|^2 + |act_dot|^2 + regularization of dq by `pose`

    Contacts are included: a body rests at its equilibrium penetration into the floor. Controls stay
    within their limits. There are two solves: the first is regularized by `pose`, the weight of the
    displacement; the second starts from its result without that weight, so that no bias remains.

    Args:
      m: the model.
      d: the initial world; its velocity is taken as zero. Forces applied to it are included.
      pose: weight of the displacement in the first solve, a number or (nv,); large weights such as
        1e3 hold a dof.
      iterations: iteration limit of each solve.

    Returns:
      An Equilibrium. Check its acceleration: not every pose can be held.

    Raises:
      ValueError: a shape or precision is wrong.
    """
    check_model("equilibrium", m)
    check_data("equilibrium", m, d)
    iterations = check_count("equilibrium: iterations", iterations)
    lower, upper = Problem().limits(m)
    nv, na, nx, dtype = m.nv, m.na, tangent_size(m), m.qpos0.dtype
    d = d.replace(qvel=jnp.zeros_like(d.qvel), ctrl=jnp.clip(d.ctrl, lower, upper))
    hold = jnp.broadcast_to(jnp.asarray(pose).astype(dtype), (nv,))

    def world(x: jax.Array) -> Data:
        dx = jnp.concatenate([x[:nv], jnp.zeros(nv, dtype), x[nv : nv + na]])
        u = jnp.clip(d.ctrl + x[nv + na :], lower, upper)
        return apply_tangent(m, d, dx).replace(ctrl=u)

    def accelerations(x: jax.Array) -> jax.Array:
        found = forward(m, carry_results(m, world(x), ("qacc", "act_dot")))
        # gradient of the clipped part: a slope back into the limits
        u = d.ctrl + x[nv + na :]
        return jnp.concatenate([found.qacc, found.act_dot, u - jnp.clip(u, lower, upper)])

    def solve(x: jax.Array, hold: jax.Array) -> tuple[jax.Array, None]:
        def residuals(x: jax.Array) -> jax.Array:
            return jnp.concatenate([accelerations(x), hold * x[:nv]])

        end = levenberg_marquardt(
            residuals, x, iterations=iterations, damping=INITIAL_DAMPING, uniform=True
        )
        return end.x, None

    # one program for both
    start = jnp.zeros(nx - nv + m.nu, dtype)
    x, _ = lax.scan(solve, start, jnp.stack([hold, jnp.zeros_like(hold)]))
    end = forward(m, carry_results(m, world(x), ("qacc", "act_dot")))
    left = jnp.max(jnp.abs(jnp.concatenate([end.qacc, end.act_dot])), initial=0)
    return Equilibrium(world(x), left)
