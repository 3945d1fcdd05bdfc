"""Read what optimizations and control loops share: the model, the start, costs, and limits."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.control.optimization.form import CostForm, ProblemForm
from jaxsim.control.optimization.quantity import Quantity, quantity
from jaxsim.control.problem import GoalResidual, Problem, Term
from jaxsim.enums import IntegratorType
from jaxsim.envs import tasks
from jaxsim.io.config import SettingLocations
from jaxsim.io.load import load_model
from jaxsim.model.data import Data
from jaxsim.model.lookup import ctrl_index, dof_index, qpos_index
from jaxsim.model.model import Model
from jaxsim.physics.public.make_data import make_data, reset_data_keyframe
from jaxsim.spelling import remedy

_TASK_PREFIX = "task:"


class ReadProblem(NamedTuple):
    """A problem that was read from a file, in one model.

    Attributes:
      m: the model.
      d: the world at the start, which keeps the fields that the costs read.
      problem: the costs and limits.
    """

    m: Model
    d: Data
    problem: Problem


def read_problem(m: Model, form: ProblemForm, locations: SettingLocations) -> ReadProblem:
    """Return the start, costs and limits of a file, in a model.

    Raises:
      ConfigError: a setting is wrong; names its location and the remedy.
    """
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
    return ReadProblem(m, d, Problem(terms, *_limits(m, form, locations)))


def read_model(
    form: ProblemForm, locations: SettingLocations, smooth: tuple[float, ...] = ()
) -> Model:
    """Return the model of a file, with its time step and integrator.

    Args:
      form: the settings.
      locations: their source locations.
      smooth: distances at which contacts start to act [m].

    Raises:
      ConfigError: a setting is wrong; names its location and the remedy.
      ModelError: the model is invalid.
      UnsupportedError: the model has features that the physics cannot simulate.
    """
    if form.model.startswith(_TASK_PREFIX):
        with locations.blame("model"):
            m = tasks.make(form.model.removeprefix(_TASK_PREFIX)).m
        if any(smooth):
            raise locations.error("smooth", "not possible with the model of a task; name a file")
    else:
        path = locations.existing_file("model", form.model)
        # smooth contacts need a larger contact capacity
        m = load_model(path, contacts=form.contacts, smooth=max(smooth, default=None))
    opt = m.opt
    if form.timestep is not None:
        opt = opt.replace(timestep=jnp.asarray(form.timestep, m.qpos0.dtype))
        if not opt.timestep > 0:
            raise locations.error("timestep", f"{form.timestep} is 0 in the precision of the model")
    if form.integrator is not None:
        opt = opt.replace(integrator=int(IntegratorType[form.integrator.upper()]))
    return m.replace(opt=opt)


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
    m: Model, form: ProblemForm, locations: SettingLocations, keep: tuple[str, ...] | None
) -> Data:
    results = {n: f for n, f in Data.fields.items() if not f.static}
    for i, name in enumerate(form.record):
        if name not in results:
            raise locations.error(f"record.{i}", f"there is no field{remedy(name, results)}")
    if keep is None:
        default = make_data(m)
        keep = tuple(n for n in results if getattr(default, n) is not None)
    d = make_data(m, keep=(*keep, *form.record, "ctrl"))
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
            _residual(of, minus),
            weight=cost.weight,
            terminal=cost.terminal,
            norm=cost.norm,
            parameters=cost.parameters,
            goal=target.astype(m.qpos0.dtype),
        )


def _residual(of: Quantity, minus: Quantity | None) -> GoalResidual:
    def residual(m: Model, d: Data, goal: jax.Array) -> jax.Array:
        value = of.read(m, d)
        return of.target_error(value if minus is None else value - minus.read(m, d), goal)

    return residual


def _limits(
    m: Model, form: ProblemForm, locations: SettingLocations
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
