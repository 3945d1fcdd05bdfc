"""Initial state of a world, where it is not zero."""

import jax
import numpy as np

from jaxsim.enums import CtrlChart, GainType
from jaxsim.math import Quat
from jaxsim.model.initial.history import start_history
from jaxsim.model.initial.plastic import start_plastic
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
        start["plastic"] = start_plastic(m)
    if not m.nmocap:
        return start
    bodies = mocap_bodies(m)
    pos, quat = jax.tree.map(lambda a: a[bodies], (m.body_pos, m.body_quat))
    if isinstance(quat, Quat):
        quat = quat.normalize()
    else:
        quat = Quat.from_array(quat, axis=1).normalize().to_array(axis=1)
    return {**start, "mocap_pos": pos, "mocap_quat": quat}
