"""Acceleration from forces: without constraints, then with the forces of the constraint solver.

MuJoCo's documentation, Computation: Forward dynamics; docs/physics/solver.md. Chooses the problem's
form of M, the solver and its settings, runs it, and stores its results in Data.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import diagonal, sum_items
from jaxsim.enums import DisableBit, SolverType
from jaxsim.linalg.dense import Dense
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.applied_force import xfrc_accumulate
from jaxsim.physics.body.singular_inertia import count_singular
from jaxsim.physics.constraint.efc.row_list import list_rows
from jaxsim.physics.constraint.island import passive_couplings, touched_trees
from jaxsim.physics.constraint.regularize import regularized_rows
from jaxsim.physics.integrate.system import System, smooth_system
from jaxsim.physics.partition import coupled_blocks, solver_blocks
from jaxsim.physics.sleep.trees import (
    can_sleep,
    dof_awake,
    freeze_sleeping,
)
from jaxsim.physics.solver.conjugate_gradient import conjugate_gradients
from jaxsim.physics.solver.constraint_force import list_contact_forces
from jaxsim.physics.solver.islands import find_islands
from jaxsim.physics.solver.newton import newton_solve
from jaxsim.physics.solver.noslip import NoslipStart, run_noslip
from jaxsim.physics.solver.pgs import gauss_seidel
from jaxsim.physics.solver.problem import ConstraintProblem, RowForces
from jaxsim.physics.solver.solution import SolverSettings, solve_constrained
from jaxsim.physics.solver.statistics import no_statistics
from jaxsim.trace_context import trace_context


def smooth_force(m: Model, d: Data) -> Data:
    """Compute the sum of all forces except constraint forces.

    qfrc_smooth = qfrc_passive - qfrc_bias + qfrc_applied + qfrc_actuator + J' xfrc_applied
    """
    force = d.qfrc_passive - d.qfrc_bias + d.qfrc_applied + d.qfrc_actuator + xfrc_accumulate(m, d)
    new = d.replace(qfrc_smooth=force)
    return freeze_sleeping(m, d, new, ("qfrc_smooth",)) if can_sleep(m) else new


def fwd_constraint(m: Model, d: Data) -> Data:
    """Solve for the acceleration without and with constraints, and for the constraint force.

        M qacc_smooth = qfrc_smooth
        M qacc = qfrc_smooth + qfrc_constraint

    `qacc` minimizes the convex problem of the step (solver/problem.py), and is then updated by
    no-slip iterations if the model has them. Under the discrete integrator M is the inertia of the
    step, and position-dependent forces are those at its end (integrate/metric.py). Sleeping trees
    are excluded: the solver sees them at rest, and they keep the unconstrained acceleration with
    which they fell asleep, as in MuJoCo. Corresponds to `mj_fwdConstraint` in MuJoCo.
    """
    if not can_sleep(m):
        return _solve_constraints(m, d)
    if trace_context().fully_asleep:
        return _asleep_solution(m, d)
    # Solve with sleeping dofs force-free, then restore their values.
    awake = dof_awake(m, d)
    rest = {n: jnp.where(awake, getattr(d, n), 0) for n in ("qfrc_smooth", "qacc_warmstart")}
    new = _solve_constraints(m, d.replace(**rest))
    # Restore sleeping dofs, which keep the acceleration with which they fell asleep.
    new = freeze_sleeping(m, d, new, ("qacc_smooth",))
    qacc = jnp.where(awake, new.qacc, new.qacc_smooth)
    return new.replace(qacc=qacc, qfrc_smooth=d.qfrc_smooth, qacc_warmstart=d.qacc_warmstart)


def smooth_acceleration(m: Model, d: Data) -> Array:
    """Compute the acceleration without constraints `[nv, *W]`."""
    return smooth_system(m, d).acceleration()


def _asleep_solution(m: Model, d: Data) -> Data:
    """Return the trivial solution where all trees sleep and no row exists, without a solver."""
    zero, acc = jnp.zeros_like(d.qvel), d.qacc_smooth
    none = jnp.zeros((1, *zero.shape[1:]), jnp.int32)
    d = d.replace(qacc=acc, qfrc_constraint=zero, solver_niter=none)
    return list_rows(m, d.replace(solver=no_statistics(d.solver)))


def _solve_constraints(m: Model, d: Data) -> Data:
    """Solve the problem of all dofs; no solver runs without rows, or where IPC replaces it."""
    system = smooth_system(m, d)
    d = d.replace(rows=regularized_rows(m, d, system.backbone))
    # No solver: the unconstrained acceleration is the result.
    if d.rows.empty or m.nv == 0 or m.resolves_shells:
        acc = system.acceleration()
        d = count_singular(m, d, system.inertia, acc)
        none = jnp.zeros((1, *acc.shape[1:]), jnp.int32)
        zero = jnp.zeros_like(acc)
        d = d.replace(qacc_smooth=acc, qacc=acc, qfrc_constraint=zero, solver_niter=none)
        d = d.replace(solver=no_statistics(d.solver))
        if m.lists_row_forces and not d.rows.empty:
            of_rows = ConstraintProblem(Dense(d.M), d.qfrc_smooth, d.rows).row_forces(acc)
            d = d.replace(forces=jax.tree.map(jnp.zeros_like, of_rows))
        return list_rows(m, system.add_gyroscopic_forces(m, d))
    # Primal or dual solver.
    problem = constraint_problem(m, d, system)
    found = solve_constrained(problem, _settings(m, d, problem), _method(m, d))
    d = count_singular(m, d, system.inertia, found.qacc_smooth).replace(
        qacc_smooth=found.qacc_smooth,
        qacc=found.qacc,
        qfrc_constraint=found.force,
        solver_niter=found.niter,
        solver=found.stat,
    )
    # No-slip post-processing, and the forces of rows where they do not follow from `qacc`.
    if m.opt.noslip_iterations > 0:
        d = _run_noslip(m, d, problem, system, found.rows)
    elif m.lists_row_forces:
        d = d.replace(forces=found.rows or problem.row_forces(found.qacc))
    d = system.add_gyroscopic_forces(m, d)
    d = list_contact_forces(d) if m.lists_contact_forces else d
    return list_rows(m, d)


def constraint_problem(m: Model, d: Data, system: System) -> ConstraintProblem:
    """Build the problem of all dofs, with M in its own form where Newton's method can use it."""
    problem = ConstraintProblem(
        system.inertia, system.force, d.rows, solver_blocks(m), coupled_blocks(m)
    )
    newton = m.opt.solver == SolverType.NEWTON and m.opt.noslip_iterations == 0
    own_form = newton and problem.accumulates_in_form_of_inertia()
    return problem if own_form else replace(problem, M=system.dense)


