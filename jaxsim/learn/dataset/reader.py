"""Read a dataset: minibatches of rows in random order, and whole episodes.

Minibatches are drawn as from a shuffle buffer: row groups are permuted, some of them are loaded at
a time, and their rows are permuted together. Memory is bounded by the buffer, not by the dataset,
and each row occurs at most once in a pass. Every page that is read is compared with its CRC-32.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxsim.errors import InputError
from jaxsim.learn.dataset.layout import (
    EPISODE,
    NEXT,
    OBSERVATION,
    REQUIRED,
    STEP,
    Column,
    EpisodeEntry,
    ShardIndex,
    columns_of,
    damaged_shards,
    problem,
    read_description,
    read_indices,
)
from jaxsim.optional import require
from jaxsim.spelling import remedy

parquet = require("pyarrow.parquet", "dataset")

DEFAULT_BUFFER_ROWS = 131_072  # default rows of the shuffle buffer


class Episode(NamedTuple):
    """An episode, with the names of Minari's `EpisodeData`.

    Attributes:
      id: its number.
      observations: (steps + 1, ...): the first one, and those after each action; a dict of arrays
        if the task has several.
      actions: (steps, action_size).
      rewards: (steps,).
      terminations: whether the task ended the episode at this action, bool (steps,).
      truncations: whether its length did, bool (steps,).
      infos: other columns by name, (steps, ...).
    """

    id: int
    observations: Any
    actions: np.ndarray
    rewards: np.ndarray
    terminations: np.ndarray
    truncations: np.ndarray
    infos: dict[str, np.ndarray]


class _Group(NamedTuple):
    """A row group: its shard, its number there, its rows."""

    shard: int
    number: int
    rows: int


class Dataset:
    """A dataset of episodes on disk.

    Args:
      folder: folder of the dataset.

    Raises:
      InputError: there is no dataset, or it is damaged: a file is missing, or has another size or
        checksum. The contents of shards are verified when they are read, and by `verify`.

    Attributes:
      folder: its folder.
      description: its properties: "task", "policy", "seed", "dt" [s] and others.
      columns: its columns.

    Example:
      data = Dataset("runs/cartpole-data")
      for epoch in range(10):
          for batch in data.minibatches(jax.random.key(epoch), 256):
              train(batch["observation"], batch["action"], batch["reward"])
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.description = read_description(self.folder)
        self.columns = columns_of(self.description)
        self._shards = read_indices(self.folder)
        # Shard, first row and entry of each episode, by number.
        self._places: dict[int, tuple[ShardIndex, int, EpisodeEntry]] = {}
        for shard in self._shards:
            first = 0
            for entry in shard.episodes:
                self._places[entry.id] = shard, first, entry
                first += entry.steps

    def __repr__(self) -> str:
        task = self.description.get("task", "")
        return (
            f"Dataset({task}: {len(self.episodes)} episodes, {self.rows} rows, "
            f"{len(self._shards)} shards)"
        )

    @property
    def rows(self) -> int:
        """Return the number of rows: the actions of all episodes."""
        return sum(shard.rows for shard in self._shards)

    @cached_property
    def episodes(self) -> np.ndarray:
        """Return the numbers of the episodes, ascending, int64 (episodes,)."""
        return np.array(sorted(self._places), np.int64)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Return the actions of each episode, in the order of `episodes`, int64 (episodes,)."""
        return np.array([self._places[int(i)][2].steps for i in self.episodes], np.int64)

    @cached_property
    def returns(self) -> np.ndarray:
        """Return the return of each episode, in the order of `episodes`, float64 (episodes,)."""
        return np.array([self._places[int(i)][2].score for i in self.episodes])

    def verify(self) -> None:
        """Compare all shards with their checksums; every file is read.

        Raises:
          InputError: some are damaged; all of them are named.
        """
        if damaged := list(damaged_shards(self._shards)):
            raise InputError(damaged)

    def episode(self, number: int) -> Episode:
        """Return an episode.

        Args:
          number: one of `episodes`.

        Raises:
          ValueError: there is no such episode.
          InputError: its shard is damaged.
        """
        if number not in self._places:
            raise ValueError(
                f"episode {number}: there is none; there are {len(self._places)}, see `episodes`"
            )
        shard, first, entry = self._places[number]
        size, end = shard.group_rows, first + entry.steps
        groups = range(first // size, -(-end // size))
        table = self._read(shard, list(groups), [c.name for c in self.columns])
        offset = groups.start * size
        rows = {name: x[first - offset : end - offset] for name, x in table.items()}
        if not (rows[EPISODE] == number).all():
            raise problem(shard.path, f"damaged: episode {number} is not at the rows of its index")
        return _episode(number, rows)

    def minibatches(
        self,
        key: jax.Array,
        size: int,
        *,
        columns: Sequence[str] | None = None,
        buffer_rows: int = DEFAULT_BUFFER_ROWS,
    ) -> Iterator[dict[str, np.ndarray]]:
        """Yield the rows in random order, once each, as minibatches of the same size.

        The rows of the last, incomplete minibatch are left out: other ones with each key. The order
        is a function of key, shards and `buffer_rows`, and a uniform permutation if all rows fit
        into the buffer.

        Args:
          key: random key of the order, a `jax.random.key`.
          size: rows of a minibatch.
          columns: names of the columns; None: all.
          buffer_rows: rows that are loaded and permuted at a time; more mix more episodes.

        Returns:
          An iterator over arrays by the name of the column, (size, ...).

        Raises:
          ValueError: `size` is not positive or larger than the dataset, `buffer_rows` is not
            positive, or a column does not exist.
          InputError: on iterating: a shard is damaged.
        """
        if not 1 <= size <= self.rows:
            raise ValueError(f"size: expected 1 to {self.rows}, the rows there are, got {size}")
        if buffer_rows < 1:
            raise ValueError(f"buffer_rows: expected a positive number, got {buffer_rows}")
        names = [column.name for column in self.columns]
        for name in columns or ():
            if name not in names:
                there = "; there are: " + ", ".join(names)
                raise ValueError(f"columns: no column {name!r}{remedy(name, names, there)}")
        wanted = names if columns is None else list(columns)
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).reshape(-1))
        return self._draw(rng, size, wanted, buffer_rows)

    def _draw(
        self, rng: np.random.Generator, size: int, columns: list[str], buffer_rows: int
    ) -> Iterator[dict[str, np.ndarray]]:
        groups = self._groups()
        waiting = [groups[i] for i in rng.permutation(len(groups))]
        left: dict[str, np.ndarray] | None = None  # rows of the last buffer that fill no minibatch
        while waiting:
            chosen: list[_Group] = []
            rows = 0
            while waiting and (not chosen or rows + waiting[-1].rows <= buffer_rows):
                chosen.append(waiting.pop())
                rows += chosen[-1].rows
            buffer = self._load(chosen, columns)
            if left is not None:
                buffer = {n: np.concatenate([left[n], x]) for n, x in buffer.items()}
            order = rng.permutation(len(next(iter(buffer.values()))))
            whole = len(order) - len(order) % size
            for start in range(0, whole, size):
                yield {n: x[order[start : start + size]] for n, x in buffer.items()}
            left = {n: x[order[whole:]] for n, x in buffer.items()}

    def _groups(self) -> list[_Group]:
        """Return all row groups."""
        return [
            _Group(i, number, min(shard.group_rows, shard.rows - first))
            for i, shard in enumerate(self._shards)
            for number, first in enumerate(range(0, shard.rows, shard.group_rows))
        ]

    def _load(self, groups: Sequence[_Group], columns: list[str]) -> dict[str, np.ndarray]:
        """Return the rows of some groups; each shard is opened once."""
        by_shard: dict[int, list[int]] = {}
        for group in groups:
            by_shard.setdefault(group.shard, []).append(group.number)
        parts = [
            self._read(self._shards[i], sorted(numbers), columns)
            for i, numbers in sorted(by_shard.items())
        ]
        return {name: np.concatenate([part[name] for part in parts]) for name in columns}

    def _read(
        self, shard: ShardIndex, groups: list[int], columns: list[str]
    ) -> dict[str, np.ndarray]:
        """Return columns of some row groups of a shard, (rows, *shape) each."""
        try:
            with parquet.ParquetFile(shard.path, page_checksum_verification=True) as file:
                if file.metadata.num_rows != shard.rows:
                    raise ValueError(f"{file.metadata.num_rows} rows, expected {shard.rows}")
                table = file.read_row_groups(groups, columns=columns)
        except (ValueError, OSError) as error:  # those of pyarrow are both
            reason = str(error).strip().splitlines()[0]
            raise problem(shard.path, f"cannot be read: {reason}") from error
        by_name = {column.name: column for column in self.columns}
        return {name: _values(by_name[name], table.column(name)) for name in columns}


def _values(column: Column, chunks: Any) -> np.ndarray:
    """Return a column of Arrow as an array (rows, *shape)."""
    flat = [chunk.flatten() if column.shape else chunk for chunk in chunks.chunks]
    values = np.concatenate([chunk.to_numpy(zero_copy_only=False) for chunk in flat])
    return values.reshape(len(chunks), *column.shape)


def _episode(number: int, rows: dict[str, np.ndarray]) -> Episode:
    """Return the rows of an episode under Minari's names."""
    seen: dict[str, np.ndarray] = {}
    for name in list(rows):
        if name.startswith(NEXT):
            first = rows.pop(name.removeprefix(NEXT))
            last = rows.pop(name)
            seen[name.removeprefix(NEXT)] = np.concatenate([first, last[-1:]])
    for name in (EPISODE, STEP):
        rows.pop(name)
    observations: Any = seen
    if list(seen) == [OBSERVATION]:
        observations = seen[OBSERVATION]
    else:
        observations = {name.removeprefix(f"{OBSERVATION}."): x for name, x in seen.items()}
    action, reward, terminated, truncated = (rows.pop(name) for name in REQUIRED)
    return Episode(number, observations, action, reward, terminated, truncated, infos=rows)
