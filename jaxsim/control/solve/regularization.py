"""Regularization schedule: raised after a failed iteration, lowered after a successful one.

Tassa, Erez, Todorov: Synthesis and stabilization of complex behaviors through online trajectory
optimization, IROS 2012, section II.F.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.control.solve.backward import Policy

MIN_REGULARIZATION, MAX_REGULARIZATION, _REGULARIZATION_RATE = 1e-6, 1e8, 1.6


def next_regularization(
    better: jax.Array, growth: jax.Array, mu: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Lower or raise the regularization, faster with each repetition.

    Args:
      better: whether the last iteration lowered the cost, () bool.
      growth: factor of the last change, ().
      mu: the regularization, ().

    Returns:
      The new factor and the new regularization.
    """
    down, up = (
        jnp.minimum(1 / _REGULARIZATION_RATE, growth / _REGULARIZATION_RATE),
        jnp.maximum(_REGULARIZATION_RATE, growth * _REGULARIZATION_RATE),
    )
    lowered, raised = mu * down, jnp.maximum(MIN_REGULARIZATION, mu * up)
    lowered = jnp.where(lowered < MIN_REGULARIZATION, 0, lowered)
    return jnp.where(better, down, up), jnp.where(better, lowered, raised)


def regularized_policy(
    solve: Callable[[jax.Array], Policy], before: Policy, mu: jax.Array
) -> tuple[Policy, jax.Array]:
    """Return a policy and its regularization, raised from `mu` until all systems are solvable.

    Each failure multiplies the regularization by 10. The search ends at MAX_REGULARIZATION; then
    `policy.good` is false.

    Args:
      solve: regularization -> policy.
      before: a policy of the same shapes.
      mu: the initial regularization, ().

    Returns:
      The policy, and the regularization it was computed with, ().
    """

    def increase_mu(state: tuple) -> tuple:
        _, mu = state
        policy = solve(mu)
        return policy, jnp.where(policy.good, mu, jnp.maximum(MIN_REGULARIZATION, 10 * mu))

    bad = before._replace(good=jnp.zeros_like(before.good))
    found: tuple = lax.while_loop(
        lambda s: ~s[0].good & (s[1] < MAX_REGULARIZATION), increase_mu, (bad, mu)
    )
    return found
