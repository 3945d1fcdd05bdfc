"""Real-time simulation of one world in a separate thread, independent of the pages that show it."""

import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.batch.stored_program import StoredFunction
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.public.api import step
from jaxsim.physics.public.make_data import make_data, reset_data_keyframe
from jaxsim.transforms.program_cache import ProgramCache
from jaxsim.view.browser.holding import Holder, StateChange, no_hold
from jaxsim.view.perturb import Perturb, apply_perturb_force, apply_perturb_pose

_FRAME_INTERVAL = 1 / 60  # time between frames [s]
_MAX_STEP_TIME = 0.1  # longest time for the steps of one frame [s]
_PAUSED_INTERVAL = 0.2  # polling interval of a paused world [s]
_PACE_SMOOTHING = 0.1  # weight of the last frame in the running mean of the speed
_SIMULATION_STATE = (
    *("time", "time_low", "qpos", "qvel", "act", "history", "history_low", "plastic"),
    *("plugin_state", "qacc_warmstart"),
    *("tree_asleep", "tree_start", "warning", "warning_lastinfo", "mocap_pos", "mocap_quat"),
    *("flexvert_lambda", "flexvert_conage"),
)
_KEPT_FIELDS = ("contact", "xmat", "xanchor", "xaxis", "subtree_com", "cvel")


