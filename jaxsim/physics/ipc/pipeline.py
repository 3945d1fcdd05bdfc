"""Mode ipc in the pipeline: from the unconstrained motion of `forward` to the step's acceleration.

The step is a sequence of solves (step.py). It is differentiated as its last iteration, with the
results of the earlier ones fixed: the fraction of the motion that was free, and the multipliers. A
step of one iteration, as most are, has its full derivative.
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import diagonal, sum_items
from jaxsim.enums import WarningType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.constraint.efc.row_list import list_rows
from jaxsim.physics.constraint.rows import RowBlock
from jaxsim.physics.integrate.system import smooth_system
from jaxsim.physics.ipc.multipliers import VertexMultipliers, begin_pairs
from jaxsim.physics.ipc.scene import IpcScene, make_scene
from jaxsim.physics.ipc.step import (
    IpcIterate,
    SolveStep,
    run_iterations,
    solve_with_pairs,
    step_fraction,
    update_pairs,
)
from jaxsim.physics.sensor.sensor import sensor_acc
from jaxsim.physics.solver.constraint_force import list_contact_forces
from jaxsim.physics.solver.newton import newton_solve
from jaxsim.physics.solver.problem import ConstraintProblem
from jaxsim.physics.solver.solution import SolverSettings, solve_constrained
from jaxsim.physics.warning import Trouble, count_warning
from jaxsim.transforms.derivative_context import is_differentiated, not_differentiated


@jax.named_scope("pass_through_nothing")
def solve_without_penetration(m: Model, d: Data) -> Data:
    """Compute the acceleration and constraint force of a step without interpenetration.

    The forward dynamics have left the unconstrained acceleration, and the rows of all other
    constraints. Sensors of accelerations and forces are those of the step.

    Raises:
      ValueError: `d` was made without the flag.
    """
    if d.flexvert_lambda is None or d.flexvert_conage is None:
        raise ValueError(
            "d.flexvert_lambda: this Data was made without the flag ipc; make it with make_data of "
            "the model that has it"
        )
    # Constraint problem of the step without the pairs of the mode.
    of, system = make_scene(m, d), smooth_system(m, d)
    p = ConstraintProblem(system.dense, system.force, d.rows)
    settings = SolverSettings(
        warm=None,
        tolerance=m.opt.tolerance,
        ls_tolerance=m.opt.ls_tolerance,
        scale=1 / sum_items(diagonal(d.M)),
    )
    method = partial(newton_solve, iterations=m.opt.iterations, ls_iterations=m.opt.ls_iterations)
    # Iterate without derivatives.
    fixed = lax.stop_gradient((d, p, settings))
    with not_differentiated():
        solve = partial(_solve_with_rows, *fixed[1:], method)
        end = run_iterations(of.fixed(), fixed[0], solve)
    end = lax.stop_gradient(end)
    # Under differentiation repeat the last iteration from the fixed state before it.
    if is_differentiated():
        end = _last_iteration(of, d, partial(_solve_with_rows, p, settings, method), end)
    # The free velocity is the result; overflow of pair capacities is a CONTACTFULL warning.
    acc = (end.free - d.qvel) / of.h
    d = d.replace(
        qacc=acc,
        qfrc_constraint=p.force_at(acc) + end.force,
        solver_niter=end.niter,
        flexvert_lambda=end.vertices.multiplier,
        flexvert_conage=end.vertices.age,
        forces=p.row_forces(acc) if m.lists_row_forces and not d.rows.empty else None,
    )
    wanted = of.plan.rows + end.dropped
    d = count_warning(d, WarningType.CONTACTFULL, Trouble(end.dropped > 0, wanted))
    d = system.add_gyroscopic_forces(m, d)
    d = list_contact_forces(d) if m.lists_contact_forces else d
    return sensor_acc(m, list_rows(m, d))


def _solve_with_rows(
    p: ConstraintProblem,
    settings: SolverSettings,
    method: partial,
    block: RowBlock | None,
    warm: Array,
) -> tuple[Array, Array, Array]:
    """Solve with the rows of `block` added; return acceleration, force of the block, iterations."""
    # Nothing to solve with but the inertia.
    if block is None and p.rows.empty:
        return p.solve_inertia(p.smooth), jnp.zeros_like(warm), jnp.zeros_like(warm[:1], jnp.int32)
    # Add the pairs as one more block of rows.
    more = () if block is None else (block,)
    whole = replace(p, rows=replace(p.rows, single=(*p.rows.single, *more)))
    found = solve_constrained(whole, settings._replace(warm=warm), method)
    if block is None:
        return found.qacc, jnp.zeros_like(warm), jnp.asarray(found.niter)
    # Force of the pairs at the solution.
    residual = block.minus_reference(block.J.times(found.qacc))
    push = block.J.transpose_times(block.cost.at(residual).force, len(warm))
    return found.qacc, push, jnp.asarray(found.niter)


def _last_iteration(of: IpcScene, d: Data, solve: SolveStep, end: IpcIterate) -> IpcIterate:
    """Recompute the last iteration, differentiably."""
    # In the first iteration the multipliers come from the vertices.
    vertices, first = VertexMultipliers(d.flexvert_lambda, d.flexvert_conage), end.iteration == 1
    pairs = []
    for grid, p in zip(of.plan.grids, end.pairs, strict=True):
        new = begin_pairs(vertices, grid, p.pair, p.there)
        pairs.append(p._replace(multiplier=jnp.where(first, new.multiplier, p.multiplier)))
    # Solve again, and repeat multiplier update and advancement.
    found = solve_with_pairs(of, d, solve, end.last, pairs, end.acc)
    w = d.qvel + of.h * found.acc
    _, after = update_pairs(of, found, pairs, end.before, w - end.last)
    part = step_fraction(of, end.fraction, w)
    return end._replace(free=end.last + part * (w - end.last), force=found.force, vertices=after)
