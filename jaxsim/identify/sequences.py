"""One recording: commanded controls, measured signals, and the initial state."""

from collections.abc import Mapping
from collections.abc import Sequence as Many
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.identify.signals import control_index, number_names, signal, timestep
from jaxsim.identify.timeseries import TimeSeries
from jaxsim.io.config.memory import memory
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.public.make_data import make_data

STATE_SIGNALS = ("qpos", "qvel", "act")
_INPUT_FIELDS = (
    "time qpos qvel act history plastic ctrl qfrc_applied xfrc_applied mocap_pos mocap_quat "
    "userdata eq_active"
).split()
# Fractions of a step: by which a sample may miss a step and still belong to it (more where
# the rounding of the timestep has added up to more), and by which a control may come late and still
# apply to it.
_STEP_TOLERANCE = 1e-6
_MAX_CONTROL_LATENESS = 0.01
_HOLD_KINDS = ("zero", "linear")


@dataclass(frozen=True, eq=False)
class Sequence:
    """One recording.

    Arrays have one row for each step: row k of `ctrl` acts from k to k + 1 timesteps after the
    start, and row k of a measured signal was taken k timesteps after it. Signals at other times are
    `TimeSeries`; a measurement between two steps is compared with linear interpolation.

    Attributes:
      measured: one series, or several with different times; or arrays by name, (steps,) or
        (steps, k). NaN is a gap.
      ctrl: (steps, nu), or a series with names of actuators (controls without a series are 0);
        None: the controls keep their initial values.
      initial: the initial state: a Data, or {"qpos": ..., "qvel": ..., "act": ...}; None: that of
        `make_data`.
      sigma: standard deviation of the noise of all signals, or of each by its name, in its unit.
        None: not known; all have the same weight, and the noise is estimated from the residual.
      estimate: unknown parts of the initial state: ("qpos", "qvel", "act"), or the standard
        deviation of each around the given state: {"qvel": 0.1}; None: no prior.
      hold: interpolation of a control between the samples of its series: "zero" (hold) or
        "linear".
      start: initial time of the motion [s]; None: the first time of `ctrl`, or of the measurements.
      name: name of the recording in messages and reports.
    """

    measured: TimeSeries | Many[TimeSeries] | Mapping[str, Any]
    ctrl: TimeSeries | np.ndarray | None = None
    initial: Data | Mapping[str, Any] | None = None
    sigma: float | Mapping[str, float] | None = None
    estimate: Many[str] | Mapping[str, float | None] = ()
    hold: str = "zero"
    start: float | None = None
    name: str = ""

    def __post_init__(self):
        unknown = [n for n in self.estimate if n not in STATE_SIGNALS]
        if unknown or isinstance(self.estimate, str):
            raise ValueError(f"estimate: expected some of {STATE_SIGNALS}, got {self.estimate!r}")
        if self.hold not in _HOLD_KINDS:
            raise ValueError(f"hold: expected one of {_HOLD_KINDS}, got {self.hold!r}")

    def series(self, m: Model) -> tuple[TimeSeries, ...]:
        """Return the measurements, as series of scalar signals."""
        if isinstance(self.measured, TimeSeries):
            return (self.measured,)
        if not isinstance(self.measured, Mapping):
            return tuple(self.measured)
        found = []
        for name, value in self.measured.items():
            array = np.asarray(value, np.float64)
            names = number_names(m, name)
            array = array[:, None] if array.ndim == 1 else array
            if array.ndim != 2 or array.shape[1] != len(names):
                raise ValueError(
                    f"measured: {name}: expected shape (steps, {len(names)}), got {array.shape}"
                )
            times = (self.start or 0.0) + timestep(m) * np.arange(len(array))
            found.append(TimeSeries(times, array, names))
        return tuple(found)


class Samples(NamedTuple):
    """A recording on the steps of a model; times count in steps from the start.

    Attributes:
      step, part: time of each sample: `step` plus `part`, 0 <= part < 1, (S,).
      signal: index of each sample's signal in `names`, (S,).
      value: measurements, (S,).
      weight: 1 / sigma, (S,).
      time: time in the recording [s], (S,).
      names: names of the signals.
      ctrl: (history + steps, nu); the first `history` rows are before the start.
      steps: number of steps that the samples need.
    """

    step: np.ndarray
    part: np.ndarray
    signal: np.ndarray
    value: np.ndarray
    weight: np.ndarray
    time: np.ndarray
    names: tuple[str, ...]
    ctrl: np.ndarray
    steps: int


