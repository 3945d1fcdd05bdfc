"""Derivatives of actuator forces by velocity and length, for implicit integrators.

MuJoCo's documentation, Computation: Numerical integration; Changelog 4.0: saturated actuators have
no implicit derivative. The force laws are differentiated by a JVP with unit tangents, since each
output depends on its own velocity and length only.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.arrays.kind_dispatch import compute_by_kind
from jaxsim.enums import BiasType, GainType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.motor import ActState
from jaxsim.physics.actuator import dcmotor, force_laws
from jaxsim.physics.actuator.actuation import effective_controls, limited_force
from jaxsim.physics.actuator.layout import has_state, output_actuator
from jaxsim.physics.actuator.saturation import joint_saturated, saturated_outputs


def force_slope(m: Model, d: Data, by: str = "actuator_velocity") -> Array:
    """Differentiate each output's force by its own velocity or length, `[nout, *W]`.

    The derivative is zero at a limit, except that of friction and cogging, to which no limit
    applies. Forces of plugins and of user callbacks are explicit in all integrators.

    Args:
      m, d: model and data.
      by: the field of Data, `actuator_velocity` or `actuator_length`.
    """
    # Inputs of the force laws are held constant.
    ctrl = effective_controls(m, d)
    given = force_laws.force_inputs(m, d, ctrl)
    of_engine = m.replace_unchecked({"callbacks": None}, native=True)

    # One JVP of the force laws gives all derivatives.
    def force(x: Array) -> Array:
        return force_laws.free_force(of_engine, d.replace(**{by: x}), given)

    x = getattr(d, by)
    _, slope = jax.jvp(force, (x,), (jnp.ones_like(x),))
    # Currents that are a state and act early contribute at the end of the step.
    motors = m.actuator_gaintype == GainType.DCMOTOR
    early = motors & has_state(m, ActState.CURRENT) & m.actuator_actearly.astype(bool)
    slope = _add_to_outputs(m, slope, early, partial(dcmotor.current_slope, m, d, ctrl, by))
    # Friction and cogging, to which no limit applies.
    if by == "actuator_velocity":
        unlimited = partial(dcmotor.friction_slope, m)
    else:
        slope = _isotropic_stiffness(m, slope)
        motors = m.actuator_biastype == BiasType.DCMOTOR
        unlimited = partial(dcmotor.cogging_slope, m, d)
    # Zero at limits, then add what no limit applies to.
    slope = jnp.where(saturated_outputs(m, limited_force(m, d)), 0, slope)
    slope = _add_to_outputs(m, slope, motors, unlimited)
    return jnp.where(joint_saturated(m, d), 0, force_laws.only_active(m, slope))


def _isotropic_stiffness(m: Model, slope: Array) -> Array:
    """Replace length derivatives of orientation servos by their isotropic stiffness, as MuJoCo."""
    owner = output_actuator(m)
    turns = (m.actuator_gaintype == GainType.SO3)[owner]
    if not turns.any():
        return slope
    return jnp.where(column(turns, slope), gather_static(m.actuator_biasprm[:, 1], owner), slope)


def _add_to_outputs(m: Model, slope: Array, which: np.ndarray, more: Callable) -> Array:
    """Add values of some actuators, `[nactuator]` bool, to those of outputs."""
    if not which.any():
        return slope
    owner = output_actuator(m)
    table = {
        True: lambda i: gather_static(slope, i) + more(owner[i]),
        False: lambda i: gather_static(slope, i),
    }
    return compute_by_kind(which[owner], table, slope)
