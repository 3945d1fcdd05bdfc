"""Indices of named sensors, joints and actuators in the arrays of Data.

Indices are numpy arrays, known at trace time, so that `d.qpos[qpos_index(m, "knee")]` compiles to a
static slice.
"""

from collections.abc import Iterable

import jax
import numpy as np

from jaxsim.model.data import Data
from jaxsim.model.indices import ctrl_indices, dof_indices, qpos_indices, sensor_indices
from jaxsim.model.model import Model
from jaxsim.model.names import name2id
from jaxsim.model.record.check import brief_value
from jaxsim.model.shaped import Float, Int

Names = str | Iterable[str]


def sensor_data(m: Model, d: Data, name: str) -> Float[jax.Array, "*batch dim"]:
    """Return the reading of a sensor.

    Args:
      m: the model.
      d: one world, or many with leading axes, after `forward` or `step`.
      name: name of the sensor.

    Returns:
      Its values, (..., dim), also where dim is 1.

    Raises:
      ValueError: no sensor has this name; the message names the nearest.

    Example:
      >>> arm = '<body><joint name="j"/><geom size=".1"/></body>'
      >>> angle = '<sensor><jointpos name="angle" joint="j"/></sensor>'
      >>> m = jaxsim.load_model(f"<mujoco><worldbody>{arm}</worldbody>{angle}</mujoco>")
      >>> d = jaxsim.forward(m, jaxsim.make_data(m).replace(qpos=jnp.array([0.5])))
      >>> sensor_data(m, d, "angle")
      Array([0.5], dtype=float64)
    """
    return d.sensordata[..., sensor_index(m, name)]


def sensor_index(m: Model, names: Names) -> Int[np.ndarray, "n"]:
    """Return the indices of sensors in `sensordata`, concatenated, int (n,)."""
    return sensor_indices(m.structure, _ids(m, "sensor", names))


def qpos_index(m: Model, names: Names) -> Int[np.ndarray, "n"]:
    """Return the indices of joints in `qpos`, concatenated, int (n,).

    Args:
      m: the model.
      names: one joint or several; a free joint has seven coordinates, a ball joint four.

    Raises:
      ValueError: no joint has this name; the message names the nearest.

    Example:
      >>> qpos_index(m, "hinge")
      array([0])
    """
    return qpos_indices(m.structure, _ids(m, "joint", names))


def dof_index(m: Model, names: Names) -> Int[np.ndarray, "n"]:
    """Return the indices of joints in `qvel`, concatenated, int (n,); a free joint has six."""
    return dof_indices(m.structure, _ids(m, "joint", names))


def ctrl_index(m: Model, names: Names) -> Int[np.ndarray, "n"]:
    """Return the indices of actuators in `ctrl`, concatenated, int (n,)."""
    return ctrl_indices(m.structure, _ids(m, "actuator", names))


def _ids(m: Model, kind: str, names: Names) -> np.ndarray:
    given = [names] if isinstance(names, str) else names
    if not isinstance(given, Iterable) or not all(isinstance(name, str) for name in given):
        raise ValueError(f"{kind}: expected a name or several, got {brief_value(names)}")
    return np.array([name2id(m, kind, name) for name in given], np.int64)