class Simulation(Holder):
    """Real-time simulation of one world. Other threads change it by `ask` or its attributes.

    Args:
      m: a model that can be simulated.
      show: called from the thread of the simulation with every state to be shown.
      d: the state at the start, with the fields of `kept_fields`; None: the initial one.

    Attributes:
      m: the model, with the present options.
      d: the last state that was shown.
      paused: whether it is paused; initially true.
      speed: requested speed relative to real time.
      ctrl: controls, held constant, (nu,).
      held: the perturbation of a body by the user.
      pace: measured speed relative to real time; 0 while paused.
      ready: whether its program is compiled.
      fault: the error that has stopped it; None: none.
    """

    def __init__(self, m: Model, show: Callable[[Data], None], d: Data | None = None):
        self.m, self._show = m, show
        self.start = make_data(m, keep=kept_fields())
        self.d = self.start if d is None else d
        self.paused, self.speed = True, 1.0
        self.ctrl = np.asarray(self.d.ctrl).copy()
        self.held = self.nobody = no_hold(m)
        self.pace, self.ready = 0.0, False
        self._behind, self._step_time = 0.0, 1e-3
        self.fault: BaseException | None = None
        self._asked: queue.SimpleQueue[StateChange] = queue.SimpleQueue()
        self._news, self._ending = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name="jaxsim simulation", daemon=True)

    def begin(self) -> None:
        """Start the thread; it compiles first."""
        self._thread.start()

    def end(self) -> None:
        """Stop the thread and wait for it."""
        self._ending = True
        self._news.set()
        if self._thread.is_alive():
            self._thread.join()

    def run(self, playing: bool) -> None:
        """Run or pause."""
        self.paused = not playing
        self._news.set()

    def ask(self, change: StateChange) -> None:
        """Queue a change of the state, applied between two steps and then shown."""
        self._asked.put(change)
        self._news.set()

    def request_redraw(self) -> None:
        """Request that the state is shown again, even if paused."""
        self.ask(lambda d: d)

    def request_step(self) -> None:
        """Make a single step of a paused world."""
        self.ask(lambda d: self._advance(d, 1))

    def reset(self, key: int | None = None) -> None:
        """Reset to the initial state, or to a keyframe, including its controls."""
        d = self.start if key is None else reset_data_keyframe(self.m, self.start, key)
        self.ctrl = np.asarray(d.ctrl).copy()
        self.ask(lambda _: d)

    def set_options(self, failed: Callable[[BaseException], None], **changes: Any) -> None:
        """Change options of the model, `m.opt`; a change of a static one compiles.

        Args:
          failed: called with the error if the engine rejects them; the options then stay.
          changes: new values by name.
        """

        def change(d: Data) -> Data:
            before, self.ready = self.m, False
            try:
                self.m = before.replace(opt=before.opt.replace(**changes))
                jax.block_until_ready(self._advance(d, 1))
            except Exception as error:  # noqa: BLE001  (reported by the page)
                self.m = before
                failed(error)
            self.ready = True
            return d

        self.ask(change)

    def move_joints(self, change: Callable[[np.ndarray], np.ndarray]) -> None:
        """Set coordinates of a paused world, with zero velocity.

        Args:
          change: returns the new `qpos` for the present one, (nq,).
        """

        def set_qpos(d: Data) -> Data:
            qpos = jnp.asarray(change(np.array(d.qpos)), d.qpos.dtype)
            return d.replace(qpos=qpos, qvel=jnp.zeros_like(d.qvel))

        self.ask(set_qpos)

    def _run(self) -> None:
        try:
            self._show(self.d)
            self.d = jax.block_until_ready(self._evaluate(self.d))  # compiles
            self.ready = True
            self._show(self.d)
            self._run_loop()
        except BaseException as error:  # noqa: BLE001  (reported by the page)
            self.fault = error

    def _run_loop(self) -> None:
        begun = time.perf_counter()
        while not self._ending:
            now = time.perf_counter()
            changed = self._answer()
            count = 0 if self.paused else self._steps_due(now - begun)
            begun = now
            if count:
                self.d = jax.block_until_ready(self._advance(self.d, count))
                self._step_time += _PACE_SMOOTHING * (
                    (time.perf_counter() - now) / count - self._step_time
                )
            elif self.paused and (self._carry_held() or changed):
                self.d = self._evaluate(self.d)
                changed = True
            if count or changed:
                self._show(self.d)
            self._rest(now, count)

    def _steps_due(self, seconds: float) -> int:
        """Return the number of steps that are due; a backlog that is too long is dropped."""
        dt = float(self.m.opt.timestep)
        self._behind += self.speed * seconds
        due, most = int(self._behind / dt), max(1, int(_MAX_STEP_TIME / self._step_time))
        self._behind = self._behind - due * dt if due <= most else 0.0
        return min(due, most)

    def _rest(self, begun: float, count: int) -> None:
        """Wait for the next frame; a paused world waits for requests."""
        left = _FRAME_INTERVAL - (time.perf_counter() - begun)
        if self.paused:
            self.pace, self._behind = 0.0, 0.0
            time.sleep(max(left, 0.0))  # changes come no faster than frames
            self._news.wait(_PAUSED_INTERVAL)
        elif left > 0:
            time.sleep(left)
        self._news.clear()
        if not self.paused:
            dt = float(self.m.opt.timestep)
            elapsed = time.perf_counter() - begun
            self.pace += _PACE_SMOOTHING * (count * dt / elapsed - self.pace)

    def _answer(self) -> bool:
        """Apply the queued changes; return whether there were any."""
        changed = False
        while not self._asked.empty():
            self.d = self._asked.get()(self.d)
            changed = True
        return changed

    def _evaluate(self, d: Data) -> Data:
        """Return the state with its contacts, forces and sensors.

        They are computed by the program of a step, so that no other program is compiled.
        """
        after = self._advance(d, 1)
        return after.replace(**{name: getattr(d, name) for name in _SIMULATION_STATE})

    def _carry_held(self) -> bool:
        """Move a perturbed body of a paused world to its target."""
        if int(self.held.active) == 0:
            return False
        self.d = _carry_held_body(self.m, self.d, self.held)
        return True

    def _advance(self, d: Data, count: int) -> Data:
        ctrl = jnp.asarray(self.ctrl, d.ctrl.dtype)
        return _steps(self.m, d.replace(ctrl=ctrl), self.held, jnp.int32(count))


@partial(StoredFunction, name="the simulation", tier="auto")
def _steps(m: Model, d: Data, held: Perturb, count: jax.Array) -> Data:
    """Return the state after some steps with the perturbation."""

    def pull_hold(d: Data) -> Data:
        d = apply_perturb_pose(m, d, held)
        return apply_perturb_force(m, d, held)

    def one(_: jax.Array, d: Data) -> Data:
        d = d.replace(xfrc_applied=jnp.zeros_like(d.xfrc_applied))
        return step(m, lax.cond(held.active != 0, pull_hold, lambda d: d, d))

    return lax.fori_loop(0, count, one, d)


@ProgramCache
def _carry_held_body(m: Model, d: Data, held: Perturb) -> Data:
    return apply_perturb_pose(m, d, held, flg_paused=True)


def kept_fields() -> list[str]:
    """Return the default fields of a world, and those from which contact forces follow."""
    return [*(n for n, f in Data.fields.items() if f.keep and not f.static), *_KEPT_FIELDS]
