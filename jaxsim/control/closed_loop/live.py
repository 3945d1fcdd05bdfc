"""A control loop in real time on a page: the planned paths, cost curves, sliders, pause, the mouse.

The loop runs in the thread that calls `run`. Requests of pages are queued and applied between two
periods, as in `view/browser/simulation.py`. Sliders replace weights and goals, which are arguments
of the programs: nothing is compiled again.
"""

import queue
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax import lax

from jaxsim.control.closed_loop.program import LoopProgram
from jaxsim.control.closed_loop.read import ClosedLoop
from jaxsim.control.closed_loop.run import RealtimeLoop
from jaxsim.control.problem import Problem
from jaxsim.model.data import Data
from jaxsim.model.structure import Structure
from jaxsim.optional import require
from jaxsim.physics.public.api import step
from jaxsim.physics.public.make_data import make_data
from jaxsim.view.browser.dragging import enable_dragging
from jaxsim.view.browser.draw.part import Part
from jaxsim.view.browser.holding import Holder, StateChange, no_hold
from jaxsim.view.browser.panel.slider import step_of
from jaxsim.view.browser.server import DEFAULT_HOST
from jaxsim.view.browser.simulation import kept_fields
from jaxsim.view.browser.viewer import Viewer

_MAX_FACTOR = 4.0  # largest factor of a weight
_STATUS_INTERVAL = 0.25  # interval of updates of the page [s]
_PAUSED_INTERVAL = 0.05  # polling interval of a paused loop [s]
_CURVE_SECONDS = 10.0  # length of the cost curves [s]
_PATH_COLOR = (60, 140, 230)


def with_view_fields(loop: ClosedLoop) -> ClosedLoop:
    """Return a loop whose plant keeps the fields that dragging and drawing need."""
    plant = loop.plant
    kept = [n for n, f in Data.fields.items() if not f.static and getattr(plant.d, n) is not None]
    d = make_data(plant.m, keep=dict.fromkeys([*kept, *kept_fields()]))
    return replace(
        loop, plant=plant._replace(d=d.replace(**{n: getattr(plant.d, n) for n in kept}))
    )


