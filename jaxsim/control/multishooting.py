"""Trajectory optimization by multiple shooting: the motion in pieces with initial defects between
them.

    minimize J(x, u),   f(x_t, u_t) = x_t+1 within a piece,   c_j = f(x_t, u_t) - s_j = 0 at its end

The initial states s_j of the pieces, and the end of the motion, are unknowns like the controls.
Giftthaler, Neunert, Stäuble, Buchli, Diehl: A family of iterative Gauss-Newton shooting methods for
nonlinear optimal control, IROS 2018. Each iteration expands all steps about the pieces, computes
the best change including the defects c in the backward pass (jaxsim/control/solve/backward.py),
moves the initial states along the linear motion, and simulates all pieces at once from there, with
feedback. The line search minimizes the merit function

    J + sum_j weight' |c_j|

whose weights, one per coordinate of the state, follow the multipliers of the defects (Powell, A
fast algorithm for nonlinearly constrained optimization calculations, 1978). Short pieces keep a
long motion of an unstable world well conditioned, and a guess of its states can be used.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.control.iterative_lqr import (
    MOTION_STATE_FIELDS,
    STEP_LENGTHS,
    IterationConstants,
    Solution,
    fill_history,
    motion_worlds,
    no_policy,
    prepare_iterations,
)
from jaxsim.control.motion import advance_world, append_zero_control, total_cost
from jaxsim.control.problem import Problem
from jaxsim.control.quadratic_expansion import expand
from jaxsim.control.solve.backward import Policy, QuadraticModel, backward
from jaxsim.control.solve.regularization import (
    MAX_REGULARIZATION,
    MIN_REGULARIZATION,
    next_regularization,
    regularized_policy,
)
from jaxsim.derivative.tangent import apply_tangent, difference, tangent_size
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.record.check import brief_value
from jaxsim.physics.history.clock import advance_clock
from jaxsim.physics.public.api import step
from jaxsim.physics.public.arguments import check_count


class _Pieces(NamedTuple):
    """A motion in pieces.

    Attributes:
      cost: cost of its steps, (); infinite if one diverged.
      ctrl: (steps, nu).
      states: by name, (steps + 1, ...).
      gap: defect f(x_t, u_t) - x_t+1 of each step, (steps, nx); zero within pieces.
    """

    cost: jax.Array
    ctrl: jax.Array
    states: dict
    gap: jax.Array


class _Change(NamedTuple):
    """The best change of a motion in the linear model, and the feedback about it.

    Attributes:
      dx: change of the states, (steps + 1, nx).
      du: change of the controls, (steps, nu); within the limits.
      policy: policy that produced it.
    """

    dx: jax.Array
    du: jax.Array
    policy: Policy


class _Iteration(NamedTuple):
    """State that one iteration passes to the next."""

    number: jax.Array
    pieces: _Pieces
    history: jax.Array
    change: _Change
    weight: jax.Array
    mu: jax.Array
    growth: jax.Array
    converged: jax.Array


def multiple_shooting(
    m: Model,
    d: Data,
    ctrl: jax.Array,
    problem: Problem,
    *,
    nodes: int | None = None,
    states: Data | None = None,
    iterations: int = 50,
    tolerance: float = 1e-6,
    regularization: Any = 0.0,
) -> Solution:
    """Minimize the cost of a problem over the controls and the states between pieces.

    Like `ilqr` it is one program, to be batched with `jax.vmap` over starts and guesses.

    Args:
      m: the model.
      d: the world at the start.
      ctrl: the guess, (steps, nu); clipped to the limits.
      problem: the costs and limits.
      nodes: number of pieces; divides the steps. None: each step is a piece.
      states: guess of the states, worlds (steps + 1, ...): of an earlier Solution, or
        `straight_line`; the initial states of pieces and the end are used. None: the motion of the
        guessed controls.
      iterations: iteration limit; static.
      tolerance: convergence criterion: the defects are closed, and the expected decrease of the
        cost, relative to 1 + cost, is less than this.
      regularization: initial value, (); pass that of a Solution to continue it.

    Returns:
      A Solution. It is a motion only if its `defect` is small: until then its cost is that of the
      pieces, and may rise between iterations while the defects are closed.

    Raises:
      ValueError: a shape or precision is wrong, or pieces are not of equal length.

    Example:
      >>> from jaxsim.control.problem import Term
      >>> problem = Problem([Term("angle", lambda m, d: d.qpos - 0.5)])
      >>> float(jax.jit(multiple_shooting)(m, d, jnp.zeros((3, 0)), problem).defect)
      0.0
    """
    constants, ctrl = prepare_iterations("multiple_shooting", m, d, ctrl, problem)
    iterations = check_count("multiple_shooting: iterations", iterations)
    nodes = _check_nodes(nodes, len(ctrl))
    rows = _guess_states(constants, ctrl, states)

    def iterate(now: _Iteration) -> _Iteration:
        return _iterate(constants, now, nodes, tolerance)

    def continues(now: _Iteration) -> jax.Array:
        return (now.number <= iterations) & ~now.converged & (now.mu < MAX_REGULARIZATION)

    start = _start(constants, ctrl, rows, iterations, regularization)
    return _solution(d, lax.while_loop(continues, iterate, start))


def _solution(d: Data, end: _Iteration) -> Solution:
    """Return the Solution of the last iteration."""
    return Solution(
        end.pieces.ctrl,
        motion_worlds(d, end.pieces.states, end.pieces.ctrl),
        end.pieces.cost,
        end.history,
        end.change.policy.K,
        end.converged,
        end.number - 1,
        end.mu,
        _max_abs(end.pieces.gap),
    )


def straight_line(m: Model, d: Data, end: Data, steps: int) -> Data:
    """Return the worlds (steps + 1, ...) on a line from one state to another: a guess for
    `multiple_shooting`.

    Positions and activations are interpolated linearly, in tangent coordinates; velocities are
    those of this motion, except for the first, which is that of the start.

    Args:
      m: the model.
      d: the world at the start.
      end: the world at the end.
      steps: number of steps between them, at least 1.

    Example:
      >>> line = straight_line(m, d, d.replace(qpos=d.qpos + 0.4), 4)
      >>> [round(float(x), 1) for x in line.qpos[:, 0]]
      [0.0, 0.1, 0.2, 0.3, 0.4]
    """
    whole = difference(m, d, end)
    speed = whole[: m.nv] / (steps * m.opt.timestep)
    part = jnp.arange(steps + 1, dtype=d.qpos.dtype)

    def world(i: jax.Array) -> Data:
        there = apply_tangent(m, d, whole * (i / steps))
        return there.replace(
            **advance_clock(d, i.astype(d.time.dtype) * m.opt.timestep.astype(d.time.dtype)),
            qvel=jnp.where(i == 0, d.qvel, speed),
        )

    return jax.vmap(world)(part)


def _iterate(
    constants: IterationConstants, now: _Iteration, nodes: int, tolerance: float
) -> _Iteration:
    """Try the change computed by the previous iteration, accept it if it is better, and compute
    the next."""
    # 1. Accept the best step of the line search if it lowers the merit function.
    m, d, problem, lower, upper = constants
    tried = _try_lengths(constants, now, nodes)
    better = (_merit_function(tried, now.weight) < _merit_function(now.pieces, now.weight)) | (
        now.number == 0
    )
    pieces: _Pieces = jax.tree.map(lambda a, b: jnp.where(better, a, b), tried, now.pieces)
    # 2. Adapt the regularization: lower after a success, higher after a failure.
    growth, mu = next_regularization(better, now.growth, now.mu)
    # 3. Expand about the accepted pieces to a linear-quadratic model.
    ctrl = pieces.ctrl
    low, high = lower[None] - ctrl, upper[None] - ctrl
    model = expand(m, motion_worlds(d, pieces.states, ctrl), problem, pieces.gap)
    one = jnp.eye(model.hessian.shape[-1], dtype=ctrl.dtype)[None]

    # 4. Backward pass. The regularization applies to the states too.
    def solve(mu: jax.Array) -> Policy:
        regularized = model._replace(hessian=model.hessian + mu * one)
        return backward(regularized, low, high, jnp.zeros_like(mu))

    policy, mu = regularized_policy(solve, now.change.policy, mu)
    change = _linear_motion(model, policy, low, high)

    # 5. Penalty of a defect in the merit function: at least the cost of the change that closes it.
    price = jnp.abs(policy.V_x + jnp.einsum("txy,ty->tx", policy.V_xx, change.dx[1:]))
    price = jnp.max(_rows_at_ends(price, nodes), axis=0)
    weight = jnp.maximum(price, (now.weight + price) / 2)

    # 6. Converged if the defects are closed and the expected decrease of the cost is small. Within
    # limits the change may be slightly suboptimal, with an expected rise of the cost.
    closed = _max_abs(pieces.gap) <= jnp.finfo(ctrl.dtype).eps ** (2 / 3)
    settled = jnp.abs(_expected_decrease(model, change)) <= tolerance * (1 + jnp.abs(pieces.cost))
    converged = closed & settled & (mu <= MIN_REGULARIZATION) & policy.good
    history = fill_history(now.history, now.number, pieces.cost)
    return _Iteration(now.number + 1, pieces, history, change, weight, mu, growth, converged)


def _linear_motion(
    model: QuadraticModel, policy: Policy, lower: jax.Array, upper: jax.Array
) -> _Change:
    """Return the change that a policy produces in the linear model: it closes all defects."""

    def advance(dx: jax.Array, row: tuple) -> tuple[jax.Array, tuple]:
        F, gap, k, K, low, high = row
        du = jnp.clip(k + K @ dx, low, high)
        return F @ jnp.concatenate([dx, du]) + gap, (dx, du)

    rows = (model.dynamics, model.gap, policy.k, policy.K, lower, upper)
    end, (dx, du) = lax.scan(advance, jnp.zeros_like(model.gap[0]), rows)
    return _Change(jnp.concatenate([dx, end[None]]), du, policy)


def _expected_decrease(model: QuadraticModel, change: _Change) -> jax.Array:
    """Return the decrease of the cost expected by the model for a change, ()."""
    z = jnp.concatenate([change.dx, append_zero_control(change.du)], axis=1)
    return -jnp.einsum("tz,tz->", model.gradient, z) - (
        jnp.einsum("ty,tyz,tz->", z, model.hessian, z) / 2
    )


def _try_lengths(constants: IterationConstants, now: _Iteration, nodes: int) -> _Pieces:
    """Return the best of all step lengths of a change."""
    lengths = jnp.asarray(STEP_LENGTHS, now.weight.dtype)
    found = jax.vmap(lambda length: _simulate_pieces(constants, now, nodes, length))(lengths)
    best = jnp.argmin(jax.vmap(lambda pieces: _merit_function(pieces, now.weight))(found))
    chosen: _Pieces = jax.tree.map(lambda a: a[best], found)
    return chosen


def _simulate_pieces(
    constants: IterationConstants, now: _Iteration, nodes: int, length: jax.Array
) -> _Pieces:
    """Simulate all pieces at once, with their initial states moved by a length of the change.

    The end is the initial state of one more piece, of which only the first row is used.
    """
    m, d, problem, lower, upper = constants
    steps, old, change = len(now.pieces.ctrl), now.pieces, now.change
    size = steps // nodes
    number = np.arange((nodes + 1) * size).reshape(nodes + 1, size)

    def in_pieces(a: jax.Array) -> jax.Array:
        return a[np.minimum(number, len(a) - 1)]

    def advance(world: Data, row: tuple) -> tuple[Data, tuple]:
        u, du, K, dx, before, is_end = row
        ahead = difference(m, d.replace(**before), world) - length * dx
        u = jnp.where(is_end, 0, jnp.clip(u + length * du + K @ ahead, lower, upper))
        after, residuals, bad = advance_world(m, world, u, problem)
        return after, (u, _state(world), residuals, bad)

    def piece(state: dict, dx: jax.Array, rows: tuple) -> tuple[dict, tuple]:
        end, found = lax.scan(advance, apply_tangent(m, d.replace(**state), length * dx), rows)
        return _state(end), found

    rows = (old.ctrl, change.du, change.policy.K, change.dx, old.states)
    rows = (*jax.tree.map(in_pieces, rows), jnp.asarray(number == steps))
    first, moves = jax.tree.map(lambda a: a[::size], (old.states, change.dx))
    ends, found = jax.vmap(piece)(first, moves, rows)

    # back to one motion, and the defects between its pieces
    flat = jax.tree.map(lambda a: a.reshape(number.size, *a.shape[2:])[: steps + 1], found)
    ctrl, states, residuals, bad = flat
    begin, end = jax.tree.map(lambda a: a[size::size], states), _all_but_last(ends)
    gap = jax.vmap(lambda a, b: difference(m, d.replace(**a), d.replace(**b)))(begin, end)
    all_gaps = jnp.zeros((steps, gap.shape[1]), gap.dtype).at[size - 1 :: size].set(gap)
    warm = states["qacc_warmstart"].at[size::size].set(end["qacc_warmstart"])
    cost = total_cost(problem, residuals, bad)
    return _Pieces(cost, ctrl[:-1], states | {"qacc_warmstart": warm}, all_gaps)


def _merit_function(pieces: _Pieces, weight: jax.Array) -> jax.Array:
    """Return the merit of a motion, (); infinite if it diverged."""
    merit = pieces.cost + jnp.sum(jnp.abs(pieces.gap) * weight[None])
    return jnp.where(jnp.isnan(merit), jnp.inf, merit)


def _max_abs(gap: jax.Array) -> jax.Array:
    return jnp.max(jnp.abs(gap), initial=0)


def _rows_at_ends(rows: jax.Array, nodes: int) -> jax.Array:
    """Return the rows of the last steps of pieces, given one row per step."""
    size = len(rows) // nodes
    return rows[size - 1 :: size]


def _all_but_last(tree: Any) -> Any:
    return jax.tree.map(lambda a: a[:-1], tree)


def _state(d: Data) -> dict:
    return {name: getattr(d, name) for name in MOTION_STATE_FIELDS}


def _check_nodes(nodes: int | None, steps: int) -> int:
    """Return the number of pieces; raises ValueError if it does not divide the steps."""
    if nodes is None:
        return steps
    nodes = check_count("multiple_shooting: nodes", nodes)
    if nodes == 0 or steps % nodes:
        able = [k for k in range(1, steps + 1) if steps % k == 0]
        raise ValueError(
            f"multiple_shooting: nodes: {nodes} pieces of equal length do not make {steps} steps; "
            f"there can be {', '.join(map(str, able))}"
        )
    return nodes


def _guess_states(constants: IterationConstants, ctrl: jax.Array, states: Data | None) -> dict:
    """Return the initial guess of the states, (steps + 1, ...)."""
    m, d, steps = constants.m, constants.d, len(ctrl)
    if states is None:

        def advance(d: Data, u: jax.Array) -> tuple[Data, dict]:
            after = step(m, d.replace(ctrl=u))
            return after, _state(after)

        _, rows = lax.scan(advance, d, ctrl)
        start = _state(d)
        return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), start, rows)
    if not isinstance(states, Data) or states.qpos.shape != (steps + 1, m.nq):
        raise ValueError(
            f"multiple_shooting: states: expected worlds with a leading axis of steps + 1 = "
            f"{steps + 1}, got {brief_value(getattr(states, 'qpos', states))}"
        )
    # the first state is the start; time follows from the steps
    part = jnp.arange(steps + 1, dtype=d.time.dtype)
    times = jax.vmap(lambda p: advance_clock(d, p * m.opt.timestep.astype(d.time.dtype)))(part)
    given = _state(states) | times
    return jax.tree.map(lambda a, b: b.at[0].set(a), _state(d), given)


def _start(
    constants: IterationConstants, ctrl: jax.Array, rows: dict, iterations: int, mu: Any
) -> _Iteration:
    """Return the state before the first iteration: the guess, without change."""
    steps, nu = ctrl.shape
    nx, dtype = tangent_size(constants.m), ctrl.dtype

    def zeros(*shape: int) -> jax.Array:
        return jnp.zeros(shape, dtype)

    change = _Change(zeros(steps + 1, nx), zeros(steps, nu), no_policy(steps, nu, nx, dtype))
    return _Iteration(
        number=jnp.zeros((), jnp.int32),
        pieces=_Pieces(jnp.full((), jnp.inf, dtype), ctrl, rows, zeros(steps, nx)),
        history=jnp.full(iterations + 1, jnp.inf, dtype),
        change=change,
        weight=zeros(nx),
        mu=jnp.asarray(mu).astype(dtype),
        growth=jnp.ones((), dtype),
        converged=jnp.zeros((), bool),
    )
