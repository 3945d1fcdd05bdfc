"""The curve of a training: a row for each seed and evaluation, as CSV, PNG and TensorBoard events.

step,seconds,seed,score,score_sd,actions,diverged,training_score,training_actions
"""

import csv
import dataclasses
import io
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jaxsim.atomic_write import write_whole
from jaxsim.batch.processes import is_writer
from jaxsim.errors import InputError, LocatedProblem, SourceLocation
from jaxsim.escape import MAX_MESSAGE, line
from jaxsim.optional import require


@dataclass(frozen=True)
class CurveRow:
    """An evaluation of a seed.

    Attributes:
      step: actions in all worlds of the seed so far.
      seconds: training time so far, including evaluations and compilation.
      seed: index of the seed, from 0.
      score, score_sd: mean and standard deviation of the returns of the evaluation.
      actions: mean length of its episodes.
      diverged: number of episodes that diverged.
      training_score, training_actions: means over the last complete episode of each world of the
        training, in which the learner explores; NaN before the first.
    """

    step: int
    seconds: float
    seed: int
    score: float
    score_sd: float
    actions: float
    diverged: int
    training_score: float
    training_actions: float


_COLUMN_NAMES = [f.name for f in dataclasses.fields(CurveRow)]


class Curve:
    """The rows of a run, kept in a file that is always complete; process 0 writes it.

    Args:
      folder: folder of the run; the file is curve.csv. It is replaced.
      rows: the rows so far, when a run is resumed.
      tensorboard: whether events are written too.
    """

    def __init__(self, folder: Path, rows: Iterable[CurveRow] = (), tensorboard: bool = False):
        self.path, self._picture = folder / "curve.csv", folder / "curve.png"
        self.rows = list(rows)
        self._writer = None
        if tensorboard and is_writer():
            # written by a separate thread: `flush` does not wait for it
            self._writer = require("tensorboardX", "rl").SummaryWriter(folder, flush_secs=1)
        self._write()

    def add(self, rows: Iterable[CurveRow]) -> None:
        """Add rows; the file has them when this returns, TensorBoard a second later."""
        for row in rows:
            self.rows.append(row)
            if self._writer is not None:
                for name in ("score", "actions", "training_score"):
                    self._writer.add_scalar(f"{name}/{row.seed}", getattr(row, name), row.step)
        self._write()

    def draw(self, title: str) -> str | None:
        """Draw the scores of all seeds over the steps; return why not, if they cannot be drawn.

        Raises:
          OSError: the file cannot be written.
        """
        if not is_writer():
            return None
        try:
            draw_curve(self.rows, self._picture, title)
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001  (a training is not lost to a drawing of it)
            fault = line(f"{type(error).__name__}: {error}", MAX_MESSAGE)
            return f"{self._picture} cannot be drawn: {fault}"
        return None

    def _write(self) -> None:
        if not is_writer():
            return
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_COLUMN_NAMES)
        writer.writerows(dataclasses.astuple(row) for row in self.rows)
        write_whole(self.path, text.getvalue())


def read_curve(path: Path) -> list[CurveRow]:
    """Return the rows of a file, or none if there is no file.

    Raises:
      InputError: the file is not a curve, or a row of it is incomplete; with its line.
    """
    if not path.exists():
        return []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text in UTF-8"
        raise InputError(
            LocatedProblem(SourceLocation(str(path)), f"cannot be read: {reason}")
        ) from None
    head = ",".join(_COLUMN_NAMES)
    if not lines or lines[0] != head:
        raise InputError(
            LocatedProblem(SourceLocation(str(path), 1), f"not a curve: expected the line '{head}'")
        )
    return [
        _row(SourceLocation(str(path), number), line) for number, line in enumerate(lines[1:], 2)
    ]


def _row(place: SourceLocation, line: str) -> CurveRow:
    cells, kinds = line.split(","), typing.get_type_hints(CurveRow)
    if len(cells) != len(_COLUMN_NAMES):
        message = f"expected {len(_COLUMN_NAMES)} numbers, got {len(cells)}"
        raise InputError(LocatedProblem(place, message))
    values: dict[str, Any] = {}
    for name, cell in zip(_COLUMN_NAMES, cells, strict=True):
        try:
            values[name] = kinds[name](cell)
        except ValueError:
            message = f"{name}: expected a number, got {cell[:40]!r}"
            raise InputError(LocatedProblem(place, message)) from None
    return CurveRow(**values)


def draw_curve(rows: list[CurveRow], path: Path, title: str) -> Path:
    """Draw scores over steps: a line per seed, their mean in bold, one standard deviation
    shaded."""
    figures: Any = require("matplotlib.figure", "rl")
    figure = figures.Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    steps = np.array(sorted({row.step for row in rows}))
    scores = np.full((max((row.seed for row in rows), default=0) + 1, len(steps)), np.nan)
    for row in rows:
        scores[row.seed, np.searchsorted(steps, row.step)] = row.score
    for score in scores:
        axes.plot(steps, score, color="tab:blue", linewidth=0.8, alpha=0.6)
    if len(scores) > 1 and len(steps):
        mean, deviation = scores.mean(axis=0), scores.std(axis=0)
        axes.fill_between(steps, mean - deviation, mean + deviation, color="tab:blue", alpha=0.15)
        axes.plot(steps, mean, color="tab:blue", linewidth=2.2)
    axes.set(xlabel="actions", ylabel="return", title=title)
    axes.grid(alpha=0.3)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    write_whole(path, picture.getvalue())
    return path
