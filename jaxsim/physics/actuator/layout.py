"""Addresses of controls, activations and outputs of actuators, from the structure of a model.

An actuator has a block of controls, a block of activations and a block of outputs, most of size
one. A missing control or activation reads as zero.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.enums import CtrlInput, DynType
from jaxsim.math import Vec
from jaxsim.model.model import Model
from jaxsim.model.motor import ActState
from jaxsim.model.structure import Structure, cache_by_structure


@cache_by_structure
def act_owner(s: Structure) -> np.ndarray:
    """Return the actuator of each activation, [na]."""
    return np.repeat(np.arange(s.nactuator), s.actuator_actnum)


@cache_by_structure
def ctrl_owner(s: Structure) -> np.ndarray:
    """Return the actuator of each control, [nu]."""
    return np.repeat(np.arange(s.nactuator), s.actuator_ctrlnum)


@cache_by_structure
def output_actuator(s: Structure) -> np.ndarray:
    """Return the actuator of each output, [nout]."""
    return np.repeat(np.arange(s.nactuator), s.actuator_outnum)


@cache_by_structure
def act_kind(s: Structure) -> np.ndarray:
    """Return the law of each activation, [na]: `DynType`, or `ActState` of controllers and motors.

    NONE for activations owned by plugins; an actuator's dyntype is that of its last activation.
    """
    # Controllers and motors: their states in order.
    kind = s.actuator_dyntype[act_owner(s)]
    for i in np.flatnonzero(np.isin(s.actuator_dyntype, (DynType.PID, DynType.DCMOTOR))):
        first = s.actuator_actadr[i]
        states = np.flatnonzero(s.actuator_states[i]) + ActState.SLEW
        kind[first : first + len(states)] = states
    last = (s.actuator_actadr + s.actuator_actnum - 1)[act_owner(s)] == np.arange(s.na)
    return np.where((s.actuator_plugin[act_owner(s)] >= 0) & ~last, DynType.NONE, kind)


@cache_by_structure
def first_control(s: Structure) -> np.ndarray:
    """Return the address of the first control of each actuator, [nactuator]; nu: none."""
    return np.where(s.actuator_ctrlnum > 0, s.actuator_ctrladr, s.nu)


def has_state(m: Model | Structure, state: ActState) -> np.ndarray:
    """Return the actuators with an activation of this kind, [nactuator] bool."""
    return m.actuator_states[:, state - ActState.SLEW]


def activation_of(m: Model, act: Array, i: np.ndarray, state: ActState) -> Array:
    """Gather an activation of this kind of actuators `i`, `[k, *W]`; 0 where there is none."""
    has = m.actuator_states.astype(int)
    adr = m.actuator_actadr + has[:, : state - ActState.SLEW].sum(axis=1)
    return or_zero(act, np.where(has_state(m, state), adr, m.na)[i])


def input_of(m: Model, ctrl: Array, i: np.ndarray, which: CtrlInput) -> Array:
    """Gather an input of controllers or motors `i` from the controls `[nu, *W]`; 0 if absent."""
    # Inputs are stored in the order of their bits.
    before = [int(spec & (which - 1)).bit_count() for spec in m.actuator_ctrlspec]
    adr = np.where(m.actuator_ctrlspec & which, m.actuator_ctrladr + before, m.nu)
    return or_zero(ctrl, adr[i])


def or_zero(x: Array, index: np.ndarray) -> Array:
    """Gather items of `x` `[n, *W]`; index n gives zero."""
    if (index < len(x)).all():
        return gather_static(x, index)
    return gather_static(jnp.concatenate([x, jnp.zeros((1, *x.shape[1:]), x.dtype)]), index)


def parameter_columns(prm: Array, i: np.ndarray) -> list[Array]:
    """Gather the parameters of some actuators: one array `[k, *W]` per column."""
    return [gather_static(prm[:, k], i) for k in range(prm.shape[1])]


def gather_columns(prm: Array, i: np.ndarray, column: np.ndarray) -> Array:
    """Gather one parameter per actuator, each from its own column, `[k, *W]`."""
    flat = prm.reshape(prm.shape[0] * prm.shape[1], *prm.shape[2:])
    return gather_static(flat, i * prm.shape[1] + column)


def flatten_vectors(v: Vec) -> Array:
    """Interleave vectors `[n, *W]` to components `[3 n, *W]`."""
    return jnp.stack(v.parts, axis=1).reshape(3 * len(v.x), *v.x.shape[1:])
