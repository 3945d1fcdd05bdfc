"""Controls of a live simulation: play, pause, step, speed, keyframes, options, sliders, mouse."""

import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import jax
import numpy as np

from jaxsim.enums import JointType
from jaxsim.errors import UnsupportedError
from jaxsim.escape import unique
from jaxsim.model.data import Data
from jaxsim.model.describe import name_of
from jaxsim.model.model import Model
from jaxsim.view.browser.dragging import enable_dragging
from jaxsim.view.browser.draw.deformable import Deformable, body_at
from jaxsim.view.browser.draw.part import Part
from jaxsim.view.browser.draw.poses import Poses
from jaxsim.view.browser.panel.fault import stop_message
from jaxsim.view.browser.panel.physics import add_physics
from jaxsim.view.browser.panel.plots import SensorPlots
from jaxsim.view.browser.panel.recorder import Recorder, add_recorder
from jaxsim.view.browser.panel.slider import step_of
from jaxsim.view.browser.panel.tables import add_tables
from jaxsim.view.browser.reload import reload_model
from jaxsim.view.browser.server import DEFAULT_HOST
from jaxsim.view.browser.simulation import Simulation
from jaxsim.view.browser.viewer import Viewer

_SPEED_CHOICES = ("0.05", "0.1", "0.25", "0.5", "1", "2", "5")
_START_LABEL = "start"
_STATUS_INTERVAL = 0.25  # interval of status updates [s]
_SLIDER_HOLD_TIME = 1.0  # a slider moved by the user is not updated for this time [s]
_UNLIMITED_REACH = 1.0  # range of a slider for unlimited joints, in radians or meters


