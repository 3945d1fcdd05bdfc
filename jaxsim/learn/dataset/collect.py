"""Collect a dataset of episodes with the policy of a run.

Episodes are run in batches. Batch b has the episodes b * worlds to (b + 1) * worlds - 1; process p
of n runs the batches p, p + n, ... on its own devices, without communication. A batch is skipped
if all its episodes are written, so that a collection that was killed continues without duplicates.
"""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxsim.batch.processes import is_writer
from jaxsim.io.config import config_text
from jaxsim.io.phase import named_phase
from jaxsim.learn.curve import CurveRow
from jaxsim.learn.dataset.episodes import (
    NO_EXPLORATION,
    STATE_FIELDS,
    Exploration,
    Rows,
    columns_of_rows,
    episode_rows,
    run_episodes,
)
from jaxsim.learn.dataset.layout import Column
from jaxsim.learn.dataset.writer import DEFAULT_SHARD_BYTES, DatasetWriter, begin_dataset
from jaxsim.learn.run import Run, best_seed
from jaxsim.version import __version__

MAX_EPISODES = 2**32  # numbers of episodes are folded into a key as 32 bits


class Collection(NamedTuple):
    """Episodes to be collected, and where to.

    Attributes:
      folder: folder of the dataset.
      episodes: number of episodes.
      worlds: episodes of a batch.
      seed: random seed of the episodes.
      policy: state of the learner, of one seed.
      run: the function of a batch: policy, keys -> Rows.
      columns: columns of the dataset.
      shard_bytes: bound of the bytes of a shard.
    """

    folder: Path
    episodes: int
    worlds: int
    seed: int
    policy: Any
    run: Callable[[Any, jax.Array], Rows]
    columns: tuple[Column, ...]
    shard_bytes: int


class Progress(NamedTuple):
    """Progress of this process.

    Attributes:
      done: episodes of this process that are run or were written before.
      total: its episodes.
      rows: rows appended by this call.
      diverged: episodes among them whose world diverged.
    """

    done: int
    total: int
    rows: int
    diverged: int


def prepare_collection(
    run: Run,
    folder: str | Path,
    episodes: int,
    *,
    worlds: int = 64,
    checkpoint: int | None = None,
    policy: int | None = None,
    seed: int = 0,
    exploration: Exploration = NO_EXPLORATION,
    states: bool = False,
    resume: bool = False,
    shard_bytes: int = DEFAULT_SHARD_BYTES,
) -> Collection:
    """Begin a dataset, or check that it is continued with the same settings.

    Of several processes, all must call it before any calls `collect`; process 0 writes.

    Args:
      run: the run whose policy acts; its worlds are those of an evaluation.
      folder: folder of the dataset; it is created.
      episodes: number of episodes of the complete dataset; those that it has are not run again.
      worlds: episodes that run at a time; the memory of a batch is proportional to it.
      checkpoint: step of the checkpoint; None: the last one.
      policy: seed of the run whose policy acts, from 0; None: the one with the highest return.
      seed: random seed of starts and exploration.
      exploration: noise and random actions.
      states: whether `qpos` and `qvel` before each action are columns too.
      resume: whether the dataset may exist.
      shard_bytes: bound of the bytes of a shard before compression.

    Raises:
      InputError: there is a dataset already, or it has other settings.
      ValueError: an argument is out of range.
      OSError: the folder cannot be written.
    """
    exploration.check(run.env)
    if not 1 <= episodes < MAX_EPISODES:
        raise ValueError(f"episodes: expected 1 to {MAX_EPISODES - 1}, got {episodes}")
    step, number, chosen = _restore_policy(run, checkpoint, policy)
    fields = STATE_FIELDS if states else ()

    def run_batch(policy: Any, keys: jax.Array) -> Rows:
        return run_episodes(run.test_worlds, run.learner.act, policy, keys, exploration, fields)

    shapes = jax.eval_shape(run_batch, chosen, _keys(seed, np.arange(worlds)))
    columns = columns_of_rows(shapes)
    description = {
        **_describe_run(run),
        "checkpoint": step,
        "policy": number,
        "policy_sha256": _digest(chosen),
        "noise": exploration.noise,
        "random": exploration.random,
        "seed": seed,
        "worlds": worlds,
        "jaxsim": __version__,
        "settings": config_text(run.training),
    }
    if is_writer():
        begin_dataset(Path(folder), columns, description, resume=resume)
    return Collection(Path(folder), episodes, worlds, seed, chosen, run_batch, columns, shard_bytes)


