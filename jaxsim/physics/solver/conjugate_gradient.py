"""Nonlinear conjugate gradients for the constrained acceleration, preconditioned by M^-1.

MuJoCo's documentation, Computation: Solver algorithms, CG (`mj_solPrimal`), with the update of
Hager and Zhang, *A new conjugate gradient method with guaranteed descent and an efficient line
search*, SIAM J. Optim. 2005. No Hessian is formed; only M is factorized. The directions are
conjugate in the metric of M,

    v = -M^-1 g + beta v_before.

Each island has its own line search (bracketing.py), its own beta and its own convergence test, so
that the iterates after a given number of iterations are MuJoCo's.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.products import values_of
from jaxsim.enums import MINVAL
from jaxsim.linalg.inverse_blocks import InverseBlocks
from jaxsim.physics.constraint.cost import Parabola, Quadratic
from jaxsim.physics.constraint.rows import RowBlock
from jaxsim.physics.solver.bracketing import LineCost, Trial, minimize_on_line
from jaxsim.physics.solver.islands import Islands, gather_by_island, sums
from jaxsim.physics.solver.problem import ConstraintProblem, Point
from jaxsim.physics.solver.solution import ConstraintSolution, SolverSettings
from jaxsim.physics.solver.statistics import Log, count_changes, row_states
from jaxsim.transforms.materialize import materialize

_SLOPE_ROUNDING = 4  # rounding error of a slope, in eps times the sum of the sizes of its terms
_ETA = 0.01  # Hager and Zhang's eta, which bounds beta from below


class _State(NamedTuple):
    """Loop state.

    Attributes:
      iteration: number of the iteration.
      at: current point.
      force, g, Mg: J' f, the gradient of the cost, and M^-1 g, `[nv, *W]`.
      v: search direction.
      niter, active: iterations done, and islands that have not converged, `[nisland, *W]`.
      log: statistics, or None.
    """

    iteration: jax.Array
    at: Point
    force: jax.Array
    g: jax.Array
    Mg: jax.Array
    v: jax.Array
    niter: jax.Array
    active: jax.Array
    log: Log | None


class _Invariants(NamedTuple):
    """Quantities that do not change during the iterations.

    Attributes:
      p, settings, ls_iterations: as in `conjugate_gradients`.
      islands: the islands.
      dofs, scale: one-hot table of the dofs, and the scale, of each island.
      inverse: M^-1.
    """

    p: ConstraintProblem
    settings: SolverSettings
    ls_iterations: int
    islands: Islands
    dofs: Array
    scale: Array
    inverse: InverseBlocks

    def inner(self, a: Array, b: Array) -> Array:
        """Return the inner products over the dofs of each island, `[nisland, *W]`."""
        return sums(self.dofs, a * b)


def conjugate_gradients(
    p: ConstraintProblem,
    settings: SolverSettings,
    iterations: int,
    ls_iterations: int,
    records: bool = False,
) -> ConstraintSolution:
    """Return the acceleration after MuJoCo's CG iterations, fewer in islands that converge."""
    assert settings.islands is not None
    islands = settings.islands
    dofs, scale, inverse = islands.dofs, islands.scale, p.inverse_inertia()
    of = _Invariants(p, settings, ls_iterations, islands, dofs, scale, inverse)
    # Start at the warm start or at the unconstrained acceleration; islands without rows stay free.
    smooth = inverse.times(p.smooth)
    start, some = _cheaper_start(p, settings, smooth), islands.rows > 0
    at = p.point(jnp.where(gather_by_island(some, islands.of_dof), start.x, smooth))
    force, g, Mg = _preconditioned_gradient(p, inverse, at)
    # An upper bound of the cost above its minimum; islands below the tolerance do not start.
    gap = jnp.maximum(0, 0.5 * scale * of.inner(g, Mg))
    active = some & (gap >= settings.tolerance)
    niter = jnp.zeros(active.shape, jnp.int32)
    log = Log.empty(gap, iterations) if records else None
    first = _State(jnp.int32(0), at, force, g, Mg, -Mg, niter, active, log)

    # Iterate until all islands have converged.
    def not_converged(s: _State) -> Array:
        return (s.iteration < iterations) & jnp.any(s.active)

    last = lax.while_loop(not_converged, lambda s: _iterate(of, s), first)
    most = jnp.max(last.niter, axis=0, keepdims=True)
    stat = None if last.log is None else last.log.compact_islands(some)
    return ConstraintSolution(last.at.x, smooth, last.force, most, stat=stat)


def _iterate(of: _Invariants, s: _State) -> _State:
    """Perform one iteration: line search, advance, convergence test, next direction."""
    p, settings, islands, inner = of.p, of.settings, of.islands, of.inner
    # Line search along v, separately in each island.
    v = materialize(s.v, s.v)
    move = Point(v, p.inertia_times(v), materialize(p.times(v), v))
    length = jnp.sqrt(inner(v, v))
    line = _search_islands(p, settings, of.ls_iterations, s.at, move, length)
    step = jnp.where(s.active & (length >= MINVAL), line.end.step, 0)
    moves = step != 0
    # Advance, and evaluate force, gradient and preconditioned gradient at the new point.
    at = _step_islands(islands, s.at, move, step)
    force, g, Mg = _preconditioned_gradient(p, of.inverse, at)
    # Convergence test by improvement and gradient, as in MuJoCo.
    improvement, gradient = -of.scale * line.end.cost, of.scale * jnp.sqrt(inner(g, g))
    ends = (improvement > 0) & (improvement < settings.tolerance)
    ends = ends | (gradient < settings.tolerance)
    # Conjugate direction with Hager and Zhang's beta.
    y, My = g - s.g, Mg - s.Mg
    beta = _beta(inner(v, y), inner(y, My), inner(y, Mg), inner(v, g), length, inner(g, g))
    v = gather_by_island(beta, islands.of_dof) * v - Mg
    log = s.log
    if log is not None:
        rows = p.rows.blocks
        log = log.plus(
            s.iteration,
            moves,
            improvement=improvement,
            gradient=gradient,
            **_line_search_stats(line, of.scale, length),
            **count_changes(row_states(rows, at.r), row_states(rows, s.at.r), islands),
        )
    niter = s.niter + moves.astype(jnp.int32)
    return _State(s.iteration + 1, at, force, g, Mg, v, niter, moves & ~ends, log)


