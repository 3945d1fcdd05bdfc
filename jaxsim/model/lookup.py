"""Where named things stand in the arrays of Data: sensors, joints, actuators.

Indices are numpy arrays, known when a program is traced, so that `d.qpos[qpos_index(m, "knee")]`
is a slice and no search.
"""

from collections.abc import Iterable

import jax
import numpy as np

from jaxsim.model.data import Data
from jaxsim.model.fields import brief
from jaxsim.model.model import Model
from jaxsim.model.names import name2id
from jaxsim.model.places import ctrl_places, dof_places, qpos_places, sensor_places

Names = str | Iterable[str]


def sensor(m: Model, d: Data, name: str) -> jax.Array:
    """What a sensor measures.

    Args:
      m: the model.
      d: one world, or many with leading axes, after `forward` or `step`.
      name: name of the sensor.

    Returns:
      Its numbers, (..., dim), also where dim is 1.

    Raises:
      ValueError: no sensor has this name; says the nearest.

    Example:
      >>> arm = '<body><joint name="j"/><geom size=".1"/></body>'
      >>> angle = '<sensor><jointpos name="angle" joint="j"/></sensor>'
      >>> m = jaxsim.load_model(f"<mujoco><worldbody>{arm}</worldbody>{angle}</mujoco>")
      >>> d = jaxsim.forward(m, jaxsim.make_data(m).replace(qpos=jnp.array([0.5])))
      >>> sensor(m, d, "angle")
      Array([0.5], dtype=float64)
    """
    return d.sensordata[..., sensor_index(m, name)]


def sensor_index(m: Model, names: Names) -> np.ndarray:
    """Where sensors stand in `sensordata`, one after the other, int (n,)."""
    return sensor_places(m.structure, _ids(m, "sensor", names))


def qpos_index(m: Model, names: Names) -> np.ndarray:
    """Where joints stand in `qpos`, one after the other, int (n,).

    Args:
      m: the model.
      names: of one joint or several; a free joint has seven places, a ball joint four.

    Raises:
      ValueError: no joint has this name; says the nearest.

    Example:
      >>> qpos_index(m, "hinge")
      array([0])
    """
    return qpos_places(m.structure, _ids(m, "joint", names))


def dof_index(m: Model, names: Names) -> np.ndarray:
    """Where joints stand in `qvel`, one after the other, int (n,); a free joint has six places."""
    return dof_places(m.structure, _ids(m, "joint", names))


def ctrl_index(m: Model, names: Names) -> np.ndarray:
    """Where actuators stand in `ctrl`, one after the other, int (n,)."""
    return ctrl_places(m.structure, _ids(m, "actuator", names))


def _ids(m: Model, kind: str, names: Names) -> np.ndarray:
    given = [names] if isinstance(names, str) else names
    if not isinstance(given, Iterable) or not all(isinstance(name, str) for name in given):
        raise ValueError(f"{kind}: expected a name or several, got {brief(names)}")
    return np.array([name2id(m, kind, name) for name in given], np.int64)