def _restore_policy(run: Run, checkpoint: int | None, policy: int | None) -> tuple[int, int, Any]:
    """Return the step of a checkpoint, the seed of the policy that acts, and its state."""
    step, state, rows = run.checkpoints.restore_with_rows(run.form(), checkpoint)
    number = _chosen_policy(run, policy, [CurveRow(**row) for row in rows])
    return step, number, jax.tree.map(lambda x: x[number], state)


def collect(collection: Collection, say: Callable[[Progress], None] = lambda _: None) -> Progress:
    """Run the episodes of this process that no shard contains, and write them.

    Args:
      collection: the result of `prepare_collection`.
      say: called after each batch.

    Raises:
      InputError: the dataset is damaged.
      OSError: a shard cannot be written.
    """
    c = collection
    batches = list(_batches(c, jax.process_index(), jax.process_count()))
    total = sum(len(batch) for batch in batches)
    writer = DatasetWriter(
        c.folder, c.columns, process=jax.process_index(), shard_bytes=c.shard_bytes
    )
    with writer:
        missing = [b for b in batches if any(int(i) not in writer.written for i in b)]
        progress = Progress(total - sum(len(b) for b in missing), total, 0, 0)
        say(progress)
        if not missing:
            return progress
        program = _compile(c)
        for batch in missing:
            ids = batch[0] + np.arange(c.worlds)  # a whole batch: the same program, the same bits
            rows = jax.device_get(program(c.policy, _keys(c.seed, ids)))
            for world, number in enumerate(batch.tolist()):
                if number in writer.written:
                    continue
                values = episode_rows(rows, world)
                score = float(values["reward"].sum(dtype=np.float64))
                diverged = bool((rows.alive & rows.diverged)[:, world].any())
                writer.append(number, values, score=score, diverged=diverged)
                progress = progress._replace(
                    rows=progress.rows + len(values["reward"]),
                    diverged=progress.diverged + diverged,
                )
            progress = progress._replace(done=progress.done + len(batch))
            say(progress)
    return progress


def _compile(c: Collection) -> Callable[[Any, jax.Array], Rows]:
    """Return the compiled function of a batch: policy, keys (worlds,) -> Rows."""
    keys = _keys(c.seed, np.arange(c.worlds))
    with named_phase("compile the episodes"):
        program: Callable[[Any, jax.Array], Rows] = jax.jit(c.run).lower(c.policy, keys).compile()
    return program


def _batches(c: Collection, process: int, processes: int) -> Iterator[np.ndarray]:
    """Yield the numbers of the episodes of each batch of a process."""
    for first in range(process * c.worlds, c.episodes, processes * c.worlds):
        yield np.arange(first, min(first + c.worlds, c.episodes))


def _keys(seed: int, ids: np.ndarray) -> jax.Array:
    """Return the random keys of episodes with these numbers, (n,)."""
    key = jax.random.key(seed)
    return jax.vmap(lambda i: jax.random.fold_in(key, i))(ids.astype(np.uint32))


def _chosen_policy(run: Run, policy: int | None, rows: list[CurveRow]) -> int:
    """Return the seed whose policy acts."""
    if policy is None:
        last = [row for row in rows if row.step == rows[-1].step]
        return best_seed(last)
    if not 0 <= policy < run.training.seeds:
        raise ValueError(f"policy: expected 0 to {run.training.seeds - 1}, got {policy}")
    return policy


def _describe_run(run: Run) -> dict[str, Any]:
    """Return the description of the task and the training: names, units of time, ranges."""
    low, high = (np.asarray(x, float).tolist() for x in run.env.action_range())
    return {
        "task": run.training.task,
        "dt": float(run.env.dt),
        "action_low": [_finite(x) for x in low],
        "action_high": [_finite(x) for x in high],
        "length": run.test_worlds.length,
        "algorithm": run.training.algorithm,
    }


def _finite(x: float) -> float | None:
    """Return a number that JSON can represent: None for an infinite one."""
    return x if np.isfinite(x) else None


def _digest(state: Any) -> str:
    """Return the SHA-256 of a policy: its networks and statistics, without the state of worlds."""
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(state.replace(env_state=None)):
        if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        digest.update(np.ascontiguousarray(leaf).tobytes())
    return digest.hexdigest()
