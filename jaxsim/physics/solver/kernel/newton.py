"""Newton's method as one kernel of a GPU.

The iteration is that of solver/newton.py, which says what it does; here every value of it is in the
memory of a lane, and what is a stage there is a loop over dofs or rows. XLA makes of an iteration
some forty kernels, and the host waits for each iteration to hear whether all worlds have ended.
Here a warp ends when its own worlds have, and what an iteration works with can stay in the caches
of the processor.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.physics.arrays import kernel as worlds
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.kernel import (
    LANES,
    copy,
    loop,
    over_lanes,
    read,
    room,
    some,
    write,
)
from jaxsim.physics.arrays.system import spd_kernel
from jaxsim.physics.constraint.cost import Parabola
from jaxsim.physics.solver.kernel import rows as of_rows
from jaxsim.physics.solver.kernel.hessian import Hessian
from jaxsim.physics.solver.kernel.rows import Rows
from jaxsim.physics.solver.linesearch import line_search, remaining
from jaxsim.physics.solver.problem import Problem
from jaxsim.physics.solver.solution import Settings, Solution


def serves(p: Problem) -> bool:
    """Whether the kernel has a form for a problem."""
    dense = isinstance(p.M, jax.Array)  # not by entries (arrays/system/tree.py)
    return dense and worlds.serves(p.smooth) and all(map(of_rows.serves, p.rows.blocks))


class _Given(NamedTuple):
    """What is known, `[..., worlds]`: fields of `Problem` and `Settings`."""

    M: Any
    smooth: Any
    warm: Any
    tolerance: Any
    ls_tolerance: Any
    scale: Any
    rows: list[of_rows.Given]


class _Made(NamedTuple):
    """What is written: the solution, then what the kernel keeps for itself.

    Attributes:
      x, Mx: where a world is `[nv, worlds]`; the residuals are in `rows`.
      force: J' f there.
      free: acceleration without constraints.
      niter: `[1, worlds]`.
      v, Mv: direction, `v` of the size of `L`; J v is in `rows`.
      descent: minus the gradient.
      diagonal, L: of the Hessian, see there and spd_kernel.py.
    """

    x: Any
    Mx: Any
    force: Any
    free: Any
    niter: Any
    v: Any
    Mv: Any
    descent: Any
    diagonal: Any
    L: Any
    rows: list[of_rows.Memory]


def newton_in_kernel(
    p: Problem, settings: Settings, iterations: int, ls_iterations: int
) -> Solution:
    """As `newton`, without a record of the iterations."""
    nv, like = p.smooth.shape[0], p.smooth
    tolerance, ls_tolerance = settings.tolerance, settings.ls_tolerance
    rows = [of_rows.given(block) for block in p.rows.blocks]
    given = _Given(p.M, like, settings.warm, tolerance, ls_tolerance, settings.scale, rows)
    dofs, full = room((nv,), like), spd_kernel.padded(nv)
    made = _Made(
        *(dofs,) * 4,
        room((1,), like, jnp.int32),
        room((full,), like),
        *(dofs,) * 3,
        room((full, full), like),
        [of_rows.memory(block, like) for block in rows],
    )

    def kernel(given: _Given, made: _Made) -> None:
        blocks = [Rows.of(*pair) for pair in zip(given.rows, made.rows, strict=True)]
        _Newton(given, made, blocks, nv).iterate(iterations, ls_iterations)

    out = over_lanes(kernel, given, made, like.shape[-1])
    return Solution(out.x, out.free, out.force, out.niter)


class _Newton(NamedTuple):
    """The iteration of the worlds of a warp."""

    given: _Given
    made: _Made
    blocks: list[Rows]
    nv: int

    def iterate(self, iterations: int, ls_iterations: int) -> None:
        """Goes to the solution; the numbers of turns as in `newton`."""
        self._start()

        def proceed(state: tuple) -> Array:
            turn, _, busy, _ = state
            return (turn < iterations) & some(busy)

        def step(state: tuple) -> tuple:
            turn, niter, busy, pushing = state
            self._direction(pushing)
            length, goes_on = self._descend(ls_iterations)
            self._move(jnp.where(busy, length, 0))
            niter = niter + busy.astype(jnp.int32)
            return turn + 1, niter, busy & goes_on, self._push()

        none = jnp.zeros((LANES,), jnp.int32)
        state = (jnp.int32(0), none, none == 0, self._push())
        _, niter, *_ = lax.while_loop(proceed, step, state)
        write(self.made.niter, 0, niter)

    def _start(self) -> None:
        """The acceleration without constraints; the warm start, where it costs less."""
        given, made = self.given, self.made
        spd_kernel.solve(spd_kernel.Given(given.M, self.nv), given.smooth, made.v, made.L)
        copy(made.free, made.v, self.nv)
        copy(made.Mv, given.smooth, self.nv)
        for rows in self.blocks:
            rows.times(made.v, rows.own.change, minus_reference=True)
        warm = given.warm is not None
        if warm:
            copy(made.x, given.warm, self.nv)
            self._inertia_times(made.x, made.Mx)
            for rows in self.blocks:
                rows.times(made.x, rows.own.r, minus_reference=True)
            there = self._cost(made.v, made.Mv, [rows.own.change for rows in self.blocks])
            here = self._cost(made.x, made.Mx, [rows.own.r for rows in self.blocks])
            stays = here < there
        else:
            stays = jnp.zeros((LANES,), bool)

        def choose(at: Any, free: Any, k: Array) -> None:
            write(at, k, jnp.where(stays, at[k, :], free[k, :]) if warm else free[k, :])

        self._each(choose)

    def _direction(self, pushing: list) -> None:
        """Newton's step: H v = M a0 + J' f - M x, and M v and J v."""
        given, made = self.given, self.made

        def minus_gradient(k: Array, _: None) -> None:
            descent = read(given.smooth, k) + made.force[k, :] - made.Mx[k, :]
            write(made.descent, k, descent)

        loop(self.nv, minus_gradient)
        others = [rows for rows in self.blocks if not rows.of_dofs]
        pairs = list(zip(others, pushing, strict=True))
        H = Hessian(given.M, self.nv, made.diagonal, pairs)
        spd_kernel.solve(H, made.descent, made.v, made.L)
        self._inertia_times(made.v, made.Mv)
        for rows in self.blocks:
            rows.times(made.v, rows.own.change, minus_reference=False)

    def _descend(self, ls_iterations: int) -> tuple[Array, Array]:
        """Step length along the direction, and whether a world goes on after it."""
        given, made = self.given, self.made

        def sums(k: Array, state: tuple) -> tuple:
            slope, bend, square, decrement = state
            v, Mv = made.v[k, :], made.Mv[k, :]
            slope = slope + (made.Mx[k, :] - read(given.smooth, k)) * v
            return slope, bend + v * Mv, square + v * v, decrement + made.descent[k, :] * v

        zero = jnp.zeros((LANES,), made.x.dtype)
        slope, bend, square, decrement = loop(self.nv, sums, (zero,) * 4)
        tolerance, scale = read(given.tolerance, 0), read(given.scale, 0)
        goal = tolerance * read(given.ls_tolerance, 0) * jnp.sqrt(square) / scale
        pieces = [Parabola(slope, bend), *self.blocks]
        length = line_search(pieces, ls_iterations, goal)
        left = remaining(pieces, length, scale * 0.5 * decrement)
        return length, (left > tolerance) & (length > 0)

    def _move(self, length: Array) -> None:
        def along(at: Any, move: Any, k: Array) -> None:
            write(at, k, at[k, :] + length * move[k, :])

        self._each(along)

    def _push(self) -> list:
        """J' f and the curvatures where the worlds are; how many rows push, block by block."""
        force, diagonal = self.made.force, self.made.diagonal
        zero = jnp.zeros((LANES,), force.dtype)

        def clear(k: Array, _: None) -> None:
            write(force, k, zero)
            write(diagonal, k, zero)

        loop(self.nv, clear)
        numbers = [rows.push(force, diagonal) for rows in self.blocks]
        return [n for n, rows in zip(numbers, self.blocks, strict=True) if not rows.of_dofs]

    def _each(self, body: Any) -> None:
        """`body(at, move, k)` for all numbers of a point, and of a direction."""
        made = self.made
        for at, move in ((made.x, made.v), (made.Mx, made.Mv)):
            loop(self.nv, lambda k, _, a=at, v=move: body(a, v, k))
        for rows in self.blocks:
            r, change = rows.own.r, rows.own.change

            def row(k: Array, _: None, rows: Rows = rows, r: Any = r, change: Any = change) -> None:
                for p in range(rows.size):
                    body(r, change, rows.size * k + p)

            rows.each(row)

    def _inertia_times(self, x: Any, out: Any) -> None:
        """M x."""
        M = self.given.M

        def row(i: Array, _: None) -> None:
            def along(j: Array, total: Array) -> Array:
                return total + read(M, i, j) * x[j, :]

            write(out, i, loop(self.nv, along, jnp.zeros((LANES,), x.dtype)))

        loop(self.nv, row)

    def _cost(self, x: Any, Mx: Any, residuals: list) -> Array:
        """As `Problem.cost`."""

        def row(k: Array, total: Array) -> Array:
            return total + (0.5 * Mx[k, :] - read(self.given.smooth, k)) * x[k, :]

        cost: Array = loop(self.nv, row, jnp.zeros((LANES,), x.dtype))
        for rows, r in zip(self.blocks, residuals, strict=True):
            cost = cost + rows.cost(r)
        return cost
