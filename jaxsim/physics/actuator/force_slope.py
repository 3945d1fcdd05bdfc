"""How the forces of actuators follow their velocities, for implicit integrators.

MuJoCo's documentation, Computation: Numerical integration; Changelog 4.0: saturated actuators have
no implicit derivative.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import GainType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.motor import ActState
from jaxsim.physics.actuator import dcmotor, laws
from jaxsim.physics.actuator.actuation import controls, held_force
from jaxsim.physics.actuator.layout import has_state, output_actuator
from jaxsim.physics.actuator.saturation import joint_saturated, saturated
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.by_kind import by_kind
from jaxsim.physics.arrays.select import take


def force_slope(m: Model, d: Data) -> Array:
    """Derivative of each output's force by its own velocity, `[nout, *W]`.

    It is zero at a limit, which does not hold the friction of motors. No integrator is implicit in
    the forces of plugins.
    """
    ctrl = controls(m, d)
    given = laws.given(m, d, ctrl)

    def force(velocity: Array) -> Array:
        return laws.free_force(m, d.replace(actuator_velocity=velocity), given)

    v = d.actuator_velocity
    _, slope = jax.jvp(force, (v,), (jnp.ones_like(v),))
    motors = m.actuator_gaintype == GainType.DCMOTOR
    early = motors & has_state(m, ActState.CURRENT) & m.actuator_actearly.astype(bool)
    slope = _plus(m, slope, early, lambda i: dcmotor.current_slope(m, d, ctrl, i))
    slope = jnp.where(saturated(m, held_force(m, d)), 0, slope)
    slope = _plus(m, slope, motors, lambda i: dcmotor.friction_slope(m, i))
    return jnp.where(joint_saturated(m, d), 0, laws.only_active(m, slope))


def _plus(m: Model, slope: Array, which: np.ndarray, more: Callable) -> Array:
    """Adds to the numbers of outputs those of some actuators, `[nactuator]` bool."""
    if not which.any():
        return slope
    owner = output_actuator(m)
    table = {True: lambda i: take(slope, i) + more(owner[i]), False: lambda i: take(slope, i)}
    return by_kind(which[owner], table, slope)
