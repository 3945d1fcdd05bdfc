"""Live curves of sensors."""

import threading
from collections import deque
from typing import Any

import numpy as np

from jaxsim.model.data import Data
from jaxsim.model.describe import name_of
from jaxsim.model.model import Model
from jaxsim.optional import require

_MAX_CURVE_STATES = 400  # largest number of samples of a curve
_MAX_SENSOR_BOXES = 12  # sensors with a checkbox; others are in a list
_MORE_LABEL = "more ..."  # label of the list of the others
_PLOT_COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#777777")


class SensorPlots:
    """Curves of the sensors selected in the panel, over the last states shown."""

    def __init__(self, gui: Any, m: Model):
        self._m, self._gui = m, gui
        self._seen: deque[tuple[float, np.ndarray]] = deque(maxlen=_MAX_CURVE_STATES)
        self._lock = threading.Lock()
        self._plots: dict[int, Any] = {}
        if not m.nsensor:
            return
        self._folder = gui.add_folder("Sensors", expand_by_default=False, order=20)
        for i in range(min(m.nsensor, _MAX_SENSOR_BOXES)):
            self._add_box(i)
        if m.nsensor > _MAX_SENSOR_BOXES:
            self._add_list(list(range(_MAX_SENSOR_BOXES, m.nsensor)))

    def _name(self, sensor: int) -> str:
        return name_of(self._m, "sensor", sensor)

    def _add_box(self, sensor: int) -> Any:
        """Return a checkbox that shows the curve of a sensor."""
        name = self._name(sensor)
        with self._folder:
            box = self._gui.add_checkbox(name, initial_value=False)

        @box.on_update
        def _(_: Any) -> None:
            with self._lock:
                if box.value and sensor not in self._plots:
                    self._plots[sensor] = self._plot(sensor, name)
                elif not box.value and sensor in self._plots:
                    self._plots.pop(sensor).remove()

        return box

    def _add_list(self, rest: list[int]) -> None:
        """Add a list of sensors, which get a checkbox when they are selected."""
        chosen = {f"{i}: {self._name(i)}": i for i in rest}
        with self._folder:
            choice = self._gui.add_dropdown(
                "sensor", (_MORE_LABEL, *chosen), initial_value=_MORE_LABEL
            )

        @choice.on_update
        def _(_: Any) -> None:
            with self._lock:  # two pages may select at once
                sensor = chosen.pop(choice.value, None)
                box = None if sensor is None else self._add_box(sensor)
            if box is not None:
                choice.options = (_MORE_LABEL, *chosen)
                choice.value = _MORE_LABEL
                box.value = True

    def _plot(self, sensor: int, name: str) -> Any:
        dim = int(self._m.sensor_dim[sensor])
        lines = [
            {
                "label": f"{name}[{k}]" if dim > 1 else name,
                "stroke": _PLOT_COLORS[k % len(_PLOT_COLORS)],
            }
            for k in range(dim)
        ]
        series = [
            require("viser.uplot", "view").Series(**line) for line in ({"label": "s"}, *lines)
        ]
        with self._folder:
            return self._gui.add_uplot(
                tuple(self._data(sensor)), tuple(series), title=name, height=160,
                scales={"x": {"time": False}},
            )  # fmt: skip

    def _data(self, sensor: int) -> list[np.ndarray]:
        """Return the times and values of a sensor, (n,) each."""
        seen = list(self._seen) or [(0.0, np.zeros(self._m.nsensordata))]
        start, dim = int(self._m.sensor_adr[sensor]), int(self._m.sensor_dim[sensor])
        values = np.stack([value for _, value in seen])[:, start : start + dim]
        return [np.array([time for time, _ in seen]), *values.T.astype(float)]

    def add(self, d: Data) -> None:
        """Record a state."""
        if not self._plots:
            return
        time = float(d.time)
        with self._lock:
            if self._seen and time < self._seen[-1][0]:
                self._seen.clear()  # the simulation was reset
            if not self._seen or time > self._seen[-1][0]:
                self._seen.append((time, np.asarray(d.sensordata)))

    def draw(self) -> None:
        """Draw the recorded states."""
        with self._lock:
            for sensor, plot in self._plots.items():
                plot.data = tuple(self._data(sensor))
