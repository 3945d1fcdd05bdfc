"""Trajectory optimization by iLQR with control limits.

Tassa, Mansard, Todorov: Control-limited differential dynamic programming, ICRA 2014. Each iteration
linearizes the steps exactly, takes the curvature of the norms of the residuals (Gauss-Newton),
computes the best change of the controls by a backward pass (jaxsim/control/solve/backward.py), and
tries all step lengths of that change at once. The regularization is raised after an iteration
without improvement and lowered after one with.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.control.motion import advance_world, append_zero_control, check_motion, total_cost
from jaxsim.control.problem import Problem
from jaxsim.control.quadratic_expansion import expand
from jaxsim.control.solve.backward import Policy, backward
from jaxsim.control.solve.regularization import (
    MAX_REGULARIZATION,
    MIN_REGULARIZATION,
    next_regularization,
    regularized_policy,
)
from jaxsim.derivative.ctrl_limits import without_ctrl_clamp
from jaxsim.derivative.tangent import check_coordinates_complete, difference, tangent_size
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.public.arguments import check_count

STEP_LENGTHS = 0.5 ** np.arange(8)  # step lengths of the line search
MOTION_STATE_FIELDS = ("time", "time_low", "qpos", "qvel", "act", "plastic", "qacc_warmstart")


class Solution(NamedTuple):
    """Result of `ilqr` or `multiple_shooting`.

    Attributes:
      ctrl: controls, (steps, nu).
      states: the worlds from the start to the end, with a leading axis of steps + 1: time, state
        and control. Results such as `xpos` are not filled in: `jax.vmap(jaxsim.forward)`.
      cost: cost of the motion, ().
      history: the cost before each iteration and after the last, (iterations + 1,).
      gains: feedback about the motion, (steps, nu, 2 nv + na): u = ctrl + gains difference.
      converged: whether no better change of the controls was expected, () bool.
      iterations: number of iterations performed, ().
      regularization: final regularization, ().
      defect: largest entry, in tangent coordinates, of the defects between the pieces of the
        motion, (); zero for `ilqr`, whose motion is one piece.
    """

    ctrl: jax.Array
    states: Data
    cost: jax.Array
    history: jax.Array
    gains: jax.Array
    converged: jax.Array
    iterations: jax.Array
    regularization: jax.Array
    defect: jax.Array


class IterationConstants(NamedTuple):
    """Constants of all iterations: model (unclamped), start, problem, limits (nu,)."""

    m: Model
    d: Data
    problem: Problem
    lower: jax.Array
    upper: jax.Array


class _Iteration(NamedTuple):
    """State that one iteration passes to the next."""

    number: jax.Array
    ctrl: jax.Array
    states: dict
    cost: jax.Array
    history: jax.Array
    policy: Policy
    mu: jax.Array
    growth: jax.Array
    converged: jax.Array


def ilqr(
    m: Model,
    d: Data,
    ctrl: jax.Array,
    problem: Problem,
    *,
    iterations: int = 50,
    tolerance: float = 1e-6,
    regularization: Any = 0.0,
    feedback: bool = True,
) -> Solution:
    """Minimize the cost of a problem over the controls, from an initial guess.

    One program for any weights and starts; `jax.vmap` over `d` and `ctrl` solves for many starts or
    guesses. The solution of a slightly different problem is a good guess.

    Args:
      m: the model.
      d: the world at the start.
      ctrl: the guess, (steps, nu); clipped to the limits.
      problem: the costs and limits.
      iterations: iteration limit; static.
      tolerance: convergence criterion: the expected decrease of the cost, relative to 1 + cost.
      regularization: initial value, (); pass that of a Solution to continue it.
      feedback: whether to expand about the final motion, for its gains and for `converged`; static.
        Without, the gains are those about the motion before it, and one of `iterations` + 1
        expansions is saved, which matters for a planner with few iterations.

    Returns:
      A Solution. Its cost is infinite if every motion tried diverged.

    Raises:
      ValueError: a shape or precision is wrong.

    Example:
      >>> from jaxsim.control.problem import Term
      >>> problem = Problem([Term("angle", lambda m, d: d.qpos - 0.5)])
      >>> int(jax.jit(ilqr)(m, d, jnp.zeros((3, 0)), problem).iterations)
      0
    """
    constants, ctrl = prepare_iterations("ilqr", m, d, ctrl, problem)
    iterations = check_count("ilqr: iterations", iterations)

    def iterate(now: _Iteration) -> _Iteration:
        tried = _accept(constants, now)
        if feedback:
            return _improve(constants, tried, tolerance)
        return lax.cond(
            now.number < iterations,
            lambda tried: _improve(constants, tried, tolerance),
            lambda tried: tried._replace(number=tried.number + 1),
            tried,
        )

    def continues(now: _Iteration) -> jax.Array:
        return (now.number <= iterations) & ~now.converged & (now.mu < MAX_REGULARIZATION)

    end = lax.while_loop(continues, iterate, _start(constants, ctrl, iterations, regularization))
    return Solution(
        end.ctrl,
        motion_worlds(d, end.states, end.ctrl),
        end.cost,
        end.history,
        end.policy.K,
        end.converged,
        end.number - 1,
        end.mu,
        jnp.zeros_like(end.cost),
    )


def prepare_iterations(
    function: str, m: Model, d: Data, ctrl: jax.Array, problem: Problem
) -> tuple[IterationConstants, jax.Array]:
    """Check the arguments; return the constants, and the guess (steps, nu) clipped to the limits.

    Raises:
      ValueError: a shape or precision is wrong; the message begins with the name `function`.
    """
    check_motion(function, m, d, ctrl, problem)
    check_coordinates_complete(function, m)
    lower, upper = problem.limits(m)
    inside = jnp.clip(jnp.asarray(ctrl).astype(d.qpos.dtype), lower[None], upper[None])
    return IterationConstants(without_ctrl_clamp(m), d, problem, lower, upper), inside


def no_policy(steps: int, nu: int, nx: int, dtype: Any) -> Policy:
    """Return a policy that does not change the controls; nx is the size of a state's tangent."""

    def zeros(*shape: int) -> jax.Array:
        return jnp.zeros(shape, dtype)

    return Policy(
        k=zeros(steps, nu),
        K=zeros(steps, nu, nx),
        slope=zeros(2),
        good=jnp.zeros((), bool),
        V_x=zeros(steps, nx),
        V_xx=zeros(steps, nx, nx),
    )


