"""Trajectory optimisation by iLQR with limits of controls.

Tassa, Mansard, Todorov: Control-limited differential dynamic programming, ICRA 2014. Each turn
linearises the steps exactly, takes the curvature of the norms of the residuals (Gauss-Newton),
finds the best change of the controls backwards (jaxsim/control/solve/backward.py), and tries all
lengths of that change at once. A turn that finds no lower cost raises the regularisation, one that
does lowers it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.control.limits import unclamped
from jaxsim.control.linearize import derivative_of_step
from jaxsim.control.motion import advanced, check_motion, observe, total_cost, with_end
from jaxsim.control.problem import Problem
from jaxsim.control.solve.backward import Policy, Quadratic, backward
from jaxsim.control.tangent import difference, state_size
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arguments import check_count
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.native import as_one_world, unpack
from jaxsim.physics.forward import forward

LENGTHS = 0.5 ** np.arange(8)  # of the change of the controls
LEAST, MOST, RATE = 1e-6, 1e8, 1.6  # of the regularisation
STATE = ("time", "qpos", "qvel", "act", "qacc_warmstart")


class Solution(NamedTuple):
    """What iLQR found.

    Attributes:
      ctrl: controls, (steps, nu).
      states: the worlds from the start to the end, with a leading axis of steps + 1: time, state
        and control. Results such as `xpos` are not filled in: `jax.vmap(jaxsim.forward)`.
      cost: of the motion, ().
      history: the cost before each turn and after the last, (iterations + 1,).
      gains: feedback about the motion, (steps, nu, 2 nv + na): u = ctrl + gains difference.
      converged: whether no better change of the controls was expected, () bool.
      iterations: how many turns were taken, ().
      regularization: that of the last turn, ().
    """

    ctrl: jax.Array
    states: Data
    cost: jax.Array
    history: jax.Array
    gains: jax.Array
    converged: jax.Array
    iterations: jax.Array
    regularization: jax.Array


class _Turn(NamedTuple):
    """What one turn hands to the next."""

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
) -> Solution:
    """Finds controls that a problem costs least, from a first guess.

    One program for any weights and starts; `jax.vmap` over `d` and `ctrl` solves for many starts or
    guesses. The solution of a problem that has moved a little is a good guess for it.

    Args:
      m: the model.
      d: the world at the start.
      ctrl: the guess, (steps, nu); taken within the limits.
      problem: what is to be achieved.
      iterations: most turns; static.
      tolerance: it has converged when a turn is expected to lower the cost by less than this part
        of 1 + cost.

    Returns:
      A Solution. Its cost is infinite if no motion was found that does not diverge.

    Raises:
      ValueError: a shape or precision is wrong.

    Example:
      >>> from jaxsim.control.problem import Term
      >>> problem = Problem([Term("angle", lambda m, d: d.qpos - 0.5)])
      >>> int(jax.jit(ilqr)(m, d, jnp.zeros((3, 0)), problem).iterations)
      0
    """
    check_motion("ilqr", m, d, ctrl, problem)
    iterations = check_count("ilqr: iterations", iterations)
    lower, upper = problem.limits(m)
    m = unclamped(m)
    ctrl = jnp.clip(jnp.asarray(ctrl).astype(d.qpos.dtype), lower[None], upper[None])

    def turn(now: _Turn) -> _Turn:
        cost, tried, states = _try_lengths(m, d, now, problem, lower, upper)
        better = (cost < now.cost) | (now.number == 0)
        ctrl, states, cost = jax.tree.map(
            lambda a, b: jnp.where(better, a, b),
            (tried, states, cost),
            (now.ctrl, now.states, now.cost),
        )
        growth, mu = _regularization(better, now.growth, now.mu)
        model = expand(m, _worlds_of(d, states, ctrl), problem)
        policy, mu = _solvable(model, lower[None] - ctrl, upper[None] - ctrl, now.policy, mu)
        expected = -jnp.sum(policy.slope)
        converged = (expected <= tolerance * (1 + jnp.abs(cost))) & (mu <= LEAST) & policy.good
        history = jnp.where(
            jnp.arange(iterations + 1, dtype=jnp.int32) >= now.number, cost, now.history
        )
        return _Turn(now.number + 1, ctrl, states, cost, history, policy, mu, growth, converged)

    def goes_on(now: _Turn) -> jax.Array:
        return (now.number <= iterations) & ~now.converged & (now.mu < MOST)

    start = _start(d, ctrl, state_size(m), iterations)
    end = lax.while_loop(goes_on, turn, start)
    return Solution(
        end.ctrl,
        _worlds_of(d, end.states, end.ctrl),
        end.cost,
        end.history,
        end.policy.K,
        end.converged,
        end.number - 1,
        end.mu,
    )


def expand(m: Model, worlds: Data, problem: Problem) -> Quadratic:
    """Steps and their costs to second order about a motion.

    Costs have the curvature of their norms; that of the residuals is left out (Gauss-Newton).

    Args:
      m: the model.
      worlds: the worlds of the motion with their controls, (steps + 1, ...); the last is the end.
      problem: what is to be achieved.
    """
    ends = np.cumsum([r.size for r in _shapes(m, worlds, problem)])[:-1]

    def outputs(before: Data, after: Data) -> Array:
        seen = observe(native, before, after, forward)
        return as_one_world(lambda m, d: jnp.concatenate(problem.residuals(m, d)), native, seen)

    def cost(r: jax.Array, terminal: bool) -> jax.Array:
        return problem.cost_of(jnp.split(r, ends), terminal)

    # all steps at once with the worlds last, as the physics has them
    native = unpack(jax.tree.map(lambda a: jnp.asarray(a)[..., None], m), 1)
    last = unpack(jax.tree.map(lambda a: jnp.moveaxis(a, 0, -1), worlds), 1)
    found = derivative_of_step(native, last, last.ctrl, outputs)
    r, F, J = (jnp.moveaxis(a, -1, 0) for a in found)

    # the norms of the steps and of the end
    def slopes(r: jax.Array, terminal: bool) -> tuple[jax.Array, jax.Array]:
        each = jax.vmap(lambda r: (jax.grad(cost)(r, terminal), jax.hessian(cost)(r, terminal)))
        return each(r)

    running, end = slopes(r[:-1], False), slopes(r[-1:], True)
    g, H = (jnp.concatenate(parts) for parts in zip(running, end, strict=True))
    return Quadratic(
        F[:-1], jnp.einsum("tkz,tk->tz", J, g), jnp.einsum("tky,tkl,tlz->tyz", J, H, J)
    )


def _shapes(m: Model, worlds: Data, problem: Problem) -> tuple:
    one = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), worlds)
    shapes: tuple = jax.eval_shape(problem.residuals, m, one)
    return shapes


def _try_lengths(
    m: Model, d: Data, now: _Turn, problem: Problem, lower: jax.Array, upper: jax.Array
) -> tuple[jax.Array, jax.Array, dict]:
    """The best motion along a change of the controls: its cost, controls and states."""
    k, K = with_end(now.policy.k), with_end(now.policy.K)
    is_end = jnp.arange(len(k)) == len(k) - 1

    def motion(length: jax.Array) -> tuple[jax.Array, jax.Array, dict]:
        def advance(world: Data, row: tuple) -> tuple[Data, tuple]:
            u, k, K, old, is_end = row
            change = length * k + K @ difference(m, d.replace(**old), world)
            u = jnp.where(is_end, 0, jnp.clip(u + change, lower, upper))
            state = {name: getattr(world, name) for name in STATE}
            after, residuals, bad = advanced(m, world, u, problem)
            return after, (u, state, residuals, bad)

        rows = (with_end(now.ctrl), k, K, now.states, is_end)
        _, (ctrl, states, residuals, bad) = lax.scan(advance, d, rows)
        return total_cost(problem, residuals, bad), ctrl[:-1], states

    found = jax.vmap(motion)(jnp.asarray(LENGTHS, d.qpos.dtype))
    costs = jnp.where(jnp.isnan(found[0]), jnp.inf, found[0])
    best = jnp.argmin(costs)
    _, ctrl, states = jax.tree.map(lambda a: a[best], found)
    return costs[best], ctrl, states


def _regularization(
    better: jax.Array, growth: jax.Array, mu: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Lowers or raises the regularisation, faster each time in a row.

    Tassa, Erez, Todorov: Synthesis and stabilization of complex behaviors through online trajectory
    optimization, IROS 2012, section II.F.
    """
    down, up = jnp.minimum(1 / RATE, growth / RATE), jnp.maximum(RATE, growth * RATE)
    lowered, raised = mu * down, jnp.maximum(LEAST, mu * up)
    lowered = jnp.where(lowered < LEAST, 0, lowered)
    return jnp.where(better, down, up), jnp.where(better, lowered, raised)


