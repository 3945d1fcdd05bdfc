"""Worlds of a training on a page, and the curve of its return, while it runs.

The training only hands over copies: `qpos` of the first worlds after an update, at most ten times
per second, and the motion of each evaluation. A thread draws them. Nothing is copied or drawn while
no page is open. Poses are computed on the CPU, so that they do not wait for an accelerator that is
busy with an update.
"""

import contextlib
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

import jax
import numpy as np

from jaxsim.learn.curve import CurveRow
from jaxsim.learn.evaluate import Scores
from jaxsim.learn.run import Run, best_seed
from jaxsim.optional import require
from jaxsim.transforms.platform import platform_name
from jaxsim.view.browser.draw.poses import POSE_STATE_FIELDS
from jaxsim.view.browser.panel.fault import stop_message
from jaxsim.view.browser.server import DEFAULT_HOST
from jaxsim.view.browser.viewer import Viewer

_FRAME_INTERVAL = 1 / 20  # time between frames [s]
_COPY_INTERVAL = 0.1  # shortest time between copies of training worlds [s]
_EVALUATION, _TRAINING = "last evaluation", "training worlds"
_MEAN_COLOR = "#222222"
_SEED_COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")


class TrainingPage:
    """Page of a training; a context manager, and a `Watcher` of `train` (learn/run.py).

    Args:
      run: the run.
      worlds: number of worlds shown, at most those of the training or evaluation.
      rows: the curve so far, if the run is resumed.
      port, host, names: see `Viewer`.

    Attributes:
      viewer: the page.
      fault: the error that has stopped the drawing; None: none. The training goes on.

    Example:
      with TrainingPage(run) as page:
          print(page.viewer.address)
          train(run, watch=page)
    """

    def __init__(
        self,
        run: Run,
        *,
        worlds: int = 8,
        rows: Iterable[CurveRow] = (),
        port: int | None = None,
        host: str = DEFAULT_HOST,
        names: Iterable[str] = (),
    ):
        self._run, self._worlds = run, min(worlds, run.training.worlds.count)
        self._rows = list(rows)
        self._copy = jax.jit(self._first_worlds)
        self._copied = 0.0  # time of the last copy of training worlds
        self._training: tuple[int, dict[str, np.ndarray]] | None = None  # not drawn yet
        self._motion: _EvaluationMotion | None = None
        self._ending = threading.Event()
        self.fault: Exception | None = None
        with _on_cpu():
            m = jax.device_put(run.env.m, _cpu_device())
            self.viewer = Viewer(m, port=port, host=host, names=names, contacts=False)
            try:
                start = np.repeat(np.asarray(m.qpos0)[None], self._worlds, axis=0)
                self.viewer.start_with({"qpos": start}, self.viewer.scene.bounding_balls)
                self._add_panel()
            except BaseException:
                self.viewer.close()
                raise
        self._thread = threading.Thread(target=self._play, name="jaxsim training", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.set()
        self._thread.join()
        self.viewer.close()

    def after_update(self, step: int, state: Any) -> None:
        """Copy the first worlds of the first seed, if a page shows them."""
        now = time.monotonic()
        if now - self._copied < _COPY_INTERVAL or not self._is_open() or self._shows_evaluation():
            return
        self._copied = now
        self._training = step, jax.device_get(self._copy(state.env_state.world.data))

    def after_evaluation(self, step: int, rows: Sequence[CurveRow], scores: Scores) -> None:
        """Add a point to the curve, and play the episodes of the best seed from now on."""
        self._rows.extend(rows)
        self._motion = _EvaluationMotion(
            scores, best_seed(rows), self._worlds, float(self._run.env.dt), step
        )
        self._plot.data = self._curve()
        mean = np.mean([row.score for row in rows])
        self._result.content = (
            f"{step:,} of {self._run.training.steps:,} actions: return {mean:.4g}"
        )

    def _first_worlds(self, d: Any) -> dict[str, jax.Array]:
        """Return the fields that poses depend on, of the first worlds of the first seed."""
        fields = {name: getattr(d, name) for name in POSE_STATE_FIELDS}
        return {name: x[0, : self._worlds] for name, x in fields.items() if x is not None}

    def _is_open(self) -> bool:
        """Return whether a page shows the training."""
        return bool(self.viewer.server.get_clients())

    def _shows_evaluation(self) -> bool:
        return self._motion is not None and self._choice.value == _EVALUATION

    def _add_panel(self) -> None:
        gui = self.viewer.server.gui
        self._status = gui.add_markdown("", order=0)
        self._result = gui.add_markdown("no evaluation yet", order=1)
        self._choice = gui.add_dropdown(
            "show", (_EVALUATION, _TRAINING), initial_value=_EVALUATION, order=2
        )
        uplot = require("viser.uplot", "view")
        seeds = range(self._run.training.seeds)
        lines = [
            {"label": f"seed {i}", "stroke": _SEED_COLORS[i % len(_SEED_COLORS)]} for i in seeds
        ]
        lines = [{"label": "mean", "stroke": _MEAN_COLOR}, *lines] if len(seeds) > 1 else lines
        series = tuple(uplot.Series(**line) for line in ({"label": "actions"}, *lines))
        self._plot = gui.add_uplot(
            self._curve(),
            series,
            title="return",
            height=220,
            scales={"x": {"time": False}},
            order=3,
        )

    def _curve(self) -> tuple[np.ndarray, ...]:
        """Return the actions and the returns of each line of the plot, (evaluations,) each."""
        seeds = self._run.training.seeds
        steps = np.array(sorted({row.step for row in self._rows}), float)
        scores = np.full((seeds, len(steps)), np.nan)
        for row in self._rows:
            scores[row.seed, np.searchsorted(steps, row.step)] = row.score
        if not len(steps):
            steps, scores = np.zeros(1), np.zeros((seeds, 1))
        mean = [scores.mean(axis=0)] if seeds > 1 else []
        return (steps, *mean, *scores)

    def _play(self) -> None:
        """Draw frames until the training ends."""
        try:
            with _on_cpu():
                while not self._ending.wait(_FRAME_INTERVAL):
                    if self._is_open():
                        self._draw_frame()
        except Exception as error:  # noqa: BLE001  (a training is not lost to a drawing of it)
            self.fault = error
            self._status.content = stop_message(error)

    def _draw_frame(self) -> None:
        motion = self._motion
        if motion is not None and self._shows_evaluation():
            state, now = motion.at(time.monotonic())
            self._tell(f"**evaluation** after {motion.step:,} actions · {now:.1f} s")
        elif self._training is not None:
            (step, state), self._training = self._training, None
            self._tell(f"**training** · {step:,} actions")
        else:
            return
        self.viewer.show_state(state)

    def _tell(self, text: str) -> None:
        if self._status.content != text:
            self._status.content = text


class _EvaluationMotion:
    """The episodes of an evaluation, played in real time again and again.

    Args:
      scores: the evaluation, as numpy arrays with a leading axis of seeds.
      seed: the seed that is shown.
      worlds: largest number of episodes.
      dt: duration of an action [s].
      step: actions of the training before the evaluation.
    """

    def __init__(self, scores: Scores, seed: int, worlds: int, dt: float, step: int):
        self.step, self._dt, self._began = step, dt, time.monotonic()
        shown = min(worlds, scores.score.shape[1])
        # Worlds without an episode show the last one: the number of worlds stays the same.
        self._chosen = np.minimum(np.arange(worlds), shown - 1)
        self._qpos = np.asarray(scores.motion["qpos"][seed])
        self._last = np.asarray(scores.steps[seed])[self._chosen] - 1

    def at(self, clock: float) -> tuple[dict[str, np.ndarray], float]:
        """Return the state of all worlds at a time of the clock [s], and the time of the motion.

        An episode that has ended stays in its last state until all of them have ended.
        """
        number = int((clock - self._began) / self._dt) % (int(self._last.max()) + 1)
        records = np.minimum(number, self._last)
        return {"qpos": self._qpos[records, self._chosen]}, number * self._dt


def _cpu_device() -> jax.Device:
    """Return the CPU, or the default device if JAX was started without it."""
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return jax.local_devices()[0]


def _on_cpu() -> AbstractContextManager[Any]:
    """Return a context in which this thread computes on the CPU."""
    if platform_name() == "cpu":
        return contextlib.nullcontext()
    return jax.default_device(_cpu_device())