def _cheaper_start(p: ConstraintProblem, settings: SolverSettings, smooth: Array) -> Point:
    """Return the warm start or the unconstrained acceleration, whichever costs less, per world."""
    free = p.point(smooth)
    return free if settings.warm is None else p.better(p.point(settings.warm), free)


def _preconditioned_gradient(
    p: ConstraintProblem, inverse: InverseBlocks, at: Point
) -> tuple[Array, Array, Array]:
    """Compute J' f, the gradient of the cost, and M^-1 times the gradient, `[nv, *W]`."""
    force = p.force(materialize(p.evaluate(at.r), at.x))
    g = at.Mx - p.smooth - force
    return force, g, inverse.times(g)


def _line_search_stats(line: LineCost, scale: Array, length: Array) -> dict[str, Array]:
    """Return the entries of `SolverStat` that a line search determines."""
    slope = scale * jnp.abs(line.end.slope) / jnp.where(length > 0, length, 1.0)
    return {"lineslope": jnp.where(line.searched, slope, 1.0), "neval": line.neval}


def _step_islands(islands: Islands, at: Point, move: Point, size: Array) -> Point:
    """Advance each island by its own step length."""
    # Residuals and M x are affine in the step, so they are updated, not recomputed.
    of_dof = gather_by_island(size, islands.of_dof)
    residuals = zip(at.r, move.r, islands.number, strict=True)
    r = [
        jax.tree.map(lambda a, b, k=k: a + gather_by_island(size, k) * b, own, along)
        for own, along, k in residuals
    ]
    return Point(at.x + of_dof * move.x, at.Mx + of_dof * move.Mx, r)


def _search_islands(
    p: ConstraintProblem,
    settings: SolverSettings,
    limit: int,
    at: Point,
    move: Point,
    length: Array,
) -> LineCost:
    """Run the line search of each island."""
    islands = settings.islands
    assert islands is not None
    dofs = islands.dofs
    # Restrict the cost to the line: one parabola for the Gauss term, one function per row.
    whole = Parabola(
        sums(dofs, (at.Mx - p.smooth) * move.x),
        sums(dofs, move.x * move.Mx),
    )
    blocks = zip(p.rows.blocks, at.r, move.r, strict=True)
    lines = materialize([_restrict_block_to_line(block, r, v) for block, r, v in blocks], at.x)

    # Sum cost, slope and curvature over the rows of each island.
    def evaluate(step: Array) -> Trial:
        cost, (slope, bend) = whole.change(step), whole.derivatives(step)
        for line, member, number in zip(lines, islands.member, islands.number, strict=True):
            here = gather_by_island(step, number)
            first, second = line.derivatives(here)
            cost = cost + sums(member, line.change(here))
            slope, bend = slope + sums(member, first), bend + sums(member, second)
        return Trial(step, cost, slope, bend)

    # MuJoCo's tolerance on the slope.
    scale = jnp.where(islands.scale > 0, islands.scale, 1.0)
    goal = settings.tolerance * settings.ls_tolerance * length / scale
    # A slope below its rounding error does not justify more iterations (single precision).
    size = jnp.abs(whole.slope)
    for line, member in zip(lines, islands.member, strict=True):
        size = size + sums(member, jnp.abs(line.derivatives(jnp.zeros_like(size[:1]))[0]))
    rounding = _SLOPE_ROUNDING * jnp.finfo(size.dtype).eps * size
    return minimize_on_line(evaluate, limit, jnp.maximum(goal, rounding))


def _restrict_block_to_line(block: RowBlock, r: Any, v: Any) -> Any:
    """Restrict the cost of each row of a block to a line."""
    cost = block.cost
    if isinstance(cost, Quadratic):
        return Parabola(cost.D * r * v, cost.D * v * v)
    return values_of(cost.restrict_to_line(r, v).rows)


def _beta(vy: Array, yMy: Array, yMg: Array, vg: Array, length: Array, gg: Array) -> Array:
    """Compute Hager and Zhang's beta; 0, a restart, where v'y is not positive."""
    # beta = (y - 2 v y'My / v'y)' Mg / v'y, bounded from below by Hager and Zhang's eta.
    some = vy >= MINVAL
    per_vy = 1 / jnp.where(some, vy, 1.0)
    least = -1 / jnp.maximum(MINVAL, length * jnp.minimum(_ETA, jnp.sqrt(gg)))
    beta = (yMg - 2 * (yMy * per_vy) * vg) * per_vy
    return jnp.where(some, jnp.maximum(least, beta), 0)
