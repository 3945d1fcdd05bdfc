"""A training from its settings to its result, in one folder.

    runs/hopper/
      config.toml      the settings
      curve.csv, curve.png
      checkpoints/     the last few states, from which the run can be resumed
      motion.npz       episodes of the result

A resumed run continues from the complete state, random keys included. It gives the same numbers as
an uninterrupted one if both are compiled in one tier (batch/tiered_program.py): "fast" or
"optimized".
"""

import dataclasses
import hashlib
import itertools
import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from jaxsim.atomic_write import discard_left_over, target_of, write_whole
from jaxsim.batch.devices import Devices
from jaxsim.batch.processes import is_writer, to_host
from jaxsim.batch.stored_program import prepare_program
from jaxsim.batch.trajectory import TrajectoryWriter, motion_header
from jaxsim.envs.env import Env
from jaxsim.envs.vector import VectorEnv
from jaxsim.envs.wrap import Wrapper
from jaxsim.errors import InputError, LocatedProblem, SourceLocation
from jaxsim.io.config import SettingLocations, check_memory, config_text, read_config
from jaxsim.io.phase import named_phase
from jaxsim.learn.algorithms import ALGORITHMS, WorldBytes, make_learner
from jaxsim.learn.checkpoint import Checkpoints
from jaxsim.learn.config import Training
from jaxsim.learn.curve import Curve, CurveRow
from jaxsim.learn.derivative_check import check_task_derivatives
from jaxsim.learn.evaluate import Scores, evaluate
from jaxsim.learn.finished import CONFIG_FILE, is_motion_of
from jaxsim.learn.learner import Learner
from jaxsim.learn.placement import Placement
from jaxsim.learn.worlds import make_task, make_worlds
from jaxsim.model.describe import bytes_per_world

_CHECKSUM_PREFIX = "# settings of a run, SHA-256 "


class Run(NamedTuple):
    """A training and its folder.

    Attributes:
      folder: folder of the run.
      training: the settings.
      env: the task.
      learner: the learner.
      evaluate: (state of all seeds, keys of episodes) -> Scores, with a leading axis of seeds.
      checkpoints: the saved states.
      test_worlds: the worlds of an evaluation: the unmodified model, without noise.
      placement: where the state is; None: on the default device.
    """

    folder: Path
    training: Training
    env: Env
    learner: Learner
    evaluate: Callable[[Any, jax.Array], Scores]
    checkpoints: Checkpoints
    test_worlds: VectorEnv | Wrapper
    placement: Placement | None = None

    def start_keys(self) -> jax.Array:
        """Return the random keys of the seeds, (seeds,)."""
        return jax.random.split(jax.random.key(self.training.seed), self.training.seeds)

    def test_keys(self, episodes: int) -> jax.Array:
        """Return the random keys of the episodes of an evaluation, (episodes,): the same each
        time."""
        return jax.random.split(jax.random.key(self.training.seed + 1), episodes)

    def form(self) -> Any:
        """Return the shapes of the state of all seeds."""
        return jax.eval_shape(self.learner.begin, self.start_keys())

    def restore(self, step: int | None = None) -> tuple[int, Any]:
        """Return a checkpoint: its step and the state of all seeds.

        Args:
          step: step of the checkpoint; None: the last intact one; a warning names the damaged ones
            that are skipped.
        """
        return self.checkpoints.restore(self.form(), step)


class Report(NamedTuple):
    """Progress of a training.

    Attributes:
      step: actions in all worlds of a seed so far.
      rows: an evaluation of each seed, or () between evaluations.
      note: a note for the user: the step at which the run resumes, a damaged checkpoint.
    """

    step: int
    rows: Sequence[CurveRow]
    note: str = ""


class Watcher(Protocol):
    """Observer of a training (`train`); its methods must return soon, and change nothing."""

    def after_update(self, step: int, state: Any) -> None:
        """Take the state of all seeds, whose arrays are valid during the call alone."""

    def after_evaluation(self, step: int, rows: Sequence[CurveRow], scores: Scores) -> None:
        """Take an evaluation: a row for each seed, and the episodes, as numpy arrays."""


