"""Read an optimization file into a model, a start, a problem and guesses; errors have their
lines."""

from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.batch.trajectory import load_trajectory
from jaxsim.control.optimization.form import OptimizationForm
from jaxsim.control.optimization.read_problem import read_model, read_problem
from jaxsim.control.problem import Problem
from jaxsim.control.sampling import half_range, spline
from jaxsim.io.config import SettingLocations, check_memory, read_config
from jaxsim.model.data import Data
from jaxsim.model.lookup import ctrl_index
from jaxsim.model.model import Model
from jaxsim.physics.public.make_data import reset_data_keyframe

MAX_LISTED = 1000  # limit on the numbers of pieces that a message lists


@dataclass(frozen=True)
class Optimization:
    """An optimization that was read from a file.

    Attributes:
      form: its settings.
      locations: their source locations.
      m: the model that the motion is shown and judged with; its contacts are those of MuJoCo.
      stages: the models of the stages of the search, which share one program; their contacts may be
        smooth.
      d: the world at the start.
      problem: the costs and limits.
      steps: length of the motion.
      goal: the world at the end of the line of guessed states, or None.
    """

    form: OptimizationForm
    locations: SettingLocations
    m: Model
    stages: tuple[Model, ...]
    d: Data
    problem: Problem
    steps: int
    goal: Data | None

    def guesses(self, knots: int) -> jax.Array:
        """Return the knots of splines, (guesses, knots, nu): the guess itself, and perturbations of
        it."""
        form, m = self.form, self.m
        guess, steps = self._guess_controls(), self.steps
        rows = np.round(np.linspace(0, steps - 1, knots)).astype(int)
        unit = np.asarray(half_range(m, self.problem))
        noise = np.random.default_rng(form.seed).normal(size=(form.guesses, knots, m.nu))
        noise[0] = 0
        return jnp.asarray(guess[rows][None] + form.spread * unit * noise, m.qpos0.dtype)

    def controls(self) -> jax.Array:
        """Return the guesses of the controls, (guesses, steps, nu), within the limits."""
        others = jax.vmap(lambda k: spline(k, self.steps))(self.guesses(self.form.guess.knots))
        ctrl = others.at[0].set(jnp.asarray(self._guess_controls(), others.dtype))
        lower, upper = (a[None, None] for a in self.problem.limits(self.m))
        return jnp.clip(ctrl, lower, upper)

    def _guess_controls(self) -> np.ndarray:
        """Return the guess that the file gives, (steps, nu)."""
        guess = self.form.guess
        ctrl = np.zeros((self.steps, self.m.nu))
        if guess.motion is not None:
            ctrl = _recorded_controls(self, guess.motion)
        for name, value in guess.ctrl.items():
            ctrl[:, ctrl_index(self.m, name)] = value
        return ctrl


def read_optimization(file: str | Path, changes: tuple[str, ...] = ()) -> Optimization:
    """Read an optimization file.

    Args:
      file: in TOML; docs/control.md has the settings.
      changes: "iterations=20": settings that override those of the file.

    Raises:
      ConfigError: a setting is wrong; names its location and the remedy.
      ModelError: the model is invalid.
      UnsupportedError: the model has features that the physics cannot simulate.
    """
    form, locations = read_config(file, OptimizationForm, changes)
    loaded = read_model(form, locations, form.smooth)
    m, d, problem = read_problem(loaded.replace(smooth=None), form, locations)
    steps, goal = _steps(m, form, locations), _goal(m, d, form, locations)
    check_memory(locations, _memory_needs(m, form, steps))
    found = Optimization(form, locations, m, _stages(loaded, form), d, problem, steps, goal)
    for name in form.guess.ctrl:
        with locations.blame(("guess", "ctrl", name)):
            ctrl_index(m, name)
    found.controls()
    return found


def _memory_needs(m: Model, form: OptimizationForm, steps: int) -> dict[str, float]:
    """Return lower bounds of the bytes that a search needs, by the setting that causes them."""
    length = "steps" if form.steps is not None else "seconds"
    state, size = m.nq + 2 * m.nv + m.na, float(np.dtype(m.qpos0.dtype).itemsize)
    motion = (8 * m.nu + size * (state + m.nu)) * steps
    if form.method in ("ilqr", "multiple_shooting"):  # the derivatives of each step
        motion += size * (2 * m.nv + m.na) * (2 * m.nv + m.na + m.nu) * steps
    # a spline is a matrix of its knots
    knots = 8.0 * form.guess.knots * (m.nu + form.guess.knots + steps)
    plan = 8.0 * form.sampling.knots * (m.nu + form.sampling.knots + steps)
    return {
        length: motion,
        "guess.knots": knots,
        "guesses": (motion + 8.0 * m.nu * form.guess.knots) * form.guesses,
        "sampling.knots": plan,
        "sampling.samples": (8.0 * m.nu * form.sampling.knots + 4.0 * state)
        * form.sampling.samples,
    }


def _stages(m: Model, form: OptimizationForm) -> tuple[Model, ...]:
    if m.smooth is None:
        return (m,)
    return tuple(m.replace(smooth=jnp.asarray(h, m.qpos0.dtype)) for h in form.smooth)


def _steps(m: Model, form: OptimizationForm, locations: SettingLocations) -> int:
    if (form.steps is None) == (form.seconds is None):
        given = (
            "is given besides `steps`"
            if form.seconds is not None
            else "or `steps`: one of them is needed"
        )
        raise locations.error("seconds", given)
    if form.steps is not None:
        steps = form.steps
    else:
        steps = max(1, round(form.seconds / float(m.opt.timestep)))  # type: ignore[operator]
    nodes = form.multiple_shooting.nodes
    if form.method == "multiple_shooting" and nodes is not None and steps % nodes:
        able = [str(k) for k in range(1, min(steps, MAX_LISTED) + 1) if steps % k == 0]
        more = ", ..." if steps > MAX_LISTED else ""
        raise locations.error(
            "multiple_shooting.nodes",
            f"{nodes} pieces do not make {steps} steps; there can be {', '.join(able)}{more}",
        )
    return steps


def _goal(m: Model, d: Data, form: OptimizationForm, locations: SettingLocations) -> Data | None:
    key = form.multiple_shooting.line_to
    if key is None:
        return None
    with locations.blame("multiple_shooting.line_to"):
        return reset_data_keyframe(m, d, key)


def _recorded_controls(whole: Optimization, name: str) -> np.ndarray:
    """Return the controls of world 0 of a motion file, (steps, nu)."""
    path, locations = whole.locations.folder / name, whole.locations
    try:
        motion = load_trajectory(path)
    except (OSError, ValueError) as error:
        raise locations.error("guess.motion", f"{path}: {error}") from None
    if "ctrl" not in motion.fields:
        raise locations.error("guess.motion", f"{path}: it has no 'ctrl'")
    ctrl = motion["ctrl"][:, 0]
    if ctrl.shape != (whole.steps, whole.m.nu):
        raise locations.error(
            "guess.motion",
            f"{path}: its controls have shape {ctrl.shape}, expected {(whole.steps, whole.m.nu)}",
        )
    return np.array(ctrl, float)
