"""Bracketing line search of MuJoCo's primal solvers, island by island.

The algorithm is that of MuJoCo's `PrimalSearch` (documentation, Computation: Solver algorithms):
Newton steps on the derivative of the cost until its sign changes, then reduction of the bracket
with three candidates per iteration. The line search of Newton's method (linesearch.py) converges to
the minimum along the line, so that its path does not matter. Iterates of CG are compared with
MuJoCo's one by one; therefore this search reproduces MuJoCo's path, its limit of evaluations and
tolerance.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.enums import MINVAL


class Trial(NamedTuple):
    """Evaluation of the cost at a step, all `[nisland, *W]`.

    Attributes:
      step: step length.
      cost: change of the cost from step 0.
      slope, bend: first and second derivative with respect to the step.
    """

    step: jax.Array
    cost: jax.Array
    slope: jax.Array
    bend: jax.Array

    @property
    def next(self) -> Array:
        """Return the Newton step from this trial."""
        return self.step - self.slope / jnp.where(self.bend > 0, self.bend, MINVAL)


class LineCost(NamedTuple):
    """Result of a line search, `[nisland, *W]`.

    Attributes:
      end: the accepted trial; its step is 0 where no trial lowers the cost.
      neval: number of cost evaluations.
      searched: where the slope of `end` is valid.
    """

    end: Trial
    neval: jax.Array
    searched: jax.Array


class _State(NamedTuple):
    """Loop state: the ends of the bracket `one` and `two`, the result `best` where `done`."""

    one: Trial
    two: Trial
    best: Trial
    done: jax.Array
    neval: jax.Array


def minimize_on_line(evaluate: Callable[[Array], Trial], limit: int, tolerance: Array) -> LineCost:
    """Minimize a convex cost along a line.

    Newton steps as long as the slope keeps its sign, then three candidates per iteration: a Newton
    step from each end of the bracket, and the midpoint. Corresponds to `PrimalSearch` in MuJoCo.

    Args:
      evaluate: returns the trial at steps `[nisland, *W]`.
      limit: maximum number of evaluations, checked where MuJoCo checks it.
      tolerance: bound on the slope `[nisland, *W]`.
    """
    # Evaluate at 0 and at the first Newton step; accept it where the slope is within tolerance.
    zero = jnp.zeros_like(tolerance)
    start = evaluate(zero)
    first = evaluate(start.next)
    flat = jnp.abs(first.slope) < tolerance
    done = flat & ((first.step == 0) | (first.cost < 0))
    side = jnp.where(first.slope < 0, 1.0, -1.0).astype(zero.dtype)
    state = _State(first, start, first, done, jnp.full(zero.shape, 2, jnp.int32))

    # Phase 1: Newton steps from one side until the slope changes sign or is within tolerance.
    def outside(s: _State) -> Array:
        return ~s.done & (s.one.slope * side <= -tolerance) & (s.neval < limit)

    def walk(s: _State) -> _State:
        here = outside(s)
        # Newton step of those islands that have not bracketed the root.
        new = evaluate(s.one.next)
        one = _select_islands(here, new, s.one)
        hit = here & (jnp.abs(one.slope) < tolerance) & (one.cost < 0)
        return _State(
            one,
            _select_islands(here, s.one, s.two),
            one,
            s.done | hit,
            s.neval + here.astype(jnp.int32),
        )

    state = lax.while_loop(lambda s: jnp.any(outside(s)), walk, state)
    state = state._replace(best=state.one, done=state.done | (state.neval >= limit))
    return _narrow_bracket(evaluate, limit, tolerance, state)


def _narrow_bracket(
    evaluate: Callable[[Array], Trial], limit: int, tolerance: Array, state: _State
) -> LineCost:
    """Reduce the bracket until a slope is within tolerance (phase 2 of the search)."""

    def not_converged(carry):
        s, *_ = carry
        return jnp.any(~s.done & (s.neval < limit))

    def iteration(carry):
        s, nexts, moved = carry
        here = ~s.done & (s.neval < limit)
        # Newton steps from those ends of the bracket that moved in the last iteration.
        new = jax.vmap(evaluate)(jnp.stack([s.one.next, s.two.next]))
        nexts = _select_islands(here[None] & moved, new, nexts)
        neval = s.neval + jnp.where(here, moved.sum(axis=0, dtype=jnp.int32), 0)
        here = here & (neval < limit)
        # Bisection candidate.
        middle = evaluate(0.5 * (s.one.step + s.two.step))
        neval = neval + here.astype(jnp.int32)
        tries = [Trial(*(a[k] for a in nexts)) for k in (0, 1)] + [middle]

        # Accept a candidate within tolerance, else tighten both ends; stop where neither moves.
        hit, best = _flattest_trial(tries, tolerance)
        rest = here & ~hit
        one, moved_one = _tighten_end(s.one, tries)
        two, moved_two = _tighten_end(s.two, tries)
        stuck = rest & ~moved_one & ~moved_two
        best = _select_islands(stuck, middle, best)
        ends = here & (hit | stuck)
        one, two = _select_islands(rest, one, s.one), _select_islands(rest, two, s.two)
        new_state = _State(one, two, _select_islands(ends, best, s.best), s.done | ends, neval)
        return new_state, nexts, jnp.stack([moved_one, moved_two]) & rest[None]

    # The side that phase 1 walked on starts with its last trial.
    nexts = jax.tree.map(lambda a: jnp.stack([a, a]), state.one)
    moved = jnp.stack([jnp.ones_like(state.done), jnp.zeros_like(state.done)])
    state, *_ = lax.while_loop(not_converged, iteration, (state, nexts, moved))
    # Without convergence take the better end of the bracket, if it lowers the cost.
    one, two = state.one, state.two
    better = (one.cost <= two.cost) & (one.cost < 0)
    falls = better | ((two.cost <= one.cost) & (two.cost < 0))
    end = _select_islands(better, one, two)
    none = jax.tree.map(jnp.zeros_like, end)
    end = _select_islands(state.done, state.best, _select_islands(falls, end, none))
    return LineCost(end, state.neval, state.done | falls)


def _flattest_trial(tries: list[Trial], tolerance: Array) -> tuple[Array, Trial]:
    """Return where a slope is within the tolerance, and there the trial of least cost."""
    # Among the candidates within tolerance keep the one of least cost.
    some, best = jnp.zeros(tolerance.shape, bool), tries[-1]
    for trial in tries:
        better = (jnp.abs(trial.slope) < tolerance) & (~some | (trial.cost < best.cost))
        some, best = some | better, _select_islands(better, trial, best)
    return some, best


def _tighten_end(end: Trial, tries: list[Trial]) -> tuple[Trial, Array]:
    """Move an end of the bracket to a flatter candidate of its sign; return where it moved."""
    # Candidates of the same sign whose slope is closer to zero.
    moved = jnp.zeros(end.step.shape, bool)
    for trial in tries:
        alike = jnp.sign(end.slope) * jnp.sign(trial.slope) > 0
        nearer = alike & (jnp.abs(trial.slope) < jnp.abs(end.slope))
        end, moved = _select_islands(nearer, trial, end), moved | nearer
    return end, moved


def _select_islands(mask: Array, one: Trial, other: Trial) -> Trial:
    return jax.tree.map(lambda a, b: jnp.where(mask, a, b), one, other)