def sample_recording(m: Model, sequence: Sequence, history: int = 0) -> Samples:
    """Return the sample_recording and controls of a recording on the steps of a model.

    Args:
      m: the model.
      sequence: the recording.
      history: number of controls before the start that a delay may reach back to.

    Raises:
      ValueError: a name is not known, there are no measurements, or a control is missing.
    """
    series, start = sequence.series(m), _start(m, sequence)
    names = tuple(name for s in series for name in s.names)
    _check_names(m, sequence, names)
    h, parts, first = timestep(m), [], 0
    for s in series:
        row, column = np.nonzero(np.isfinite(s.values))
        position = (s.times[row] - start) / h
        # a timestep in single precision is known to its rounding, which adds up over the steps
        reach = np.maximum(_STEP_TOLERANCE, np.finfo(m.qpos0.dtype).eps * np.abs(position))
        near = np.abs(position - np.round(position)) < reach
        position = np.where(near, np.round(position), position)
        kept = position >= 0
        row, column, position = row[kept], column[kept], position[kept]
        parts.append((position, column + first, s.values[row, column], s.times[row]))
        first += len(s.names)
    position, which, value, time = (np.concatenate(a) for a in zip(*parts, strict=True))
    if not position.size:
        raise ValueError(
            f"measured: {sequence.name or 'the sequence'} has no sample after its start"
        )
    _check_length(m, float(position.max()), history)
    index = np.floor(position).astype(int)
    steps = int(np.ceil(position.max())) + 1
    weight = 1 / np.array([_sigma(sequence, m, name) for name in names])
    ctrl = _controls(m, sequence, start, steps, history)
    return Samples(
        index, position - index, which.astype(int), value, weight[which], time, names, ctrl, steps
    )


def _check_length(m: Model, last: float, history: int) -> None:
    """Raise ValueError for recordings whose controls alone would exceed the memory."""
    most = memory() / (8 * max(m.nu, 1))
    if not last + history < most:
        raise ValueError(
            f"the recording ends {last:.3g} timesteps of {timestep(m):g} s after its start, and "
            f"delays reach back {history}; there is memory for {most:.3g}"
        )


def initial_state(m: Model, sequence: Sequence) -> Data:
    """Return the initial_state state of a recording."""
    given = sequence.initial
    d = make_data(m, keep=("sensordata",))
    if given is None:
        return d
    if isinstance(given, Data):
        return d.replace(**{n: getattr(given, n) for n in _INPUT_FIELDS})
    wrong = [n for n in given if n not in _INPUT_FIELDS]
    if wrong:
        raise ValueError(
            f"initial: expected a Data or some of {', '.join(_INPUT_FIELDS)}, got {wrong[0]!r}"
        )
    return d.replace(**{n: jnp.asarray(v, getattr(d, n).dtype) for n, v in given.items()})


def _start(m: Model, sequence: Sequence) -> float:
    if sequence.start is not None:
        return float(sequence.start)
    if isinstance(sequence.ctrl, TimeSeries):
        return float(sequence.ctrl.times[0])
    return min((float(s.times[0]) for s in sequence.series(m) if len(s.times)), default=0.0)


def _check_names(m: Model, sequence: Sequence, names: tuple[str, ...]) -> None:
    for name in names:
        width = signal(m, name).width
        if width > 1:
            raise ValueError(f"signal {name!r} has {width} numbers; name each: '{name}[0]'")
        if names.count(name) > 1:
            raise ValueError(f"measured: {name!r} occurs twice")
    if isinstance(sequence.sigma, Mapping):
        for name in sequence.sigma:
            if not any(n == name or n.startswith(f"{name}[") for n in names):
                raise ValueError(f"sigma: nothing is measured of {name!r}")


def _sigma(sequence: Sequence, m: Model, name: str) -> float:
    """Return the standard deviation of a signal."""
    sigma = sequence.sigma
    if isinstance(sigma, Mapping):
        value = sigma.get(name, sigma.get(name.split("[")[0]))
        if value is None:
            raise ValueError(f"sigma: give the standard deviation of {name!r}, in its unit")
    else:
        value = 1.0 if sigma is None else sigma
    if not (np.ndim(value) == 0 and float(value) > 0):
        raise ValueError(f"sigma: {name}: expected a number above 0, got {value!r}")
    return float(value)


def _controls(m: Model, sequence: Sequence, start: float, steps: int, history: int) -> np.ndarray:
    """Return the control of each step, from `history` steps before the start on."""
    ctrl = sequence.ctrl
    if ctrl is None:
        held = np.asarray(initial_state(m, sequence).ctrl, np.float64)
        return np.broadcast_to(held, (history + steps, m.nu)).copy()
    if isinstance(ctrl, TimeSeries):
        table = np.zeros((history + steps, m.nu))
        late = _MAX_CONTROL_LATENESS if sequence.hold == "zero" else 0.0
        times = start + timestep(m) * (np.arange(-history, steps) + late)
        for column, name in enumerate(ctrl.names):
            table[:, control_index(m, name)] = _hold_controls(ctrl, column, times, sequence.hold)
    else:
        rows = np.asarray(ctrl, np.float64)
        if rows.ndim != 2 or rows.shape[1] != m.nu or not len(rows):
            raise ValueError(f"ctrl: expected shape (steps, {m.nu}), got {rows.shape}")
        table = rows[np.clip(np.arange(-history, steps), 0, len(rows) - 1)]
    if not np.isfinite(table).all():
        raise ValueError("ctrl: expected numbers, a control is NaN or infinite; fill the gap")
    return table


def _hold_controls(series: TimeSeries, column: int, times: np.ndarray, hold: str) -> np.ndarray:
    """Return a control at given times; before its first sample it has the first value."""
    values = series.values[:, column]
    known = np.isfinite(values)
    if not known.any():
        raise ValueError(f"ctrl: {series.names[column]!r} has no numbers")
    at, values = series.times[known], values[known]
    if hold == "linear":
        return np.interp(times, at, values)
    return values[np.clip(np.searchsorted(at, times, side="right") - 1, 0, len(at) - 1)]
