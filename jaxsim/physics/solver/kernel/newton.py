"""Newton's method as one kernel of a GPU.

The iteration is that of solver/newton.py, which says what it does; here a warp is a world,
and what an iteration works with stays in its registers and caches. XLA makes of an
iteration some forty kernels, and the host waits for each iteration to hear whether all worlds have
ended. Here each world ends by itself.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.kernel import (
    Room,
    lanes_of,
    numbers,
    over_worlds,
    store,
    total,
    vector,
)
from jaxsim.physics.arrays.system import spd_kernel
from jaxsim.physics.constraint.cost import Parabola
from jaxsim.physics.solver.kernel import rows as of_rows
from jaxsim.physics.solver.kernel.rows import Rows
from jaxsim.physics.solver.linesearch import line_search, remaining
from jaxsim.physics.solver.problem import Problem
from jaxsim.physics.solver.solution import Settings, Solution


def serves(p: Problem) -> bool:
    """Whether the kernel has a form for a problem."""
    dense = isinstance(p.M, jax.Array)  # not by entries (arrays/system/tree.py)
    of_worlds = p.smooth.ndim <= 2 and 0 < len(p.smooth) <= spd_kernel.LARGEST
    return dense and of_worlds and all(map(of_rows.serves, p.rows.blocks))


class _Given(NamedTuple):
    """What is known, `[..., worlds]`, M padded: fields of `Problem` and `Settings`."""

    M: Any
    smooth: Any
    warm: Any
    tolerance: Any
    ls_tolerance: Any
    scale: Any
    rows: list[of_rows.Given]


class _Made(NamedTuple):
    """What is found: fields of `Solution`; and memory of the program.

    Attributes:
      system: see spd_kernel.py.
      rows: see rows.py.
    """

    x: Any
    free: Any
    force: Any
    niter: Any
    system: Any
    rows: list


def newton_in_kernel(
    p: Problem, settings: Settings, iterations: int, ls_iterations: int
) -> Solution:
    """As `newton`, without a record of the iterations."""
    if p.smooth.ndim == 1:  # one world is a batch of one
        p, settings = jax.tree.map(lambda a: a[..., None], (p, settings))
        found = newton_in_kernel(p, settings, iterations, ls_iterations)
        return jax.tree.map(lambda a: a[..., 0], found)
    (nv, worlds), dtype = p.smooth.shape, p.smooth.dtype
    lanes = lanes_of(nv + 1)
    rows = [part for block in p.rows.blocks for part in of_rows.given(block, nv)]
    tolerance, ls_tolerance = settings.tolerance, settings.ls_tolerance
    given = _Given(
        spd_kernel.padded(p.M),
        p.smooth,
        settings.warm,
        tolerance,
        ls_tolerance,
        settings.scale,
        rows,
    )
    dofs = Room((nv,), dtype)
    made = _Made(
        *(dofs,) * 3,
        Room((1,), jnp.int32),
        spd_kernel.memory(nv, dtype),
        [of_rows.memory(part, nv) for part in rows],
    )

    def kernel(given: _Given, made: _Made) -> None:
        world = _Newton.of(given, made, nv, lanes)
        found = world.iterate(iterations, ls_iterations)
        place = numbers(lanes)
        for room, value in zip(made[:3], found[:3], strict=True):
            store(room, place, value=value, where=place < nv)
        made.niter[0] = found.niter

    out = over_worlds(kernel, given, made, worlds)
    return Solution(out.x, out.free, out.force, out.niter)


class _Point(NamedTuple):
    """As `problem.Point`: along the lanes."""

    x: Array
    Mx: Array
    r: list


class _State(NamedTuple):
    """Between turns.

    Attributes:
      turn: how many there were, the first among them.
      busy: 1, and 0 after the last turn.
      goes_on: whether the step before left something to do.
      at, force: where the iteration is, and J' f there.
      free: the acceleration without constraints.
    """

    turn: Array
    busy: Array
    goes_on: Array
    at: _Point
    force: Array
    free: Array


class _Newton(NamedTuple):
    """The problem of a world, with vectors along the lanes.

    Attributes:
      M: in memory.
      smooth: generalized force without constraints.
      warm: first guess, or None.
      tolerance, ls_tolerance, scale: scalars, see `Settings`.
      blocks: the rows.
      nv: dofs.
      system: memory for systems.
    """

    M: Any
    smooth: Array
    warm: Array | None
    tolerance: Array
    ls_tolerance: Array
    scale: Array
    blocks: list[Rows]
    nv: int
    system: Any

    @property
    def side(self) -> int:
        """Of the tiles of the Hessian."""
        return spd_kernel.side(self.nv)

    @classmethod
    def of(cls, given: _Given, made: _Made, nv: int, lanes: int) -> "_Newton":
        """Reads what belongs to a world."""
        blocks = [
            of_rows.read(part, own, lanes) for part, own in zip(given.rows, made.rows, strict=True)
        ]
        return cls(
            given.M,
            vector(given.smooth, lanes),
            None if given.warm is None else vector(given.warm, lanes),
            given.tolerance[0],
            given.ls_tolerance[0],
            given.scale[0],
            blocks,
            nv,
            made.system,
        )

    def iterate(self, iterations: int, ls_iterations: int) -> Solution:
        """Goes to the solution; the numbers of turns as in `newton`.

        Turn 0 finds the acceleration without constraints, and the last one forces only, so that
        the factorization and the costs stand in the program once.
        """

        def proceed(state: _State) -> Array:
            return state.busy > 0

        def turn(state: _State) -> _State:
            pieces = self._pieces(state.at.r)
            state = state._replace(force=self._push(pieces))
            return lax.cond(
                (state.turn <= iterations) & state.goes_on,
                lambda: self._turn(state, pieces, ls_iterations),
                lambda: state._replace(busy=state.busy - 1),
            )

        last = lax.while_loop(proceed, turn, self._begin())
        return Solution(last.at.x, last.free, last.force, last.turn - 1)

    def _begin(self) -> "_State":
        """At the warm start, where there is one."""
        zero = jnp.zeros_like(self.smooth)
        at = self._minus_reference(self._point(zero if self.warm is None else self.warm))
        return _State(jnp.int32(0), jnp.int32(1), jnp.bool_(True), at, zero, zero)

    def _turn(self, state: "_State", pieces: list, ls_iterations: int) -> "_State":
        """A step of Newton's; in turn 0 the acceleration without constraints."""
        first, at = state.turn == 0, state.at
        descent = self.smooth + jnp.where(first, 0, state.force - at.Mx)
        H = spd_kernel.tiles(self.M, self.side)
        for block, piece in zip(self.blocks, pieces, strict=True):
            H = block.add_gram(H, piece, ~first)
        move = self._point(spd_kernel.solve(H, descent, self.nv, self.system))

        def choose() -> tuple:
            free = self._minus_reference(move._replace(Mx=self.smooth))
            if self.warm is None:
                return free, state.goes_on
            stays = self._cost(at, pieces) < self._cost(free, self._pieces(free.r))
            return jax.tree.map(lambda a, b: jnp.where(stays, a, b), at, free), state.goes_on

        def descend() -> tuple:
            length, goes_on = self._descend(ls_iterations, at, descent, move)
            return jax.tree.map(lambda a, b: a + length * b, at, move), state.goes_on & goes_on

        at, goes_on = lax.cond(first, choose, descend)
        free = jnp.where(first, move.x, state.free)
        return state._replace(turn=state.turn + 1, goes_on=goes_on, at=at, free=free)

    def _descend(
        self, ls_iterations: int, at: _Point, descent: Array, move: _Point
    ) -> tuple[Array, Array]:
        """Step length along the direction, and whether the world goes on after it."""
        v = move.x
        goal = self.tolerance * self.ls_tolerance * jnp.sqrt(total(v * v)) / self.scale
        slope, bend = total((at.Mx - self.smooth) * v), total(v * move.Mx)
        lines = [
            line
            for block, r, change in zip(self.blocks, at.r, move.r, strict=True)
            for line in block.cost.lines(r, change)
        ]
        pieces = [Parabola(slope, bend), *map(_Summed, lines)]
        length = line_search(pieces, ls_iterations, goal)
        left = remaining(pieces, length, self.scale * 0.5 * total(descent * v))
        return length, (left > self.tolerance) & (length > 0)

    def _point(self, x: Array) -> _Point:
        """x with M x and J x."""
        Mx = spd_kernel.times(self.M, x, self.system, self.side)
        return _Point(x, Mx, [block.times(x) for block in self.blocks])

    def _minus_reference(self, at: _Point) -> _Point:
        pairs = zip(self.blocks, at.r, strict=True)
        return at._replace(r=[block.minus_reference(y) for block, y in pairs])

    def _pieces(self, r: list) -> list:
        return [block.cost.at(x) for block, x in zip(self.blocks, r, strict=True)]

    def _push(self, pieces: list) -> Array:
        """J' f."""
        pairs = zip(self.blocks, pieces, strict=True)
        return sum((block.push(piece) for block, piece in pairs), jnp.zeros_like(self.smooth))

    def _cost(self, at: _Point, pieces: list) -> Array:
        """As `Problem.cost`."""
        costs = (total(piece.cost) for piece in pieces)
        return sum(costs, total((0.5 * at.Mx - self.smooth) * at.x))


class _Summed(NamedTuple):
    """The cost of rows along a line, summed over the lanes."""

    line: Any

    def derivatives(self, step: Array) -> tuple[Array, Array]:
        """First and second derivative."""
        first, second = self.line.derivatives(step)
        return total(first), total(second)

    def crossed(self, step: Array) -> Array:
        """How many rows have another quadratic than at step 0."""
        return total(self.line.crossed(step))
