"""Initial state of a recording, from the first samples of measured joint signals."""

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import JointType, SensorType
from jaxsim.identify.signals import signal
from jaxsim.identify.timeseries import TimeSeries
from jaxsim.model.data import Data
from jaxsim.model.model import Model

_STATE_SENSORS = {SensorType.JOINTPOS: "qpos", SensorType.JOINTVEL: "qvel"}
_TIME_TOLERANCE = 1e-9  # rounding of recorded times [s]
_SCALAR_JOINTS = (JointType.HINGE, JointType.SLIDE)


def first_state(m: Model, d: Data, measured: list[TimeSeries], begin: float) -> Data:
    """Set the measured parts of a state from the first samples at or after the start.

    Signals are "qpos:JOINT", "qvel:JOINT" and sensors of types jointpos and jointvel. If only the
    position of a hinge or slide was measured, its velocity is the slope between its first two
    samples.

    Args:
      m: the model.
      d: the state; parts that were not measured are unchanged.
      measured: the recording.
      begin: initial time [s].

    Raises:
      ValueError: no signal is a position or velocity of a joint.
    """
    state = {name: np.array(getattr(d, name)) for name in ("qpos", "qvel")}
    slopes, known, found = {}, set(), False
    for series in measured:
        for name in series.names:
            field, index = _state_index(m, name)
            if field is None:
                continue
            values = series.values[:, series.names.index(name)]
            rows = np.flatnonzero(np.isfinite(values) & (series.times >= begin - _TIME_TOLERANCE))
            if not rows.size:
                continue
            found = True
            state[field][index] = values[rows[0]]
            if field == "qvel":
                known.add(index)
            elif rows.size > 1 and (dof := _dof(m, index)) is not None:
                rise, run = np.diff(values[rows[:2]]), np.diff(series.times[rows[:2]])
                slopes[dof] = float(rise[0] / run[0])
    if not found:
        raise ValueError(
            "initial: no signal is a position or velocity of a joint; give qpos and qvel, or a key"
        )
    for dof, slope in slopes.items():
        if dof not in known:
            state["qvel"][dof] = slope
    return d.replace(**{n: jnp.asarray(x, getattr(d, n).dtype) for n, x in state.items()})


def _state_index(m: Model, name: str) -> tuple[str | None, int]:
    """Return the field of the state and the index in it that a signal measures; None if none."""
    found = signal(m, name)
    if found.source in ("qpos", "qvel"):
        return found.source, found.start
    sensor = m.names["sensor"].index(found.name.removeprefix("sensor:"))
    field = _STATE_SENSORS.get(SensorType(int(m.sensor_type[sensor])))
    if field is None:
        return None, 0
    joint = int(m.sensor_objid[sensor])
    adr = m.jnt_qposadr if field == "qpos" else m.jnt_dofadr
    return field, int(adr[joint])


def _dof(m: Model, index: int) -> int | None:
    """Return the dof of a hinge or slide whose position is at an index of qpos."""
    (joints,) = np.nonzero(np.asarray(m.jnt_qposadr) == index)
    if not joints.size or JointType(int(m.jnt_type[joints[0]])) not in _SCALAR_JOINTS:
        return None
    return int(m.jnt_dofadr[joints[0]])
