"""The worlds of a training: a task by name, randomized, seen through frames, delays and noise."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import jax

from jaxsim.envs.env import Env
from jaxsim.envs.randomize import randomize
from jaxsim.envs.tasks import TASKS, make
from jaxsim.envs.vector import VectorEnv
from jaxsim.envs.wrap import Delayed, FrameStack, Noisy, Wrapper
from jaxsim.io.config import Places
from jaxsim.learn.config import Training
from jaxsim.model.model import Model

LENGTH = 1000  # actions of an episode of a task that has no name


def make_task(training: Training, places: Places) -> Env:
    """The task of a training.

    Raises:
      ConfigError: there is no such task, or it cannot be made.
    """
    repeat = training.worlds.repeat
    given = {} if repeat is None else {"repeat": repeat}
    module, colon, name = training.task.partition(":")
    try:
        if not colon:
            return make(training.task, **given)
        made = getattr(_imported(module, places), name)(**given)
    except (ValueError, ImportError, AttributeError, TypeError) as error:
        raise places.error("task", str(error)) from None
    if not isinstance(made, Env):
        raise places.error("task", f"{training.task} makes no jaxsim.envs.Env")
    return made


def _imported(module: str, places: Places) -> ModuleType:
    """A module of the user's: installed, beside the file of settings, or where the command runs."""
    before = list(sys.path)
    sys.path[:0] = [str(places.folder.resolve()), str(Path.cwd())]
    try:
        return importlib.import_module(module)
    finally:
        sys.path[:] = before


def make_worlds(
    env: Env, training: Training, places: Places, *, exploring: bool
) -> VectorEnv | Wrapper:
    """Worlds of a task as the learner meets them.

    Args:
      env: the task.
      training: the settings.
      places: where they were written.
      exploring: whether models differ and noise is added; an evaluation does without.

    Raises:
      ConfigError: a leaf cannot be randomized.
    """
    form = training.worlds
    task = TASKS.get(training.task)
    length = form.length or (LENGTH if task is None else task.length)
    model, axes = None, None
    if form.randomize and exploring:
        model, axes = _randomized(env.m, training, places)
    worlds: VectorEnv | Wrapper = VectorEnv(env, length=length, model=model, axes=axes)
    if exploring and (form.obs_noise or form.action_noise):
        worlds = Noisy(worlds, form.obs_noise, form.action_noise)
    if form.delay:
        worlds = Delayed(worlds, form.delay)
    return FrameStack(worlds, form.frames) if form.frames > 1 else worlds


def _randomized(m: Model, training: Training, places: Places) -> tuple[Model, object]:
    """A model for each world, leaves multiplied by factors."""
    ranges = training.worlds.randomize
    for name, bounds in ranges.items():
        path = ("worlds", "randomize", name)
        if len(bounds) != 2 or not 0 <= bounds[0] <= bounds[1]:
            raise places.error(path, f"expected [lowest, highest] factor, got {list(bounds)}")

    def change(m: Model, key: jax.Array) -> dict[str, jax.Array]:
        drawn = {}
        for name, own in zip(ranges, jax.random.split(key, len(ranges)), strict=True):
            leaf = getattr(m, name)
            low, high = ranges[name]
            drawn[name] = leaf * jax.random.uniform(own, leaf.shape, leaf.dtype, low, high)
        return drawn

    keys = jax.random.split(jax.random.key(training.seed), training.worlds.count)
    try:
        return randomize(m, keys, change)
    except (ValueError, AttributeError) as error:
        raise places.error("worlds.randomize", str(error)) from None