def new_run(
    file: str | Path,
    folder: str | Path,
    changes: Sequence[str] = (),
    *,
    devices: Devices | None = None,
) -> Run:
    """Return a new run.

    Args:
      file: the settings.
      folder: folder of the run; it is created.
      changes: settings that override those of the file, "ppo.gamma=0.98".
      devices: the devices, or a mesh, over which the worlds are divided, of all processes if there
        are several. None: the default device.

    Raises:
      ConfigError: a setting is wrong; with its line.
      InputError: the folder contains a run already.
    """
    folder = Path(folder)
    if os.path.lexists(folder / CONFIG_FILE):
        message = "there is a run already; resume it (--resume), or name another folder"
        raise InputError(LocatedProblem(SourceLocation(str(folder)), message))
    run = _run(folder, *read_config(file, Training, changes), devices)
    if run.checkpoints.any():
        message = f"there are checkpoints already, but no {CONFIG_FILE}; name another folder"
        raise InputError(LocatedProblem(SourceLocation(str(folder)), message))
    return run


def old_run(
    folder: str | Path, changes: Sequence[str] = (), *, devices: Devices | None = None
) -> Run:
    """Return an existing run, to be resumed or inspected.

    Args:
      folder: folder of the run.
      changes: settings that override those of the run: for example `steps`, to train for longer.
      devices: the devices over which the worlds are divided, as in `new_run`. They may be others
        than before.

    Raises:
      ConfigError: a setting is wrong.
      InputError: the folder contains no run.
    """
    folder = Path(folder)
    if not os.path.lexists(folder / CONFIG_FILE):
        raise InputError(
            LocatedProblem(SourceLocation(str(folder)), f"there is no run: it has no {CONFIG_FILE}")
        )
    _check_settings(folder / CONFIG_FILE)
    return _run(folder, *read_config(folder / CONFIG_FILE, Training, changes), devices)


def _run(
    folder: Path, training: Training, locations: SettingLocations, devices: Devices | None
) -> Run:
    env = make_task(training, locations)
    check_memory(locations, _memory_needs(env, training))
    # An evaluation does not differentiate.
    smooth = getattr(getattr(training, training.algorithm), "smooth", 0.0)
    differentiated = env.with_smooth_contacts(smooth) if smooth else env
    worlds = make_worlds(differentiated, training, locations, exploring=True, devices=devices)
    learner = make_learner(worlds, training, locations)
    quiet = make_worlds(env, training, locations, exploring=False, devices=devices)

    def scores(states: Any, keys: jax.Array) -> Scores:
        return jax.vmap(lambda state: evaluate(quiet, learner.act, state, keys))(states)

    checkpoints = Checkpoints(folder / "checkpoints", training.keep)
    placement = None if devices is None else Placement.of(training.worlds.count, devices)
    return Run(folder, training, env, learner, scores, checkpoints, quiet, placement)


def _memory_needs(env: Env, training: Training) -> dict[str, float]:
    """Return lower bounds of the bytes that a training needs, by the setting that causes them."""
    worlds, seeds, name = training.worlds, training.seeds, training.algorithm
    numbers = 4 * (
        sum(
            math.prod(x.shape)
            for x in jax.tree.leaves(jax.eval_shape(env.observe, env.m, env.begin))
        )
        + env.action_size
        + 3
    )
    state = (
        bytes_per_world(env.m) + 4 * worlds.frames * numbers + 4 * worlds.delay * env.action_size
    )
    form, algorithm = getattr(training, name), ALGORITHMS[name]
    layers = sum(4 * a * b for a, b in itertools.pairwise(form.hidden))
    length = worlds.length or 1
    recorded = 4 * (1 + env.m.nq + env.m.nv + env.m.nu)
    stored = algorithm.bytes_of(form, worlds.count, WorldBytes(numbers, state))
    return {
        f"{name}.hidden": 6.0 * layers,  # two networks, each with two moments
        "worlds.frames": 4.0 * worlds.frames * numbers,
        "worlds.delay": 4.0 * worlds.delay * env.action_size,
        "worlds.count": 1.0 * state * worlds.count,
        "seeds": (1.0 * state * worlds.count + 6.0 * layers) * seeds,
        f"{name}.{algorithm.stored}": 1.0 * stored * seeds,
        "worlds.length": 1.0 * recorded * length,
        "episodes": (1.0 * recorded * length * training.episodes + state) * seeds,
    }


