"""Read a control loop file into a planner and a plant; errors have their lines."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.control.closed_loop.form import ClosedLoopForm, DisturbanceForm
from jaxsim.control.iterative_lqr import MOTION_STATE_FIELDS
from jaxsim.control.optimization.read_problem import ReadProblem, read_model, read_problem
from jaxsim.control.receding_horizon import PLANNING_METHODS, Planner, receding
from jaxsim.derivative.tangent import check_coordinates_complete
from jaxsim.envs.randomization import random_model
from jaxsim.io.config import SettingLocations, check_memory, read_config
from jaxsim.io.load import load_model
from jaxsim.model.data import Data
from jaxsim.model.lookup import ctrl_index
from jaxsim.model.model import Model
from jaxsim.model.names import id2name, name2id
from jaxsim.optional import require

# fields of the plant that the planner starts from
STATE_FIELDS = (*MOTION_STATE_FIELDS, "history", "history_low", "mocap_pos", "mocap_quat")
_AXES = 3  # numbers of a force, and of a torque


@dataclass(frozen=True)
class Disturbances:
    """Forces on bodies of the plant.

    Attributes:
      start, end: times [s], (n,) each.
      wrench: force and torque on each body while active, (n, nbody, 6).
    """

    start: np.ndarray
    end: np.ndarray
    wrench: np.ndarray

    def at(self, time: jax.Array) -> jax.Array:
        """Return the forces and torques at a time, (nbody, 6)."""
        active = (self.start <= time) & (time < self.end)
        return jnp.einsum("n,nbk->bk", active.astype(self.wrench.dtype), self.wrench)


@dataclass(frozen=True)
class ClosedLoop:
    """A planner and the plant that it controls.

    Attributes:
      form: the settings.
      locations: their source locations.
      planner: the planner, with its model and problem.
      d: the world at the start, in the planner's model.
      guess: first guess of the controls, (horizon, nu).
      plant: the plant: model, start and costs.
      disturbances: the pushes on the plant.
      every: steps of the plant per plan.
      periods: number of plans of a run.
    """

    form: ClosedLoopForm
    locations: SettingLocations
    planner: Planner
    d: Data
    guess: jax.Array
    plant: ReadProblem
    disturbances: Disturbances
    every: int
    periods: int

    @property
    def devices(self) -> list[jax.Device]:
        """Return the devices that share the samples of a plan; one for other methods."""
        return list(self.planner.options.get("devices", jax.devices()[:1]))

    @property
    def period(self) -> float:
        """Return the time between two plans [s]."""
        return self.every * float(self.plant.m.opt.timestep)


def read_closed_loop(file: str | Path, changes: tuple[str, ...] = ()) -> ClosedLoop:
    """Read a control loop file.

    Args:
      file: in TOML; docs/mpc.md has the settings.
      changes: "horizon=20": settings that override those of the file.

    Raises:
      ConfigError: a setting is wrong; names its location and the remedy.
      ImportError: the extra `control` is needed and not installed.
      ModelError: a model is invalid.
      UnsupportedError: a model has features that the physics cannot simulate.
    """
    form, locations = read_config(file, ClosedLoopForm, changes)
    m, d, problem = read_problem(read_model(form, locations), form, locations)
    plant_model = _plant_model(m, form, locations)
    plant = read_problem(plant_model, form, locations)
    _check_same_state(d, plant.d, locations)
    every, periods = _schedule(plant_model, form, locations)
    check_memory(locations, _memory_needs(m, form, plant, every * periods))
    if form.method == "ilqr":
        with locations.blame("method"):
            check_coordinates_complete("ilqr", m)
    planner = receding(
        m,
        problem,
        steps=form.horizon,
        method=form.method,
        knots=form.sampling.knots,
        **_method_options(form),
    )
    return ClosedLoop(
        form,
        locations,
        planner,
        d,
        _first_guess(m, form, locations),
        plant,
        _disturbances(plant_model, form, locations),
        every,
        periods,
    )


def _method_options(form: ClosedLoopForm) -> dict[str, Any]:
    """Return the options of the method that the file sets."""
    options: dict[str, Any] = {"iterations": form.iterations}
    if PLANNING_METHODS[form.method].samples:
        own = vars(getattr(form, form.method)) if hasattr(form, form.method) else {}
        options |= {n: x for n, x in (vars(form.sampling) | own).items() if n != "knots"}
        options["devices"] = tuple(jax.devices())
    elif form.method == "shoot":
        options["optimizer"] = require("optax", "control").adam(form.shoot.rate)
    else:
        options |= vars(getattr(form, form.method)) | {"feedback": False}
    return options


def _first_guess(m: Model, form: ClosedLoopForm, locations: SettingLocations) -> jax.Array:
    guess = np.zeros((form.horizon, m.nu))
    for name, value in form.guess.ctrl.items():
        with locations.blame(("guess", "ctrl", name)):
            guess[:, ctrl_index(m, name)] = value
    return jnp.asarray(guess, m.qpos0.dtype)


def _plant_model(m: Model, form: ClosedLoopForm, locations: SettingLocations) -> Model:
    """Return the model of the plant.

    Its time step and integrator are those of its file, not those of the planner.
    """
    if form.plant.model is None:
        plant = read_model(replace(form, timestep=None, integrator=None), locations)
    else:
        file = locations.existing_file("plant.model", form.plant.model)
        plant = load_model(file, contacts=form.contacts)
        _check_same_coordinates(m, plant, locations)
    if form.plant.timestep is not None:
        step = jnp.asarray(form.plant.timestep, plant.qpos0.dtype)
        if not step > 0:
            raise locations.error(
                "plant.timestep",
                f"{form.plant.timestep} is 0 in the precision of the model",
            )
        plant = plant.replace(opt=plant.opt.replace(timestep=step))
    return _scaled(plant, form, locations)


def _check_same_coordinates(m: Model, plant: Model, locations: SettingLocations) -> None:
    """Raise ConfigError unless state and controls of both models have the same meaning."""
    for name in ("nq", "nv", "na", "nu", "nmocap"):
        if getattr(m, name) != getattr(plant, name):
            raise locations.error(
                "plant.model",
                f"has {name} = {getattr(plant, name)}, the planner's model {getattr(m, name)}; "
                "both need the same joints, actuators and mocap bodies in the same order",
            )
    for kind, number in (("joint", m.njnt), ("actuator", m.nactuator)):
        for i in range(number):
            ours, theirs = id2name(m, kind, i), id2name(plant, kind, i)
            if ours != theirs:
                raise locations.error(
                    "plant.model",
                    f"its {kind} {i} is {theirs!r}, that of the planner's model {ours!r}; both "
                    "need the same joints and actuators in the same order",
                )


def _check_same_state(d: Data, plant: Data, locations: SettingLocations) -> None:
    """Raise ConfigError unless the planner can start from a state of the plant."""
    for name in STATE_FIELDS:
        ours, theirs = (np.shape(getattr(x, name)) for x in (d, plant))
        if ours != theirs:
            raise locations.error(
                "plant", f"its {name} has shape {theirs}, that of the planner's model {ours}"
            )


def _scaled(m: Model, form: ClosedLoopForm, locations: SettingLocations) -> Model:
    """Return the plant with scaled parameters."""
    for name, value in form.plant.scale.items():
        with locations.blame(("plant", "scale", name)):
            drawing = random_model(m, {name: (value, value)})
            m = drawing.model(jax.jit(drawing.leaves)(jax.random.key(0)))
    return m


def _schedule(m: Model, form: ClosedLoopForm, locations: SettingLocations) -> tuple[int, int]:
    """Return the steps of the plant per plan, and the number of plans."""
    dt = float(m.opt.timestep)
    every = round(1 / (form.rate * dt))
    if every < 1:
        raise locations.error(
            "rate",
            f"{form.rate:g} Hz is more than one plan per step of the plant, {1 / dt:.4g} Hz; "
            "lower it, or shorten plant.timestep",
        )
    if abs(every * form.rate * dt - 1) > 0.01:
        near = " and ".join(f"{1 / (k * dt):.4g}" for k in {every, max(1, every - 1), every + 1})
        raise locations.error(
            "rate",
            f"the period of {form.rate:g} Hz is no multiple of the time step of the plant, "
            f"{dt:g} s; near rates are {near}",
        )
    if form.seconds / (every * dt) >= 2**31:
        raise locations.error("seconds", "more than 2^31 plans; shorten it, or lower the rate")
    return every, max(1, round(form.seconds / (every * dt)))


def _memory_needs(
    m: Model, form: ClosedLoopForm, plant: ReadProblem, steps: int
) -> dict[str, float]:
    """Return lower bounds of the bytes that a loop needs, by the setting that causes them."""
    size = float(np.dtype(m.qpos0.dtype).itemsize)
    state, nx = m.nq + 2 * m.nv + m.na, 2 * m.nv + m.na
    motion = size * (state + m.nu) * form.horizon
    if form.method == "ilqr":  # the derivatives of each step
        motion += size * nx * (nx + m.nu) * form.horizon
    recorded = sum(np.size(getattr(plant.d, n)) for n in form.record if n in MOTION_STATE_FIELDS)
    needs = {"horizon": motion, "seconds": size * max(1, recorded) * steps}
    if PLANNING_METHODS[form.method].samples:
        knots = form.sampling.knots
        needs["sampling.knots"] = 8.0 * knots * (m.nu + knots + form.horizon)
        needs["sampling.samples"] = (8.0 * m.nu * knots + motion) * form.sampling.samples
    return needs


def _disturbances(m: Model, form: ClosedLoopForm, locations: SettingLocations) -> Disturbances:
    n, dtype = len(form.disturbance), m.qpos0.dtype
    wrench = np.zeros((n, m.nbody, 2 * _AXES), dtype)
    for i, push in enumerate(form.disturbance):
        wrench[i, _body_of(m, push, i, locations)] = [
            *(push.force or (0.0,) * _AXES),
            *(push.torque or (0.0,) * _AXES),
        ]
    start = np.array([p.at for p in form.disturbance], dtype)
    seconds = np.array([p.seconds for p in form.disturbance], dtype)
    return Disturbances(start, start + seconds, wrench)


def _body_of(m: Model, push: DisturbanceForm, i: int, locations: SettingLocations) -> int:
    """Return the body of a disturbance, whose numbers are checked."""
    for name in ("force", "torque"):
        count = len(getattr(push, name))
        if count not in (0, _AXES):
            raise locations.error(f"disturbance.{i}.{name}", f"needs 3 numbers, got {count}")
    if not (push.force or push.torque):
        raise locations.error(f"disturbance.{i}", "has neither force nor torque; give one")
    with locations.blame(f"disturbance.{i}.body"):
        return name2id(m, "body", push.body)
