"""The worlds of a training: a task by name, with randomization, frame stacking, delays and
noise."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import jax

from jaxsim.batch.devices import Devices
from jaxsim.envs.env import Env
from jaxsim.envs.randomization import randomize
from jaxsim.envs.ranges.change import change_of
from jaxsim.envs.ranges.draw import factor, shift
from jaxsim.envs.tasks import TASKS, make
from jaxsim.envs.vector import VectorEnv
from jaxsim.envs.wrap import Delayed, FrameStack, Noisy, Pushed, Wrapper
from jaxsim.identify.forms import linear
from jaxsim.io.config import SettingLocations
from jaxsim.learn.config import Training
from jaxsim.model.model import Model

_DEFAULT_EPISODE_LENGTH = 1000  # actions of an episode of a custom task


def make_task(training: Training, locations: SettingLocations) -> Env:
    """Return the task of a training.

    Raises:
      ConfigError: there is no such task, or it cannot be created.
    """
    repeat = training.worlds.repeat
    given = {} if repeat is None else {"repeat": repeat}
    module, colon, name = training.task.partition(":")
    try:
        if not colon:
            return make(training.task, **given)
        made = getattr(_import_module(module, locations), name)(**given)
    except (ValueError, ImportError, AttributeError, TypeError) as error:
        raise locations.error("task", str(error)) from None
    except Exception as error:  # user code
        raise locations.error("task", f"{type(error).__name__}: {error}") from error
    if not isinstance(made, Env):
        raise locations.error("task", f"{training.task} does not create a jaxsim.envs.Env")
    return made


def _import_module(module: str, locations: SettingLocations) -> ModuleType:
    """Return a user module: installed, in the folder of the settings, or in the working
    directory."""
    before = list(sys.path)
    sys.path[:0] = [str(locations.folder.resolve()), str(Path.cwd())]
    try:
        return importlib.import_module(module)
    finally:
        sys.path[:] = before


def make_worlds(
    env: Env,
    training: Training,
    locations: SettingLocations,
    *,
    exploring: bool,
    devices: Devices | None = None,
) -> VectorEnv | Wrapper:
    """Return the worlds of a task as presented to the learner.

    Args:
      env: the task.
      training: the settings.
      locations: source locations of the settings.
      exploring: whether to randomize models and add noise; false for an evaluation.
      devices: the devices over which the worlds are divided; None: they are not divided.

    Raises:
      ConfigError: a leaf cannot be randomized.
    """
    form = training.worlds
    task = TASKS.get(training.task)
    length = form.length or (_DEFAULT_EPISODE_LENGTH if task is None else task.length)
    given = _random_models(env.m, training, locations) if exploring else {}
    worlds: VectorEnv | Wrapper = VectorEnv(env, length=length, devices=devices, **given)
    if exploring and form.pushes:
        with locations.blame("worlds.pushes"):
            worlds = Pushed(worlds, form.pushes, form.push_every)
    if exploring and (form.obs_noise or form.action_noise):
        worlds = Noisy(worlds, form.obs_noise, form.action_noise)
    worlds = _add_delay(worlds, training, locations, exploring)
    return FrameStack(worlds, form.frames) if form.frames > 1 else worlds


def _add_delay(
    worlds: VectorEnv | Wrapper, training: Training, locations: SettingLocations, exploring: bool
) -> VectorEnv | Wrapper:
    """Return the worlds with the delay of the settings; an evaluation uses the smallest."""
    least, most = training.worlds.delay, training.worlds.delay_most
    if most is not None and most < least:
        raise locations.error(
            "worlds.delay_most", f"expected at least delay, {least}, got {most:g}"
        )
    if most is not None and exploring:
        return Delayed(worlds, (least, most))
    return Delayed(worlds, least) if least else worlds


_WORLD_KINDS = {
    "randomize": lambda low, high: factor(low, high),
    "randomize_shift": lambda low, high: shift(low, high),
    "randomize_value": lambda low, high: linear(low, high),
}


def _random_models(m: Model, training: Training, locations: SettingLocations) -> dict[str, Any]:
    """Return the models of the worlds, as arguments of `VectorEnv`."""
    form = training.worlds
    ranges: list[tuple[str, Any]] = []
    for table, kind in _WORLD_KINDS.items():
        for name, bounds in getattr(form, table).items():
            path = ("worlds", table, name)
            if len(bounds) != 2:
                what = {"randomize": "factor", "randomize_shift": "shift"}.get(table, "number")
                raise locations.error(
                    path, f"expected [lowest, highest] {what}, got {list(bounds)}"
                )
            try:
                ranges.append((name, kind(*bounds)))
                change_of(m, ranges[-1:])
            except ValueError as error:
                message = str(error).removeprefix(f"{name}: ")
                raise locations.error(path, message) from None
    if not ranges:
        return {}
    with locations.blame("worlds.randomize", (ValueError, AttributeError)):
        change = change_of(m, ranges)
        if form.every_episode:
            return {"randomize": change}
        keys = jax.random.split(jax.random.key(training.seed), form.count)
        model, axes = randomize(m, keys, change)
    return {"model": model, "axes": axes}
