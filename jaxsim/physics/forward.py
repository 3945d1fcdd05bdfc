"""One step of the physics, as the list of its stages. Everything is found from here.

MuJoCo's documentation, Programming: Simulation loop; Computation: Forward dynamics.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp

from jaxsim.enums import ConstraintType, DisableBit, EnableBit, SolverType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.actuator.actuation import actuation
from jaxsim.physics.actuator.transmission import actuator_velocity, transmission
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.pin import few
from jaxsim.physics.arrays.select import diagonal, total
from jaxsim.physics.arrays.system.apart import Apart
from jaxsim.physics.arrays.system.tree import TreeMatrix
from jaxsim.physics.body.applied import xfrc_accumulate
from jaxsim.physics.body.camlight import camlight
from jaxsim.physics.body.inertia import com_pos, crb
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.body.rne import bias, com_vel
from jaxsim.physics.body.singular import count_singular
from jaxsim.physics.callback import control
from jaxsim.physics.collision.contacts import collision
from jaxsim.physics.constraint.island import islands, passive_ties, touched_trees
from jaxsim.physics.constraint.jacobian import DofJacobian
from jaxsim.physics.constraint.make import make_rows
from jaxsim.physics.constraint.row_list import list_rows
from jaxsim.physics.constraint.weigh import weighed_rows
from jaxsim.physics.flex.flex import flex, flex_velocity
from jaxsim.physics.integrate.system import System, smooth_system
from jaxsim.physics.parts import solver_parts, tied_parts
from jaxsim.physics.passive.energy import energy_pos, energy_vel
from jaxsim.physics.passive.passive import passive
from jaxsim.physics.sensor.sensor import sensor_acc, sensor_pos, sensor_vel
from jaxsim.physics.sleep.known import all_sleep
from jaxsim.physics.sleep.trees import (
    all_awake,
    dof_awake,
    may_stir,
    report,
    sleeps,
    waiting,
)
from jaxsim.physics.sleep.wake import wake_by_equalities, wake_by_tendons, wake_disturbed
from jaxsim.physics.solver.by_world import goes_by_world
from jaxsim.physics.solver.conjugate import conjugate_gradients
from jaxsim.physics.solver.constraint_force import list_contact_forces
from jaxsim.physics.solver.islands import find_islands
from jaxsim.physics.solver.newton import newton
from jaxsim.physics.solver.noslip import Start, without_slip
from jaxsim.physics.solver.pgs import gauss_seidel
from jaxsim.physics.solver.problem import Problem, RowForces
from jaxsim.physics.solver.solution import Settings, solve
from jaxsim.physics.solver.statistics import no_statistics
from jaxsim.physics.stage import stage
from jaxsim.physics.tendon.tendon import tendon, tendon_velocity


def forward(m: Model, d: Data) -> Data:
    """Forward dynamics: everything that follows from state and inputs, up to `qacc` and sensors.

    Example:
      >>> level = d.replace(qpos=jnp.full(1, jnp.pi / 2))  # a pendulum held level
      >>> round(float(jax.jit(jaxsim.forward)(m, level).qacc[0]), 2)
      -9.77
    """
    return from_velocity(m, to_position(m, d))


def step1(m: Model, d: Data) -> Data:
    """What follows from positions and velocities, sensors among it.

    Forces, accelerations and the sensors of these stay what they were.
    """
    return to_velocity(m, to_position(m, d))


def from_velocity(m: Model, d: Data, sensors: bool = True) -> Data:
    """The rest of the forward dynamics, from the stages of the configuration on."""
    return from_control(m, to_velocity(m, d, sensors), sensors)


def to_position(m: Model, d: Data, sensors: bool = True) -> Data:
    """The stages of the configuration, with their sensors and the potential energy."""
    d = fwd_position(m, d)
    d = sensor_pos(m, d) if sensors else d
    return energy_pos(m, d) if m.opt.enableflags & EnableBit.ENERGY else d


def to_velocity(m: Model, d: Data, sensors: bool = True) -> Data:
    """The stages of the velocity, with their sensors and the kinetic energy."""
    d = fwd_velocity(m, d)
    d = sensor_vel(m, d) if sensors else d
    return energy_vel(m, d) if m.opt.enableflags & EnableBit.ENERGY else d


def from_control(m: Model, d: Data, sensors: bool = True) -> Data:
    """The rest of the forward dynamics, from the controls on."""
    return from_actuation(m, control(m, d), sensors)


def from_actuation(m: Model, d: Data, sensors: bool = True) -> Data:
    """The rest of the forward dynamics, when controls are set."""
    d = fwd_actuation(m, d)
    d = smooth_force(m, d)
    d = fwd_constraint(m, d)
    return sensor_acc(m, d) if sensors else d


def fwd_position(m: Model, d: Data) -> Data:
    """What follows from the configuration."""
    moved = kinematics(m, d)
    if sleeps(m):
        d = wake_disturbed(m, d, moved) if may_stir(m) else moved
    else:
        d = all_awake(m, moved)
    d = com_pos(m, d)
    d = camlight(m, d)
    d = flex(m, d)
    d = tendon(m, d)
    d = wake_by_tendons(m, d) if may_stir(m) else d
    d = crb(m, d)
    d = collision(m, d)
    d = wake_by_equalities(m, d) if may_stir(m) else d
    d = transmission(m, d)
    return report(m, d) if sleeps(m) else d


def fwd_velocity(m: Model, d: Data) -> Data:
    """What follows from the velocity; the constraint rows, whose reference depends on it."""
    return constraints(m, velocity_forces(m, d))


def velocity_forces(m: Model, d: Data) -> Data:
    """Velocities of bodies, tendons and actuators; passive and bias forces."""
    before = d
    d = tendon_velocity(m, d)
    d = actuator_velocity(m, d)
    d = com_vel(m, d)
    d = flex_velocity(m, d)
    d = passive(m, d)
    d = bias(m, d)
    return waiting(m, before, d, FORCES) if sleeps(m) else d


def constraints(m: Model, d: Data) -> Data:
    """The constraint rows, and the islands that they make of trees that may sleep."""
    d = make_rows(m, d)
    return islands(m, d) if sleeps(m) else d


# of the dofs, at rest
FORCES = (
    *("qfrc_spring", "qfrc_damper", "qfrc_gravcomp", "qfrc_fluid", "qfrc_adhesion"),
    *("qfrc_passive", "qfrc_bias"),
)


def fwd_actuation(m: Model, d: Data) -> Data:
    """Actuator forces and activation rates."""
    return actuation(m, d)


@stage(
    reads=(
        "tree_asleep qfrc_applied xfrc_applied xipos subtree_com cdof qfrc_bias qfrc_passive "
        "qfrc_actuator qfrc_smooth"
    ),
    writes="qfrc_smooth",
)
def smooth_force(m: Model, d: Data) -> Data:
    """Force of everything except constraints.

    qfrc_smooth = qfrc_passive - qfrc_bias + qfrc_applied + qfrc_actuator + J' xfrc_applied
    """
    force = d.qfrc_passive - d.qfrc_bias + d.qfrc_applied + d.qfrc_actuator + xfrc_accumulate(m, d)
    new = d.replace(qfrc_smooth=force)
    return waiting(m, d, new, ("qfrc_smooth",)) if sleeps(m) else new


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
    """Acceleration without and with constraints; constraint force.

    M qacc_smooth = qfrc_smooth
    M qacc = qfrc_smooth + qfrc_constraint, the solution of the convex problem of the step; where
    the model has no-slip iterations, what these make of it

    Under the discrete integrator M is the inertia of the step, and positions push as they are at
    its end: see integrate/metric.py.

    What sleeps takes no part: the solver sees it at rest. MuJoCo leaves it the acceleration without
    constraints that it had when it fell asleep.
    """
    if not sleeps(m):
        return _constrained(m, d)
    if all_sleep():
        return _at_rest(m, d)
    awake = dof_awake(m, d)
    rest = {n: jnp.where(awake, getattr(d, n), 0) for n in ("qfrc_smooth", "qacc_warmstart")}
    new = _constrained(m, d.replace(**rest))
    new = waiting(m, d, new, ("qacc_smooth",))
    qacc = jnp.where(awake, new.qacc, new.qacc_smooth)
    return new.replace(qacc=qacc, qfrc_smooth=d.qfrc_smooth, qacc_warmstart=d.qacc_warmstart)


def smooth_acceleration(m: Model, d: Data) -> Array:
    """The acceleration without constraints `[nv, *W]`."""
    return smooth_system(m, d).acceleration()


def _at_rest(m: Model, d: Data) -> Data:
    """The solution where everything sleeps, and there is no row: nothing is asked of the solver."""
    zero, acc = jnp.zeros_like(d.qvel), d.qacc_smooth
    none = jnp.zeros((1, *zero.shape[1:]), jnp.int32)
    d = d.replace(qacc=acc, qfrc_constraint=zero, solver_niter=none)
    return list_rows(m, d.replace(solver=no_statistics(d.solver)))


def _constrained(m: Model, d: Data) -> Data:
    """The solution of the problem of all dofs; under the flag ipc of a model with shells none."""
    system = smooth_system(m, d)
    d = d.replace(rows=weighed_rows(m, d, system.backbone))
    inertia = system.inertia if system.sparse is None else system.sparse
    if d.rows.empty or m.nv == 0 or m.resolves_shells:
        acc = system.acceleration()
        d = count_singular(m, d, inertia, acc)
        none = jnp.zeros((1, *acc.shape[1:]), jnp.int32)
        zero = jnp.zeros_like(acc)
        d = d.replace(qacc_smooth=acc, qacc=acc, qfrc_constraint=zero, solver_niter=none)
        d = d.replace(solver=no_statistics(d.solver))
        if m.lists_row_forces and not d.rows.empty:
            of_rows = Problem(d.M, d.qfrc_smooth, d.rows).row_forces(acc)
            d = d.replace(forces=jax.tree.map(jnp.zeros_like, of_rows))
        return list_rows(m, system.spinning(m, d))
    problem = _problem(m, d, system)
    found = solve(problem, _settings(m, d, problem), _method(m, d))
    d = count_singular(m, d, inertia, found.qacc_smooth).replace(
        qacc_smooth=found.qacc_smooth,
        qacc=found.qacc,
        qfrc_constraint=found.force,
        solver_niter=found.niter,
        solver=found.stat,
    )
    if m.opt.noslip_iterations > 0:
        d = _without_slip(m, d, problem, system, found.rows)
    elif m.lists_row_forces:
        d = d.replace(forces=found.rows or problem.row_forces(found.qacc))
    d = system.spinning(m, d)
    d = list_contact_forces(d) if m.lists_contact_forces else d
    return list_rows(m, d)


def _problem(m: Model, d: Data, system: System) -> Problem:
    """The problem of all dofs, with M without its zeros where Newton's method takes it so."""
    parts = system.parts, solver_parts(m), tied_parts(m)
    problem = Problem(system.inertia, system.force, d.rows, *parts)
    if m.opt.solver != SolverType.NEWTON or m.opt.noslip_iterations > 0:
        return problem
    if isinstance(system.sparse, TreeMatrix):
        of_one_joint = all(
            isinstance(block.J, DofJacobian) or block.type == ConstraintType.LIMIT_JOINT
            for block in d.rows.blocks
        )
        return replace(problem, M=system.sparse) if of_one_joint else problem
    one = few(d.qpos) or goes_by_world(problem)
    by_parts = isinstance(system.sparse, Apart) and one and problem.grows_by_parts()
    return replace(problem, M=system.sparse) if by_parts else problem


