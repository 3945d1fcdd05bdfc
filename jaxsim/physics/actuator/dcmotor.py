"""DC motors (`<dcmotor>`): voltage, current, temperature, friction and cogging.

MuJoCo's technical note "MuJoCo DC Motor Model" (XML reference: actuator/dcmotor). With current i,
voltage V, angle l and velocity v of the actuator, and R(T) the resistance at the temperature:

    force = K i,   L di/dt = V - R(T) i - K v;   without inductance i = (V - K v) / R(T)

Cogging and LuGre friction act in addition, outside of the force limits (Canudas de Wit et al., *A
new model for control of systems with friction*, IEEE Trans. Automatic Control 40, 1995).
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.enums import MINVAL, CtrlInput
from jaxsim.model import motor
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.motor import ActState
from jaxsim.physics.actuator.layout import activation_of, has_state, input_of

_CONTROLLER_INPUTS = CtrlInput.POS | CtrlInput.VEL | CtrlInput.FF  # inputs of the controller


def voltage(m: Model, d: Data, ctrl: Array, i: np.ndarray) -> Array:
    """Compute the voltage at the terminals of motors `i`, `[k, *W]`, from the controls `[nu, *W]`.

    The controller asks for a torque, and for the voltage that gives it against the back-EMF:

        torque = kp (u_pos - l) + kd (u_vel - v) + ki z + u_ff
        V = clip(R / K torque + K v, +-Vmax) + u_voltage
    """
    # Inputs; missing ones are zero.
    pos, vel, ff, raw = (input_of(m, ctrl, i, which) for which in _DCMOTOR_INPUTS)
    controlled = (m.actuator_ctrlspec[i] & _CONTROLLER_INPUTS) > 0
    if not controlled.any():
        return raw
    length, speed = _motion(m, d, i)
    R, K, kp, ki, kd, most = (gainprm(m, i, k) for k in _CONTROLLER_COLUMNS)
    z = activation_of(m, d.act, i, ActState.INTEGRAL)
    # PID torque, converted to a voltage against the back-EMF.
    torque = kp * (pos - length) + kd * (vel - speed) + ki * z + ff
    on = column(controlled, K)
    driven = R / jnp.where(on, K, 1) * torque + K * speed
    driven = jnp.where(most > 0, jnp.clip(driven, -most, most), driven)
    return raw + jnp.where(on, driven, 0)


def dcmotor_gain(m: Model, d: Data, i: np.ndarray) -> Array:
    """Return force per current, K, or without inductance per voltage, K / R(T)."""
    K = gainprm(m, i, motor.K)
    by_voltage = K / jnp.maximum(MINVAL, winding_resistance(m, d, i))
    return jnp.where(column(has_state(m, ActState.CURRENT)[i], K), K, by_voltage)


def back_emf(m: Model, d: Data, i: np.ndarray) -> Array:
    """Return the back-EMF force, `-K^2 v / R(T)`; 0 if the current is a state."""
    _, speed = _motion(m, d, i)
    force = -dcmotor_gain(m, d, i) * gainprm(m, i, motor.K) * speed
    return jnp.where(column(has_state(m, ActState.CURRENT)[i], force), 0, force)


def mechanical_force(m: Model, d: Data, i: np.ndarray) -> Array:
    """Compute cogging and LuGre friction, `A sin(n l + phase) - sigma0 z - sigma1 dz/dt`."""
    # Cogging torque.
    length, _ = _motion(m, d, i)
    amplitude, poles, phase = (gather_static(m.actuator_biasprm[:, k], i) for k in _COGGING_COLUMNS)
    force = amplitude * jnp.sin(poles * length + phase)
    if not has_state(m, ActState.BRISTLE)[i].any():
        return force
    # LuGre friction.
    sigma0, sigma1 = (dynprm(m, i, k) for k in (motor.SIGMA0, motor.SIGMA1))
    z, rate = (activation_of(m, x, i, ActState.BRISTLE) for x in (d.act, d.act_dot))
    return force - sigma0 * z - sigma1 * rate


def current_slope(m: Model, d: Data, ctrl: Array, by: str, i: np.ndarray) -> Array:
    """Differentiate the force K i at the end of the step, where the current is a state.

    `by` is `actuator_velocity` or `actuator_length`.
    """

    # Derivative of di/dt, integrated exactly over the step.
    def rate(x: Array) -> Array:
        return current_rate(m, d.replace(**{by: x}), ctrl, i)

    x = getattr(d, by)
    _, change = jax.jvp(rate, (x,), (jnp.ones_like(x),))
    tau = jnp.maximum(MINVAL, dynprm(m, i, motor.TAU))
    return dcmotor_gain(m, d, i) * change * -tau * jnp.expm1(-m.opt.timestep / tau)


def friction_slope(m: Model, i: np.ndarray) -> Array:
    """Return the velocity derivative of the friction: only its part sigma1 v, as in MuJoCo."""
    return -jnp.maximum(dynprm(m, i, motor.SIGMA1), 0)


def cogging_slope(m: Model, d: Data, i: np.ndarray) -> Array:
    """Return the derivative of the cogging by the angle."""
    amplitude, poles, phase = (gather_static(m.actuator_biasprm[:, k], i) for k in _COGGING_COLUMNS)
    length, _ = _motion(m, d, i)
    return amplitude * poles * jnp.cos(poles * length + phase)


def winding_resistance(m: Model, d: Data, i: np.ndarray) -> Array:
    """Return R(T) = R (1 + tempcoef (T + ambient - reftemp)) [Ohm]; R without temperature."""
    R = gainprm(m, i, motor.R)
    warm = has_state(m, ActState.TEMPERATURE)[i]
    if not warm.any():
        return R
    above = dynprm(m, i, motor.AMBIENT) - gainprm(m, i, motor.REFTEMP)
    rise = activation_of(m, d.act, i, ActState.TEMPERATURE) + above
    hot = R * (1 + gainprm(m, i, motor.TEMPCOEF) * rise)
    return jnp.where(column(warm, R), hot, R)


# Rates of the activations of motors `i`, `[k, *W]`.


def temperature_rate(m: Model, d: Data, ctrl: Array, i: np.ndarray) -> Array:
    """Compute dT/dt = (R(T) i^2 - T / R_thermal) / C_thermal, T above the ambient [K/s]."""
    # Ohmic loss, with the current state or the quasi-static current.
    R, (_, speed) = winding_resistance(m, d, i), _motion(m, d, i)
    current = (voltage(m, d, ctrl, i) - gainprm(m, i, motor.K) * speed) / R
    inductive = column(has_state(m, ActState.CURRENT)[i], current)
    current = jnp.where(inductive, activation_of(m, d.act, i, ActState.CURRENT), current)
    loss = activation_of(m, d.act, i, ActState.TEMPERATURE) / dynprm(m, i, motor.THERMAL_R)
    return (R * current * current - loss) / dynprm(m, i, motor.THERMAL_C)


def bristle_rate(m: Model, d: Data, ctrl: Array, i: np.ndarray) -> Array:
    """Compute dz/dt = v - sigma0 |v| / g(v) z, the bristle deflection of the LuGre model."""
    _, speed = _motion(m, d, i)
    return speed - _relaxation(m, i, speed) * activation_of(m, d.act, i, ActState.BRISTLE)


def current_rate(m: Model, d: Data, ctrl: Array, i: np.ndarray) -> Array:
    """Compute di/dt = (V / R(T) - K / R(T) v - i) R / L, limited to the driver's rate [A/s]."""
    R, (_, speed) = winding_resistance(m, d, i), _motion(m, d, i)
    # Quasi-static current, approached with the electrical time constant.
    settled = (voltage(m, d, ctrl, i) - gainprm(m, i, motor.K) * speed) / R
    most, tau = dynprm(m, i, motor.RATE), dynprm(m, i, motor.TAU)
    rate = (settled - activation_of(m, d.act, i, ActState.CURRENT)) / jnp.maximum(MINVAL, tau)
    return jnp.where(most > 0, jnp.clip(rate, -most, most), rate)


