"""Names of measured signals and of controls, resolved to addresses in the results of a step.

    gyro, sensor:gyro           a sensor of the model; gyro[1] is one of several numbers
    qpos:elbow, qvel:elbow      position and velocity of a joint; qpos:root[3] is one of several

A step from time t returns its sensors and its initial state: both belong to time t.
"""

import re
from typing import NamedTuple

import numpy as np

from jaxsim.model.model import Model
from jaxsim.model.names import name2id
from jaxsim.spelling import remedy

_SIGNAL_PATTERN = re.compile(r"(?:(?P<kind>\w+):)?(?P<name>.+?)(?:\[(?P<k>\d+)\])?")
QPOS_WIDTHS = {0: 7, 1: 4, 2: 1, 3: 1}  # length of the position of a joint, by its type
QVEL_WIDTHS = {0: 6, 1: 3, 2: 1, 3: 1}


class Signal(NamedTuple):
    """Address of a signal.

    Attributes:
      name: name of the object with its kind: "sensor:gyro", as offsets and delays name it.
      source: "sensordata", "qpos" or "qvel".
      start: first address in `source`.
      width: how many numbers it has.
    """

    name: str
    source: str
    start: int
    width: int


def signal(m: Model, name: str) -> Signal:
    """Return the signal of a name, or one number of it.

    Raises:
      ValueError: the model has no such signal.
    """
    found = _SIGNAL_PATTERN.fullmatch(name)
    kind, base, k = found.groups() if found else (None, name, None)
    if kind in ("qpos", "qvel"):
        joint = name2id(m, "joint", base)
        table, first = (
            (QPOS_WIDTHS, m.jnt_qposadr) if kind == "qpos" else (QVEL_WIDTHS, m.jnt_dofadr)
        )
        whole = Signal(f"{kind}:{base}", kind, int(first[joint]), table[int(m.jnt_type[joint])])
    elif kind in (None, "sensor"):
        sensors = m.names["sensor"]
        if base not in sensors:
            there = ", ".join(filter(None, sensors)) or "none"
            otherwise = f"; sensors: {there}; of joints there are 'qpos:name' and 'qvel:name'"
            raise ValueError(f"no sensor is named {base!r}{remedy(base, sensors, otherwise)}")
        i = sensors.index(base)
        start, width = int(m.sensor_adr[i]), int(m.sensor_dim[i])
        whole = Signal(f"sensor:{base}", "sensordata", start, width)
    else:
        raise ValueError(f"signal {name!r}: expected a sensor, 'qpos:joint' or 'qvel:joint'")
    if k is None:
        return whole
    if int(k) >= whole.width:
        raise ValueError(f"signal {name!r}: expected an index below {whole.width}")
    return whole._replace(start=whole.start + int(k), width=1)


def number_names(m: Model, name: str) -> tuple[str, ...]:
    """Return the name of each number of a signal: ("gyro[0]", "gyro[1]", "gyro[2]"), or itself."""
    width = signal(m, name).width
    return (name,) if width == 1 else tuple(f"{name}[{k}]" for k in range(width))


def timestep(m: Model) -> float:
    """Return the timestep as the user wrote it [s].

    Single precision makes 0.004999999888 of 0.005, which after 500 steps would shift the steps
    against the times of a log. The shortest decimal number that rounds to it is returned.
    """
    return float(str(np.asarray(m.opt.timestep)))


def control_index(m: Model, name: str) -> int:
    """Return the index of a control_index in `ctrl`, by the name of its actuator.

    Raises:
      ValueError: no actuator has the name.
    """
    return int(np.asarray(m.actuator_ctrladr)[name2id(m, "actuator", name)])
