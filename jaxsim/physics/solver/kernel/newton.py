"""Newton's method as one GPU kernel: one warp per world.

The algorithm is that of solver/newton.py, and comments number its steps as there. XLA compiles an
iteration into some forty kernels, and the host synchronizes after each of them to test the
convergence of all worlds. Here one warp solves one world to convergence, with its vectors in
registers (one lane per dof) and its Hessian in tiles (linalg/spd_kernel.py). The line search with
the convergence test (linesearch.py) and the costs (constraint/cost.py and constraint/cone.py) are
the same code.

Each part of the program is compiled once, which orders the steps in another way: a pass of the loop
first evaluates the rows at its point, which is step 7 of the iteration before, and then performs
steps 1 to 6. The last pass evaluates the rows only.

    pass      0                 1               ...    k                last
    rows      at the start      at x_0                 at x_(k-1)       at the solution: J' f
    1 to 6    a0, choose x_0    Newton step x_1        x_k, converged   -

"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.linalg import spd_kernel
from jaxsim.physics.constraint.cost import CostDerivatives, Parabola
from jaxsim.physics.solver.kernel import rows as of_rows
from jaxsim.physics.solver.kernel.rows import KernelRows
from jaxsim.physics.solver.linesearch import exact_step
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


class _Inputs(NamedTuple):
    """Inputs of the kernel, `[..., worlds]`: M padded, smooth and rows of `ConstraintProblem`."""

    M: Any
    smooth: Any
    settings: SolverSettings
    rows: list[of_rows.RowInputs]


class _Outputs(NamedTuple):
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
    """Run `newton_solve` as one kernel, without statistics of the iterations."""
    if p.smooth.ndim == 1:  # one world is a batch of one
        p, settings = jax.tree.map(lambda a: a[..., None], (p, settings))
        found = newton_in_kernel(p, settings, iterations, ls_iterations)
        return jax.tree.map(lambda a: a[..., 0], found)
    (nv, worlds), dtype = p.smooth.shape, p.smooth.dtype
    # Allocate inputs, outputs and scratch memory.
    lanes = lanes_of(nv + 1)
    rows = [part for block in p.rows.blocks for part in of_rows.row_inputs(block, nv)]
    M = spd_kernel.pad_systems(p.M.matrix)
    inputs = _Inputs(M, p.smooth, settings._replace(islands=None), rows)
    dofs = Output((nv,), dtype)
    outputs = _Outputs(
        *(dofs,) * 3,
        Output((1,), jnp.int32),
        spd_kernel.system_memory(nv, dtype),
        [of_rows.row_memory(part, nv) for part in rows],
    )

    # One program of the kernel solves one world.
    def kernel(inputs: _Inputs, outputs: _Outputs) -> None:
        world = _Newton.of(inputs, outputs, nv, lanes)
        found = world.iterate(iterations, ls_iterations)
        dof = lane_indices(lanes)
        for output, value in zip(outputs[:3], found[:3], strict=True):
            store(output, dof, value=value, where=dof < nv)
        outputs.niter[0] = found.niter

    out = run_per_world(kernel, inputs, outputs, worlds)
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
      passes: 1, and 0 after the last pass, which evaluates the rows only.
      active: False once the world has converged.
      at, force: current point, and J' f there.
      free: the unconstrained acceleration.
    """

    iteration: Array
    passes: Array
    active: Array
    at: _Point
    force: Array
    free: Array


