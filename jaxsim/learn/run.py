"""A training from its settings to its result; a folder holds all of it.

    runs/hopper/
      config.toml      the settings
      curve.csv, curve.png
      checkpoints/     the last few states: whoever has one can go on
      motion.npz       episodes of the result

A run goes on from its last checkpoint with the same numbers as if it had never stopped: the random
keys are in the state, and nothing else is remembered.
"""

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxsim.envs.env import Env
from jaxsim.errors import InputError, Place, Problem
from jaxsim.io.config import Places, config_text, read_config
from jaxsim.io.whole import write_whole
from jaxsim.learn.checkpoint import Checkpoints
from jaxsim.learn.config import Training
from jaxsim.learn.curve import Curve, Row
from jaxsim.learn.evaluate import Scores, evaluate
from jaxsim.learn.learner import Learner, make_learner
from jaxsim.learn.worlds import make_task, make_worlds
from jaxsim.rollout.trajectory import TrajectoryWriter

CONFIG = "config.toml"


class Run(NamedTuple):
    """A training and its folder.

    Attributes:
      folder: where all of it is.
      training: the settings.
      env: the task.
      learner: the learner.
      evaluate: (state of all seeds, keys of episodes) -> Scores, with a leading axis of seeds.
      checkpoints: the states that are kept.
    """

    folder: Path
    training: Training
    env: Env
    learner: Learner
    evaluate: Callable[[Any, jax.Array], Scores]
    checkpoints: Checkpoints

    def start_keys(self) -> jax.Array:
        """Random keys of the seeds, (seeds,)."""
        return jax.random.split(jax.random.key(self.training.seed), self.training.seeds)

    def test_keys(self, episodes: int) -> jax.Array:
        """Random keys of the episodes of an evaluation, (episodes,): the same each time."""
        return jax.random.split(jax.random.key(self.training.seed + 1), episodes)

    def restore(self, step: int | None = None) -> tuple[int, Any]:
        """A checkpoint, the last one by default: its step and the state of all seeds."""
        return self.checkpoints.restore(jax.eval_shape(self.learner.begin, self.start_keys()), step)


class Report(NamedTuple):
    """What a training says now and then.

    Attributes:
      step: actions in all worlds of a seed so far.
      rows: an evaluation for each seed, or () between them.
    """

    step: int
    rows: Sequence[Row]


def new_run(file: str | Path, folder: str | Path, changes: Sequence[str] = ()) -> Run:
    """A run that begins.

    Args:
      file: the settings.
      folder: of the run; it is made.
      changes: settings that replace those of the file, "ppo.gamma=0.98".

    Raises:
      ConfigError: a setting is wrong; with its line.
      InputError: the folder has a run already.
    """
    folder = Path(folder)
    if (folder / CONFIG).exists():
        message = "there is a run already; go on with it (--resume), or name another folder"
        raise InputError(Problem(Place(str(folder)), message))
    return _run(folder, *read_config(file, Training, changes))


def old_run(folder: str | Path, changes: Sequence[str] = ()) -> Run:
    """A run that goes on, or is looked at.

    Args:
      folder: of the run.
      changes: settings that replace those of the run: `steps`, say, to go on for longer.

    Raises:
      ConfigError: a setting is wrong.
      InputError: the folder has no run.
    """
    folder = Path(folder)
    if not (folder / CONFIG).exists():
        raise InputError(Problem(Place(str(folder)), f"there is no run: it has no {CONFIG}"))
    return _run(folder, *read_config(folder / CONFIG, Training, changes))


def _run(folder: Path, training: Training, places: Places) -> Run:
    env = make_task(training, places)
    worlds = make_worlds(env, training, places, exploring=True)
    learner = make_learner(worlds, training, places)
    quiet = make_worlds(env, training, places, exploring=False)

    def scores(states: Any, keys: jax.Array) -> Scores:
        return jax.vmap(lambda state: evaluate(quiet, learner.act, state, keys))(states)

    checkpoints = Checkpoints(folder / "checkpoints", training.keep)
    return Run(folder, training, env, learner, scores, checkpoints)


def train(run: Run, say: Callable[[Report], None] = lambda report: None) -> list[Row]:
    """Trains, from the last checkpoint if there is one.

    Args:
      run: the run.
      say: is called after some actions, and after each evaluation.

    Returns:
      The rows of the curve.
    """
    training, learner = run.training, run.learner
    write_whole(run.folder / CONFIG, config_text(training))
    going_on = bool(run.checkpoints.steps())
    step, state = run.restore() if going_on else (0, jax.jit(learner.begin)(run.start_keys()))
    curve = Curve(run.folder, step if going_on else -1, training.tensorboard)
    began = time.monotonic() - max((row.seconds for row in curve.rows), default=0.0)

    learn, score = jax.jit(learner.learn, donate_argnums=0), jax.jit(run.evaluate)
    starts = run.test_keys(training.episodes)
    while step < training.steps:
        until = min(step + training.every, training.steps)
        while step < until:
            state = jax.block_until_ready(learn(state))
            step += learner.actions
            say(Report(step, ()))
        scores = jax.device_get(score(state, starts))
        rows = _rows(step, time.monotonic() - began, state, scores)
        curve.add(rows)  # before the checkpoint: a row that has none is made again
        curve.draw(training.task)
        run.checkpoints.save(step, state)
        say(Report(step, rows))
        if step >= training.steps:
            write_motion(run.folder / "motion.npz", run, scores, best(rows))
    return curve.rows


def _rows(step: int, seconds: float, state: Any, scores: Scores) -> list[Row]:
    """A row for each seed."""
    episodes = jax.device_get(state.env_state.replace(world=None))
    rows = []
    for seed, score in enumerate(scores.score):
        whole = episodes.last_steps[seed] > 0
        past = [x[seed][whole] for x in (episodes.last_score, episodes.last_steps)]
        rows.append(
            Row(
                step=step,
                seconds=round(seconds, 2),
                seed=seed,
                score=float(score.mean()),
                score_sd=float(score.std()),
                actions=float(scores.steps[seed].mean()),
                diverged=int(scores.diverged[seed].sum()),
                training_score=float(past[0].mean()) if whole.any() else math.nan,
                training_actions=float(past[1].mean()) if whole.any() else math.nan,
            )
        )
    return rows


def best(rows: Sequence[Row]) -> int:
    """The seed with the highest score."""
    return max(rows, key=lambda row: row.score).seed


def write_motion(path: Path, run: Run, scores: Scores, seed: int) -> None:
    """Writes the episodes of a seed as a motion that `jaxsim.load_trajectory` reads."""
    motion = {name: np.asarray(x[seed]) for name, x in scores.motion.items()}
    m = run.env.m
    header = {
        "model": run.training.task,
        "timestep": float(m.opt.timestep),
        "every": run.env.repeat,
        "worlds": motion["qpos"].shape[1],
        "nq": m.nq,
        "nv": m.nv,
        "nu": m.nu,
    }
    with TrajectoryWriter(path, header) as writer:
        writer.append(motion)
