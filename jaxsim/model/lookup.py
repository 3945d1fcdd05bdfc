"""Where named things stand in the arrays of Data: sensors, joints, actuators.

Indices are numpy arrays, known when a program is traced, so that `d.qpos[qpos_index(m, "knee")]`
is a slice and no search.
"""

from collections.abc import Iterable

import jax
import numpy as np

from jaxsim.enums import JointType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.names import name2id

_NQ = {JointType.FREE: 7, JointType.BALL: 4}  # of all others 1
_NV = {JointType.FREE: 6, JointType.BALL: 3}

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
    s = m.structure
    return _places(m, "sensor", names, s.sensor_adr, s.sensor_dim)


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
    s = m.structure
    width = np.array([_NQ.get(JointType(t), 1) for t in s.jnt_type], np.int64)
    return _places(m, "joint", names, s.jnt_qposadr, width)


def dof_index(m: Model, names: Names) -> np.ndarray:
    """Where joints stand in `qvel`, one after the other, int (n,); a free joint has six places."""
    s = m.structure
    width = np.array([_NV.get(JointType(t), 1) for t in s.jnt_type], np.int64)
    return _places(m, "joint", names, s.jnt_dofadr, width)


def ctrl_index(m: Model, names: Names) -> np.ndarray:
    """Where actuators stand in `ctrl`, one after the other, int (n,)."""
    s = m.structure
    return _places(m, "actuator", names, s.actuator_ctrladr, s.actuator_ctrlnum)


def _places(m: Model, kind: str, names: Names, adr: np.ndarray, width: np.ndarray) -> np.ndarray:
    ids = [name2id(m, kind, n) for n in ([names] if isinstance(names, str) else names)]
    return np.concatenate([np.arange(adr[i], adr[i] + width[i]) for i in ids] or [np.zeros(0, int)])