def train(
    run: Run,
    say: Callable[[Report], None] = lambda report: None,
    *,
    tier: str = "optimized",
    watch: Watcher | None = None,
) -> list[CurveRow]:
    """Train, from the last intact checkpoint if there is one.

    Nothing in the folder changes before the checkpoint is restored and all programs are traced. Of
    several processes, all must call it with the same run; process 0 writes.

    Args:
      run: the run.
      say: called after some actions, and after each evaluation.
      tier: how learner and evaluation are compiled: "optimized", or "fast", for trials of seconds:
        the program compiles in two thirds of the time and is 5 to 11 times slower; "auto": quickly
        at first, and optimized in the background, without the same bits in each run.
        Several processes run the optimized one instead of "auto", at the same time.
      watch: called after each update and each evaluation.

    Returns:
      The rows of the curve.

    Raises:
      InputError: no checkpoint is intact or matches these settings, or a file cannot be written.
    """
    training, form, began = run.training, run.form(), time.monotonic()
    step, state, rows = _restore(run, form, say)
    if state is None and ALGORITHMS[training.algorithm].differentiates:
        with named_phase("check the derivatives of the task"):
            for note in check_task_derivatives(run.env):
                say(Report(0, (), f"{training.task}: {note}"))
    done = step >= training.steps
    motion = run.folder / "motion.npz"
    if not (done and is_motion_of(motion, step)):
        programs = _compile_training(run, form, tier)
    try:
        if is_writer():
            _check_writable(run.folder)
            _write_settings(run.folder / CONFIG_FILE, training)
        curve = Curve(run.folder, rows, training.tensorboard)
        if not done:
            began -= max((row.seconds for row in curve.rows), default=0.0)
            _train_to_end(run, programs, curve, step, state, began, say, watch)
        else:  # the process may have been killed before it wrote the rest
            _draw(curve, training, step, say)
            if not is_motion_of(motion, step):
                scores = jax.device_get(programs.score(state, _starts(run)))
                write_motion(motion, run, scores, _best_of(scores), step)
    except BrokenPipeError:  # the reader of our output has closed it
        raise
    except OSError as error:
        message = f"cannot be written: {error.strerror or error}; then continue with --resume"
        raise InputError(
            LocatedProblem(SourceLocation(str(error.filename or run.folder)), message)
        ) from error
    return curve.rows


def _restore(run: Run, form: Any, say: Callable[[Report], None]) -> tuple[int, Any, list[CurveRow]]:
    """Return step, state and curve of the last intact checkpoint; without any 0, None and no rows.

    Args:
      run: the run.
      form: shapes and dtypes of the state, as a tree.
      say: receives notes about damaged checkpoints, and about the step that was restored.
    """
    if not run.checkpoints.any():
        return 0, None, []
    notes: list[str] = []
    step, state, rows = run.checkpoints.restore_with_rows(form, tell=notes.append)
    notes.append(f"resumed at {step:,} of {run.training.steps:,} actions")
    for note in notes:
        say(Report(step, (), note))
    if run.placement is not None:
        state = run.placement.place_state(state)
    return step, state, [CurveRow(**row) for row in rows]


class _Programs(NamedTuple):
    """The compiled functions of a training."""

    begin: Callable[[jax.Array], Any]
    learn: Callable[[Any], Any]
    score: Callable[[Any, jax.Array], Scores]


def _compile_training(run: Run, form: Any, tier: str) -> _Programs:
    """Compile all functions of a training from shapes alone: the same programs when it is resumed.

    Each is compiled while the next one is traced, and the last one while the first ones run.
    """
    keys = run.start_keys()
    starts = run.test_keys(run.training.episodes)
    options: dict[str, dict[str, Any]] = {"begin": {}, "learn": {}, "score": {}}
    if run.placement is not None:
        options = run.placement.jit_options(form)
    # Each process would replace a program, or finish compiling it, at another time.
    alone = jax.process_count() == 1
    tier = tier if alone or tier != "auto" else "optimized"
    options["learn"] = {"donate_argnums": 0, **options["learn"]}
    programs = [
        prepare_program(
            function,
            jax.tree.map(_shape, operands),
            name=name,
            tier=tier_of,
            options=options[kind],
            background=alone,
        ).program
        for kind, name, function, operands, tier_of in (
            ("begin", "the start", run.learner.begin, (keys,), "fast"),  # it runs once
            ("learn", "the learner", run.learner.learn, (form,), tier),
            ("score", "the evaluation", run.evaluate, (form, starts), tier),
        )
    ]
    return _Programs(*programs)


