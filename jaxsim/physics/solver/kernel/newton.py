"""Newton's method as one GPU kernel: one warp per world.

The algorithm is that of solver/newton.py. XLA compiles an iteration into some forty kernels, and
the host synchronizes after each iteration to test convergence of all worlds. Here one warp solves
one world to convergence, with its vectors in registers (one lane per dof) and its Hessian in tiles
(linalg/spd_kernel.py). Iteration 0 computes the unconstrained acceleration with the same
factorization code, and the final pass computes forces only, so that the factorization and the costs
are compiled once.

Names: `at` is the current point, `move` the direction v with M v and J v, `descent` the negative
gradient, `pieces` force, cost and curvature of each block of rows, `given` and `made` the inputs
and outputs of the kernel in memory.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.linalg import spd_kernel
from jaxsim.physics.constraint.cost import Parabola
from jaxsim.physics.solver.kernel import rows as of_rows
from jaxsim.physics.solver.kernel.rows import KernelRows
from jaxsim.physics.solver.linesearch import line_search, remaining_improvement
from jaxsim.physics.solver.problem import ConstraintProblem
from jaxsim.physics.solver.solution import ConstraintSolution, SolverSettings
from jaxsim.transforms.pallas import (
    Output,
    lane_indices,
    lanes_of,
    run_per_world,
    store,
    sum_lanes,
    vector,
)
from jaxsim.transforms.tuning import tuning


def supports_problem(p: ConstraintProblem) -> bool:
    """Return True if the kernel supports a problem."""
    dense = isinstance(p.M, jax.Array)  # not by entries (linalg/tree_sparse.py)
    of_worlds = p.smooth.ndim <= 2 and 0 < len(p.smooth) <= tuning().max_kernel_dofs
    return dense and of_worlds and all(map(of_rows.supports_block, p.rows.blocks))


class _Given(NamedTuple):
    """Inputs of the kernel, `[..., worlds]`: fields of `ConstraintProblem` (M padded) and of
    `SolverSettings`."""

    M: Any
    smooth: Any
    warm: Any
    tolerance: Any
    ls_tolerance: Any
    scale: Any
    rows: list[of_rows.RowInputs]


class _Made(NamedTuple):
    """Outputs of the kernel, fields of `ConstraintSolution`, and its scratch memory.

    Attributes:
      x, free, force, niter: solution, unconstrained acceleration, J' f, iterations.
      system: scratch of the factorization, see linalg/spd_kernel.py.
      rows: scratch of the rows, see rows.py.
    """

    x: Any
    free: Any
    force: Any
    niter: Any
    system: Any
    rows: list


def newton_in_kernel(
    p: ConstraintProblem, settings: SolverSettings, iterations: int, ls_iterations: int
) -> ConstraintSolution:
    """Run `newton` as one kernel, without statistics of the iterations."""
    if p.smooth.ndim == 1:  # one world is a batch of one
        p, settings = jax.tree.map(lambda a: a[..., None], (p, settings))
        found = newton_in_kernel(p, settings, iterations, ls_iterations)
        return jax.tree.map(lambda a: a[..., 0], found)
    (nv, worlds), dtype = p.smooth.shape, p.smooth.dtype
    # Allocate inputs, outputs and scratch memory.
    lanes = lanes_of(nv + 1)
    rows = [part for block in p.rows.blocks for part in of_rows.row_inputs(block, nv)]
    tolerance, ls_tolerance = settings.tolerance, settings.ls_tolerance
    given = _Given(
        spd_kernel.pad_systems(p.M),
        p.smooth,
        settings.warm,
        tolerance,
        ls_tolerance,
        settings.scale,
        rows,
    )
    dofs = Output((nv,), dtype)
    made = _Made(
        *(dofs,) * 3,
        Output((1,), jnp.int32),
        spd_kernel.system_memory(nv, dtype),
        [of_rows.row_memory(part, nv) for part in rows],
    )

    # One program of the kernel solves one world.
    def kernel(given: _Given, made: _Made) -> None:
        world = _Newton.of(given, made, nv, lanes)
        found = world.iterate(iterations, ls_iterations)
        place = lane_indices(lanes)
        for output, value in zip(made[:3], found[:3], strict=True):
            store(output, place, value=value, where=place < nv)
        made.niter[0] = found.niter

    out = run_per_world(kernel, given, made, worlds)
    return ConstraintSolution(out.x, out.free, out.force, out.niter)


class _Point(NamedTuple):
    """Point as in `problem.Point`, with vectors along the lanes."""

    x: Array
    Mx: Array
    r: list


class _State(NamedTuple):
    """Loop state.

    Attributes:
      iteration: number of iterations begun, including iteration 0.
      busy: 1, and 0 after the final pass.
      goes_on: False once the last iteration has converged.
      at, force: current point, and J' f there.
      free: the unconstrained acceleration.
    """

    iteration: Array
    busy: Array
    goes_on: Array
    at: _Point
    force: Array
    free: Array


class _Newton(NamedTuple):
    """Problem of one world, with vectors along the lanes.

    Attributes:
      M: inertia, in memory.
      smooth: generalized force without constraints.
      warm: warm start, or None.
      tolerance, ls_tolerance, scale: scalars, see `SolverSettings`.
      blocks: the rows.
      nv: number of dofs.
      system: scratch memory of the factorization.
    """

    M: Any
    smooth: Array
    warm: Array | None
    tolerance: Array
    ls_tolerance: Array
    scale: Array
    blocks: list[KernelRows]
    nv: int
    system: Any

    @property
    def side(self) -> int:
        """Return the side of the tiles of the Hessian."""
        return spd_kernel.tile_side(self.nv)

    @classmethod
    def of(cls, given: _Given, made: _Made, nv: int, lanes: int) -> "_Newton":
        """Read the inputs of one world."""
        blocks = [
            of_rows.load_rows(part, own, lanes)
            for part, own in zip(given.rows, made.rows, strict=True)
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

    def iterate(self, iterations: int, ls_iterations: int) -> ConstraintSolution:
        """Iterate to convergence; iterations are counted as in `newton`.

        Iteration 0 computes the unconstrained acceleration, and the final pass the forces only, so
        that the factorization and the costs are compiled once.
        """

        def not_converged(state: _State) -> Array:
            return state.busy > 0

        def iteration(state: _State) -> _State:
            # Evaluate the rows at the current point; stop here after the last iteration.
            pieces = self._pieces(state.at.r)
            state = state._replace(force=self._row_force(pieces))
            return lax.cond(
                (state.iteration <= iterations) & state.goes_on,
                lambda: self._iterate_once(state, pieces, ls_iterations),
                lambda: state._replace(busy=state.busy - 1),
            )

        last = lax.while_loop(not_converged, iteration, self._begin())
        return ConstraintSolution(last.at.x, last.free, last.force, last.iteration - 1)

    def _begin(self) -> "_State":
        """Start at the warm start, if any."""
        zero = jnp.zeros_like(self.smooth)
        at = self._minus_reference(self._point(zero if self.warm is None else self.warm))
        return _State(jnp.int32(0), jnp.int32(1), jnp.bool_(True), at, zero, zero)

    def _iterate_once(self, state: "_State", pieces: list, ls_iterations: int) -> "_State":
        """Perform one Newton iteration; iteration 0 computes the unconstrained acceleration."""
        first, at = state.iteration == 0, state.at
        # Negative gradient; in iteration 0 the smooth force alone.
        descent = self.smooth + jnp.where(first, 0, state.force - at.Mx)
        # Assemble H = M + J' W J in tiles and solve for the direction.
        H = spd_kernel.load_tiles(self.M, self.side)
        for block, piece in zip(self.blocks, pieces, strict=True):
            H = block.add_gram(H, piece, ~first)
        move = self._point(spd_kernel.solve_padded(H, descent, self.nv, self.system))

        # Iteration 0: start at the cheaper of warm start and unconstrained acceleration.
        def choose() -> tuple:
            free = self._minus_reference(move._replace(Mx=self.smooth))
            if self.warm is None:
                return free, state.goes_on
            stays = self._cost(at, pieces) < self._cost(free, self._pieces(free.r))
            return jax.tree.map(lambda a, b: jnp.where(stays, a, b), at, free), state.goes_on

        # Later iterations: exact line search along the direction.
        def descend() -> tuple:
            length, goes_on = self._descend(ls_iterations, at, descent, move)
            return jax.tree.map(lambda a, b: a + length * b, at, move), state.goes_on & goes_on

        at, goes_on = lax.cond(first, choose, descend)
        free = jnp.where(first, move.x, state.free)
        return state._replace(iteration=state.iteration + 1, goes_on=goes_on, at=at, free=free)

    def _descend(
        self, ls_iterations: int, at: _Point, descent: Array, move: _Point
    ) -> tuple[Array, Array]:
        """Return the step length along the direction, and True if the world has not converged."""
        v = move.x
        # Restrict the cost to the line: parabola of the Gauss term, one function per block of rows.
        goal = self.tolerance * self.ls_tolerance * jnp.sqrt(sum_lanes(v * v)) / self.scale
        slope, bend = sum_lanes((at.Mx - self.smooth) * v), sum_lanes(v * move.Mx)
        lines = [
            line
            for block, r, change in zip(self.blocks, at.r, move.r, strict=True)
            for line in block.cost.lines(r, change)
        ]
        pieces = [Parabola(slope, bend), *map(_Summed, lines)]
        length = line_search(pieces, ls_iterations, goal)
        # Convergence test on the improvement that remains.
        left = remaining_improvement(pieces, length, self.scale * 0.5 * sum_lanes(descent * v))
        return length, (left > self.tolerance) & (length > 0)

    def _point(self, x: Array) -> _Point:
        """Return the point at x, with M x and J x."""
        Mx = spd_kernel.multiply_padded(self.M, x, self.system, self.side)
        return _Point(x, Mx, [block.times(x) for block in self.blocks])

    def _minus_reference(self, at: _Point) -> _Point:
        pairs = zip(self.blocks, at.r, strict=True)
        return at._replace(r=[block.minus_reference(y) for block, y in pairs])

    def _pieces(self, r: list) -> list:
        return [block.cost.at(x) for block, x in zip(self.blocks, r, strict=True)]

    def _row_force(self, pieces: list) -> Array:
        """Compute J' f."""
        pairs = zip(self.blocks, pieces, strict=True)
        return sum((block.push(piece) for block, piece in pairs), jnp.zeros_like(self.smooth))

    def _cost(self, at: _Point, pieces: list) -> Array:
        """Compute the cost up to a constant; see `cost` in problem.py."""
        costs = (sum_lanes(piece.cost) for piece in pieces)
        return sum(costs, sum_lanes((0.5 * at.Mx - self.smooth) * at.x))


class _Summed(NamedTuple):
    """Cost of rows along a line, summed over the lanes."""

    line: Any

    def derivatives(self, step: Array) -> tuple[Array, Array]:
        """Return the first and second derivative."""
        first, second = self.line.derivatives(step)
        return sum_lanes(first), sum_lanes(second)

    def num_crossed(self, step: Array) -> Array:
        """Return the number of rows that left the quadratic piece of step 0."""
        return sum_lanes(self.line.num_crossed(step))
