"""Indices of objects in the arrays of Data in which each object has several entries.

Indices are numpy arrays, known at trace time.
"""

from typing import Any

import numpy as np

from jaxsim.enums import JointType
from jaxsim.model.structure import Structure


def expand_ranges(first: np.ndarray, count: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Return the concatenated index ranges first, first + 1, ... of some objects."""
    parts = [np.arange(first[i], first[i] + count[i]) for i in ids]
    return np.concatenate([np.zeros(0, int), *parts])


def time_indices(model: Any) -> np.ndarray:
    """Return the indices of times in `history`: tick and samples of each buffer, (nhistorytime,).

    Args:
      model: a structure, or an `mujoco.MjModel`.
    """
    parts = [np.zeros(0, int)]
    for kind in ("actuator", "sensor"):
        addresses, history = getattr(model, f"{kind}_historyadr"), getattr(model, f"{kind}_history")
        for owner in np.flatnonzero(addresses >= 0):
            first, size = addresses[owner], history[owner, 0]
            parts.append(np.array([first, *range(first + 2, first + 2 + size)], int))
    return np.concatenate(parts)


def qpos_indices(s: Structure, ids: np.ndarray) -> np.ndarray:
    """Return the indices of joints in `qpos`."""
    return expand_ranges(s.jnt_qposadr, np.array([JointType(t).nq for t in s.jnt_type], int), ids)


def dof_indices(s: Structure, ids: np.ndarray) -> np.ndarray:
    """Return the indices of joints in `qvel`."""
    return expand_ranges(s.jnt_dofadr, np.array([JointType(t).nv for t in s.jnt_type], int), ids)


def ctrl_indices(s: Structure, ids: np.ndarray) -> np.ndarray:
    """Return the indices of actuators in `ctrl`."""
    return expand_ranges(s.actuator_ctrladr, s.actuator_ctrlnum, ids)


def sensor_indices(s: Structure, ids: np.ndarray) -> np.ndarray:
    """Return the indices of sensors in `sensordata`."""
    return expand_ranges(s.sensor_adr, s.sensor_dim, ids)


def act_indices(s: Structure, ids: np.ndarray) -> np.ndarray:
    """Return the indices of actuators in `act`."""
    return expand_ranges(s.actuator_actadr, s.actuator_actnum, ids)


def out_indices(s: Structure, ids: np.ndarray) -> np.ndarray:
    """Return the indices of actuators in `actuator_force`."""
    return expand_ranges(s.actuator_outadr, s.actuator_outnum, ids)
