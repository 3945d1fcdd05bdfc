"""Write episodes to the shards of a dataset.

A shard is a Parquet file of bounded size with whole episodes. Its rows are in groups of
`GROUP_ROWS`, the unit that the reader loads, and its pages have CRC-32 checksums, which the reader
verifies. Processes write to folders of their own and need not know of each other.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from jaxsim.atomic_write import discard_left_over, whole_file
from jaxsim.learn.dataset.layout import (
    DESCRIPTION_FILE,
    EPISODE,
    STEP,
    Column,
    EpisodeEntry,
    ShardIndex,
    check_columns,
    digest_of_file,
    index_file,
    problem,
    process_folder,
    read_description,
    read_indices,
    shard_file,
    write_description,
    write_index,
)
from jaxsim.optional import require

pyarrow = require("pyarrow", "dataset")
parquet = require("pyarrow.parquet", "dataset")

DEFAULT_SHARD_BYTES = 64 * 2**20  # default bound of the bytes of a shard, before compression
GROUP_ROWS = 1024  # rows of a row group
INDEX_COLUMNS = (
    Column(EPISODE, "int64", (), "", "number of the episode"),
    Column(STEP, "int32", (), "", "number of the action in its episode, from 0"),
)


def begin_dataset(
    folder: Path, columns: Sequence[Column], description: Mapping[str, Any], *, resume: bool
) -> None:
    """Write the description of a dataset, or compare it with that of an existing one.

    Args:
      folder: folder of the dataset; it is created.
      columns: the columns, without `INDEX_COLUMNS`.
      description: other properties of the dataset, JSON values.
      resume: whether the dataset may exist; its description must then be the same.

    Raises:
      InputError: the folder contains a dataset and `resume` is false, or it contains another one.
      ValueError: a column cannot be written.
      OSError: the folder cannot be written.
    """
    columns = (*INDEX_COLUMNS, *columns)
    check_columns(columns)
    listed = [{**c._asdict(), "shape": list(c.shape)} for c in columns]
    new = {**description, "columns": listed}
    if not (folder / DESCRIPTION_FILE).exists():
        if any(folder.glob("index/*/*.json")):
            raise problem(folder, f"there are shards, but no {DESCRIPTION_FILE}; name another one")
        folder.mkdir(parents=True, exist_ok=True)
        write_description(folder, new)
        return
    if not resume:
        raise problem(folder, "there is a dataset already; continue it by --resume")
    old = read_description(folder)
    for name, value in new.items():
        if old.get(name) != value:
            raise problem(
                folder / DESCRIPTION_FILE,
                f"{name}: the dataset has {old.get(name)!r}, these episodes {value!r}; "
                "name another folder",
            )


class DatasetWriter:
    """Writer of the shards of one process; a context manager, which completes the last shard.

    After an exception the episodes of the incomplete shard are not written.

    Args:
      folder: folder of a dataset (`begin_dataset`).
      columns: its columns, without `INDEX_COLUMNS`.
      process: index of this process among those that write.
      shard_bytes: bound of the bytes of a shard before compression; a longer episode is a shard.

    Attributes:
      written: numbers of the episodes that shards of any process contain.

    Raises:
      InputError: the dataset is damaged.
      ValueError: `shard_bytes` is not positive.
      OSError: on entering, appending or leaving: a file cannot be written.

    Example:
      begin_dataset(folder, columns, {"task": "cartpole"}, resume=False)
      with DatasetWriter(folder, columns) as writer:
          writer.append(0, {"observation": ..., "action": ...}, score=3.5)
    """

    def __init__(
        self,
        folder: Path,
        columns: Sequence[Column],
        *,
        process: int = 0,
        shard_bytes: int = DEFAULT_SHARD_BYTES,
    ):
        if shard_bytes < 1:
            raise ValueError(f"shard_bytes: expected a positive number, got {shard_bytes}")
        self._folder, self._process, self._bound = folder, process, shard_bytes
        self._columns = tuple(columns)
        self._schema = _schema((*INDEX_COLUMNS, *columns))
        self._row_bytes = sum(c.row_bytes for c in (*INDEX_COLUMNS, *columns))
        self._rows: list[dict[str, np.ndarray]] = []
        self._episodes: list[EpisodeEntry] = []
        self.written: set[int] = set()

    def __enter__(self) -> Self:
        own = process_folder(self._folder, self._process)
        for folder in (own, index_file(own / "0").parent):
            folder.mkdir(parents=True, exist_ok=True)
            discard_left_over(folder)
        indices = read_indices(self._folder)
        self.written = {episode.id for index in indices for episode in index.episodes}
        numbers = [int(index.path.stem) for index in indices if index.path.parent == own]
        self._number = max(numbers, default=-1) + 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.flush()

    def append(
        self, episode: int, rows: Mapping[str, np.ndarray], *, score: float, diverged: bool = False
    ) -> None:
        """Append an episode; a shard that it would make too large is written first.

        Args:
          episode: its number, which no episode of the dataset has.
          rows: an array of each column, (steps, *shape).
          score: its return.
          diverged: whether its world diverged.

        Raises:
          ValueError: the episode exists, is empty, or an array has another shape or type.
        """
        if episode in self.written:
            raise ValueError(f"append: episode {episode} is written already")
        steps = len(next(iter(rows.values()), ()))
        if not steps:
            raise ValueError(f"append: episode {episode} has no rows")
        self._check(rows, steps)
        held = sum(entry.steps for entry in self._episodes)
        if held and (held + steps) * self._row_bytes > self._bound:
            self.flush()
        values = {c.name: np.asarray(rows[c.name]) for c in self._columns}
        values[EPISODE] = np.full(steps, episode, np.int64)
        values[STEP] = np.arange(steps, dtype=np.int32)
        self._rows.append(values)
        self._episodes.append(EpisodeEntry(episode, steps, float(score), bool(diverged)))
        self.written.add(episode)

    def _check(self, rows: Mapping[str, np.ndarray], steps: int) -> None:
        names = {column.name for column in self._columns}
        if names != set(rows):
            raise ValueError(f"append: expected the columns {sorted(names)}, got {sorted(rows)}")
        for column in self._columns:
            given, expected = rows[column.name], (steps, *column.shape)
            if given.shape != expected or given.dtype != column.dtype:
                raise ValueError(
                    f"append: {column.name}: expected {column.dtype}{list(expected)}, got "
                    f"{given.dtype}{list(given.shape)}"
                )

    def flush(self) -> None:
        """Write the episodes held so far as a shard; without any there is none."""
        if not self._episodes:
            return
        path = shard_file(self._folder, self._process, self._number)
        arrays = [
            _array(column, np.concatenate([rows[column.name] for rows in self._rows]))
            for column in (*INDEX_COLUMNS, *self._columns)
        ]
        with whole_file(path) as part:
            parquet.write_table(
                pyarrow.Table.from_arrays(arrays, schema=self._schema),
                part,
                row_group_size=GROUP_ROWS,
                compression="zstd",
                use_dictionary=[EPISODE],
                write_page_checksum=True,
            )
        # The shard counts from here on.
        size, digest = path.stat().st_size, digest_of_file(path)
        write_index(ShardIndex(path, size, digest, GROUP_ROWS, tuple(self._episodes)))
        self._number += 1
        self._rows, self._episodes = [], []


def _schema(columns: Sequence[Column]) -> Any:
    """Return the schema of a shard; arrays of rows are lists of fixed size."""
    fields = []
    for column in columns:
        kind = pyarrow.from_numpy_dtype(np.dtype(column.dtype))
        if column.shape:
            kind = pyarrow.list_(kind, column.size)
        fields.append(pyarrow.field(column.name, kind, nullable=False))
    return pyarrow.schema(fields)


def _array(column: Column, values: np.ndarray) -> Any:
    """Return the values of a column, (rows, *shape), as an array of Arrow."""
    flat = pyarrow.array(np.ascontiguousarray(values).reshape(-1))
    return pyarrow.FixedSizeListArray.from_arrays(flat, column.size) if column.shape else flat
