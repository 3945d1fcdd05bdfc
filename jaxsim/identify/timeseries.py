"""Measured signals over time, from arrays, CSV and npz files.

A CSV file has one line of names, the first of which is `time`, then one line for each sample:

    # a line that begins with a hash is a comment
    time,q1,gyro[0],gyro[1],gyro[2]
    0.000,0.12,0.1,0.0,
    0.002,0.13,0.1,0.0,0.3

Times are in seconds and increase; empty and `nan` cells are gaps. An npz file has the arrays
`times` (T,), `values` (T, k) and `names` (k,). Signals that were sampled at different times are
different series, in files of their own.

An npz file of several recordings of the same signals has one more array, `starts` (n,): the first
row of each recording, in whose rows times increase.
"""

import csv
from collections.abc import Mapping
from collections.abc import Sequence as Many
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from jaxsim.assets.read.npz import read_npz
from jaxsim.atomic_write import whole_file
from jaxsim.escape import line
from jaxsim.spelling import remedy

_CSV_ENCODING: dict[str, Any] = {"encoding": "utf-8", "errors": "surrogatepass"}  # of a CSV file


@dataclass(frozen=True, eq=False)
class TimeSeries:
    """Signals that were sampled at the same times.

    Attributes:
      times: (T,) [s], increasing.
      values: (T, k); NaN for gaps. The values of one signal may be (T,).
      names: k names of signals, "gyro[0]" for one of several numbers.

    Raises:
      ValueError: shapes do not fit, times do not increase, a name occurs twice.

    Example:
      >>> import numpy as np
      >>> from jaxsim.identify import TimeSeries
      >>> angle = TimeSeries(np.arange(3) * 0.1, np.zeros(3), ["qpos:hinge"])
      >>> angle.values.shape
      (3, 1)
    """

    times: np.ndarray
    values: np.ndarray
    names: tuple[str, ...]

    def __post_init__(self):
        times, values = np.asarray(self.times, np.float64), np.asarray(self.values, np.float64)
        values = values[:, None] if values.ndim == 1 else values
        names = tuple(self.names)
        if times.ndim != 1 or values.shape != (len(times), len(names)):
            raise ValueError(
                f"TimeSeries: values: expected shape ({times.size}, {len(names)}) for "
                f"{times.size} times and {len(names)} names, got {values.shape}"
            )
        if not np.isfinite(times).all() or (np.diff(times) <= 0).any():
            bad = int(np.argmin(np.diff(times) > 0)) + 1 if np.isfinite(times).all() else 0
            raise ValueError(f"TimeSeries: times: expected to increase, they do not at row {bad}")
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(f"TimeSeries: names: {twice[0]!r} occurs twice")
        for name, value in (("times", times), ("values", values), ("names", names)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        span = f"{self.times[0]:g} to {self.times[-1]:g} s" if len(self.times) else "empty"
        return f"TimeSeries({len(self.times)} samples, {span}: {', '.join(map(line, self.names))})"

    def select(self, names: Many[str]) -> "TimeSeries":
        """Return a series of some of its signals."""
        for name in names:
            if name not in self.names:
                known = "; there are: " + ", ".join(self.names)
                raise ValueError(f"no signal {name!r}{remedy(name, self.names, known)}")
        columns = [self.names.index(name) for name in names]
        return TimeSeries(self.times, self.values[:, columns], tuple(names))

    def slice_time(self, start: float, end: float) -> "TimeSeries":
        """Return the samples with start <= time <= end [s]."""
        kept = (self.times >= start) & (self.times <= end)
        return TimeSeries(self.times[kept], self.values[kept], self.names)

    between = slice_time  # the name of version 0.1

    def write(self, path: str | Path) -> None:
        """Write a .csv or .npz file, in the layout of the module's documentation."""
        if _file_suffix(path) == ".npz":
            with whole_file(path) as part:
                np.savez(part, times=self.times, values=self.values, names=np.array(self.names))
            return
        with whole_file(path) as part, part.open("w", newline="", **_CSV_ENCODING) as file:
            rows = csv.writer(file)
            rows.writerow(["time", *self.names])
            for time, row in zip(self.times, self.values, strict=True):
                rows.writerow([repr(float(time)), *(_format_number(x) for x in row)])


def read_series(path: str | Path, columns: Mapping[str, str] | None = None) -> TimeSeries:
    """Read a .csv or .npz file, in the layout of the module's documentation.

    Args:
      path: the file.
      columns: new names of columns, by those in the file: {"t [s]": "time", "theta": "angle"}. With
        them the column that becomes `time` may have any position.

    Raises:
      ValueError: the file does not have this layout; cites the line.
      OSError: it cannot be read.
    """
    found = read_recordings(path, columns)
    if len(found) > 1:
        raise ValueError(f"{path}: has {len(found)} recordings; use read_recordings")
    return found[0]


def read_recordings(
    path: str | Path, columns: Mapping[str, str] | None = None
) -> tuple[TimeSeries, ...]:
    """Read all recordings of a file; a .csv file, or an .npz file without `starts`, has one.

    Args:
      path: the file, in the layout of the module's documentation.
      columns: new names of columns, as for `read_series`.

    Raises:
      ValueError: the file does not have this layout; cites the line.
      OSError: it cannot be read.

    Example:
      >>> import numpy as np, pathlib, tempfile
      >>> from jaxsim.identify import TimeSeries, read_recordings, write_recordings
      >>> tosses = [TimeSeries(np.arange(n) * 0.1, np.zeros(n), ["height"]) for n in (3, 5)]
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = pathlib.Path(folder) / "tosses.npz"
      ...     write_recordings(path, tosses)
      ...     [len(toss.times) for toss in read_recordings(path)]
      [3, 5]
    """
    if _file_suffix(path) == ".npz":
        return _read_npz(path, columns or {})
    return (_read_csv(path, columns or {}),)


def write_recordings(path: str | Path, recordings: Many[TimeSeries]) -> None:
    """Write recordings of the same signals as one compressed .npz file.

    Args:
      path: the file.
      recordings: one or more, with the same names.

    Raises:
      ValueError: there are none, their names differ, or the file is not an .npz file.
    """
    recordings = tuple(recordings)
    if not recordings or any(x.names != recordings[0].names for x in recordings):
        raise ValueError("write_recordings: expected one or more series with the same names")
    if _file_suffix(path) != ".npz":
        raise ValueError(f"{path}: several recordings are one .npz file; a .csv file has one")
    ends = np.cumsum([0, *(len(x.times) for x in recordings)])
    with whole_file(path) as part, part.open("wb") as file:
        np.savez_compressed(
            file,
            times=np.concatenate([x.times for x in recordings]),
            values=np.concatenate([x.values for x in recordings]),
            names=np.array(recordings[0].names),
            starts=ends[:-1],
        )


def _file_suffix(path: str | Path) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", ".npz"):
        raise ValueError(f"{path}: expected a .csv or .npz file")
    return suffix


def _read_npz(path: str | Path, columns: Mapping[str, str]) -> tuple[TimeSeries, ...]:
    arrays = read_npz(path)
    missing = [n for n in ("times", "values", "names") if n not in arrays]
    if missing:
        raise ValueError(
            f"{path}: expected the arrays times, values and names; {missing[0]!r} is missing"
        )
    names = tuple(columns.get(str(n), str(n)) for n in arrays["names"].ravel())
    times, values = arrays["times"], arrays["values"]
    if "starts" not in arrays:
        rows = [slice(None)]
    else:
        starts = arrays["starts"]
        # every row belongs to a recording, and every recording has one
        ends = np.append(starts, len(values)) if np.ndim(values) and starts.ndim == 1 else starts
        is_valid = starts.ndim == 1 and np.issubdtype(starts.dtype, np.integer) and starts.size
        if not is_valid or ends[0] != 0 or (np.diff(ends) <= 0).any():
            raise ValueError(
                f"{path}: starts: expected the first row of each recording, increasing from 0 and "
                f"below the number of rows, got {starts!r:.200}"
            )
        rows = [slice(int(a), int(b)) for a, b in pairwise(ends)]
    found = []
    for number, part in enumerate(rows):
        try:
            found.append(TimeSeries(times[part], values[part], names))
        except (ValueError, TypeError, IndexError) as error:
            which = f" recording {number}:" if len(rows) > 1 else ""
            raise ValueError(f"{path}:{which} {error}") from None
    return tuple(found)


def _read_csv(path: str | Path, columns: Mapping[str, str]) -> TimeSeries:
    names: list[str] = []
    rows: list[list[float]] = []
    time = 0
    written = ""  # of a record: a name in quotes may have line breaks
    try:
        lines = Path(path).read_bytes().decode("utf-8-sig", _CSV_ENCODING["errors"]).split("\n")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text in UTF-8") from None
    for number, text in enumerate(lines, 1):
        if not written and (not text.strip() or text.lstrip().startswith("#")):
            continue
        written += f"{text}\n"
        if written.count('"') % 2:
            continue
        place = f"{path}:{number}"
        try:
            cells = [cell.strip() for cell in next(csv.reader([written]))]
        except csv.Error as error:
            raise ValueError(f"{place}: {error}") from None
        written = ""
        if names:
            rows.append(_parse_row(place, cells, names, time, rows))
            continue
        names = [columns.get(cell, cell) for cell in cells]
        time = names.index("time") if columns and "time" in names else 0
        if names[time] != "time":
            raise ValueError(f"{place}: expected a line of names, 'time' first, got {cells[0]!r}")
    if written:
        raise ValueError(f"{path}:{number}: a quotation mark is not closed; write two for one")
    if not rows:
        raise ValueError(f"{path}: expected a line of names and lines of numbers, it has none")
    table = np.array(rows)
    others = [k for k in range(len(names)) if k != time]
    try:
        return TimeSeries(table[:, time], table[:, others], tuple(names[k] for k in others))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _parse_row(
    place: str, cells: list[str], names: list[str], time: int, before: list[list[float]]
) -> list[float]:
    """Return the numbers of one line; those of column `time` increase."""
    if len(cells) != len(names):
        raise ValueError(
            f"{place}: expected {len(names)} numbers, as there are names, got {len(cells)}"
        )
    numbers = []
    for name, cell in zip(names, cells, strict=True):
        try:
            numbers.append(float(cell) if cell else np.nan)
        except ValueError:
            raise ValueError(f"{place}: {line(name)}: expected a number, got {cell!r}") from None
    if not np.isfinite(numbers[time]) or (before and numbers[time] <= before[-1][time]):
        raise ValueError(
            f"{place}: time: expected more than in the line before, got {cells[time]!r}"
        )
    return numbers


def _format_number(x: float) -> str:
    return "" if np.isnan(x) else repr(float(x))