class _Newton(NamedTuple):
    """Problem of one world, with vectors along the lanes.

    Attributes:
      M: inertia, in memory.
      smooth: generalized force without constraints.
      settings: warm start, or None, and scalar tolerances.
      blocks: the rows.
      nv: number of dofs.
      system: scratch memory of the factorization.
    """

    M: Any
    smooth: Array
    settings: SolverSettings
    blocks: list[KernelRows]
    nv: int
    system: Any

    @property
    def side(self) -> int:
        """Return the side of the tiles of the Hessian."""
        return spd_kernel.tile_side(self.nv)

    @classmethod
    def of(cls, inputs: _Inputs, outputs: _Outputs, nv: int, lanes: int) -> "_Newton":
        """Read the inputs of one world."""
        blocks = [
            of_rows.load_rows(part, own, lanes)
            for part, own in zip(inputs.rows, outputs.rows, strict=True)
        ]
        smooth, s = vector(inputs.smooth, lanes), inputs.settings
        warm = None if s.warm is None else vector(s.warm, lanes)
        settings = SolverSettings(warm, s.tolerance[0], s.ls_tolerance[0], s.scale[0])
        return cls(inputs.M, smooth, settings, blocks, nv, outputs.system)

    def iterate(self, iterations: int, ls_iterations: int) -> ConstraintSolution:
        """Iterate to convergence; iterations are counted as in `newton_solve`."""

        def has_passes(s: _State) -> Array:
            return s.passes > 0

        def run_pass(s: _State) -> _State:
            # 7 of the iteration before: force at the current point; after the last one stop here.
            terms = self._evaluate(s.at.r)
            s = s._replace(force=self._row_force(terms))
            return lax.cond(
                (s.iteration <= iterations) & s.active,
                lambda: self._iterate_once(s, terms, ls_iterations),
                lambda: s._replace(passes=s.passes - 1),
            )

        last = lax.while_loop(has_passes, run_pass, self._initial_state())
        return ConstraintSolution(last.at.x, last.free, last.force, last.iteration - 1)

    def _initial_state(self) -> _State:
        """Return the state before iteration 0, at the warm start or at zero."""
        zero, warm = jnp.zeros_like(self.smooth), self.settings.warm
        at = self._minus_reference(self._point(zero if warm is None else warm))
        return _State(jnp.int32(0), jnp.int32(1), jnp.bool_(True), at, zero, zero)

    def _iterate_once(self, s: _State, terms: list, ls_iterations: int) -> _State:
        """Perform steps 1 to 6 of an iteration; `terms` are the costs of the rows at its point."""
        first, at = s.iteration == 0, s.at
        # 1. Negative gradient; in iteration 0 the smooth force alone.
        descent = self.smooth + jnp.where(first, 0, s.force - at.Mx)
        # 2. Assemble H = M + J' W J in tiles.
        H = spd_kernel.load_tiles(self.M, self.side)
        for block, term in zip(self.blocks, terms, strict=True):
            H = block.add_gram(H, term, ~first)
        # 3. Factorize, solve for the direction v, and compute M v and J v.
        move = self._point(spd_kernel.solve_padded(H, descent, self.nv, self.system))
        # 4 to 6. Advance along the direction; in iteration 0 choose the starting point.
        at, active = lax.cond(
            first,
            lambda: (self._starting_point(at, terms, move), s.active),
            lambda: self._advance(ls_iterations, s, descent, move),
        )
        free = jnp.where(first, move.x, s.free)
        return s._replace(iteration=s.iteration + 1, active=active, at=at, free=free)

    def _starting_point(self, warm: _Point, terms: list, move: _Point) -> _Point:
        """Return the unconstrained acceleration, or the warm start where that costs less."""
        free = self._minus_reference(move._replace(Mx=self.smooth))
        if self.settings.warm is None:
            return free
        stays = self._cost(warm, terms) < self._cost(free, self._evaluate(free.r))
        chosen: _Point = jax.tree.map(lambda a, b: jnp.where(stays, a, b), warm, free)
        return chosen

    def _advance(
        self, ls_iterations: int, s: _State, descent: Array, move: _Point
    ) -> tuple[_Point, Array]:
        """Advance along the Newton direction; also return whether the world has not converged."""
        at, v = s.at, move.x
        # 4, 5. Exact line search: parabola of the Gauss term, one function per block of rows.
        length2 = sum_lanes(v * v)
        slope, bend = sum_lanes((at.Mx - self.smooth) * v), sum_lanes(v * move.Mx)
        lines = [
            line
            for block, r, Jv in zip(self.blocks, at.r, move.r, strict=True)
            for line in block.cost.lines(r, Jv)
        ]
        terms = [Parabola(slope, bend), *map(_LanesLine, lines)]
        decrement2 = sum_lanes(descent * v)
        step, goes_on = exact_step(terms, ls_iterations, self.settings, length2, decrement2)
        # 6. Update x, M x and r.
        return jax.tree.map(lambda a, b: a + step * b, at, move), s.active & goes_on

    def _point(self, x: Array) -> _Point:
        """Return the point at x, with M x and J x."""
        Mx = spd_kernel.multiply_padded(self.M, x, self.system, self.side)
        return _Point(x, Mx, [block.times(x) for block in self.blocks])

    def _minus_reference(self, at: _Point) -> _Point:
        """Return the point with residuals J x - aref, from one with J x."""
        pairs = zip(self.blocks, at.r, strict=True)
        return at._replace(r=[block.minus_reference(y) for block, y in pairs])

    def _evaluate(self, r: list) -> list[CostDerivatives]:
        """Return force, cost and curvature of each block at its residual."""
        return [block.cost.at(x) for block, x in zip(self.blocks, r, strict=True)]

    def _row_force(self, terms: list[CostDerivatives]) -> Array:
        """Compute J' f."""
        pairs = zip(self.blocks, terms, strict=True)
        return sum((block.transpose_times(t) for block, t in pairs), jnp.zeros_like(self.smooth))

    def _cost(self, at: _Point, terms: list[CostDerivatives]) -> Array:
        """Compute the cost up to a constant; see `cost` in problem.py."""
        costs = (sum_lanes(term.cost) for term in terms)
        return sum(costs, sum_lanes((0.5 * at.Mx - self.smooth) * at.x))


class _LanesLine(NamedTuple):
    """Cost of rows along a line, summed over the lanes."""

    line: Any

    def derivatives(self, step: Array) -> tuple[Array, Array]:
        """Return the first and second derivative."""
        first, second = self.line.derivatives(step)
        return sum_lanes(first), sum_lanes(second)

    def num_crossed(self, step: Array) -> Array:
        """Return the number of rows that left the quadratic piece of step 0."""
        return sum_lanes(self.line.num_crossed(step))