def state_rows(d: Data, steps: int) -> dict:
    """Return the state of a world repeated for each step and the end, (steps + 1, ...)."""
    states = {name: getattr(d, name) for name in MOTION_STATE_FIELDS}
    return jax.tree.map(lambda a: jnp.broadcast_to(a, (steps + 1, *a.shape)), states)


def motion_worlds(d: Data, states: dict, ctrl: jax.Array) -> Data:
    """Return the worlds of a motion, (steps + 1, ...); at the end the control is zero."""
    return jax.vmap(lambda state, u: d.replace(**state, ctrl=u))(states, append_zero_control(ctrl))


def fill_history(history: jax.Array, number: jax.Array, cost: jax.Array) -> jax.Array:
    """Return the history (iterations + 1,) with the cost from entry `number` on."""
    return jnp.where(jnp.arange(len(history), dtype=jnp.int32) >= number, cost, history)


def _accept(constants: IterationConstants, now: _Iteration) -> _Iteration:
    """Try the change computed by the previous iteration, and accept it if it is better."""
    # 1. Accept the best step of the line search if it lowers the cost.
    found = _try_lengths(constants, now)
    better = (found[0] < now.cost) | (now.number == 0)
    cost, ctrl, states = jax.tree.map(
        lambda a, b: jnp.where(better, a, b), found, (now.cost, now.ctrl, now.states)
    )
    # 2. Adapt the regularization: lower after a success, higher after a failure.
    growth, mu = next_regularization(better, now.growth, now.mu)
    history = fill_history(now.history, now.number, cost)
    return now._replace(ctrl=ctrl, states=states, cost=cost, history=history, mu=mu, growth=growth)


