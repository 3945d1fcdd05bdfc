"""Read an optimization file into a model, a start, a problem and guesses; errors have their
lines."""

from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.batch.trajectory import load_trajectory
from jaxsim.control.optimization.form import CostForm, OptimizationForm
from jaxsim.control.optimization.quantity import Quantity, quantity
from jaxsim.control.problem import Problem, Residual, Term
from jaxsim.control.sampling import half_range, spline
from jaxsim.enums import IntegratorType
from jaxsim.envs import tasks
from jaxsim.io.config import SettingLocations, check_memory, read_config
from jaxsim.io.load import load_model
from jaxsim.model.data import Data
from jaxsim.model.lookup import ctrl_index, dof_index, qpos_index
from jaxsim.model.model import Model
from jaxsim.physics.public.make_data import make_data, reset_data_keyframe
from jaxsim.spelling import remedy

_TASK_PREFIX = "task:"
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
    loaded = _model(form, locations)
    m = loaded.replace(smooth=None)
    costs = [_cost(m, c, f"cost.{i}", locations) for i, c in enumerate(form.cost)]
    if not costs:
        raise locations.error("cost", "there is none; write at least one [[cost]] table")
    d = _start(m, form, locations, _kept_fields(costs))
    terms = [
        _term(m, d, c, found, f"cost.{i}", locations)
        for i, (c, found) in enumerate(zip(form.cost, costs, strict=True))
    ]
    names = [c.name for c in form.cost]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise locations.error(f"cost.{i}.name", f"there is a cost {name!r} already")
    problem = Problem(terms, *_limits(m, form, locations))
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


def _model(form: OptimizationForm, locations: SettingLocations) -> Model:
    if form.model.startswith(_TASK_PREFIX):
        with locations.blame("model"):
            m = tasks.make(form.model.removeprefix(_TASK_PREFIX)).m
        if any(form.smooth):
            raise locations.error("smooth", "not possible with the model of a task; name a file")
    else:
        path = locations.existing_file("model", form.model)
        # smooth contacts need a larger contact capacity
        m = load_model(path, contacts=form.contacts, smooth=max(form.smooth, default=None))
    opt = m.opt
    if form.timestep is not None:
        opt = opt.replace(timestep=jnp.asarray(form.timestep, m.qpos0.dtype))
        if not opt.timestep > 0:
            raise locations.error("timestep", f"{form.timestep} is 0 in the precision of the model")
    if form.integrator is not None:
        opt = opt.replace(integrator=int(IntegratorType[form.integrator.upper()]))
    return m.replace(opt=opt)


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


def _cost(
    m: Model, cost: CostForm, path: str, locations: SettingLocations
) -> tuple[Quantity, Quantity | None]:
    def named_quantity(key: str, text: str) -> Quantity:
        with locations.blame(f"{path}.{key}"):
            return quantity(m, text, locations.folder)

    return named_quantity("of", cost.of), None if cost.minus is None else named_quantity(
        "minus", cost.minus
    )


def _kept_fields(costs: list[tuple[Quantity, Quantity | None]]) -> tuple[str, ...] | None:
    """Return the fields of Data that costs need; None: all of the default, for custom functions."""
    each = [q.keep for pair in costs for q in pair if q is not None]
    if any(keep is None for keep in each):
        return None
    return tuple(sorted({name for keep in each if keep for name in keep}))


def _start(
    m: Model, form: OptimizationForm, locations: SettingLocations, keep: tuple[str, ...] | None
) -> Data:
    results = {n: f for n, f in Data.fields.items() if not f.static}
    for i, name in enumerate(form.record):
        if name not in results:
            raise locations.error(f"record.{i}", f"there is no field{remedy(name, results)}")
    if keep is None:
        default = make_data(m)
        keep = tuple(n for n in results if getattr(default, n) is not None)
    d = make_data(m, keep=(*keep, "ctrl"))
    if form.start.key is not None:
        with locations.blame("start.key"):
            d = reset_data_keyframe(m, d, form.start.key)
    qpos, qvel = np.array(d.qpos), np.array(d.qvel)
    for kind, values, find, into in (
        ("qpos", form.start.qpos, qpos_index, qpos),
        ("qvel", form.start.qvel, dof_index, qvel),
    ):
        for name, numbers in values.items():
            path = ("start", kind, name)
            with locations.blame(path):
                index = find(m, name)
            if len(numbers) != len(index):
                raise locations.error(path, f"needs {len(index)} numbers, got {len(numbers)}")
            into[index] = numbers
    return d.replace(qpos=jnp.asarray(qpos), qvel=jnp.asarray(qvel))


def _goal(m: Model, d: Data, form: OptimizationForm, locations: SettingLocations) -> Data | None:
    key = form.multiple_shooting.line_to
    if key is None:
        return None
    with locations.blame("multiple_shooting.line_to"):
        return reset_data_keyframe(m, d, key)


def _term(
    m: Model,
    d: Data,
    cost: CostForm,
    found: tuple[Quantity, Quantity | None],
    path: str,
    locations: SettingLocations,
) -> Term:
    of, minus = found
    size = jax.eval_shape(of.read, m, d).size
    if minus is not None and (other := jax.eval_shape(minus.read, m, d).size) != size:
        raise locations.error(f"{path}.minus", f"has {other} numbers, {cost.of!r} has {size}")
    if len(cost.target) not in (0, size):
        raise locations.error(f"{path}.target", f"needs {size} numbers, got {len(cost.target)}")
    target = np.array(cost.target) if cost.target else np.zeros(size)
    with locations.blame(f"{path}.parameters"):  # their number
        return Term(
            cost.name,
            _residual(of, minus, target),
            weight=cost.weight,
            terminal=cost.terminal,
            norm=cost.norm,
            parameters=cost.parameters,
        )


def _residual(of: Quantity, minus: Quantity | None, target: np.ndarray) -> Residual:
    def residual(m: Model, d: Data) -> jax.Array:
        value = of.read(m, d)
        return of.target_error(value if minus is None else value - minus.read(m, d), target)

    return residual


def _limits(
    m: Model, form: OptimizationForm, locations: SettingLocations
) -> tuple[np.ndarray | None, np.ndarray | None]:
    if not form.limits:
        return None, None
    lower, upper = np.full(m.nu, -np.inf), np.full(m.nu, np.inf)
    for name, numbers in form.limits.items():
        path = ("limits", name)
        with locations.blame(path):
            index = ctrl_index(m, name)
        if len(numbers) != 2 or not numbers[0] <= numbers[1]:
            raise locations.error(path, f"expected [least, most], got {list(numbers)}")
        lower[index], upper[index] = numbers
    dtype = m.qpos0.dtype
    return lower.astype(dtype), upper.astype(dtype)


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
