"""Activation states of actuators: their rates of change, and their values one step later.

MuJoCo's documentation, Computation: Stateful actuators.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import MINVAL, DisableBit, DynType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.actuator import muscle
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.by_kind import by_kind
from jaxsim.physics.arrays.select import column, take


def activation_rate(m: Model, d: Data, ctrl: Array) -> Array:
    """act_dot `[na, *W]`, from the control `[nactuator, *W]` of every actuator.

    Of activations that plugins keep by themselves it is 0 here.
    """
    owner = act_owner(m)
    ctrl = take(ctrl, owner)
    kind = np.where(of_plugins(m), DynType.NONE, m.actuator_dyntype[owner])
    return by_kind(kind, {k: lambda i, f=f: f(m, d, ctrl, i) for k, f in RATES.items()}, d.act)


def next_activation(m: Model, d: Data) -> Array:
    """The activation `[na, *W]` after one time step, from `d.act` and `d.act_dot`.

    The activation of a disabled actuator stays.
    """
    if not m.na or m.opt.disableflags & DisableBit.ACTUATION:
        return d.act
    owner = act_owner(m)
    h = m.opt.timestep
    stepped = d.act + h * d.act_dot
    exact = m.actuator_dyntype[owner] == DynType.FILTEREXACT
    if exact.any():
        tau = jnp.maximum(MINVAL, take(m.actuator_dynprm[:, 0], owner))
        decay = -tau * jnp.expm1(-h / tau)
        stepped = jnp.where(column(exact, stepped), d.act + decay * d.act_dot, stepped)
    limited = m.actuator_actlimited[owner].astype(bool)
    if limited.any():
        lower, upper = (take(m.actuator_actrange[:, k], owner) for k in range(2))
        stepped = jnp.where(column(limited, stepped), jnp.clip(stepped, lower, upper), stepped)
    off = disabled(m)[owner]
    return jnp.where(column(off, stepped), d.act, stepped) if off.any() else stepped


def disabled(m: Model) -> np.ndarray:
    """[nactuator] bool: actuators whose group is off."""
    return (m.opt.disableactuator >> np.clip(m.actuator_group, 0, 30)) & 1 > 0


@derived
def act_owner(s: Structure) -> np.ndarray:
    """[na]: the actuator of each activation."""
    return np.repeat(np.arange(s.nactuator), s.actuator_actnum)


@derived
def of_plugins(s: Structure) -> np.ndarray:
    """[na] bool: activations that plugins keep; that of an actuator's dyntype is its last."""
    owner = act_owner(s)
    last = (s.actuator_actadr + s.actuator_actnum - 1)[owner] == np.arange(s.na)
    by_type = last & (s.actuator_dyntype[owner] != DynType.NONE)
    return (s.actuator_plugin[owner] >= 0) & ~by_type


def _none(m: Model, d: Data, ctrl: Array, i: np.ndarray) -> Array:
    return jnp.zeros_like(take(d.act, i))


def _integrator(m: Model, d: Data, ctrl: Array, i: np.ndarray) -> Array:
    return take(ctrl, i)


def _filter(m: Model, d: Data, ctrl: Array, i: np.ndarray) -> Array:
    tau = jnp.maximum(MINVAL, take(m.actuator_dynprm[:, 0], act_owner(m)[i]))
    return (take(ctrl, i) - take(d.act, i)) / tau


def _muscle(m: Model, d: Data, ctrl: Array, i: np.ndarray) -> Array:
    prm = take(m.actuator_dynprm, act_owner(m)[i])
    return muscle.activation_rate(take(ctrl, i), take(d.act, i), (prm[:, 0], prm[:, 1], prm[:, 2]))


RATES = {
    DynType.NONE: _none,
    DynType.INTEGRATOR: _integrator,
    DynType.FILTER: _filter,
    DynType.FILTEREXACT: _filter,
    DynType.MUSCLE: _muscle,
}
