"""Newton's method with exact line search for the constrained acceleration.

MuJoCo's documentation, Computation: Solver algorithms, Newton (`mj_solPrimal`). It minimizes the
convex cost of problem.py over the acceleration x. With the residuals r = J x - aref, the forces
f = -s'(r) and the curvatures W = s''(r) of the rows, an iteration is

    1. gradient      g = M x - smooth - J' f
    2. Hessian       H = M + J' W J, assembled and factorized from scratch
    3. direction     v = -H^-1 g, with M v and J v
    4. line search   the step t that minimizes the cost at x + t v, exactly (linesearch.py)
    5. convergence   a world is done if the improvement that may remain is below the tolerance
    6. update        x, M x and r, which are affine in t: nothing is multiplied by J twice
    7. force         J' f at the new point, for the next gradient and for the result

Iteration 0 has H = M and g = -smooth, so that v is the unconstrained acceleration a0; instead of
4 to 6 it starts at a0 or at the warm start, whichever costs less. It is an iteration of the same
loop so that the factorization, the largest part of the program, is compiled once. On platforms with
our own kernels it precedes the loop, because a branch inside would synchronize with the host.

A batch iterates until all worlds have converged; those that have take steps of length 0. Three
implementations exist: this loop, the loop of one world after another (per_world.py), and one GPU
kernel (kernel/newton.py), which has the same steps with the same numbers and shares the line search
and the costs.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import sum_items
from jaxsim.linalg.choose import Form
from jaxsim.linalg.operator import Symmetric
from jaxsim.physics.solver.kernel.newton import newton_in_kernel
from jaxsim.physics.solver.linesearch import exact_step
from jaxsim.physics.solver.per_world import solve_world_by_world
from jaxsim.physics.solver.problem import ConstraintProblem, Point
from jaxsim.physics.solver.solution import ConstraintSolution, SolverSettings
from jaxsim.physics.solver.statistics import Log, count_changes, improvement_and_slope, row_states
from jaxsim.transforms.materialize import materialize
from jaxsim.transforms.platform import platform


class _State(NamedTuple):
    """Loop state.

    Attributes:
      iteration: number of the iteration.
      niter: iterations that each world took, without iteration 0, `[1, *W]`.
      smooth: unconstrained acceleration `[nv, *W]`; zero before iteration 0.
      at: current point: x, M x and the residuals r.
      force: J' f at the point, `[nv, *W]`.
      active: the worlds that have not converged, `[1, *W]`.
      log: statistics, or None.
    """

    iteration: jax.Array
    niter: jax.Array
    smooth: jax.Array
    at: Point
    force: jax.Array
    active: jax.Array
    log: Log | None


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
    start = _initial_state(p, settings, iterations, records)
    inertia = p.accumulator(choice.form)  # loop invariant

    def not_converged(s: _State) -> Array:
        return (s.iteration <= iterations) & jnp.any(s.active)

    def iterate(s: _State, first: Array | bool) -> _State:
        return _iterate(p, settings, ls_iterations, inertia, choice.form, first, s)

    # Iterate until all worlds have converged.
    if platform().kernels:
        last = lax.while_loop(not_converged, lambda s: iterate(s, False), iterate(start, True))
    else:
        last = lax.while_loop(not_converged, lambda s: iterate(s, s.iteration == 0), start)
    stat = None if last.log is None else last.log.compact_islands(last.niter > 0)
    return ConstraintSolution(last.at.x, last.smooth, last.force, last.niter, stat=stat)


def _initial_state(
    p: ConstraintProblem, settings: SolverSettings, iterations: int, records: bool
) -> _State:
    """Return the state before iteration 0, at the warm start or at zero."""
    at = p.point(jnp.zeros_like(p.smooth) if settings.warm is None else settings.warm)
    active = jnp.ones((1, *p.smooth.shape[1:]), bool)
    niter, none = jnp.zeros(active.shape, jnp.int32), jnp.zeros_like(p.smooth)
    log = Log.empty(settings.scale + none[:1], iterations) if records else None
    return _State(jnp.int32(0), niter, none, at, none, active, log)


def _iterate(
    p: ConstraintProblem,
    settings: SolverSettings,
    ls_iterations: int,
    inertia: Symmetric,
    form: Form,
    first: Array | bool,
    s: _State,
) -> _State:
    """Perform one iteration, with the steps of the module.

    Args:
      p, settings, ls_iterations: as in `newton_solve`.
      inertia: M in the form in which the Hessian is accumulated, or as its blocks.
      form: the form of the Hessian.
      first: whether it is iteration 0; a bool where that is known while the program is traced.
      s: state before the iteration.
    """
    # 1. Gradient of the cost; in iteration 0 that of the Gauss term at zero.
    g = jnp.where(first, 0, s.at.Mx - s.force) - p.smooth
    # 2, 3. Newton direction from a new factorization of H.
    v = materialize(p.newton_step(inertia, form, first, s.at.r, g), p.smooth)
    Jv = materialize(p.times(v), p.smooth)
    # 4 to 6. Advance along the direction; in iteration 0 choose the starting point.
    niter, smooth, at, active = _cond_static(
        first,
        lambda at: (s.niter, v, _starting_point(p, settings, at, v, Jv), s.active),
        lambda at: _advance(p, settings, ls_iterations, s, at, g, v, Jv),
        s.at,
    )
    # 7. Constraint force at the new point.
    force = p.force(p.derivatives(at.r))
    log = s.log
    if log is not None:
        log = _record_iteration(p, settings, log, s, at, force)
    return _State(s.iteration + 1, niter, smooth, at, force, active, log)


def _starting_point(
    p: ConstraintProblem, settings: SolverSettings, warm: Point, a0: Array, Ja0: list
) -> Point:
    """Return the unconstrained acceleration a0, or the warm start where that costs less."""
    free = Point(a0, p.smooth, p.minus_reference(Ja0))
    return free if settings.warm is None else p.better(warm, free)


def _advance(
    p: ConstraintProblem,
    settings: SolverSettings,
    ls_iterations: int,
    s: _State,
    at: Point,
    g: Array,
    v: Array,
    Jv: list,
) -> tuple[Array, Array, Point, Array]:
    """Advance along the Newton direction v; returns niter, smooth, at and active of the state."""
    move = Point(v, p.inertia_times(v), Jv)
    # 4, 5. Exact line search; worlds that have converged stay where they are.
    length2, line = sum_items(v * v), p.restrict_to_line(at, move)
    decrement2 = -sum_items(g * v)
    step, goes_on = exact_step(line, ls_iterations, settings, length2, decrement2, s.active)
    # 6. Update x, M x and r.
    moved = jax.tree.map(lambda a, b: a + step * b, at, move)
    return s.niter + s.active.astype(s.niter.dtype), s.smooth, moved, s.active & goes_on


def _cond_static(first: Array | bool, one: Callable, other: Callable, at: Point) -> tuple:
    """Return `one(at)` if `first`, else `other(at)`; without a branch where `first` is a bool."""
    if isinstance(first, bool):
        chosen: tuple = one(at) if first else other(at)
        return chosen
    chosen = lax.cond(first, one, other, at)
    return chosen


def _record_iteration(
    p: ConstraintProblem, settings: SolverSettings, log: Log, s: _State, at: Point, force: Array
) -> Log:
    """Append the statistics of the iteration from the state `s` to the point `at`."""
    # Decrease of the cost and final slope along the step.
    gain, slope = improvement_and_slope(p, s.at, at)
    g = at.Mx - p.smooth - force
    rows = p.rows.blocks
    return log.plus(
        s.iteration - 1,
        s.active,
        improvement=settings.scale * gain,
        gradient=settings.scale * jnp.sqrt(sum_items(g * g)),
        lineslope=settings.scale * slope,
        **count_changes(row_states(rows, at.r), row_states(rows, s.at.r), None),
    )