def _improve(constants: IterationConstants, now: _Iteration, tolerance: float) -> _Iteration:
    """Compute the change of the controls that the next iteration tries."""
    m, d, problem, lower, upper = constants
    ctrl = now.ctrl
    # 3. Expand about the accepted motion to a linear-quadratic model.
    no_defects = jnp.zeros((len(ctrl), tangent_size(m)), ctrl.dtype)
    model = expand(m, motion_worlds(d, now.states, ctrl), problem, gap=no_defects)

    def solve(mu: jax.Array) -> Policy:
        return backward(model, lower[None] - ctrl, upper[None] - ctrl, mu)

    # 4. Backward pass, with the regularization raised until all systems are solvable.
    policy, mu = regularized_policy(solve, now.policy, now.mu)
    # 5. Converged if the expected decrease of the cost is small without regularization.
    expected = -jnp.sum(policy.slope)
    converged = (
        (expected <= tolerance * (1 + jnp.abs(now.cost))) & (mu <= MIN_REGULARIZATION) & policy.good
    )
    return now._replace(number=now.number + 1, policy=policy, mu=mu, converged=converged)


def _try_lengths(
    constants: IterationConstants, now: _Iteration
) -> tuple[jax.Array, jax.Array, dict]:
    """Return the best motion along a change of the controls: its cost, controls and states."""
    m, d, problem, lower, upper = constants
    k, K = append_zero_control(now.policy.k), append_zero_control(now.policy.K)
    is_end = jnp.arange(len(k)) == len(k) - 1

    def motion(length: jax.Array) -> tuple[jax.Array, jax.Array, dict]:
        def advance(world: Data, row: tuple) -> tuple[Data, tuple]:
            u, k, K, old, is_end = row
            change = length * k + K @ difference(m, d.replace(**old), world)
            u = jnp.where(is_end, 0, jnp.clip(u + change, lower, upper))
            state = {name: getattr(world, name) for name in MOTION_STATE_FIELDS}
            after, residuals, bad = advance_world(m, world, u, problem)
            return after, (u, state, residuals, bad)

        rows = (append_zero_control(now.ctrl), k, K, now.states, is_end)
        _, (ctrl, states, residuals, bad) = lax.scan(advance, d, rows)
        return total_cost(problem, residuals, bad), ctrl[:-1], states

    found = jax.vmap(motion)(jnp.asarray(STEP_LENGTHS, d.qpos.dtype))
    costs = jnp.where(jnp.isnan(found[0]), jnp.inf, found[0])
    best = jnp.argmin(costs)
    _, ctrl, states = jax.tree.map(lambda a: a[best], found)
    return costs[best], ctrl, states


def _start(constants: IterationConstants, ctrl: jax.Array, iterations: int, mu: Any) -> _Iteration:
    """Return the state before the first iteration: the start repeated as states, infinite cost, and
    no change of the controls."""
    steps, nu = ctrl.shape
    return _Iteration(
        number=jnp.zeros((), jnp.int32),
        ctrl=ctrl,
        states=state_rows(constants.d, steps),
        cost=jnp.full((), jnp.inf, ctrl.dtype),
        history=jnp.full(iterations + 1, jnp.inf, ctrl.dtype),
        policy=no_policy(steps, nu, tangent_size(constants.m), ctrl.dtype),
        mu=jnp.asarray(mu).astype(ctrl.dtype),
        growth=jnp.ones((), ctrl.dtype),
        converged=jnp.zeros((), bool),
    )
