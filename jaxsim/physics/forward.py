"""Forward dynamics of one step, as the list of its stages.

MuJoCo's documentation, Programming: Simulation loop; Computation: Forward dynamics. Each stage is a
pure function `(m, d) -> d` with declared reads and writes (stage.py), in a module of its own; this
module calls them in order and runs the constraint solver. Standalone stages: standalone.py.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import diagonal, sum_items
from jaxsim.enums import DisableBit, EnableBit, SolverType
from jaxsim.linalg.dense import Dense
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.actuator.actuation import actuation
from jaxsim.physics.actuator.transmission import actuator_velocity, transmission
from jaxsim.physics.body.applied_force import xfrc_accumulate
from jaxsim.physics.body.camlight import camlight
from jaxsim.physics.body.inertia import com_pos, crb
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.body.rne import bias, com_vel
from jaxsim.physics.body.singular_inertia import count_singular
from jaxsim.physics.callback import call_control
from jaxsim.physics.collision.contacts import collision
from jaxsim.physics.constraint.efc.row_list import list_rows
from jaxsim.physics.constraint.island import islands, passive_couplings, touched_trees
from jaxsim.physics.constraint.make import make_rows
from jaxsim.physics.constraint.regularize import regularized_rows
from jaxsim.physics.flex.flex import flex, flex_velocity
from jaxsim.physics.integrate.system import System, smooth_system
from jaxsim.physics.partition import coupled_blocks, solver_blocks
from jaxsim.physics.passive.energy import energy_pos, energy_vel
from jaxsim.physics.passive.passive import passive
from jaxsim.physics.sensor.sensor import sensor_acc, sensor_pos, sensor_vel
from jaxsim.physics.sleep.trees import (
    all_awake,
    can_sleep,
    can_wake,
    dof_awake,
    freeze_sleeping,
    update_sleep_counts,
)
from jaxsim.physics.sleep.wake import wake_by_equalities, wake_by_tendons, wake_disturbed
from jaxsim.physics.solver.conjugate_gradient import conjugate_gradients
from jaxsim.physics.solver.constraint_force import list_contact_forces
from jaxsim.physics.solver.islands import find_islands
from jaxsim.physics.solver.newton import newton_solve
from jaxsim.physics.solver.noslip import NoslipStart, run_noslip
from jaxsim.physics.solver.pgs import gauss_seidel
from jaxsim.physics.solver.problem import ConstraintProblem, RowForces
from jaxsim.physics.solver.solution import SolverSettings, solve_constrained
from jaxsim.physics.solver.statistics import no_statistics
from jaxsim.physics.stage import stage
from jaxsim.physics.tendon.tendon import tendon, tendon_velocity
from jaxsim.trace_context import trace_context


def forward(m: Model, d: Data) -> Data:
    """Compute everything that follows from state and inputs, up to `qacc` and sensors.

    Corresponds to `mj_forward` in MuJoCo.

    Example:
      >>> level = d.replace(qpos=jnp.full(1, jnp.pi / 2))  # a pendulum held level
      >>> round(float(jax.jit(jaxsim.forward)(m, level).qacc[0]), 2)
      -9.77
    """
    return from_velocity(m, to_position(m, d))


def run_step1(m: Model, d: Data) -> Data:
    """Compute what follows from positions and velocities, including their sensors.

    Forces, accelerations and acceleration-stage sensors keep their values. Corresponds to
    `mj_step1` in MuJoCo.
    """
    return velocity_stages(m, to_position(m, d))


def from_velocity(m: Model, d: Data, sensors: bool = True) -> Data:
    """Run the forward dynamics from the velocity stages on."""
    return from_control(m, velocity_stages(m, d, sensors), sensors)


def to_position(m: Model, d: Data, sensors: bool = True) -> Data:
    """Run the position stages, with their sensors and the potential energy."""
    d = fwd_position(m, d)
    d = sensor_pos(m, d) if sensors else d
    return energy_pos(m, d) if m.opt.enableflags & EnableBit.ENERGY else d


def velocity_stages(m: Model, d: Data, sensors: bool = True) -> Data:
    """Run the velocity stages, with their sensors and the kinetic energy."""
    d = fwd_velocity(m, d)
    d = sensor_vel(m, d) if sensors else d
    return energy_vel(m, d) if m.opt.enableflags & EnableBit.ENERGY else d


def from_control(m: Model, d: Data, sensors: bool = True) -> Data:
    """Run the forward dynamics from the control callback on."""
    return from_actuation(m, call_control(m, d), sensors)


def from_actuation(m: Model, d: Data, sensors: bool = True) -> Data:
    """Run the forward dynamics from actuation on."""
    d = fwd_actuation(m, d)
    d = smooth_force(m, d)
    d = fwd_constraint(m, d)
    return sensor_acc(m, d) if sensors else d


def fwd_position(m: Model, d: Data) -> Data:
    """Run the position stages; corresponds to `mj_fwdPosition` in MuJoCo."""
    moved = kinematics(m, d)
    # Sleeping trees: wake those whose state or inputs changed, before their poses are used.
    if can_sleep(m):
        d = wake_disturbed(m, d, moved) if can_wake(m) else moved
    else:
        d = all_awake(m, moved)
    d = com_pos(m, d)
    d = camlight(m, d)
    d = flex(m, d)
    d = tendon(m, d)
    # Coupling by tendons, contacts and equalities wakes trees, once each is computed.
    d = wake_by_tendons(m, d) if can_wake(m) else d
    d = crb(m, d)
    d = collision(m, d)
    d = wake_by_equalities(m, d) if can_wake(m) else d
    d = transmission(m, d)
    return update_sleep_counts(m, d) if can_sleep(m) else d


def fwd_velocity(m: Model, d: Data) -> Data:
    """Run the velocity stages and make the constraint rows, whose reference depends on velocity."""
    return make_rows_and_islands(m, velocity_forces(m, d))


def velocity_forces(m: Model, d: Data) -> Data:
    """Compute velocities of bodies, tendons and actuators, and passive and bias forces."""
    before = d
    d = tendon_velocity(m, d)
    d = actuator_velocity(m, d)
    d = com_vel(m, d)
    d = flex_velocity(m, d)
    d = passive(m, d)
    d = bias(m, d)
    return freeze_sleeping(m, before, d, PASSIVE_AND_BIAS_FORCES) if can_sleep(m) else d


def make_rows_and_islands(m: Model, d: Data) -> Data:
    """Make the constraint rows; in models with sleeping trees also the islands."""
    d = make_rows(m, d)
    return islands(m, d) if can_sleep(m) else d


# Forces of dofs that sleeping trees keep unchanged.
PASSIVE_AND_BIAS_FORCES = (
    *("qfrc_spring", "qfrc_damper", "qfrc_gravcomp", "qfrc_fluid", "qfrc_adhesion"),
    *("qfrc_passive", "qfrc_bias"),
)


def fwd_actuation(m: Model, d: Data) -> Data:
    """Compute actuator forces and activation rates."""
    return actuation(m, d)


@stage(
    reads=(
        "tree_asleep qfrc_applied xfrc_applied xipos subtree_com cdof qfrc_bias qfrc_passive "
        "qfrc_actuator qfrc_smooth"
    ),
    writes="qfrc_smooth",
)
def smooth_force(m: Model, d: Data) -> Data:
    """Compute the sum of all forces except constraint forces.

    qfrc_smooth = qfrc_passive - qfrc_bias + qfrc_applied + qfrc_actuator + J' xfrc_applied
    """
    force = d.qfrc_passive - d.qfrc_bias + d.qfrc_applied + d.qfrc_actuator + xfrc_accumulate(m, d)
    new = d.replace(qfrc_smooth=force)
    return freeze_sleeping(m, d, new, ("qfrc_smooth",)) if can_sleep(m) else new


@stage(
    reads=(
        "time qpos qvel act history plastic qacc_warmstart ctrl tree_asleep xpos xquat xipos ximat "
        "geom_xpos geom_xmat subtree_com cdof cinert M ten_length ten_J flexvert_xpos "
        "actuator_length actuator_moment cvel cdof_dot ten_velocity actuator_velocity act_dot "
        "actuator_force qfrc_actuator qfrc_smooth contact qacc_smooth found inertia rows "
        "warning warning_lastinfo"
    ),
    writes=(
        "warning warning_lastinfo "
        "solver_niter solver contact efc_type efc_id efc_J efc_pos efc_margin efc_frictionloss "
        "efc_KBIP efc_vel efc_diagA efc_R efc_D efc_aref efc_b efc_state efc_force qacc_smooth "
        "qfrc_constraint qacc rows forces"
    ),
)
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