def next_bristle(m: Model, d: Data, z: Array, i: np.ndarray) -> Array:
    """Integrate the bristle deflection over a step, exactly for a constant velocity."""
    _, speed = _motion(m, d, i)
    # Relaxation rate; exact integration of the linear equation.
    a, h = _relaxation(m, i, speed), m.opt.timestep
    still = a <= MINVAL
    reached = jnp.where(still, h, -jnp.expm1(-a * h) / jnp.where(still, 1, a))
    return jnp.exp(-a * h) * z + reached * speed


def _relaxation(m: Model, i: np.ndarray, speed: Array) -> Array:
    """Return sigma0 |v| / g(v) [1/s], Stribeck curve g = Fc + (Fs - Fc) exp(-(v / vs)^2)."""
    # Stribeck curve between static and Coulomb friction.
    coulomb, static, stribeck = (
        gather_static(m.actuator_biasprm[:, k], i) for k in _STRIBECK_COLUMNS
    )
    ratio = speed / jnp.maximum(MINVAL, stribeck)
    g = coulomb + (static - coulomb) * jnp.exp(-ratio * ratio)
    return dynprm(m, i, motor.SIGMA0) * jnp.abs(speed) / jnp.maximum(MINVAL, g)


def _motion(m: Model, d: Data, i: np.ndarray) -> tuple[Array, Array]:
    output = m.actuator_outadr[i]
    return gather_static(d.actuator_length, output), gather_static(d.actuator_velocity, output)


def gainprm(m: Model, i: np.ndarray, column: int) -> Array:
    """Gather a gain parameter of motors `i`, `[k, *W]`."""
    return gather_static(m.actuator_gainprm[:, column], i)


def dynprm(m: Model, i: np.ndarray, column: int) -> Array:
    """Gather a dynamics parameter of motors `i`, `[k, *W]`."""
    return gather_static(m.actuator_dynprm[:, column], i)


_DCMOTOR_INPUTS = (CtrlInput.POS, CtrlInput.VEL, CtrlInput.FF, CtrlInput.VOLTAGE)
_CONTROLLER_COLUMNS = (motor.R, motor.K, motor.KP, motor.KI, motor.KD, motor.VMAX)
_COGGING_COLUMNS = (motor.AMPLITUDE, motor.POLES, motor.PHASE)
_STRIBECK_COLUMNS = (motor.COULOMB, motor.STATIC, motor.STRIBECK)