class Live:
    """A live simulation on the page of a viewer; a context manager.

    Args:
      m: a model that can be simulated.
      source: file of the model, for `reload` and the name of recordings; None: unknown.
      port, host, names: see `Viewer`.

    Attributes:
      viewer: the page.
      simulation: the simulation.
    """

    def __init__(
        self,
        m: Model,
        *,
        source: str | None = None,
        port: int | None = None,
        host: str = DEFAULT_HOST,
        names: Iterable[str] = (),
    ):
        self._m, self._source = m, source
        self._changing = threading.RLock()  # held while the panel is updated or replaced
        self._changed, self._watching = _time_of(source), False
        where: dict[str, Any] = {"port": port, "host": host, "names": names}
        self.viewer = Viewer(m, on_part=self._on_part, on_soft=self._on_soft, **where)
        try:
            self.simulation = Simulation(m, self._show_world)
            self._add_panel()
        except BaseException:
            self.viewer.close()
            raise
        self._ending = threading.Event()
        self._telling = threading.Thread(target=self._tell, name="jaxsim telling", daemon=True)

    def __enter__(self) -> "Live":
        self.simulation.begin()
        self._telling.start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.simulation.end()
        finally:  # the user may interrupt the wait for the compiler
            self._ending.set()
            self._telling.join()
            self.viewer.close()

    def reload(self) -> str:
        """Load the file of the model again, and keep the state of the world.

        Returns:
          A report: which state was kept, or why the file could not be loaded.
        """
        if self._source is None:
            return "the file of this model is not known"
        with self._changing:
            self._changed = _time_of(self._source)
            old = self.simulation
            old.end()
            try:
                m, d, report = reload_model(self._source, old.m, old.d)
            except (ValueError, UnsupportedError, OSError) as error:
                self._restart(old, old.m, old.d)
                return f"not reloaded: {error}"
            self._m = m
            self.viewer.replace_model(m)
            self._restart(old, m, d)
            self._add_panel()
        return report

    def _restart(self, old: Simulation, m: Model, d: Data) -> None:
        """Replace a simulation that has ended."""
        self.simulation = Simulation(m, self._show_world, d)
        self.simulation.paused, self.simulation.speed = old.paused, old.speed
        self.simulation.begin()

    def _reload(self, event: Any = None) -> None:
        """Reload, and report on the page that requested it, or on all pages."""
        report = self.reload()
        clients = self.viewer.server.get_clients().values() if event is None else [event.client]
        for client in clients:
            client.add_notification("Reload", report[:1000], auto_close_seconds=8.0)

    def _add_panel(self) -> None:
        """Add the controls of the present model and simulation."""
        self.viewer.scene.then.append(lambda: self.simulation.request_redraw())
        gui, m = self.viewer.server.gui, self._m
        self._words = gui.add_markdown("", order=0)
        self._recorder = Recorder(m, self._source or "")
        self._add_time(gui)
        with self.viewer.files:
            record = add_recorder(gui, self._recorder)
            self._add_reload(gui)
        self._add_keys(record)
        add_physics(gui, m, self._set_option)
        self._add_controls(gui)
        self._add_joints(gui)
        self._plots = SensorPlots(gui, m)
        add_tables(gui, m)

    def _add_keys(self, record: Callable[[Any], None]) -> None:
        add, faster = self.viewer.shortcuts.add, range(len(_SPEED_CHOICES))
        add("space", "run or pause", lambda _: self._toggle())
        add("arrowright", "make a single step, and pause", lambda _: self._single_step())
        add("backspace", "reset to the selected keyframe", self._reset_world)
        for key, way, does in (("arrowup", 1, "run faster"), ("arrowdown", -1, "run slower")):

            def change(_: Any, way: int = way) -> None:
                here = _SPEED_CHOICES.index(self._speed.value) + way
                if here in faster:
                    self._speed.value = _SPEED_CHOICES[here]

            add(key, does, change)
        add("V", "start or end a recording", record)
        if self._source is not None:
            add("R", "reload the file of the model", self._reload)

    def _set_option(self, name: str, value: Any, failed: Callable[[BaseException], None]) -> None:
        """Change an option of the running model."""
        simulation = self.simulation
        simulation.set_options(failed, **{name: value})

        def follow(d: Data) -> Data:
            self.viewer.follow_options(simulation.m)
            return d

        simulation.ask(follow)

    def _show_world(self, d: Data) -> None:
        self.viewer.show(d)
        self._plots.add(d)
        self._recorder.add(d)

    def _tell(self) -> None:
        """Update the status line, plots and joint sliders periodically."""
        while not self._ending.wait(_STATUS_INTERVAL):
            if self._watching and _time_of(self._source) != self._changed:
                self._reload()
            with self._changing:
                self._words.content = status_line(self._m, self.simulation, self._recorder)
                self._plots.draw()
                self._show_joints()

    def _add_time(self, gui: Any) -> None:
        s = self.simulation
        self._play = gui.add_button("Play" if s.paused else "Pause", order=1)
        step = gui.add_button("Step", order=2)
        speed = next(x for x in _SPEED_CHOICES if float(x) == s.speed)
        self._speed = gui.add_dropdown("speed", _SPEED_CHOICES, initial_value=speed, order=3)
        names = unique((name_of(self._m, "key", i) for i in range(self._m.nkey)), (_START_LABEL,))
        key = gui.add_dropdown(
            "keyframe", (_START_LABEL, *names), initial_value=_START_LABEL, order=4
        )
        reset = gui.add_button("Reset", order=5)
        self._play.on_click(lambda _: self._toggle())
        step.on_click(lambda _: self.simulation.request_step())

        @self._speed.on_update
        def _(_: Any) -> None:
            self.simulation.speed = float(self._speed.value)

        def reset_world(_: Any) -> None:
            self.simulation.reset(None if key.value == _START_LABEL else names.index(key.value))
            self._show_ctrl()

        self._reset_world = reset_world
        key.on_update(reset_world)
        reset.on_click(reset_world)

    def _add_reload(self, gui: Any) -> None:
        if self._source is None:
            return
        again = gui.add_button("Reload", hint="load the model's file again, and keep the state")
        watch = gui.add_checkbox("reload when the file changes", initial_value=self._watching)
        again.on_click(self._reload)

        @watch.on_update
        def _(_: Any) -> None:
            self._watching, self._changed = watch.value, _time_of(self._source)

    def _toggle(self) -> None:
        """Run or pause."""
        s = self.simulation
        s.run(s.paused)
        self._play.label = "Play" if s.paused else "Pause"

    def _single_step(self) -> None:
        """Pause, and make a single step."""
        if not self.simulation.paused:
            self._toggle()
        self.simulation.request_step()

    def _add_controls(self, gui: Any) -> None:
        """Add a slider for each control."""
        self._ctrl: list[Any] = []
        if not self._m.nu:
            return
        bounds = control_bounds(self._m)
        with gui.add_folder("Actuators", expand_by_default=False, order=10):
            for i, (name, low, high) in enumerate(bounds):
                value = float(np.clip(self.simulation.ctrl[i], low, high))
                slider = gui.add_slider(
                    name, min=low, max=high, step=step_of(high - low), initial_value=value
                )
                slider.on_update(self._set_ctrl(i, slider))
                self._ctrl.append(slider)
            zero = gui.add_button("Zero")

        @zero.on_click
        def _(_: Any) -> None:
            self.simulation.ctrl = np.zeros(self._m.nu)
            self._show_ctrl()

    def _set_ctrl(self, i: int, slider: Any) -> Callable[[Any], None]:
        def change(event: Any) -> None:
            if event.client is not None:  # not for changes made by the program itself
                ctrl = self.simulation.ctrl.copy()
                ctrl[i] = slider.value
                self.simulation.ctrl = ctrl

        return change

    def _show_ctrl(self) -> None:
        for slider, value in zip(self._ctrl, self.simulation.ctrl, strict=True):
            slider.value = float(np.clip(value, slider.min, slider.max))

    def _add_joints(self, gui: Any) -> None:
        """Add a slider for each hinge and slide, which moves a paused world."""
        self._joints: list[tuple[int, Any]] = []
        self._moved = -np.inf  # time of the last change by the user
        joints = joint_bounds(self._m)
        if not joints:
            return
        with gui.add_folder("Joints", expand_by_default=False, order=11):
            for name, adr, low, high in joints:
                value = float(np.clip(np.asarray(self._m.qpos0)[adr], low, high))
                slider = gui.add_slider(
                    name, min=low, max=high, step=step_of(high - low), initial_value=value
                )
                slider.on_update(self._set_joint(adr, slider))
                self._joints.append((adr, slider))

    def _show_joints(self) -> None:
        """Update the sliders of joints."""
        if time.monotonic() - self._moved < _SLIDER_HOLD_TIME:
            return
        qpos = np.asarray(self.simulation.d.qpos)
        for adr, slider in self._joints:
            value = float(np.clip(qpos[adr], slider.min, slider.max))
            # changes below a step would not be visible
            if abs(value - slider.value) >= slider.step:
                slider.value = value

    def _set_joint(self, adr: int, slider: Any) -> Callable[[Any], Coroutine[Any, Any, None]]:
        # a coroutine runs at once; in a thread it could find the slider overwritten by _show_joints
        async def change(event: Any) -> None:
            if event.client is not None and self.simulation.paused:
                self._moved, value = time.monotonic(), slider.value
                self.simulation.move_joints(lambda qpos: _set_value(qpos, adr, value))

        return change

    def _on_part(self, handle: Any, part: Part, world: int) -> None:
        """Let the user pull and rotate the body of a part."""
        if self._m.body_weldid[part.body] != 0 or self._m.body_mocapid[part.body] >= 0:
            enable_dragging(handle, lambda _: part.body, lambda: self.simulation)

    def _on_soft(self, handle: Any, soft: Deformable) -> None:
        """Let the user pull the bodies of a flex or skin, at the picked vertex."""
        enable_dragging(
            handle,
            lambda point: body_at(self._m, soft, self._poses(), point),
            lambda: self.simulation,
        )

    def _poses(self) -> Poses:
        poses = self.viewer.scene.poses
        assert poses is not None  # a dragged object was drawn
        return poses