def _settings(m: Model, d: Data, problem: ConstraintProblem) -> SolverSettings:
    """Return tolerances, scaling, warm start and islands for the solver."""
    # Diagonal of M for scaling; islands for CG and PGS.
    dense = isinstance(problem.M, Dense)
    inertia, islands = diagonal(d.M) if dense else problem.M.diagonal, None
    if m.opt.solver != SolverType.NEWTON:
        touched, ties = touched_trees(m, d), passive_couplings(m, d)
        islands = find_islands(m, problem, touched, inertia, ties)
    return SolverSettings(
        warm=None if m.opt.disableflags & DisableBit.WARMSTART else d.qacc_warmstart,
        tolerance=m.opt.tolerance,
        ls_tolerance=m.opt.ls_tolerance,
        scale=1 / sum_items(inertia),
        islands=islands,
    )


def _method(m: Model, d: Data) -> Callable:
    """Return the solver function with its limits; it records statistics if `d` keeps them."""
    limit, records = m.opt.iterations, d.solver is not None
    if m.opt.solver == SolverType.PGS:
        return partial(gauss_seidel, iterations=limit, records=records)
    primal = newton_solve if m.opt.solver == SolverType.NEWTON else conjugate_gradients
    return partial(primal, iterations=limit, ls_iterations=m.opt.ls_iterations, records=records)


def _run_noslip(
    m: Model, d: Data, problem: ConstraintProblem, system: System, rows: RowForces | None
) -> Data:
    """Run the no-slip iterations; afterwards the row forces do not follow from `qacc`."""
    # Problem without regularization, then recompute qacc from the new forces.
    slip = system.for_slip(problem, d.qacc_smooth)
    held = run_noslip(m, NoslipStart(slip, d.qacc, rows, touched_trees(m, d), diagonal(d.M)))
    qacc = held.qacc
    if slip is not problem:
        qacc = problem.solve_inertia(problem.smooth + held.force)
    return d.replace(
        qacc=qacc,
        qfrc_constraint=held.force,
        solver_niter=d.solver_niter + held.niter,
        forces=held.rows,
    )
