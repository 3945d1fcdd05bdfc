"""PID servos (`<pid>`): setpoints of position and velocity, an integral and a feedforward.

MuJoCo's documentation, XML reference: actuator/pid.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.enums import CtrlInput
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.motor import PID_KI, ActState
from jaxsim.physics.actuator.layout import activation_of, input_of
from jaxsim.physics.actuator.setpoint import nearest_setpoint

_PID_INPUTS = (CtrlInput.POS, CtrlInput.VEL, CtrlInput.FF)


def pid_force(m: Model, d: Data, ctrl: Array, act: Array, i: np.ndarray) -> Array:
    """Compute the force of inputs and integral z, `[k, *W]`; the affine bias adds -kp l - kv v.

        kp u_pos + kv u_vel + u_ff + ki z

    Args:
      m, d: model and data.
      ctrl: controls `[nu, *W]`.
      act: activations that give force, `[na, *W]`.
      i: actuators, `[k]`.
    """
    # Setpoints and gains.
    pos, vel, ff = (input_of(m, ctrl, i, which) for which in _PID_INPUTS)
    kp, kv = (-gather_static(m.actuator_biasprm[:, k], i) for k in (1, 2))
    ki = gather_static(m.actuator_gainprm[:, PID_KI], i)
    force = kp * nearest_setpoint(m, d, i, pos) + kv * vel + ff
    return force + ki * activation_of(m, act, i, ActState.INTEGRAL)


def integral_rate(m: Model, d: Data, ctrl: Array, i: np.ndarray, imax: Array) -> Array:
    """Return the rate of the integral: the position error; 0 beyond imax (0: no limit)."""
    # Position error, unwrapped on a circle.
    pos = nearest_setpoint(m, d, i, input_of(m, ctrl, i, CtrlInput.POS))
    error = pos - gather_static(d.actuator_length, m.actuator_outadr[i])
    z = activation_of(m, d.act, i, ActState.INTEGRAL)
    # Anti-windup: no growth beyond the limit.
    above, below = ((imax > 0) & beyond for beyond in (z >= imax, z <= -imax))
    error = jnp.where(above, jnp.minimum(error, 0), error)
    return jnp.where(below & ~above, jnp.maximum(error, 0), error)
