"""One step of the physics, as the list of its stages. Everything is found from here.

MuJoCo's documentation, Programming: Simulation loop; Computation: Forward dynamics.
"""

import jax.numpy as jnp

from jaxsim.enums import DisableBit, EnableBit
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.actuator.actuation import actuation
from jaxsim.physics.actuator.transmission import actuator_velocity, transmission
from jaxsim.physics.arrays.factor import solve_spd
from jaxsim.physics.arrays.select import diagonal, total
from jaxsim.physics.body.applied import xfrc_force
from jaxsim.physics.body.camera import camera
from jaxsim.physics.body.inertia import com_pos, crb
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.body.rne import bias, com_vel
from jaxsim.physics.collision.contacts import collision
from jaxsim.physics.constraint.make import make_constraint
from jaxsim.physics.passive.energy import energy_pos, energy_vel
from jaxsim.physics.passive.passive import passive
from jaxsim.physics.sensor.sensor import sensor_acc, sensor_pos, sensor_vel
from jaxsim.physics.solver.constraint_force import list_contact_forces
from jaxsim.physics.solver.newton import Settings, solve
from jaxsim.physics.solver.noslip import without_slip
from jaxsim.physics.solver.problem import Problem
from jaxsim.physics.stage import stage
from jaxsim.physics.tendon.tendon import tendon, tendon_velocity


def forward(m: Model, d: Data) -> Data:
    """Forward dynamics: everything that follows from state and inputs, up to `qacc` and sensors.

    Example:
      >>> level = d.replace(qpos=jnp.full(1, jnp.pi / 2))  # a pendulum held level
      >>> round(float(jax.jit(jaxsim.forward)(m, level).qacc[0]), 2)
      -9.77
    """
    d = fwd_position(m, d)
    d = sensor_pos(m, d)
    d = energy_pos(m, d) if m.opt.enableflags & EnableBit.ENERGY else d
    d = fwd_velocity(m, d)
    d = sensor_vel(m, d)
    d = energy_vel(m, d) if m.opt.enableflags & EnableBit.ENERGY else d
    d = fwd_actuation(m, d)
    d = fwd_acceleration(m, d)
    d = fwd_constraint(m, d)
    return sensor_acc(m, d)


def fwd_position(m: Model, d: Data) -> Data:
    """What follows from the configuration."""
    d = kinematics(m, d)
    d = com_pos(m, d)
    d = camera(m, d)
    d = tendon(m, d)
    d = crb(m, d)
    d = collision(m, d)
    return transmission(m, d)


def fwd_velocity(m: Model, d: Data) -> Data:
    """What follows from the velocity; the constraint rows, whose reference depends on it."""
    d = tendon_velocity(m, d)
    d = actuator_velocity(m, d)
    d = com_vel(m, d)
    d = passive(m, d)
    d = bias(m, d)
    return make_constraint(m, d)


def fwd_actuation(m: Model, d: Data) -> Data:
    """Actuator forces and activation rates."""
    return actuation(m, d)


@stage(
    reads="qfrc_applied xfrc_applied xipos subtree_com cdof qfrc_bias qfrc_passive qfrc_actuator",
    writes="qfrc_smooth",
)
def fwd_acceleration(m: Model, d: Data) -> Data:
    """Force of everything except constraints.

    qfrc_smooth = qfrc_passive - qfrc_bias + qfrc_applied + qfrc_actuator + J' xfrc_applied
    """
    force = d.qfrc_passive - d.qfrc_bias + d.qfrc_applied + d.qfrc_actuator + xfrc_force(m, d)
    return d.replace(qfrc_smooth=force)


@stage(
    reads="qacc_warmstart M qfrc_smooth contact found rows",
    writes="solver_niter contact qacc_smooth qfrc_constraint qacc forces",
)
def fwd_constraint(m: Model, d: Data) -> Data:
    """Acceleration without and with constraints; constraint force.

    M qacc_smooth = qfrc_smooth
    M qacc = qfrc_smooth + qfrc_constraint, the solution of the convex problem of the step; where
    the model has no-slip iterations, what these make of it
    """
    if d.rows.empty or m.nv == 0:
        acc = solve_spd(d.M, d.qfrc_smooth)
        none = jnp.zeros((1, *acc.shape[1:]), jnp.int32)
        zero = jnp.zeros_like(acc)
        return d.replace(qacc_smooth=acc, qacc=acc, qfrc_constraint=zero, solver_niter=none)
    settings = Settings(
        warm=None if m.opt.disableflags & DisableBit.WARMSTART else d.qacc_warmstart,
        tolerance=m.opt.tolerance,
        ls_tolerance=m.opt.ls_tolerance,
        scale=1 / total(diagonal(d.M)),
    )
    problem = Problem(d.M, d.qfrc_smooth, d.rows)
    found = solve(problem, settings, m.opt.iterations, m.opt.ls_iterations)
    d = d.replace(
        qacc_smooth=found.qacc_smooth,
        qacc=found.qacc,
        qfrc_constraint=found.force,
        solver_niter=found.niter,
    )
    return _without_slip(m, d, problem) if m.opt.noslip_iterations > 0 else d


def _without_slip(m: Model, d: Data, problem: Problem) -> Data:
    """The no-slip iterations, after the solver. From here on forces do not follow from `qacc`."""
    held = without_slip(m, problem, d.qacc)
    d = d.replace(
        qacc=held.qacc,
        qfrc_constraint=held.force,
        solver_niter=d.solver_niter + held.niter,
        forces=held.rows,
    )
    return list_contact_forces(d)
