"""Table of a sweep: the state and the scores of each point, read from the folders of the runs.

    point,seed,ppo.learning_rate,state,step,score,sd,best,seconds,folder,note

Nothing else records what a sweep has done: any process can write the table, on any machine with
access to the folders.
"""

import csv
import io
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxsim.atomic_write import write_whole
from jaxsim.errors import InputError
from jaxsim.escape import line
from jaxsim.learn.curve import read_curve
from jaxsim.learn.finished import CONFIG_FILE, is_finished
from jaxsim.learn.sweep.log import is_running, read_end
from jaxsim.learn.sweep.points import Point, show_value

TABLE_FILE = "sweep.csv"
_MAX_ROWS_SHOWN = 50  # rows of the table that is printed


class Row(NamedTuple):
    """State and last evaluation of a point.

    Attributes:
      point: the point.
      state: "done", "failed", "running", "stopped" (it can be resumed) or "waiting".
      step: actions in all worlds of a seed so far.
      score, sd: mean and standard deviation over the seeds; NaN before the first evaluation.
      best: score of the best seed.
      seconds: training time so far.
      note: last line of the log of a failed point; fault of a curve that cannot be read.
    """

    point: Point
    state: str
    step: int = 0
    score: float = math.nan
    sd: float = math.nan
    best: float = math.nan
    seconds: float = math.nan
    note: str = ""


def read_row(point: Point) -> Row:
    """Return the row of a point from the files in its folder."""
    folder = point.folder
    code, lines = read_end(folder, 1)
    if is_finished(folder, point.training.steps):
        state = "done"
    elif is_running(folder):
        state = "running"
    elif code:
        state = "failed"
    else:
        state = "stopped" if os.path.lexists(folder / CONFIG_FILE) else "waiting"
    note = line("".join(lines)) if state == "failed" else ""
    try:
        curve = read_curve(folder / "curve.csv")
    except InputError as error:
        return Row(point, state, note=note or str(error))
    if not curve:
        return Row(point, state, note=note)
    # Statistics of the last evaluation over the seeds.
    last = [row for row in curve if row.step == curve[-1].step]
    scores = np.array([row.score for row in last])
    numbers = float(scores.mean()), float(scores.std()), float(scores.max())
    return Row(point, state, last[0].step, *numbers, last[0].seconds, note)


def write_table(path: Path, rows: Sequence[Row]) -> None:
    """Write a table as CSV, in the order of the points; numbers that are NaN are left out.

    Raises:
      OSError: it cannot be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = list(rows[0].point.values)
    writer.writerow(["point", *names, *Row._fields[1:-1], "folder", "note"])
    for row in rows:
        values = [show_value(row.point.values[name]) for name in names]
        numbers = ["" if math.isnan(x) else x for x in row[2:-1]]
        folder = os.path.relpath(row.point.folder, path.parent)
        writer.writerow([row.point.number, *values, row.state, *numbers, folder, row.note])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.getvalue())


def format_table(rows: Sequence[Row]) -> str:
    """Return the table as aligned text, the best score first."""
    names = list(rows[0].point.values)
    cells = [["point", *names, "state", "actions", "score", "sd", "best", "seconds"]]
    ordered = sorted(rows, key=lambda row: (math.isnan(row.score), -row.score, row.point.number))
    for row in ordered[:_MAX_ROWS_SHOWN]:
        values = [line(show_value(row.point.values[name])) for name in names]
        numbers = [format_number(x) for x in (row.score, row.sd, row.best)]
        seconds = "" if math.isnan(row.seconds) else f"{row.seconds:.0f}"
        actions = f"{row.step:,}" if row.step else ""
        cells.append([str(row.point.number), *values, row.state, actions, *numbers, seconds])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    ]
    if len(rows) > _MAX_ROWS_SHOWN:
        lines.append(f"... and {len(rows) - _MAX_ROWS_SHOWN} more in {TABLE_FILE}")
    return "\n".join(lines)


def format_number(x: float) -> str:
    """Return a number with four digits; an empty string for NaN."""
    return "" if math.isnan(x) else f"{x:.4g}"
