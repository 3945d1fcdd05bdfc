"""The folder of a dataset: its description, its shards, and the index of each shard.

    data/
      dataset.json                            description: task, policy, columns with shapes, units
      shards/process-00000/000000.parquet     a shard: one row for each action of whole episodes
      index/process-00000/000000.json         its index: episodes, size and SHA-256 of the shard

An index is written after its shard, so that a shard without an index does not count. All files are
written atomically, and descriptions and indices contain their own checksum.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxsim.atomic_write import write_whole
from jaxsim.errors import InputError, LocatedProblem, SourceLocation

FORMAT, VERSION = "jaxsim dataset", 1
DESCRIPTION_FILE = "dataset.json"
EPISODE, STEP = "episode", "step"  # columns of every dataset: its episode, and the action in it
NEXT = "next_"  # prefix of a column with the value after the action
OBSERVATION = "observation"  # column of the observation, or prefix "observation." of several
REQUIRED = ("action", "reward", "terminated", "truncated")
_COLUMN_TYPES = ("bool", "int32", "int64", "float32", "float64")


class Column(NamedTuple):
    """A column of a dataset.

    Attributes:
      name: its name.
      dtype: type of its numbers: bool, int32, int64, float32 or float64.
      shape: shape of the array of a row; () for a number.
      unit: unit of the numbers; "" without one.
      meaning: what it contains.
    """

    name: str
    dtype: str
    shape: tuple[int, ...] = ()
    unit: str = ""
    meaning: str = ""

    @property
    def size(self) -> int:
        """Return the number of numbers of a row."""
        return int(np.prod(self.shape))

    @property
    def row_bytes(self) -> int:
        """Return the bytes of a row before compression."""
        return self.size * np.dtype(self.dtype).itemsize


class EpisodeEntry(NamedTuple):
    """An episode of a shard.

    Attributes:
      id: number of the episode in the dataset.
      steps: its actions.
      score: its return, the sum of its rewards.
      diverged: whether its world diverged at the last action.
    """

    id: int
    steps: int
    score: float
    diverged: bool


class ShardIndex(NamedTuple):
    """Index of a shard.

    Attributes:
      path: the Parquet file.
      bytes: its size.
      sha256: its checksum.
      group_rows: rows of each row group but the last.
      episodes: its episodes, in the order of their rows.
    """

    path: Path
    bytes: int
    sha256: str
    group_rows: int
    episodes: tuple[EpisodeEntry, ...]

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return sum(episode.steps for episode in self.episodes)


def problem(path: Path, message: str) -> InputError:
    """Return the error of a file or folder of a dataset."""
    return InputError(LocatedProblem(SourceLocation(str(path)), message))


def check_columns(columns: Sequence[Column]) -> None:
    """Check that columns can be written.

    Raises:
      ValueError: a type is unknown, a name occurs twice, a column has no numbers, or one that every
        dataset has is missing.
    """
    names = [column.name for column in columns]
    observed = [n for n in names if n == OBSERVATION or n.startswith(f"{OBSERVATION}.")]
    needed = [*REQUIRED, *(NEXT + name for name in observed or [OBSERVATION])]
    for name in needed:
        if name not in names:
            raise ValueError(f"columns: {name!r} is missing; every dataset has it")
    for column in columns:
        if column.dtype not in _COLUMN_TYPES:
            raise ValueError(
                f"column {column.name!r}: expected a type of {', '.join(_COLUMN_TYPES)}, got "
                f"{column.dtype}"
            )
        if not column.size:
            raise ValueError(f"column {column.name!r}: shape {column.shape} has no numbers")
        if names.count(column.name) > 1:
            raise ValueError(f"column {column.name!r}: the name occurs twice")


def process_folder(folder: Path, process: int) -> Path:
    """Return the folder of the shards that a process writes."""
    return folder / "shards" / f"process-{process:05}"


def shard_file(folder: Path, process: int, number: int) -> Path:
    """Return the Parquet file of a shard."""
    return process_folder(folder, process) / f"{number:06}.parquet"


def index_file(shard: Path) -> Path:
    """Return the file of the index of a shard, which is in a tree of its own.

    Programs that read a folder of Parquet files reject others in it.
    """
    folder, process = shard.parents[2], shard.parent.name
    return folder / "index" / process / f"{shard.stem}.json"


def write_description(folder: Path, description: dict[str, Any]) -> None:
    """Write the description of a dataset: JSON values, with "columns"."""
    _write_sealed(folder / DESCRIPTION_FILE, {**_header(), **description})


def read_description(folder: Path) -> dict[str, Any]:
    """Return the description of a dataset.

    Raises:
      InputError: there is no dataset, it is damaged, or of another version.
    """
    path = folder / DESCRIPTION_FILE
    if not path.is_file():
        raise problem(folder, f"there is no dataset: it has no {DESCRIPTION_FILE}")
    return _read_sealed(path)


def columns_of(description: dict[str, Any]) -> tuple[Column, ...]:
    """Return the columns that a description lists."""
    return tuple(
        Column(c["name"], c["dtype"], tuple(c["shape"]), c["unit"], c["meaning"])
        for c in description["columns"]
    )


def write_index(index: ShardIndex) -> None:
    """Write the index of a shard, which then counts."""
    content = {**_header(), **index._asdict(), "path": index.path.name}
    _write_sealed(index_file(index.path), content)


def read_indices(folder: Path) -> list[ShardIndex]:
    """Return the indices of all shards, in the order of processes and shards.

    Raises:
      InputError: an index is damaged, a shard is missing or has another size, or two shards contain
        the same episode.
    """
    indices = [_read_index(folder, path) for path in sorted(folder.glob("index/*/*.json"))]
    seen: dict[int, Path] = {}
    for index in indices:
        for episode in index.episodes:
            if (other := seen.setdefault(episode.id, index.path)) != index.path:
                raise problem(
                    index.path, f"episode {episode.id} is in {other} too; remove one of the shards"
                )
    return indices


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def damaged_shards(indices: Sequence[ShardIndex]) -> Iterator[LocatedProblem]:
    """Yield the shards whose bytes differ from their checksum; each file is read as a whole."""
    for index in indices:
        if digest_of_file(index.path) != index.sha256:
            yield _damage(index.path, "its SHA-256 differs from that of its index")


def _read_index(folder: Path, path: Path) -> ShardIndex:
    content = _read_sealed(path)
    shard = folder / "shards" / path.parent.name / f"{path.stem}.parquet"
    episodes = tuple(EpisodeEntry(*values) for values in content["episodes"])
    index = ShardIndex(shard, content["bytes"], content["sha256"], content["group_rows"], episodes)
    if not shard.is_file():
        raise InputError(_damage(shard, "the file is missing"))
    if shard.stat().st_size != index.bytes:
        size = shard.stat().st_size
        raise InputError(_damage(shard, f"it has {size} bytes, expected {index.bytes}"))
    return index


def _damage(shard: Path, what: str) -> LocatedProblem:
    remedy = f"delete it and {index_file(shard)}, then collect its episodes with --resume"
    return LocatedProblem(SourceLocation(str(shard)), f"damaged: {what}; {remedy}")


def _header() -> dict[str, Any]:
    return {"format": FORMAT, "version": VERSION}


def _write_sealed(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps({**content, "checksum": _digest(content)}, indent=1)
    write_whole(path, text + "\n")


def _read_sealed(path: Path) -> dict[str, Any]:
    """Return the content of a JSON file after comparing it with its checksum."""
    try:
        content = json.loads(path.read_bytes())
        intact = content.pop("checksum") == _digest(content)
    except (ValueError, RecursionError, TypeError, AttributeError, KeyError):
        intact = False
    if not intact or content.get("format") != FORMAT:
        raise problem(path, "damaged: its checksum does not match its content")
    if content["version"] != VERSION:
        raise problem(path, f"version {content['version']} of the format; expected {VERSION}")
    return dict(content)


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
