"""From the acceleration to the next state: the integrators.

MuJoCo's documentation, Computation: Numerical integration.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from jaxsim.data import Data
from jaxsim.enums import DisableBit, IntegratorType
from jaxsim.model import Model
from jaxsim.physics.actuation import next_activation
from jaxsim.physics.factor import solve_spd
from jaxsim.physics.position import integrate_pos

Forward = Callable[[Model, Data], Data]


def euler(m: Model, d: Data, forward: Forward) -> Data:
    """Semi-implicit Euler, joint damping implicit.

        (M + h diag(damping)) a = qfrc_smooth + qfrc_constraint
        qvel += h a,   qpos moves along the new qvel
    """
    acc = d.qacc
    if not m.opt.disableflags & DisableBit.EULERDAMP:
        damped = d.M + _diagonal(m.opt.timestep * m.dof_damping, d.M)
        acc = solve_spd(damped, d.qfrc_smooth + d.qfrc_constraint)
    return advance(m, d, acc)


def advance(m: Model, d: Data, acc, vel=None) -> Data:
    """The state one time step later.

    Args:
      m: model.
      d: data with the activation rates.
      acc: acceleration `[nv, *W]`.
      vel: velocity along which the configuration moves; None: the new velocity.
    """
    h = m.opt.timestep
    qvel = d.qvel + h * acc
    qpos = integrate_pos(m, d.qpos, qvel if vel is None else vel, h)
    return d.replace(time=d.time + h, qpos=qpos, qvel=qvel, act=next_activation(m, d))


def _diagonal(values, like):
    n = like.shape[0]
    eye = np.eye(n, dtype=like.dtype).reshape(n, n, *(1,) * (like.ndim - 2))
    return eye * jnp.broadcast_to(values, (n, *like.shape[2:]))[:, None]


INTEGRATORS = {IntegratorType.EULER: euler}
