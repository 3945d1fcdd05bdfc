"""A world that runs in real time in a thread of its own, whatever those do who look at it."""

import functools
import queue
import threading
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics import step
from jaxsim.physics.arrays.programs import Programs
from jaxsim.physics.make_data import make_data, reset_data_keyframe
from jaxsim.view.camera import default_free_camera
from jaxsim.view.mouse import Mouse
from jaxsim.view.perturb import (
    Perturb,
    apply_perturb_force,
    apply_perturb_pose,
    init_perturb,
    move_perturb,
)

TURN = 1 / 60  # time between pictures [s]
LONG = 0.1  # longest time for the steps of one turn [s]
STANDING = 0.2  # time between looks at a world that stands still [s]
SMOOTH = 0.1  # weight of the last turn in the mean pace
STATE = (
    *("time", "time_low", "qpos", "qvel", "act", "history", "history_low", "plastic"),
    *("plugin_state", "qacc_warmstart"),
    *("tree_asleep", "tree_start", "warning", "warning_lastinfo", "mocap_pos", "mocap_quat"),
    *("flexvert_lambda", "flexvert_conage"),
)
KEPT = ("contact", "xmat", "xanchor", "xaxis", "subtree_com", "cvel")

Change = Callable[[Data], Data]


class Simulation:
    """Runs one world. Other threads change it by `ask`, and set its attributes.

    Args:
      m: a model that can be simulated.
      show: called from the thread of the simulation with every state that is to be seen.

    Attributes:
      d: the last state that was shown.
      paused: whether it stands still; it does at first.
      speed: time that passes in it for each second.
      ctrl: controls that are held, (nu,).
      held: the body that somebody holds.
      pace: time that passes in it for each second, as measured; 0 while it stands still.
      ready: whether its program is compiled.
      fault: why it has ended by itself; None: it has not.
    """

    def __init__(self, m: Model, show: Callable[[Data], None]):
        self._m, self._show = m, show
        self.start = make_data(m, keep=kept())
        self.d = self.start
        self.paused, self.speed = True, 1.0
        self.ctrl = np.asarray(self.d.ctrl).copy()
        self.nobody = _nobody(m, self.d)
        self.held = self.nobody
        self.pace, self.ready = 0.0, False
        self._behind, self._step_time = 0.0, 1e-3
        self.fault: BaseException | None = None
        self._asked: queue.SimpleQueue[Change] = queue.SimpleQueue()
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
        """Let time pass in it, or not."""
        self.paused = not playing
        self._news.set()

    def ask(self, change: Change) -> None:
        """Has a state changed between two steps; what is seen follows."""
        self._asked.put(change)
        self._news.set()

    def look_again(self) -> None:
        """Has what is seen shown again, also of a world that stands still."""
        self.ask(lambda d: d)

    def step_once(self) -> None:
        """One step, of a world that stands still."""
        self.ask(lambda d: self._advance(d, 1))

    def reset(self, key: int | None = None) -> None:
        """Back to the start, or to a key frame, with its controls."""
        d = self.start if key is None else reset_data_keyframe(self._m, self.start, key)
        self.ctrl = np.asarray(d.ctrl).copy()
        self.ask(lambda _: d)

    def place(self, change: Callable[[np.ndarray], np.ndarray]) -> None:
        """Change coordinates of a world that stands still, which comes to rest.

        Args:
          change: gives new `qpos` for the present one, (nq,).
        """

        def moved(d: Data) -> Data:
            qpos = jnp.asarray(change(np.array(d.qpos)), d.qpos.dtype)
            return d.replace(qpos=qpos, qvel=jnp.zeros_like(d.qvel))

        self.ask(moved)

    def hold(self, body: int, point: np.ndarray, active: int) -> None:
        """Take hold of a point of a body, in the world (3,) [m]; bits of `PertBit` say how."""
        place = jnp.asarray(point)
        self._grasp(lambda d, _: _take_hold(self._m, d, jnp.int32(body), place, active))

    def pull(self, point: np.ndarray) -> None:
        """Wants the point that is held elsewhere in the world, (3,) [m]."""

        def pulled(_: Data, held: Perturb) -> Perturb:
            way = jnp.asarray(point, held.refpos.dtype) - held.refselpos
            return held._replace(refselpos=held.refselpos + way, refpos=held.refpos + way)

        self._grasp(pulled)

    def turn(self, azimuth: float, x: float, y: float, action: Mouse = Mouse.ROTATE_V) -> None:
        """Wants the body that is held turned.

        Args:
          azimuth: direction of who looks, about the vertical [degrees].
          x, y: how far the mouse moves, to the right and down, in heights of the window.
          action: ROTATE_V or ROTATE_H, as for `move_perturb`.
        """

        def turned(d: Data, held: Perturb) -> Perturb:
            numbers = (jnp.asarray(v, held.scale.dtype) for v in (azimuth, x, y))
            return TURNS[action](self._m, d, held, *numbers)

        self._grasp(turned)

    def let_go(self) -> None:
        """Hold nothing any more."""
        self._grasp(lambda *_: self.nobody)
        # a world that stands still is not to keep the force
        self.ask(lambda d: d.replace(xfrc_applied=jnp.zeros_like(d.xfrc_applied)))

    def _grasp(self, change: Callable[[Data, Perturb], Perturb]) -> None:
        """Has the hold changed between two steps, in the order in which it was asked for.

        To take hold may compile; who pulls meanwhile must find the new hold, not the last one.
        """

        def changed(d: Data) -> Data:
            self.held = change(d, self.held)
            return d

        self.ask(changed)

    def _run(self) -> None:
        try:
            self._show(self.d)
            self.d = jax.block_until_ready(self._evaluated(self.d))  # compiles
            self.ready = True
            self._show(self.d)
            self._turns()
        except BaseException as error:  # noqa: BLE001  (told by who looks at the simulation)
            self.fault = error

    def _turns(self) -> None:
        begun = time.perf_counter()
        while not self._ending:
            now = time.perf_counter()
            changed = self._answer()
            count = 0 if self.paused else self._steps_due(now - begun)
            begun = now
            if count:
                self.d = jax.block_until_ready(self._advance(self.d, count))
                self._step_time += SMOOTH * ((time.perf_counter() - now) / count - self._step_time)
            elif self.paused and (self._carried() or changed):
                self.d = self._evaluated(self.d)
                changed = True
            if count or changed:
                self._show(self.d)
            self._rest(now, count)

    def _steps_due(self, seconds: float) -> int:
        """How many steps the world is behind; what it cannot catch up with is forgotten."""
        dt = float(self._m.opt.timestep)
        self._behind += self.speed * seconds
        due, most = int(self._behind / dt), max(1, int(LONG / self._step_time))
        self._behind = self._behind - due * dt if due <= most else 0.0
        return min(due, most)

    def _rest(self, begun: float, count: int) -> None:
        """Wait for the next turn; a world that stands still waits for news."""
        left = TURN - (time.perf_counter() - begun)
        if self.paused:
            self.pace, self._behind = 0.0, 0.0
            time.sleep(max(left, 0.0))  # changes come no faster than pictures
            self._news.wait(STANDING)
        elif left > 0:
            time.sleep(left)
        self._news.clear()
        if not self.paused:
            dt = float(self._m.opt.timestep)
            elapsed = time.perf_counter() - begun
            self.pace += SMOOTH * (count * dt / elapsed - self.pace)

    def _answer(self) -> bool:
        """Make the changes that were asked for; whether there were some."""
        changed = False
        while not self._asked.empty():
            self.d = self._asked.get()(self.d)
            changed = True
        return changed

    def _evaluated(self, d: Data) -> Data:
        """Return the same state with its contacts, forces and sensors.

        They are those that a step from it finds on its way, so that no other program is compiled.
        """
        after = self._advance(d, 1)
        return after.replace(**{name: getattr(d, name) for name in STATE})

    def _carried(self) -> bool:
        """Put a body that is held in a world that stands still where it is wanted."""
        if int(self.held.active) == 0:
            return False
        self.d = _carry(self._m, self.d, self.held)
        return True

    def _advance(self, d: Data, count: int) -> Data:
        ctrl = jnp.asarray(self.ctrl, d.ctrl.dtype)
        return _steps(self._m, d.replace(ctrl=ctrl), self.held, jnp.int32(count))


