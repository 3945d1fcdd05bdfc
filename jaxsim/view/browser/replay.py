"""Replay of a recorded motion on a page: time line, play, speed, and selection of worlds."""

import functools
import math
import threading
import time
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.errors import UnsupportedError
from jaxsim.model.allocate import check_supported
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.public.api import forward
from jaxsim.physics.public.make_data import make_data
from jaxsim.view.browser.draw.poses import Poses
from jaxsim.view.browser.framing import around_motion
from jaxsim.view.browser.motion import Recorded, RecordedMotion, motion_of
from jaxsim.view.browser.panel.fault import stop_message
from jaxsim.view.browser.panel.slider import step_of
from jaxsim.view.browser.panel.tables import add_tables
from jaxsim.view.browser.server import DEFAULT_HOST, Balls
from jaxsim.view.browser.simulation import kept_fields
from jaxsim.view.browser.viewer import Viewer

_REPLAY_SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "5", "10")
_MAX_REPLAY_WORLDS = 64  # default limit on the number of worlds shown
_FRAME_INTERVAL = 1 / 60  # time between frames [s]
_MAX_FRAME_TIME = 0.25  # longest time step of the replay [s]: a frame that compiles takes longer


class Replay:
    """Replay of a motion on the page of a viewer; a context manager.

    Args:
      m: the model.
      recorded: the motion, see `record`.
      port, host, names, ghosts: see `Viewer`.
      worlds: number of worlds shown; None: all of them, at most 64.

    Attributes:
      viewer: the page.
      motion: the motion.
      now: time in the motion [s].
      playing: whether it plays; initially true.
      speed: playback speed relative to real time.
      fault: the error that has stopped it; None: none.

    Raises:
      ValueError: this is no motion of the model.
    """

    def __init__(
        self,
        m: Model,
        recorded: Recorded,
        *,
        port: int | None = None,
        host: str = DEFAULT_HOST,
        names: Iterable[str] = (),
        ghosts: bool = False,
        worlds: int | None = None,
    ):
        self.motion: RecordedMotion = motion_of(m, recorded)
        self.now, self.playing, self.speed = 0.0, True, 1.0
        self.fault: BaseException | None = None
        self._first = 0
        self._number = self.motion.num_shown(worlds, _MAX_REPLAY_WORLDS)
        self._news, self._ending = threading.Event(), False
        self._recall = _Recall(m)
        where: dict[str, Any] = {"port": port, "host": host, "names": names}
        self.viewer = Viewer(m, ghosts=ghosts, contacts=self._recall.possible, **where)
        try:
            self.viewer.scene.then.append(self._news.set)
            self.viewer.start_with(self.motion.at(0, slice(self._number)), self._balls)
            self._add_controls(self.viewer.server.gui)
            self._add_keys()
            add_tables(self.viewer.server.gui, m)
        except BaseException:
            self.viewer.close()
            raise
        self._thread = threading.Thread(target=self._run, name="jaxsim replay", daemon=True)

    def __enter__(self) -> "Replay":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending = True
        self._news.set()
        self._thread.join()
        self.viewer.close()

    def play(self, playing: bool) -> None:
        """Play or pause; play restarts from the beginning at the end."""
        if playing and self.now >= self.motion.time[-1]:
            self.now = 0.0
        self.playing = playing
        self._play.label = "Pause" if playing else "Play"
        self._news.set()

    def seek(self, now: float) -> None:
        """Go to a time [s]."""
        self.now = float(np.clip(now, 0, self.motion.time[-1]))
        self._news.set()

    def _balls(self, poses: Poses) -> Balls:
        """Return the bounding spheres for the camera of a new page: the shown worlds over their
        motion."""
        number = len(poses.xpos)
        # the first world may have been changed since these were drawn
        first = min(self._first, self.motion.worlds - number)
        worlds = slice(first, first + number)
        return around_motion(self.viewer.scene, self.viewer.posing, self.motion, worlds)

    def _add_controls(self, gui: Any) -> None:
        motion = self.motion
        last = float(motion.time[-1])
        self._words = gui.add_markdown("", order=0)
        self._play = gui.add_button("Pause", order=1)
        # a slider needs a nonempty range, even for a single record
        step = step_of(max(last, 1e-2))
        end = step * math.ceil(max(last, 1e-2) / step - 1e-6)
        self._line = gui.add_slider(
            "time [s]", min=0.0, max=end, step=step, initial_value=0.0, order=2
        )
        speed = gui.add_dropdown("speed", _REPLAY_SPEEDS, initial_value="1", order=3)
        self._play.on_click(lambda _: self.play(not self.playing))

        # a coroutine runs at once; in a thread it could find the value of the next frame
        @self._line.on_update
        async def _(event: Any) -> None:
            if event.client is not None:  # not for changes made by the program itself
                self.seek(self._line.value)

        @speed.on_update
        def _(_: Any) -> None:
            self.speed = float(speed.value)

        if motion.worlds > 1:
            self._add_worlds(gui)

    def _add_keys(self) -> None:
        add = self.viewer.shortcuts.add
        add("space", "play or pause", lambda _: self.play(not self.playing))
        add("backspace", "go to the first record", lambda _: self.seek(0.0))
        for key, way, does in (
            ("arrowright", 1, "go to the next record, and pause"),
            ("arrowleft", -1, "go to the record before, and pause"),
        ):
            add(key, does, functools.partial(self._skip, way))

    def _skip(self, records: int, _: Any) -> None:
        """Go forward by a number of records, and pause."""
        self.play(False)
        here = int(np.searchsorted(self.motion.time, self.now + 1e-9, side="right")) - 1
        self.seek(float(self.motion.time[np.clip(here + records, 0, self.motion.records - 1)]))

    def _add_worlds(self, gui: Any) -> None:
        motion = self.motion
        number = gui.add_slider(
            "worlds", min=1, max=motion.worlds, step=1, initial_value=self._number, order=4
        )
        first = gui.add_slider(
            "first world", min=0, max=motion.worlds - 1, step=1, initial_value=0, order=5
        )
        ghosts = gui.add_checkbox("ghosts", initial_value=self.viewer.ghosts, order=6)

        def change(_: Any) -> None:
            self._first = min(int(first.value), motion.worlds - 1)
            self._number = min(int(number.value), motion.worlds - self._first)
            self.viewer.lay_out(ghosts.value)
            self._news.set()

        for control in (number, first, ghosts):
            control.on_update(change)

    def _run(self) -> None:
        try:
            self._run_loop()
        except BaseException as error:  # noqa: BLE001  (reported on the page)
            self.fault = error
            self._words.content = stop_message(error)

    def _run_loop(self) -> None:
        begun = time.perf_counter()
        while not self._ending:
            now = time.perf_counter()
            passed, begun = min(now - begun, _MAX_FRAME_TIME), now
            if self.playing:
                self.now += self.speed * passed
                if self.now >= self.motion.time[-1]:
                    self.now = float(self.motion.time[-1])
                    self.play(False)
            self._show()
            rest = _FRAME_INTERVAL - (time.perf_counter() - now)
            if rest > 0:
                time.sleep(rest)
            if not self.playing:
                self._news.wait()
                begun = time.perf_counter()
            self._news.clear()

    def _show(self) -> None:
        """Show the record at the present time, of the selected worlds."""
        motion = self.motion
        record = int(np.searchsorted(motion.time, self.now + 1e-9, side="right")) - 1
        record = max(record, 0)
        worlds = slice(self._first, self._first + self._number)
        state = motion.at(record, worlds)
        if self.viewer.wants_contacts():
            self.viewer.show(self._recall.of(state))
        else:
            self.viewer.show_state(state)
        # on the thread that receives what users do: no change of theirs falls between
        now = float(self.now)
        loop = self.viewer.server.get_event_loop()
        loop.call_soon_threadsafe(setattr, self._line, "value", now)
        self._words.content = (
            f"**{self.now:.3f} s** · record {record + 1} of {motion.records} · "
            f"{self._number} of {motion.worlds} worlds"
        )


class _Recall:
    """Program that evaluates worlds at recorded states.

    Args:
      m: the model.

    Attributes:
      possible: whether the model can be simulated.
    """

    def __init__(self, m: Model):
        self._m = m
        self._program = jax.jit(jax.vmap(forward, (None, 0)))
        try:
            check_supported(m)
        except UnsupportedError:
            self.possible = False
        else:
            self.possible = True

    @functools.cached_property
    def _start(self) -> Data:
        return make_data(self._m, keep=kept_fields())

    def of(self, state: dict[str, np.ndarray]) -> Data:
        """Return the worlds at a state with their contacts, and the forces that follow from it.

        Args:
          state: fields of Data by name, (worlds, ...); missing ones have their initial values.
        """
        number = len(state["qpos"])
        start = jax.tree.map(lambda x: jnp.broadcast_to(x, (number, *x.shape)), self._start)
        given = {name: jnp.asarray(x, getattr(start, name).dtype) for name, x in state.items()}
        found: Data = self._program(self._m, start.replace(**given))
        return found