class LiveLoop(Holder):
    """A control loop on the page of a viewer; a context manager.

    Args:
      program: the programs of a loop with `with_view_fields`, made with `held=no_hold(m)`.
      port, host, names: see `Viewer`.

    Attributes:
      viewer: the page.
      loop: the running loop.
      paused: whether it is paused.
    """

    def __init__(
        self,
        program: LoopProgram,
        *,
        port: int | None = None,
        host: str = DEFAULT_HOST,
        names: Iterable[str] = (),
    ):
        self.m = program.loop.plant.m
        self.held = self.nobody = no_hold(self.m)
        self.paused = False
        self._asked: queue.SimpleQueue[StateChange] = queue.SimpleQueue()
        self._program = program
        self._paths = PlannedPaths(program.loop)
        points = max(2, round(_CURVE_SECONDS / program.loop.period))
        self._curve: deque[tuple[float, np.ndarray]] = deque(maxlen=points)
        self.loop = RealtimeLoop(program, self.held, points)
        self._paths.find(self.loop)  # compiles
        self._told = 0.0
        self.viewer = Viewer(
            self.m, port=port, host=host, names=names, on_part=self._on_part, contacts=False
        )
        try:
            self._add_panel()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> "LiveLoop":
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.__exit__()
        self.viewer.close()

    def ask(self, change: StateChange) -> None:
        """Queue a change of the plant, applied between two periods."""
        self._asked.put(change)

    def run(self, periods: int | None = None) -> None:
        """Run the loop in real time; a paused period does not advance the plant.

        Args:
          periods: number of periods; None: until the thread is interrupted.
        """
        period, number = self._program.loop.period, 0
        due = time.perf_counter()
        while periods is None or number < periods:
            number += 1
            while not self._asked.empty():
                self.loop.d = self._asked.get()(self.loop.d)
            self.loop.held = self.held
            if not self.paused:
                self.loop.advance()
                costs = self.loop.log.last_costs
                self._curve.append((float(self.loop.d.time), costs))
            self.viewer.show(self.loop.d)
            self._tell()
            due += _PAUSED_INTERVAL if self.paused else period
            left = due - time.perf_counter()
            if left > 0:
                time.sleep(left)
            else:
                due -= left  # the plant falls behind

    def _tell(self) -> None:
        """Update the status, the curves and the planned paths of the page."""
        now = time.perf_counter()
        if now - self._told < _STATUS_INTERVAL:
            return
        self._told = now
        log = self.loop.log
        state = "paused" if self.paused else f"plan {1e3 * log.last_plan_seconds:.1f} ms"
        self._words.content = (
            f"**{float(self.loop.d.time):.2f} s** · {state} · {log.late} of {log.periods} late"
        )
        if self._curve:
            times = np.array([t for t, _ in self._curve])
            costs = np.stack([c for _, c in self._curve]).T
            self._plot.data = (times, costs.sum(axis=0), *costs)
        self._paths.draw(self.viewer.server, self.loop)

    def _add_panel(self) -> None:
        gui = self.viewer.server.gui
        self._words = gui.add_markdown("", order=0)
        self._play = gui.add_button("Pause", order=1)
        reset = gui.add_button("Reset", order=2)
        self._play.on_click(lambda _: self._toggle())
        reset.on_click(lambda _: self.ask(self._reset))
        self.viewer.shortcuts.add("space", "run or pause", lambda _: self._toggle())
        self.viewer.shortcuts.add("backspace", "reset", lambda _: self.ask(self._reset))
        self._add_plot(gui)
        with gui.add_folder("Weights", order=4):
            for i, term in enumerate(self.loop.plan_problem.terms):
                self._add_weight(gui, i, term.name)
        with gui.add_folder("Goals", expand_by_default=False, order=5):
            for i, cost in enumerate(self._program.loop.form.cost):
                for k, value in enumerate(cost.target):
                    self._add_goal(gui, i, k, value, cost.name, len(cost.target))

    def _toggle(self) -> None:
        self.paused = not self.paused
        self._play.label = "Play" if self.paused else "Pause"

    def _reset(self, _: Data) -> Data:
        """Reset plant, plan and log, and return the plant; weights and goals stay."""
        self.loop.reset()
        self._curve.clear()
        return self.loop.d

    def _add_plot(self, gui: Any) -> None:
        uplot = require("viser.uplot", "view")
        names = [term.name for term in self.loop.plan_problem.terms]
        colors = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
        lines = [{"label": "cost", "stroke": "#222222"}]
        lines += [{"label": n, "stroke": colors[i % len(colors)]} for i, n in enumerate(names)]
        series = tuple(uplot.Series(**line) for line in ({"label": "s"}, *lines))
        data = tuple(np.zeros(1) for _ in series)
        self._plot = gui.add_uplot(
            data, series, title="cost", height=200, scales={"x": {"time": False}}, order=3
        )

    def _add_weight(self, gui: Any, i: int, name: str) -> None:
        """Add a slider for the factor of a weight."""
        slider = gui.add_slider(
            name, min=0.0, max=_MAX_FACTOR, step=step_of(_MAX_FACTOR), initial_value=1.0
        )
        given = [p.terms[i] for p in self._program.problems()]

        @slider.on_update
        def _(_: Any) -> None:
            for problem, term in zip(("plan_problem", "plant_problem"), given, strict=True):
                end = None if term.terminal is None else term.terminal * slider.value
                self._change(problem, i, weight=term.weight * slider.value, terminal=end)

    def _add_goal(self, gui: Any, i: int, k: int, value: float, name: str, count: int) -> None:
        """Add a slider for a number of a goal."""
        reach = max(1.0, abs(value))
        slider = gui.add_slider(
            name if count == 1 else f"{name} {k}",
            min=value - reach,
            max=value + reach,
            step=step_of(2 * reach),
            initial_value=value,
        )

        @slider.on_update
        def _(_: Any) -> None:
            for problem in ("plan_problem", "plant_problem"):
                goal = np.array(getattr(self.loop, problem).terms[i].goal)
                goal[k] = slider.value
                self._change(problem, i, goal=goal)

    def _change(self, problem: str, i: int, **changes: Any) -> None:
        """Replace fields of a term; weights and goals keep their precision."""
        old: Problem = getattr(self.loop, problem)
        dtype = self.m.qpos0.dtype
        new: dict[str, Any] = {
            n: None if x is None else np.asarray(x, dtype) for n, x in changes.items()
        }
        terms = list(old.terms)
        terms[i] = replace(terms[i], **new)
        setattr(self.loop, problem, replace(old, terms=tuple(terms)))

    def _on_part(self, handle: Any, part: Part, world: int) -> None:
        """Let the user pull and rotate the body of a part."""
        if self.m.body_weldid[part.body] != 0:
            enable_dragging(handle, lambda _: part.body, lambda: self)


class PlannedPaths:
    """The paths of bodies that a plan leads to, as lines."""

    def __init__(self, loop: ClosedLoop):
        self._loop = loop
        self._handle: Any = None
        self._bodies = np.array(outer_bodies(loop.planner.m.structure))
        self._run = jax.jit(self._positions)

    def _positions(self, state: dict, ctrl: jax.Array) -> jax.Array:
        """Return the positions of the bodies along the plan, (horizon, n, 3)."""
        m, d = self._loop.planner.m, make_data(self._loop.planner.m, keep=["xpos", "ctrl"])

        def advance(d: Data, u: jax.Array) -> tuple[Data, jax.Array]:
            after = step(m, d.replace(ctrl=u))
            return after, after.xpos[self._bodies]

        return lax.scan(advance, d.replace(**state), ctrl)[1]

    def find(self, loop: RealtimeLoop) -> np.ndarray:
        """Return the positions along the newest plan, from the present state, (horizon, n, 3)."""
        state = loop.program.state_of(loop.d)
        return np.asarray(self._run(state, np.asarray(loop.running.ctrl)), np.float32)

    def draw(self, server: Any, loop: RealtimeLoop) -> None:
        """Draw the paths of the newest plan."""
        points = self.find(loop)
        ends = np.stack([points[:-1], points[1:]], axis=2).reshape(-1, 2, 3)
        if self._handle is not None and len(ends) == len(self._handle.points):
            self._handle.points = ends
        elif len(ends):
            self._handle = server.scene.add_line_segments(
                "/plan", ends, colors=_PATH_COLOR, thickness=2.0, thickness_units="screen"
            )


def outer_bodies(s: Structure) -> list[int]:
    """Return the bodies without children, whose paths show a plan best."""
    parents = set(np.asarray(s.body_parentid)[1:].tolist())
    return [i for i in range(1, len(s.body_parentid)) if i not in parents]
