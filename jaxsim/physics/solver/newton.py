"""Newton's method with exact line search for the constrained acceleration.

MuJoCo's documentation, Computation: Solver algorithms, Newton (`mj_solPrimal`). Each iteration
assembles the Hessian H = M + J' W J of the convex cost (problem.py), factorizes it from scratch,
solves H v = -g and minimizes the cost along v exactly (linesearch.py). A world has converged when
the improvement that the quadratic model leaves is below the tolerance. A batch iterates until all
worlds have converged; those that have take steps of length 0. M x and the residuals r = J x - aref
are affine in the step length and are carried along, so that nothing is multiplied by J twice.

Iteration 0 computes the unconstrained acceleration, H = M. It is an iteration of the same loop so
that the factorization, the largest part of the program, is compiled once. On platforms with our own
kernels it precedes the loop, because a branch inside would synchronize with the host. Three
implementations exist: this loop, one GPU kernel (kernel/newton.py), and one world at a time
(per_world.py).

Names: `at` is the current point (x, M x, r), `move` the direction as a point (v, M v, J v), `g` the
gradient, `pieces` force, cost and curvature of each block of rows.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import sum_items
from jaxsim.linalg.choose import Form
from jaxsim.physics.solver.kernel.newton import newton_in_kernel
from jaxsim.physics.solver.linesearch import line_search, remaining_improvement
from jaxsim.physics.solver.per_world import solve_world_by_world
from jaxsim.physics.solver.problem import ConstraintProblem, Point
from jaxsim.physics.solver.solution import ConstraintSolution, SolverSettings
from jaxsim.physics.solver.statistics import Log, count_changes, improvement_and_slope, row_states
from jaxsim.transforms.materialize import materialize
from jaxsim.transforms.platform import platform


def newton_solve(
    p: ConstraintProblem,
    settings: SolverSettings,
    iterations: int,
    ls_iterations: int,
    records: bool = False,
) -> ConstraintSolution:
    """Return the constrained acceleration, with Newton iterations until each world has converged.

    Starts from the warm start or the unconstrained acceleration, whichever costs less, per world.

    Args:
      p: the problem of one world or of a batch.
      settings: warm start and tolerances.
      iterations: maximum number of iterations after iteration 0.
      ls_iterations: maximum number of evaluations of a line search.
      records: keep statistics of the iterations in `ConstraintSolution.stat`.
    """
    # Choose the implementation: one kernel, one world at a time, or the loop below.
    choice = p.choose_hessian(records)
    if choice.form is Form.NEWTON_KERNEL:
        return newton_in_kernel(p, settings, iterations, ls_iterations)
    if choice.by_world:
        how = iterations, ls_iterations, records
        return solve_world_by_world(
            lambda p, settings: newton_solve(p, settings, *how), p, settings
        )
    x = jnp.zeros_like(p.smooth) if settings.warm is None else settings.warm
    start, inertia = p.point(x), p.accumulator(choice.form)  # loop invariant

    def not_converged(state):
        iteration, *_, busy, _ = state
        return (iteration <= iterations) & jnp.any(busy)

    def step(state, first):
        iteration, niter, smooth, at, force, busy, log = state
        # Gradient of the cost; in iteration 0 that of the Gauss term at zero.
        g = jnp.where(first, 0, at.Mx - force) - p.smooth
        # Newton direction from a new factorization of H.
        v = materialize(p.newton_step(inertia, choice.form, first, at.r, g), x)
        Jv = materialize(p.times(v), x)

        # Iteration 0: v is the unconstrained acceleration; start there or at the warm start.
        def choose(at):
            free = Point(v, p.smooth, p.minus_reference(Jv))
            return niter, v, (free if settings.warm is None else p.better(at, free)), busy

        # Later iterations: exact line search along v, then advance.
        def descend(at):
            move = Point(v, p.inertia_times(v), Jv)
            length, goes_on = _descend(p, settings, ls_iterations, at, g, move)
            length = jnp.where(busy, length, 0)
            moved = jax.tree.map(lambda a, b: a + length * b, at, move)
            return niter + busy.astype(niter.dtype), smooth, moved, busy & goes_on

        before, done = at, busy
        niter, smooth, at, busy = _call_first(first, choose, descend, at)
        # Constraint force at the new point, for the next gradient and the result.
        force = p.force(materialize(p.pieces(at.r), x))
        if log is not None:
            log = _record_iteration(p, settings, log, iteration - 1, done, before, at, force)
        return iteration + 1, niter, smooth, at, force, busy, log

    # Iterate until all worlds have converged.
    busy = jnp.ones((1, *p.smooth.shape[1:]), bool)
    niter = jnp.zeros(busy.shape, jnp.int32)
    none = jnp.zeros_like(p.smooth)
    log = Log.empty(settings.scale + none[:1], iterations) if records else None
    state = (jnp.int32(0), niter, none, start, none, busy, log)
    if platform().kernels:
        state = lax.while_loop(not_converged, lambda s: step(s, False), step(state, True))
    else:
        state = lax.while_loop(not_converged, lambda s: step(s, s[0] == 0), state)
    _, niter, smooth, at, force, _, log = state
    stat = None if log is None else log.compact_islands(niter > 0)
    return ConstraintSolution(at.x, smooth, force, niter, stat=stat)


def _record_iteration(
    p: ConstraintProblem,
    settings: SolverSettings,
    log: Log,
    iteration: Array,
    done: Array,
    before: Point,
    at: Point,
    force: Array,
) -> Log:
    """Append the statistics of one iteration."""
    # Decrease of the cost and final slope along the step.
    gain, slope = improvement_and_slope(p, before, at)
    g = at.Mx - p.smooth - force
    rows = p.rows.blocks
    return log.plus(
        iteration,
        done,
        improvement=settings.scale * gain,
        gradient=settings.scale * jnp.sqrt(sum_items(g * g)),
        lineslope=settings.scale * slope,
        **count_changes(row_states(rows, at.r), row_states(rows, before.r), None),
    )


def _call_first(first: Array | bool, one: Callable, other: Callable, at: Point) -> tuple:
    """Return `one(at)` if `first`, else `other(at)`; static where `first` is a bool."""
    if isinstance(first, bool):
        chosen: tuple = one(at) if first else other(at)
        return chosen
    chosen = lax.cond(first, one, other, at)
    return chosen


def _descend(
    p: ConstraintProblem,
    settings: SolverSettings,
    ls_iterations: int,
    at: Point,
    g: Array,
    move: Point,
) -> tuple[Array, Array]:
    """Return the step length along the Newton direction, and where a world has not converged."""
    # Restrict the cost to the line, and minimize it exactly.
    v = move.x
    goal = settings.tolerance * settings.ls_tolerance * jnp.sqrt(sum_items(v * v)) / settings.scale
    pieces = p.restrict_to_line(at, move)
    length = line_search(pieces, ls_iterations, goal)
    # Half the squared Newton decrement: the improvement predicted by the quadratic model.
    gain = settings.scale * 0.5 * -sum_items(g * v)
    return length, (remaining_improvement(pieces, length, gain) > settings.tolerance) & (length > 0)
