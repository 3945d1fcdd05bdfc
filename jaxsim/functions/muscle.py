"""Force-length-velocity curves and activation dynamics of a muscle: MuJoCo's `mju_muscle`
functions.

The model is that of `physics/actuator/muscle.py`. All functions are elementwise: arrays of equal
shape represent many muscles.
"""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.physics.actuator import muscle


def muscle_gain(length: Array, vel: Array, lengthrange: Array, acc0: Array, prm: Array) -> Array:
    """Return the active force per unit activation, () [N]; negative, because muscles pull.

    Args:
      length: length of the actuator, () [m].
      vel: its rate of change, () [m/s].
      lengthrange: smallest and largest length, (2,) [m].
      acc0: norm of the acceleration from unit force at qpos0, () [1/kg or 1/(kg m)].
      prm: (range (2), force, scale, lmin, lmax, vmax, fpmax, fvmax), (9,).
    """
    length, vel, acc0 = jnp.asarray(length), jnp.asarray(vel), jnp.asarray(acc0)
    return muscle.active_muscle_force(length, vel, [*lengthrange], acc0, [*prm])


def muscle_bias(length: Array, lengthrange: Array, acc0: Array, prm: Array) -> Array:
    """Return the passive force of a stretched muscle, () [N]; arguments as for `muscle_gain`."""
    return muscle.passive_muscle_force(
        jnp.asarray(length), [*lengthrange], jnp.asarray(acc0), [*prm]
    )


def muscle_dynamics(ctrl: Array, act: Array, prm: Array) -> Array:
    """Return the rate of change of the activation, () [1/s].

    Args:
      ctrl: excitation, ().
      act: activation, ().
      prm: (tau_act, tau_deact, smoothing width), (3,) [s, s, 1].
    """
    rise, fall, width = prm
    return muscle.muscle_activation_rate(jnp.asarray(ctrl), jnp.asarray(act), (rise, fall, width))