@Programs
def _steps(m: Model, d: Data, held: Perturb, count: jax.Array) -> Data:
    """Return some steps with a body that somebody holds."""

    def pulled(d: Data) -> Data:
        d = apply_perturb_pose(m, d, held)
        return apply_perturb_force(m, d, held)

    def one(_: jax.Array, d: Data) -> Data:
        d = d.replace(xfrc_applied=jnp.zeros_like(d.xfrc_applied))
        return step(m, lax.cond(held.active != 0, pulled, lambda d: d, d))

    return lax.fori_loop(0, count, one, d)


@Programs
def _carry(m: Model, d: Data, held: Perturb) -> Data:
    return apply_perturb_pose(m, d, held, flg_paused=True)


@Programs
def _take_hold(m: Model, d: Data, body: jax.Array, point: jax.Array, active: jax.Array) -> Perturb:
    """Return a hold of a point that is given in the world."""
    local = d.xmat[body].T @ (point.astype(d.xpos.dtype) - d.xpos[body])
    held = init_perturb(m, d, default_free_camera(m), body, local)
    return held._replace(active=jnp.asarray(active, jnp.int32))


def _turn(
    m: Model, d: Data, held: Perturb, azimuth: jax.Array, x: jax.Array, y: jax.Array, action: Mouse
) -> Perturb:
    camera = default_free_camera(m).replace(azimuth=azimuth)
    return move_perturb(m, d, camera, held, action, x, y)


TURNS = {
    action: Programs(functools.partial(_turn, action=action))
    for action in (Mouse.ROTATE_V, Mouse.ROTATE_H)
}


def _nobody(m: Model, d: Data) -> Perturb:
    """Return a hold of nothing."""
    zero, none = jnp.zeros((), m.qpos0.dtype), jnp.int32(0)
    point = jnp.zeros(3, m.qpos0.dtype)
    return Perturb(
        none, none, point, jnp.zeros(4, zero.dtype).at[0].set(1), point, point, zero, zero
    )


def kept() -> list[str]:
    """Return the fields of a world by default, and those that contact forces follow from."""
    return [*(n for n, f in Data.fields.items() if f.keep and not f.static), *KEPT]
