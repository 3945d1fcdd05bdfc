"""MuJoCo's line search: the root of the slope in a bracket, island by island.

MuJoCo's documentation, Computation: Solver algorithms, CG. Newton's search (linesearch.py) ends at
the minimum of a line whichever way it takes; methods whose iterates people compare with MuJoCo's
take the way of MuJoCo, whose limit of evaluations and tolerance decide where it stops.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.enums import MINVAL
from jaxsim.physics.arrays.array import Array


class Trial(NamedTuple):
    """A step `[nisland, *W]`, how much the cost is larger than at step 0, slope and curvature."""

    step: jax.Array
    cost: jax.Array
    slope: jax.Array
    bend: jax.Array

    @property
    def next(self) -> Array:
        """Newton's step from here."""
        return self.step - self.slope / jnp.where(self.bend > 0, self.bend, MINVAL)


class Line(NamedTuple):
    """What was found along a line, `[nisland, *W]`.

    Attributes:
      end: the last trial; its step is 0 where the cost does not fall.
      neval: evaluations of the cost.
      searched: where the slope at the end counts.
    """

    end: Trial
    neval: jax.Array
    searched: jax.Array


class _State(NamedTuple):
    """Trials with the slopes of both signs, what is the answer where `done`, evaluations."""

    one: Trial
    two: Trial
    best: Trial
    done: jax.Array
    neval: jax.Array


def bracketed(evaluate: Callable[[Array], Trial], limit: int, tolerance: Array) -> Line:
    """The step that minimizes a convex cost along a line.

    Newton steps as long as the slope keeps its sign, then three candidates for each side of the
    bracket: a Newton step from both ends, and the middle.

    Args:
      evaluate: the trial at steps `[nisland, *W]`.
      limit: evaluations at most, as far as MuJoCo keeps it.
      tolerance: bound on the slope `[nisland, *W]`.
    """
    zero = jnp.zeros_like(tolerance)
    start = evaluate(zero)
    first = evaluate(start.next)
    flat = jnp.abs(first.slope) < tolerance
    done = flat & ((first.step == 0) | (first.cost < 0))
    side = jnp.where(first.slope < 0, 1.0, -1.0).astype(zero.dtype)
    state = _State(first, start, first, done, jnp.full(zero.shape, 2, jnp.int32))

    def outside(s: _State) -> Array:
        return ~s.done & (s.one.slope * side <= -tolerance) & (s.neval < limit)

    def walk(s: _State) -> _State:
        here = outside(s)
        new = evaluate(s.one.next)
        one = _where(here, new, s.one)
        hit = here & (jnp.abs(one.slope) < tolerance) & (one.cost < 0)
        return _State(
            one, _where(here, s.one, s.two), one, s.done | hit, s.neval + here.astype(jnp.int32)
        )

    state = lax.while_loop(lambda s: jnp.any(outside(s)), walk, state)
    state = state._replace(best=state.one, done=state.done | (state.neval >= limit))
    return _narrowed(evaluate, limit, tolerance, state)


def _narrowed(
    evaluate: Callable[[Array], Trial], limit: int, tolerance: Array, state: _State
) -> Line:
    """Makes the bracket smaller until the slope is."""

    def proceed(carry):
        s, *_ = carry
        return jnp.any(~s.done & (s.neval < limit))

    def turn(carry):
        s, nexts, moved = carry
        here = ~s.done & (s.neval < limit)
        # Newton steps from the ends that have moved
        new = jax.vmap(evaluate)(jnp.stack([s.one.next, s.two.next]))
        nexts = _where(here[None] & moved, new, nexts)
        neval = s.neval + jnp.where(here, moved.sum(axis=0, dtype=jnp.int32), 0)
        here = here & (neval < limit)
        middle = evaluate(0.5 * (s.one.step + s.two.step))
        neval = neval + here.astype(jnp.int32)
        tries = [Trial(*(a[k] for a in nexts)) for k in (0, 1)] + [middle]

        hit, best = _flattest(tries, tolerance)
        rest = here & ~hit
        one, moved_one = _tightened(s.one, tries)
        two, moved_two = _tightened(s.two, tries)
        stuck = rest & ~moved_one & ~moved_two
        best = _where(stuck, middle, best)
        ends = here & (hit | stuck)
        one, two = _where(rest, one, s.one), _where(rest, two, s.two)
        new_state = _State(one, two, _where(ends, best, s.best), s.done | ends, neval)
        return new_state, nexts, jnp.stack([moved_one, moved_two]) & rest[None]

    # the side on which the search walked begins with its last trial
    nexts = jax.tree.map(lambda a: jnp.stack([a, a]), state.one)
    moved = jnp.stack([jnp.ones_like(state.done), jnp.zeros_like(state.done)])
    state, *_ = lax.while_loop(proceed, turn, (state, nexts, moved))
    one, two = state.one, state.two
    better = (one.cost <= two.cost) & (one.cost < 0)
    falls = better | ((two.cost <= one.cost) & (two.cost < 0))
    end = _where(better, one, two)
    none = jax.tree.map(jnp.zeros_like, end)
    end = _where(state.done, state.best, _where(falls, end, none))
    return Line(end, state.neval, state.done | falls)


def _flattest(tries: list[Trial], tolerance: Array) -> tuple[Array, Trial]:
    """Whether a slope is within the tolerance, and of those the trial of least cost."""
    some, best = jnp.zeros(tolerance.shape, bool), tries[-1]
    for trial in tries:
        better = (jnp.abs(trial.slope) < tolerance) & (~some | (trial.cost < best.cost))
        some, best = some | better, _where(better, trial, best)
    return some, best


def _tightened(end: Trial, tries: list[Trial]) -> tuple[Trial, Array]:
    """An end of the bracket, nearer to the root where a trial of the same side is."""
    moved = jnp.zeros(end.step.shape, bool)
    for trial in tries:
        alike = jnp.sign(end.slope) * jnp.sign(trial.slope) > 0
        nearer = alike & (jnp.abs(trial.slope) < jnp.abs(end.slope))
        end, moved = _where(nearer, trial, end), moved | nearer
    return end, moved


def _where(mask: Array, one: Trial, other: Trial) -> Trial:
    return jax.tree.map(lambda a, b: jnp.where(mask, a, b), one, other)
