"""Newton's method for the constrained acceleration, and its derivative at the solution.

The solution x(theta) makes the gradient of the cost vanish, F(x, theta) = 0. Its derivative is
that of the solution, not of the iterations: dx = -H^-1 (dF/dtheta) dtheta with H the Hessian at x.
The tangent is one linear solve, so that reverse mode follows by transposition, at the price of one
system and independent of the number of iterations.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.physics.arrays.factor import solve_spd
from jaxsim.physics.arrays.pin import pin
from jaxsim.physics.arrays.products import apply
from jaxsim.physics.arrays.select import total
from jaxsim.physics.constraint.rows import Rows
from jaxsim.physics.solver.along import line
from jaxsim.physics.solver.linesearch import line_search
from jaxsim.physics.solver.problem import (
    Problem,
    constraint_cost,
    constraint_force,
    hessian,
    minus_reference,
    multiply,
    pieces_at,
    residual,
)


class Settings(NamedTuple):
    """How to iterate.

    Attributes:
      warm: first guess `[nv, *W]`, or None.
      tolerance, ls_tolerance: `[1, *W]`, see Option.
      scale: `[1, *W]`, 1 / trace of M, makes improvements comparable between models.
    """

    warm: jax.Array | None
    tolerance: jax.Array
    ls_tolerance: jax.Array
    scale: jax.Array


class Solution(NamedTuple):
    """Accelerations with and without constraints `[nv, *W]`, constraint force `[nv, *W]`, and
    Newton iterations used `[1, *W]`."""

    qacc: jax.Array
    qacc_smooth: jax.Array
    force: jax.Array
    niter: jax.Array | np.ndarray


def solve(p: Problem, settings: Settings, iterations: int, ls_iterations: int) -> Solution:
    """The acceleration that minimizes the constrained problem.

    Starts from the warm start or the unconstrained acceleration, whichever costs less.
    """

    @jax.custom_jvp
    def run(arrays, flags, settings):
        q = _rebuild(p, arrays, flags)
        return _iterate(q, settings, iterations, ls_iterations)

    @run.defjvp
    def tangent(primals, tangents):
        arrays, flags, _ = primals
        found = run(*primals)

        def gradients(arrays):
            q = _rebuild(p, arrays, flags)
            at_x = apply(q.M, found.qacc) - q.smooth - _force(q, found.qacc)
            return at_x, apply(q.M, found.qacc_smooth) - q.smooth

        _, (dF, dG) = jax.jvp(gradients, (arrays,), (tangents[0],))
        q = _rebuild(p, arrays, flags)
        H = hessian(q, pieces_at(q, residual(q, found.qacc)))
        dx, dsmooth = solve_spd(H, -dF), solve_spd(q.M, -dG)
        _, dforce = jax.jvp(
            lambda arrays, x: _force(_rebuild(p, arrays, flags), x),
            (arrays, found.qacc),
            (tangents[0], dx),
        )
        no_change = np.zeros(found.niter.shape, jax.dtypes.float0)
        return found, Solution(dx, dsmooth, dforce, no_change)

    arrays = (p.M, p.smooth, [_arrays(b) for b in p.blocks])
    return run(arrays, [_flags(b) for b in p.blocks], settings)


CONSTANT = ("type", "id", "dof", "cone")  # parts of a block that are not arrays
FLAGS = ("flat", "used")  # arrays without derivative


def _arrays(block) -> dict:
    """The differentiable arrays of a block."""
    return {k: v for k, v in block._asdict().items() if k not in (*CONSTANT, *FLAGS)}


def _flags(block) -> dict:
    """The arrays of a block that are not numbers."""
    return {k: getattr(block, k) for k in FLAGS if hasattr(block, k)}


def _rebuild(p: Problem, arrays, flags) -> Problem:
    """The problem with its arrays replaced; constants stay as they are."""
    M, smooth, by_block = arrays
    blocks = []
    for block, own, flag in zip(p.blocks, by_block, flags, strict=True):
        blocks.append(block._replace(**own, **flag))
    first, second = len(p.rows.dof), len(p.rows.dof) + len(p.rows.dense)
    rows = Rows(tuple(blocks[:first]), tuple(blocks[first:second]), tuple(blocks[second:]))
    return Problem(M, smooth, rows)


def _force(p: Problem, x):
    """J' f at an acceleration."""
    return constraint_force(p, pieces_at(p, residual(p, x)))


