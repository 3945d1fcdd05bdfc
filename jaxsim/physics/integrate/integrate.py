"""From the acceleration to the next state: the integrators.

MuJoCo's documentation, Computation: Numerical integration.
"""

import jax
import numpy as np
from jax import lax

from jaxsim.enums import EnableBit, IntegratorType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.actuator.actuation import next_activation
from jaxsim.physics.actuator.setpoint import nearest_activation
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.body.configuration import displacement_rate, integrate_pos
from jaxsim.physics.forward import (
    fwd_acceleration,
    fwd_actuation,
    fwd_constraint,
    fwd_position,
    fwd_velocity,
)
from jaxsim.physics.integrate.effective_inertia import effective_inertia
from jaxsim.physics.passive.energy import energy_pos, energy_vel
from jaxsim.physics.refusal import Refusal


def single_step(m: Model, d: Data) -> Data:
    """Semi-implicit Euler; the integrator says which forces are implicit in velocity.

    (M + h D) a = qfrc_smooth + qfrc_constraint
    qvel += h a,   qpos moves along the new qvel
    """
    inertia = effective_inertia(m, d)
    acc = d.qacc if inertia is None else inertia.solve(d.qfrc_smooth + d.qfrc_constraint)
    return advance(m, d, acc)


def rk4(m: Model, d: Data) -> Data:
    """The classical Runge-Kutta method of fourth order.

    Stage i starts from the state moved along the slope of stage i - 1. A configuration's slope is
    that of its displacement from `d.qpos` (`displacement_rate`), so that slopes may be added where
    there are rotations. The later stages are one program, run three times.

    As in MuJoCo, `qacc` becomes the mean of the slopes, and other results are those of the last
    stage, but for the lengths of actuators, the sensors and what only they need, which are those of
    the start of the step.
    """
    h = m.opt.timestep
    first = (d.qvel, d.qacc, d.act_dot)

    def stage(carry, part):
        before, (vel, acc, act_dot), mean = carry
        fraction, weight = part
        dt = fraction * h
        there = d.replace(
            time=d.time + dt,
            qpos=integrate_pos(m, d.qpos, vel, dt),
            qvel=d.qvel + dt * acc,
            act=d.act + dt * act_dot,
            qacc_warmstart=acc,
            warning=before.warning,
        )
        there = _dynamics(m, there)
        slope = (displacement_rate(m, dt * vel, there.qvel), there.qacc, there.act_dot)
        return (there, slope, jax.tree.map(lambda a, b: a + weight * b, mean, slope)), None

    dtype = d.qpos.dtype
    parts = (np.array([1 / 2, 1 / 2, 1], dtype), np.array([1 / 3, 1 / 3, 1 / 6], dtype))
    start = (d, first, jax.tree.map(lambda a: a / 6, first))
    (last, _, (vel, acc, act_dot)), _ = lax.scan(stage, start, parts)
    new = advance(m, d.replace(act_dot=act_dot), acc, vel)
    end = last.replace(time=new.time, qpos=new.qpos, qvel=new.qvel, act=new.act)
    lengths = d.actuator_length  # by which `advance` turns setpoints back
    return end.replace(qacc=acc, qacc_warmstart=last.qacc, actuator_length=lengths)


def advance(m: Model, d: Data, acc: Array, vel: Array | None = None) -> Data:
    """The state one time step later.

    Args:
      m: model.
      d: data with the activation rates and the acceleration, which starts the next step's solver.
      acc: acceleration `[nv, *W]`.
      vel: velocity along which the configuration moves; None: the new velocity.
    """
    h = m.opt.timestep
    qvel = d.qvel + h * acc
    qpos = integrate_pos(m, d.qpos, qvel if vel is None else vel, h)
    act = nearest_activation(m, d, next_activation(m, d))
    return d.replace(time=d.time + h, qpos=qpos, qvel=qvel, act=act, qacc_warmstart=d.qacc)


def refusals(m: Model) -> list[Refusal]:
    """An integrator that is not there, named."""
    kind = IntegratorType(m.opt.integrator)
    if kind in INTEGRATORS:
        return []
    known = ", ".join(f"'{name}'" for name in XML_NAMES)
    what = f"option integrator '{kind.name.lower()}' is not supported; use one of {known}"
    return [Refusal(what)]


def _dynamics(m: Model, d: Data) -> Data:
    """Forward dynamics without sensors."""
    energies = m.opt.enableflags & EnableBit.ENERGY
    d = fwd_position(m, d)
    d = energy_pos(m, d) if energies else d
    d = fwd_velocity(m, d)
    d = energy_vel(m, d) if energies else d
    for part in (fwd_actuation, fwd_acceleration, fwd_constraint):
        d = part(m, d)
    return d


INTEGRATORS = {
    IntegratorType.EULER: single_step,
    IntegratorType.RK4: rk4,
    IntegratorType.IMPLICIT: single_step,
    IntegratorType.IMPLICITFAST: single_step,
}
XML_NAMES = ("Euler", "RK4", "implicit", "implicitfast")
