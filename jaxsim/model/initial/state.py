"""Initial state of a world, where it is not zero."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import CtrlChart, GainType, JointType
from jaxsim.math import Quat
from jaxsim.model.initial.history import start_history
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure


@cache_by_structure
def mocap_bodies(s: Structure) -> np.ndarray:
    """Return the bodies in the order of their mocap ids, [nmocap]."""
    bodies = np.flatnonzero(s.body_mocapid >= 0)
    return bodies[np.argsort(s.body_mocapid[bodies])]


@cache_by_structure
def neutral_controls(s: Structure) -> np.ndarray:
    """Return controls without effect: zeros, and the identity for quaternions, [nu]."""
    by_quat = (s.actuator_gaintype == GainType.SO3) & (s.actuator_ctrlspec == CtrlChart.QUAT)
    out = np.zeros(s.nu)
    out[s.actuator_ctrladr[by_quat]] = 1
    return out


def start_state(m: Model) -> dict:
    """Return the initial fields of Data that are not zero, in the form that the model has.

    Mocap bodies start at their poses in the model. In the form of the physics poses are components,
    otherwise arrays.
    """
    start = {"qpos": m.qpos0, "eq_active": np.array(m.eq_active0, bool)}
    neutral = neutral_controls(m.structure)
    if neutral.any():
        start["ctrl"] = neutral.astype(m.qpos0.dtype)
    if m.npluginstate:
        start["plugin_state"] = m.plugin_state0
    if m.nhistory:
        start["history"] = start_history(m)
    if m.nplastic:
        start["plastic"] = _start_plastic(m)
    if not m.nmocap:
        return start
    bodies = mocap_bodies(m)
    pos, quat = jax.tree.map(lambda a: a[bodies], (m.body_pos, m.body_quat))
    if isinstance(quat, Quat):
        quat = quat.normalize()
    else:
        quat = Quat.from_array(quat, axis=1).normalize().to_array(axis=1)
    return {**start, "mocap_pos": pos, "mocap_quat": quat}


def _start_plastic(m: Model) -> jax.Array:
    """Return the initial `plastic`: rest positions of yielding springs.

    Joint positions are those of `qpos_spring`, tendon ranges those of `tendon_lengthspring`.
    """
    given = [m.qpos_spring, m.tendon_lengthspring[:, 0], m.tendon_lengthspring[:, 1]]
    given.append(jnp.zeros_like(m.qpos_spring[:1]))
    worlds = np.broadcast_shapes(*(a.shape[1:] for a in given))
    return jnp.concatenate([jnp.broadcast_to(a, (len(a), *worlds)) for a in given])[
        _plastic_source(m)
    ]


@cache_by_structure
def _plastic_source(s: Structure) -> np.ndarray:
    """Return the source index of each entry among positions, both spring lengths and a zero,
    [nplastic]."""
    source = np.full(s.nplastic, s.nq + 2 * s.ntendon)
    for joint in np.flatnonzero(s.jnt_plasticadr >= 0):
        place = np.arange(JointType(s.jnt_type[joint]).nq)
        source[s.jnt_plasticadr[joint] + place] = s.jnt_qposadr[joint] + place
    for tendon in np.flatnonzero(s.tendon_plasticadr >= 0):
        ends = np.array([0, s.ntendon])
        source[s.tendon_plasticadr[tendon] + np.arange(2)] = s.nq + tendon + ends
    return source
