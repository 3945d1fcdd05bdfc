"""Inverse dynamics: the force that produces a given acceleration.

MuJoCo's documentation, Computation: Inverse dynamics. Constraint forces are a function of the
acceleration, through the residual of each row, so that no solver is needed. Forces of no-slip
iterations are not such a function; inverse dynamics ignores them, as in MuJoCo.
"""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import sum_items
from jaxsim.enums import EnableBit, IntegratorType
from jaxsim.math import safe_sqrt
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.actuator.actuation import actuation
from jaxsim.physics.body.applied_force import xfrc_accumulate
from jaxsim.physics.body.inertia import mass_matrix
from jaxsim.physics.body.singular_inertia import count_singular
from jaxsim.physics.constraint.efc.row_list import list_rows
from jaxsim.physics.constraint.regularize import regularized_rows
from jaxsim.physics.integrate.discrete import is_discrete
from jaxsim.physics.integrate.effective_inertia import effective_inertia
from jaxsim.physics.integrate.system import System, unforced_system
from jaxsim.physics.pipeline.forward import to_position, velocity_stages
from jaxsim.physics.sensor.sensor import sensor_acc
from jaxsim.physics.solver.constraint_force import list_contact_forces
from jaxsim.physics.solver.problem import ConstraintProblem


def inverse(m: Model, d: Data) -> Data:
    """Compute `qfrc_inverse` from qpos, qvel and qacc.

        qfrc_inverse = M qacc + qfrc_bias - qfrc_passive - qfrc_constraint

    Under the discrete integrator M is the inertia of the step (integrate/metric.py). At the
    acceleration of the forward dynamics the result is the sum of applied and actuator forces. Under
    the invdiscrete flag `qacc` is (next qvel - qvel) / timestep instead. Corresponds to
    `mj_inverse` in MuJoCo.
    """
    d = velocity_stages(m, to_position(m, d.replace(readings=None)))
    d = count_singular(m, d, mass_matrix(m, d), d.qacc)
    return inverse_forces(m, d)


def inverse_forces(m: Model, d: Data, sensors: bool = True) -> Data:
    """Run the inverse dynamics after the position and velocity stages."""
    given = d.qacc
    # Requested acceleration, with the rows of the state.
    d = d.replace(qacc=continuous_acceleration(m, d), forces=None)
    system = unforced_system(m, d)
    d = d.replace(rows=regularized_rows(m, d, system.backbone))
    d = list_rows(m, list_contact_forces(inv_constraint(m, d)))
    d = d.replace(qfrc_inverse=_force(m, d, system))
    return (sensor_acc(m, d) if sensors else d).replace(qacc=given)


def compare_fwd_inv(m: Model, d: Data) -> Data:
    """Compare forward and inverse dynamics, after the forward dynamics.

    `solver_fwdinv` receives the norms of the differences in constraint force and in applied force,
    which measure how far the solver is from the solution; zero without rows. Corresponds to
    `mj_compareFwdInv` in MuJoCo.
    """
    back = inv_constraint(m, d.replace(qacc=continuous_acceleration(m, d)))
    # Compare constraint force and total applied force.
    force = _force(m, back, unforced_system(m, d))
    applied = d.qfrc_applied + d.qfrc_actuator + xfrc_accumulate(m, d)
    differences = (back.qfrc_constraint - d.qfrc_constraint, force - applied)
    norms = jnp.concatenate([safe_sqrt(sum_items(a * a)) for a in differences])
    some = d.nefc > 0
    return d.replace(
        solver_fwdinv=jnp.where(some, norms, 0),
        qfrc_inverse=d.qfrc_inverse
        if d.qfrc_inverse is None
        else jnp.where(some, force, d.qfrc_inverse),
    )


def continuous_acceleration(m: Model, d: Data) -> Array:
    """Return the acceleration `[nv, *W]` that the integrator maps to the change of velocity.

        M a = (M + h D) qacc

    Without the invdiscrete flag, and under the discrete integrator, the given acceleration is
    returned. Corresponds to `mj_discreteAcc` in MuJoCo.

    Raises:
      ValueError: the flag is set and the integrator is RK4, whose step has no such inverse.
    """
    if not m.opt.enableflags & EnableBit.INVDISCRETE or is_discrete(m):
        return d.qacc
    if m.opt.integrator == IntegratorType.RK4:
        raise ValueError("inverse: the flag invdiscrete needs another integrator than RK4")
    # Apply the implicit inertia of the integrator, then solve with M.
    inertia = effective_inertia(m, actuation(m, d))
    if inertia is None:
        return d.qacc
    return mass_matrix(m, d).solve(inertia.multiply(d.qacc))


def _force(m: Model, d: Data, system: System) -> Array:
    """Compute the force `[nv, *W]` that produces `d.qacc`."""
    force = system.multiply(m, d, d.qacc) - system.force
    return force + d.qfrc_bias - d.qfrc_passive - d.qfrc_constraint


def inv_constraint(m: Model, d: Data) -> Data:
    """Compute the constraint force J' f at `qacc`; f is minus the gradient of each row's cost.

    Corresponds to `mj_invConstraint` in MuJoCo.
    """
    if not m.nv or d.rows.empty:
        return d.replace(qfrc_constraint=jnp.zeros_like(d.qacc))
    problem = ConstraintProblem.of(m, d, d.qacc)
    return d.replace(qfrc_constraint=problem.force_at(d.qacc))