def _iterate(p: Problem, settings: Settings, iterations: int, ls_iterations: int) -> Solution:
    """Newton iterations with exact line search, each world until it has converged.

    Turn 0 finds the unconstrained acceleration; it is in the loop because the factorization, the
    largest piece of the program, then stands there once.
    """
    x = jnp.zeros_like(p.smooth) if settings.warm is None else settings.warm
    start = _Point(x, apply(p.M, x), residual(p, x))

    def proceed(state):
        turn, *_, busy = state
        return (turn <= iterations) & jnp.any(busy)

    def step(state):
        turn, niter, smooth, at, force, busy = state
        first = turn == 0
        H = lax.cond(first, lambda at: p.M, lambda at: hessian(p, pin(pieces_at(p, at.r), x)), at)
        g = jnp.where(first, 0, at.Mx - force) - p.smooth
        v = pin(-solve_spd(H, g), x)
        Jv = pin(multiply(p, v), x)

        def choose(at):
            free = _Point(v, p.smooth, minus_reference(p, Jv))
            return niter, v, (free if settings.warm is None else _better(p, at, free)), busy

        def descend(at):
            move = _Point(v, apply(p.M, v), Jv)
            length, goes_on = _descend(p, settings, ls_iterations, at, g, move)
            length = jnp.where(busy, length, 0)
            moved = jax.tree.map(lambda a, b: a + length * b, at, move)
            return niter + busy.astype(niter.dtype), smooth, moved, busy & goes_on

        niter, smooth, at, busy = lax.cond(first, choose, descend, at)
        force = constraint_force(p, pin(pieces_at(p, at.r), x))
        return turn + 1, niter, smooth, at, force, busy

    busy = jnp.ones((1, *p.smooth.shape[1:]), bool)
    niter = jnp.zeros(busy.shape, jnp.int32)
    none = jnp.zeros_like(p.smooth)
    state = (jnp.int32(0), niter, none, start, none, busy)
    _, niter, smooth, at, force, _ = lax.while_loop(proceed, step, state)
    return Solution(at.x, smooth, force, niter)


class _Point(NamedTuple):
    """An acceleration with M x and the residuals there, kept up to date along the steps."""

    x: jax.Array
    Mx: jax.Array
    r: list


def _better(p: Problem, a: _Point, b: _Point) -> _Point:
    """The point of smaller cost, world by world."""
    take_a = _cost(p, a) < _cost(p, b)
    return jax.tree.map(lambda u, v: jnp.where(take_a, u, v), a, b)


def _cost(p: Problem, at: _Point):
    """Cost up to a constant, `[1, *W]`: 1/2 x'Mx - x'smooth + constraint cost."""
    return total((0.5 * at.Mx - p.smooth) * at.x) + constraint_cost(pieces_at(p, at.r))


def _descend(p: Problem, settings: Settings, ls_iterations: int, at: _Point, g, move: _Point):
    """Step length along the Newton direction, and whether the world goes on after it."""
    v, Mv, Jv = move
    slope, curvature = total((at.Mx - p.smooth) * v), total(v * Mv)
    size = jnp.sqrt(total(v * v))
    goal = settings.tolerance * settings.ls_tolerance * size / settings.scale
    along = line(p.blocks, at.r, Jv, slope, curvature)
    length = line_search(along, ls_iterations, goal)
    # Newton's decrement: twice the improvement that the quadratic model expects
    gain = settings.scale * 0.5 * -total(g * v)
    return length, (gain > settings.tolerance) & (length > 0)
