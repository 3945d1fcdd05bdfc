"""Plot fields of a recorded motion against time, with names and units."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxsim.atomic_write import whole_file
from jaxsim.batch.trajectory import Trajectory, target_of
from jaxsim.escape import MAX_NAME, line, mathtext
from jaxsim.model.model import Model
from jaxsim.optional import require
from jaxsim.view.columns import column_names, column_units, unit_of

_MAX_SHADED_CURVES = 12  # limit on curves with a percentile band, and on names per legend column
_SHADE_PERCENTILES = (5, 95)  # percentiles over the worlds that bound the band of a curve
HEIGHT, WIDTH = 3.0, 12.0  # size of a panel [inches]
_PLOT_ENDINGS = (".png", ".svg", ".pdf")


class _Curves(NamedTuple):
    """Selected entries of a field: axis label, names, and values, (records, worlds, n)."""

    title: str
    labels: list[str]
    values: np.ndarray


def draw_motion(
    motion: Trajectory,
    fields: Sequence[str],
    path: str | os.PathLike[str],
    *,
    m: Model | None = None,
    world: int = 0,
) -> None:
    """Plot fields of a motion against time, one panel each.

    Curves are those of one world; with several worlds, a band behind each curve shows the range of
    nine tenths of them (for up to twelve curves).

    Args:
      motion: the motion.
      fields: names of recorded fields; "qpos:knee" selects the entries of qpos whose names contain
        "knee".
      path: a .png, .svg or .pdf file; it is written atomically.
      m: its model, for the names of joints, actuators and sensors; None: entries are numbered.
      world: index of the world.

    Raises:
      ValueError: a field was not recorded, there is no such world, or the extension is not
        supported.
      OSError: the file cannot be written.
      MissingExtra: matplotlib is not installed.
    """
    target = target_of(path)
    if target.suffix not in _PLOT_ENDINGS:
        raise ValueError(
            f"'{path}' does not end in {', '.join(_PLOT_ENDINGS[:-1])} or {_PLOT_ENDINGS[-1]}"
        )
    for name in (field.partition(":")[0] for field in fields):
        if name not in motion.fields:
            raise ValueError(f"'{name}' was not recorded; {', '.join(motion.fields)} were")
    worlds = next(iter(motion.fields.values())).shape[1]
    if not 0 <= world < worlds:
        raise ValueError(f"there is no world {world}; the motion has {worlds}, counted from 0")
    size = (WIDTH, HEIGHT * len(fields))
    figure = require("matplotlib.figure", "view").Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(fields), 1, sharex=True, squeeze=False)[:, 0]
    time = _record_times(motion, world)
    for panel, field in zip(panels, fields, strict=True):
        _draw(panel, _select_curves(motion, field, m), time, world)
    panels[-1].set_xlabel("time [s]")
    of_worlds = f", world {world} of {worlds}" if worlds > 1 else ""
    figure.suptitle(mathtext(f"{motion.header.get('model', 'motion')}{of_worlds}", MAX_NAME))
    with whole_file(target) as part:
        figure.savefig(part, dpi=120)


def _record_times(motion: Trajectory, world: int) -> np.ndarray:
    """Return the times of the records of a world [s]: recorded, or counted if the world was
    reset."""
    number = len(next(iter(motion.fields.values())))
    if "time" in motion.fields:
        record_times = np.asarray(motion["time"], float).reshape(number, -1)[:, world]
        if np.all(np.diff(record_times) > 0):
            return record_times
    step = float(motion.header.get("timestep", 1.0)) * int(motion.header.get("every", 1))
    return step * np.arange(1, number + 1)


def _select_curves(motion: Trajectory, field: str, m: Model | None) -> _Curves:
    """Return the selected entries of a field."""
    name, _, part = field.partition(":")
    values = np.asarray(motion[name], float)
    values = values.reshape(*values.shape[:2], -1)
    number = values.shape[-1]
    labels, units = column_names(m, name, number), column_units(m, name, number)
    chosen = [k for k, label in enumerate(labels) if part in label]
    if not chosen:
        raise ValueError(
            f"no entry of {name} has '{part}' in its name: {', '.join(map(line, labels))}"
        )
    labels, units = ([x[k] for k in chosen] for x in (labels, units))
    unit = units[0] if len(set(units)) == 1 else unit_of(name)
    if len(set(units)) > 1:
        labels = [f"{a} ({b})" if b else a for a, b in zip(labels, units, strict=True)]
    return _Curves(f"{name} [{unit}]" if unit else name, labels, values[..., chosen])


def _draw(panel: Any, curves: _Curves, time: np.ndarray, world: int) -> None:
    """Draw the curves of one field."""
    title, labels, values = curves
    for k, label in enumerate(labels):
        (line,) = panel.plot(time, values[:, world, k], label=mathtext(label), linewidth=1.2)
        if values.shape[1] > 1 and len(labels) <= _MAX_SHADED_CURVES:
            low, high = np.nanpercentile(values[..., k], _SHADE_PERCENTILES, axis=1)
            panel.fill_between(time, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    columns = -(-len(labels) // _MAX_SHADED_CURVES)
    panel.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5), ncols=columns)
    panel.grid(alpha=0.3)
    panel.set_ylabel(mathtext(title))