def _settings(m: Model, d: Data, problem: Problem) -> Settings:
    """How the solver iterates."""
    dense = isinstance(problem.M, jax.Array)
    inertia, islands = diagonal(d.M) if dense else problem.M.diagonal, None
    if m.opt.solver != SolverType.NEWTON:
        touched, ties = touched_trees(m, d), passive_ties(m, d)
        islands = find_islands(m, problem, touched, inertia, ties)
    return Settings(
        warm=None if m.opt.disableflags & DisableBit.WARMSTART else d.qacc_warmstart,
        tolerance=m.opt.tolerance,
        ls_tolerance=m.opt.ls_tolerance,
        scale=1 / total(inertia),
        islands=islands,
    )


def _method(m: Model, d: Data) -> Callable:
    """The solver's method, with its limits; it records its iterations if `d` keeps them."""
    limit, records = m.opt.iterations, d.solver is not None
    if m.opt.solver == SolverType.PGS:
        return partial(gauss_seidel, iterations=limit, records=records)
    primal = newton if m.opt.solver == SolverType.NEWTON else conjugate_gradients
    return partial(primal, iterations=limit, ls_iterations=m.opt.ls_iterations, records=records)


def _without_slip(
    m: Model, d: Data, problem: Problem, system: System, rows: RowForces | None
) -> Data:
    """The no-slip iterations, after the solver. From here on forces do not follow from `qacc`."""
    slip = system.for_slip(problem, d.qacc_smooth)
    held = without_slip(m, Start(slip, d.qacc, rows, touched_trees(m, d), diagonal(d.M)))
    qacc = held.qacc
    if slip is not problem:
        qacc = problem.solve_inertia(problem.smooth + held.force)
    return d.replace(
        qacc=qacc,
        qfrc_constraint=held.force,
        solver_niter=d.solver_niter + held.niter,
        forces=held.rows,
    )
