"""Initial state of a recording, from the first samples of measured joint signals."""

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import SensorType
from jaxsim.identify.joint_velocity import joint_slices, line_velocity
from jaxsim.identify.signals import signal
from jaxsim.identify.timeseries import TimeSeries
from jaxsim.model.data import Data
from jaxsim.model.model import Model

_STATE_SENSORS = {SensorType.JOINTPOS: "qpos", SensorType.JOINTVEL: "qvel"}
_TIME_TOLERANCE = 1e-9  # rounding of recorded times [s]


def first_state(m: Model, d: Data, measured: list[TimeSeries], begin: float) -> Data:
    """Set the measured parts of a state from the first samples at or after the start.

    Signals are "qpos:JOINT", "qvel:JOINT" and sensors of types jointpos and jointvel. If only the
    position of a joint was measured, its velocity is the difference of its first two samples.

    Args:
      m: the model.
      d: the state; parts that were not measured are unchanged.
      measured: the recording.
      begin: initial time [s].

    Raises:
      ValueError: no signal is a position or velocity of a joint.
    """
    state = {name: np.array(getattr(d, name)) for name in ("qpos", "qvel")}
    known: set[int] = set()
    samples: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # first two by their index in qpos
    for series in measured:
        for name in series.names:
            field, index = _state_index(m, name)
            if field is None:
                continue
            values = series.values[:, series.names.index(name)]
            rows = np.flatnonzero(np.isfinite(values) & (series.times >= begin - _TIME_TOLERANCE))
            if not rows.size:
                continue
            state[field][index] = values[rows[0]]
            if field == "qvel":
                known.add(index)
            else:
                samples[index] = series.times[rows[:2]], values[rows[:2]]
    if not samples and not known:
        raise ValueError(
            "initial: no signal is a position or velocity of a joint; give qpos and qvel, or a key"
        )
    for joint in range(len(m.jnt_type)):
        own, dofs = joint_slices(m, joint)
        found = [samples.get(i) for i in range(own.start, own.stop)]
        velocity = _difference(m, joint, found)
        if velocity is not None:
            unknown = [i for i in range(dofs.start, dofs.stop) if i not in known]
            state["qvel"][unknown] = velocity[np.array(unknown, int) - dofs.start]
    return d.replace(**{n: jnp.asarray(x, getattr(d, n).dtype) for n, x in state.items()})


def _difference(m: Model, joint: int, found: list) -> np.ndarray | None:
    """Return the velocity of a joint between its first two samples, (dofs,); None if not known."""
    if any(pair is None or len(pair[0]) < 2 for pair in found):
        return None
    times = found[0][0]
    if any((pair[0] != times).any() for pair in found):
        return None
    positions = np.stack([values for _, values in found], 1)
    return line_velocity(m, joint, times, positions)


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