def _time_of(source: str | None) -> int:
    """Return the time at which a file was changed last [ns]; 0: there is none."""
    try:
        return 0 if source is None else os.stat(source).st_mtime_ns
    except OSError:
        return 0


def status_line(m: Model, s: Simulation, recorder: Recorder | None = None) -> str:
    """Return the status of a simulation as a line of Markdown."""
    if s.fault is not None:
        return stop_message(s.fault)
    if not s.ready:
        return "compiling the step ..."
    parts = [f"**{float(s.d.time):.3f} s**"]
    parts.append("paused" if s.paused else f"{s.pace:.2f} x real time")
    parts.append(f"{int(s.d.ncon)} contacts")
    resets = int(np.asarray(jax.device_get(s.d.warning)).sum())
    if resets:
        parts.append(f"{resets} warnings")
    if recorder is not None and recorder.recording:
        parts.append(f"recording {recorder.seconds:.1f} s")
    return " · ".join(parts)


def control_bounds(m: Model) -> list[tuple[str, float, float]]:
    """Return name, lower and upper end of the slider of each control; -1 to 1 without a range."""
    ranges, found = np.asarray(m.actuator_ctrlrange), []
    for a in range(m.nactuator):
        for k in range(int(m.actuator_ctrlnum[a])):
            i = int(m.actuator_ctrladr[a]) + k
            low, high = (
                ranges[i] if m.actuator_ctrllimited[i] else (-_UNLIMITED_REACH, _UNLIMITED_REACH)
            )
            name = name_of(m, "actuator", a)
            name = name if m.actuator_ctrlnum[a] == 1 else f"{name} {k}"
            found.append((name, float(low), float(max(high, low + 1e-6))))
    return found


def joint_bounds(m: Model) -> list[tuple[str, int, float, float]]:
    """Return name, index in qpos, lower and upper end of the slider of each hinge and slide."""
    start, limits, found = np.asarray(m.qpos0), np.asarray(m.jnt_range), []
    for j in np.flatnonzero(np.isin(m.jnt_type, (JointType.HINGE, JointType.SLIDE))):
        adr = int(m.jnt_qposadr[j])
        reach = np.pi if m.jnt_type[j] == JointType.HINGE else _UNLIMITED_REACH
        low, high = limits[j] if m.jnt_limited[j] else (start[adr] - reach, start[adr] + reach)
        found.append((name_of(m, "joint", int(j)), adr, float(low), float(max(high, low + 1e-6))))
    return found


def _set_value(values: np.ndarray, place: int, value: float) -> np.ndarray:
    values[place] = value
    return values