def _starts(run: Run) -> Any:
    """Return the random keys of the episodes of an evaluation, on the devices of the run."""
    keys = run.test_keys(run.training.episodes)
    return keys if run.placement is None else run.placement.place_keys(keys)


def _shape(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def _train_to_end(
    run: Run,
    programs: _Programs,
    curve: Curve,
    step: int,
    state: Any,
    began: float,
    say: Callable[[Report], None],
    watch: Watcher | None,
) -> None:
    """Train to the end, with evaluations and checkpoints."""
    training = run.training
    starts = _starts(run)
    if state is None:
        keys = run.start_keys()
        state = programs.begin(keys if run.placement is None else run.placement.place_keys(keys))
    while step < training.steps:
        until = min(step + training.every, training.steps)
        while step < until:
            state = jax.block_until_ready(programs.learn(state))
            step += run.learner.actions
            say(Report(step, ()))
            if watch is not None:
                watch.after_update(step, state)
        scores = jax.device_get(programs.score(state, starts))
        rows = _seed_rows(step, time.monotonic() - began, state, scores)
        curve.add(rows)
        run.checkpoints.save(step, state, [dataclasses.asdict(row) for row in curve.rows])
        _draw(curve, training, step, say)
        say(Report(step, rows))
        if watch is not None:
            watch.after_evaluation(step, rows, scores)
        if dropped := int(np.sum(jax.device_get(getattr(state, "dropped", 0)))):
            say(Report(step, (), f"{dropped:,} derivatives were not finite and were dropped"))
        if step >= training.steps:
            write_motion(run.folder / "motion.npz", run, scores, _best_of(scores), step)


def _draw(curve: Curve, training: Training, step: int, say: Callable[[Report], None]) -> None:
    """Draw the curve, after all that a resumed run needs is written."""
    fault = curve.draw(training.task)
    if fault is not None:
        say(Report(step, (), fault))


def _write_settings(path: Path, training: Training) -> None:
    """Write the settings under a line with their checksum, if they have changed."""
    text = config_text(training)
    content = f"{_CHECKSUM_PREFIX}{_digest(text)}\n{text}"
    if not path.is_file() or path.read_text(encoding="utf-8") != content:
        write_whole(path, content)


def _check_settings(path: Path) -> None:
    """Raise if the settings of a run have been modified."""
    try:
        first, _, text = path.read_text(encoding="utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return  # read_config reports it
    if first.startswith(_CHECKSUM_PREFIX) and first.removeprefix(_CHECKSUM_PREFIX) != _digest(text):
        message = (
            "the settings have been modified: the file is damaged, or was edited; "
            "change settings by --set NAME=VALUE, or delete this line to accept them"
        )
        raise InputError(LocatedProblem(SourceLocation(str(path), 1), message))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _check_writable(folder: Path) -> None:
    """Create the folder, and check that all files of a run can be written.

    Raises:
      OSError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    discard_left_over(folder)
    for name in (CONFIG_FILE, "curve.csv", "curve.png", "motion.npz"):
        target_of(folder / name)
    (folder / "checkpoints").mkdir(exist_ok=True)
    target_of(folder / "checkpoints" / CONFIG_FILE)


def _seed_rows(step: int, seconds: float, state: Any, scores: Scores) -> list[CurveRow]:
    """Return a row for each seed."""
    episodes = to_host(state.env_state.replace(world=None))
    rows = []
    for seed, score in enumerate(scores.score):
        whole = episodes.last_steps[seed] > 0
        past = [x[seed][whole] for x in (episodes.last_score, episodes.last_steps)]
        rows.append(
            CurveRow(
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


def best_seed(rows: Sequence[CurveRow]) -> int:
    """Return the seed with the highest score."""
    return max(rows, key=lambda row: row.score).seed


def _best_of(scores: Scores) -> int:
    """Return the seed with the highest score."""
    return int(np.argmax(np.mean(scores.score, axis=1)))


def write_motion(path: Path, run: Run, scores: Scores, seed: int, step: int) -> None:
    """Write the episodes of a seed, after `step` actions, for `jaxsim.load_trajectory`.

    Of several processes, process 0 writes.
    """
    if not is_writer():
        return
    motion = {name: np.asarray(x[seed]) for name, x in scores.motion.items()}
    worlds = motion["qpos"].shape[1]
    header = motion_header(run.env.m, run.training.task, run.env.repeat, worlds)
    with TrajectoryWriter(path, header | {"actions": step, "seed": seed}) as writer:
        writer.append(motion)