def _solvable(
    model: Quadratic, low: jax.Array, high: jax.Array, before: Policy, mu: jax.Array
) -> tuple[Policy, jax.Array]:
    """The policy with the least regularisation from `mu` on with which all systems are solved."""

    def again(state: tuple) -> tuple:
        _, mu = state
        policy = backward(model, low, high, mu)
        return policy, jnp.where(policy.good, mu, jnp.maximum(LEAST, 10 * mu))

    bad = before._replace(good=jnp.zeros_like(before.good))
    found: tuple = lax.while_loop(lambda s: ~s[0].good & (s[1] < MOST), again, (bad, mu))
    return found


def _start(d: Data, ctrl: jax.Array, nx: int, iterations: int) -> _Turn:
    """Before the first turn: no states, no cost, no change of the controls."""
    dtype = d.qpos.dtype
    steps, nu = ctrl.shape

    def zeros(*shape: int) -> jax.Array:
        return jnp.zeros(shape, dtype)

    states = {name: getattr(d, name) for name in STATE}
    return _Turn(
        number=jnp.zeros((), jnp.int32),
        ctrl=ctrl,
        states=jax.tree.map(lambda a: jnp.broadcast_to(a, (steps + 1, *a.shape)), states),
        cost=jnp.full((), jnp.inf, dtype),
        history=jnp.full(iterations + 1, jnp.inf, dtype),
        policy=Policy(zeros(steps, nu), zeros(steps, nu, nx), zeros(2), jnp.zeros((), bool)),
        mu=zeros(),
        growth=jnp.ones((), dtype),
        converged=jnp.zeros((), bool),
    )


def _worlds_of(d: Data, states: dict, ctrl: jax.Array) -> Data:
    """The worlds of a motion, (steps + 1, ...); at the end the control is zero."""
    return jax.vmap(lambda state, u: d.replace(**state, ctrl=u))(states, with_end(ctrl))
