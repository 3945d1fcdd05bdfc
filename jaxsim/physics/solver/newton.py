"""Newton's method for the constrained acceleration, and its derivative at the solution.

The solution x(theta) makes the gradient of the cost vanish, F(x, theta) = 0. Its derivative is
that of the solution, not of the iterations: dx = -H^-1 (dF/dtheta) dtheta with H the Hessian at x.
The tangent is one linear solve, so that reverse mode follows by transposition, at the price of one
system and independent of the number of iterations.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.bilinear import apply
from jaxsim.physics.arrays.call import not_differentiated
from jaxsim.physics.arrays.pin import pin
from jaxsim.physics.arrays.platform import platform
from jaxsim.physics.arrays.remember import solution
from jaxsim.physics.arrays.select import total
from jaxsim.physics.arrays.system.factor import Whole
from jaxsim.physics.solver.linesearch import line_search
from jaxsim.physics.solver.problem import Point, Problem


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

    with not_differentiated():
        found = _iterate(*lax.stop_gradient((p, settings)), iterations, ls_iterations)
    return solution(p, found, _change)


def _change(p: Problem, dp: Problem, found: Solution) -> Solution:
    """The change of the solution by that of the problem."""

    def gradients(p: Problem) -> tuple[Array, Array]:
        at_x = apply(p.M, found.qacc) - p.smooth - p.force_at(found.qacc)
        return at_x, apply(p.M, found.qacc_smooth) - p.smooth

    _, (dF, dG) = jax.jvp(gradients, (p,), (dp,))
    pieces = pin(p.pieces(p.residual(found.qacc)), found.qacc)
    H = p.hessian(pieces, Whole(p.M, p.parts))
    dx, dsmooth = H.solve(-dF), p.solve_inertia(-dG)
    _, dforce = jax.jvp(Problem.force_at, (p, found.qacc), (dp, dx))
    return Solution(dx, dsmooth, dforce, np.zeros(found.niter.shape, jax.dtypes.float0))


def _iterate(p: Problem, settings: Settings, iterations: int, ls_iterations: int) -> Solution:
    """Newton iterations with exact line search, each world until it has converged.

    Turn 0 finds the unconstrained acceleration; it is in the loop because the factorization, the
    largest piece of the program, then stands there once. Where that is one kernel, turn 0 stands
    before the loop: a branch inside would wait for the host.
    """
    x = jnp.zeros_like(p.smooth) if settings.warm is None else settings.warm
    start = p.point(x)

    def proceed(state):
        turn, *_, busy = state
        return (turn <= iterations) & jnp.any(busy)

    def step(state, first):
        turn, niter, smooth, at, force, busy = state
        g = jnp.where(first, 0, at.Mx - force) - p.smooth
        v = pin(p.newton_step(first, at.r, g), x)
        Jv = pin(p.times(v), x)

        def choose(at):
            free = Point(v, p.smooth, p.minus_reference(Jv))
            return niter, v, (free if settings.warm is None else _better(p, at, free)), busy

        def descend(at):
            move = Point(v, apply(p.M, v), Jv)
            length, goes_on = _descend(p, settings, ls_iterations, at, g, move)
            length = jnp.where(busy, length, 0)
            moved = jax.tree.map(lambda a, b: a + length * b, at, move)
            return niter + busy.astype(niter.dtype), smooth, moved, busy & goes_on

        niter, smooth, at, busy = _either(first, choose, descend, at)
        force = p.force(pin(p.pieces(at.r), x))
        return turn + 1, niter, smooth, at, force, busy

    busy = jnp.ones((1, *p.smooth.shape[1:]), bool)
    niter = jnp.zeros(busy.shape, jnp.int32)
    none = jnp.zeros_like(p.smooth)
    state = (jnp.int32(0), niter, none, start, none, busy)
    if platform().kernels:
        state = lax.while_loop(proceed, lambda s: step(s, False), step(state, True))
    else:
        state = lax.while_loop(proceed, lambda s: step(s, s[0] == 0), state)
    _, niter, smooth, at, force, _ = state
    return Solution(at.x, smooth, force, niter)


def _either(first: Array | bool, one: Callable, other: Callable, at: Point) -> tuple:
    """`one(at)` if `first`, else `other(at)`."""
    if isinstance(first, bool):
        chosen: tuple = one(at) if first else other(at)
        return chosen
    chosen = lax.cond(first, one, other, at)
    return chosen


def _better(p: Problem, a: Point, b: Point) -> Point:
    """The point of smaller cost, world by world."""
    take_a = p.cost(a) < p.cost(b)
    return jax.tree.map(lambda u, v: jnp.where(take_a, u, v), a, b)


def _descend(
    p: Problem, settings: Settings, ls_iterations: int, at: Point, g: Array, move: Point
) -> tuple[Array, Array]:
    """Step length along the Newton direction, and whether the world goes on after it."""
    v = move.x
    goal = settings.tolerance * settings.ls_tolerance * jnp.sqrt(total(v * v)) / settings.scale
    length = line_search(p.along(at, move), ls_iterations, goal)
    # Newton's decrement: twice the improvement that the quadratic model expects
    gain = settings.scale * 0.5 * -total(g * v)
    return length, (gain > settings.tolerance) & (length > 0)
