"""Recorded motions on disk: .npz files that are written atomically.

A file holds one array per recorded field, (records, worlds, ...), and a `header` of JSON text that
describes them. During the simulation records are spooled to a temporary folder next to the file, so
that memory does not grow with its length; the finished file is renamed to its target at the end. If
that fails, the records are saved elsewhere, and the error names the file.
"""

import contextlib
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jaxsim.assets.read.npz import read_npz
from jaxsim.atomic_write import keep_unfinished, unfinished
from jaxsim.atomic_write import target_of as target_of
from jaxsim.model.model import Model
from jaxsim.model.shaped import Shaped

FORMAT, VERSION = "jaxsim trajectory", 1
_FINISHED_FILE = "finished.npz"


@dataclass(frozen=True, repr=False)
class Trajectory:
    """A recorded motion.

    Attributes:
      header: "model" (its name), "timestep", "every" (steps between records), "worlds", "records",
        "nq", "nv", "nu".
      fields: the recorded arrays by name, each (records, worlds, ...).
    """

    header: dict[str, Any]
    fields: dict[str, Shaped[np.ndarray, "records worlds *field"]]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.fields[name]

    def __repr__(self) -> str:
        header_fields = ("model", "records", "worlds", "timestep", "every")
        says = [f"{name}={self.header[name]!r}" for name in header_fields if name in self.header]
        arrays = [f"{name}={x.dtype}{list(x.shape)}" for name, x in self.fields.items()]
        return f"Trajectory({', '.join(says + arrays)})"


def motion_header(m: Model, model: str, every: int, worlds: int) -> dict[str, Any]:
    """Return the header of a motion for `TrajectoryWriter`.

    Args:
      m: the model.
      model: its name.
      every: steps between records.
      worlds: number of worlds.
    """
    timestep = float(m.opt.timestep)
    header = {"model": model, "timestep": timestep, "every": every, "worlds": worlds}
    return {**header, "nq": m.nq, "nv": m.nv, "nu": m.nu}


class NotWrittenError(OSError):
    """A trajectory could not be written to its target.

    Attributes:
      kept: where the records are saved instead: a trajectory, or a folder of raw arrays.
    """

    def __init__(self, path: Path, reason: OSError, kept: Path, records: int):
        self.kept = kept
        what = (
            "the file" if kept.suffix == ".npz" else "raw arrays, with header.json, in the folder"
        )
        super().__init__(
            f"'{path}' cannot be written: {reason.strerror or reason}; "
            f"{records} records of each world are kept in {what} '{kept}'"
        )


class TrajectoryWriter:
    """Context manager that writes a trajectory. An exception inside it leaves no file.

    If the path is a symbolic link, the file it points to is written.

    Args:
      path: the file to write.
      header: `Trajectory.header` without the number of records.

    Raises:
      OSError: on entering: the file cannot be written.
      NotWrittenError: on appending records, or at the end: writing failed.
    """

    def __init__(self, path: str | os.PathLike[str], header: Mapping[str, Any]):
        self.path = Path(path)
        self.records = 0
        self._header = dict(header)
        self._shapes: dict[str, tuple[tuple[int, ...], np.dtype]] = {}

    def __enter__(self) -> "TrajectoryWriter":
        self._target = target_of(self.path)
        name = self._target.name
        self._spool = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=self._target.parent))
        self._guard = unfinished(self._spool)
        self._guard.__enter__()
        self._files: dict[str, Any] = {}
        return self

    def append(self, chunk: Mapping[str, Any]) -> None:
        """Append some records: arrays (records, worlds, ...) of the same fields as before."""
        arrays = {name: np.ascontiguousarray(values) for name, values in chunk.items()}
        for name, values in arrays.items():
            shape = values.shape[1:], values.dtype
            if self._shapes.setdefault(name, shape) != shape:
                raise ValueError(f"{name}: records of shape {shape}, before {self._shapes[name]}")
        try:
            for name, values in arrays.items():
                self._add(name, values)
        except OSError as error:
            raise self._rescue(error) from error
        self.records += len(next(iter(arrays.values())))

    def _add(self, name: str, values: np.ndarray) -> None:
        if name not in self._files:
            # Unbuffered, so that a full disk is detected at once.
            self._files[name] = (self._spool / name).open("wb", buffering=0)
        left = values.reshape(-1).view(np.uint8).data if values.size else memoryview(b"")
        while left:
            left = left[self._files[name].write(left) :]

    def __exit__(self, kind, error, trace) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            self._close()
            self._guard.__exit__(None, None, None)

    def _finish(self) -> None:
        try:
            finished = self._spool / _FINISHED_FILE
            self._write(finished)
            os.replace(finished, self._target)
        except OSError as error:
            raise self._rescue(error) from error

    def _close(self) -> None:
        for file in self._files.values():
            file.close()

    def _write(self, finished: Path) -> None:
        text = {"format": FORMAT, "version": VERSION, "records": self.records, **self._header}
        header = np.array(json.dumps({**text, "fields": list(self._shapes)}))
        with zipfile.ZipFile(finished, "w", allowZip64=True) as archive:
            with archive.open("header.npy", "w") as member:
                np.lib.format.write_array(member, header)
            for name, (shape, dtype) in self._shapes.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    description = {
                        "descr": np.lib.format.dtype_to_descr(dtype),
                        "fortran_order": False,
                        "shape": (self.records, *shape),
                    }
                    np.lib.format.write_array_header_1_0(member, description)
                    left = self.records * int(np.prod(shape)) * dtype.itemsize
                    # Copy the common number of records: the last ones of a field may be missing.
                    with (self._spool / name).open("rb") as raw:
                        while left > 0:
                            block = raw.read(min(left, 1 << 20))
                            if not block:
                                raise OSError(f"the records of '{name}' are gone from the disk")
                            member.write(block)
                            left -= len(block)

    def _rescue(self, reason: OSError) -> NotWrittenError:
        """Save the records where there is enough space; return the error that names the
        location."""
        (self._spool / _FINISHED_FILE).unlink(missing_ok=True)  # frees space for the copy
        for place in self._fallback_folders():
            try:
                self._write(place)
            except OSError:
                place.unlink(missing_ok=True)
            else:
                return NotWrittenError(self.path, reason, place, self.records)
        return NotWrittenError(self.path, reason, self._keep_raw(), self.records)

    def _fallback_folders(self) -> Iterator[Path]:
        """Yield unused file names: in the target's folder, then in the folder of temporary
        files."""
        for folder in (self._target.parent, Path(tempfile.gettempdir())):
            for i in range(1, 1000):
                place = folder / f"{self._target.stem}-{i}.npz"
                if not os.path.lexists(place):
                    yield place
                    break

    def _keep_raw(self) -> Path:
        """Return the folder of the raw arrays, under a visible name."""
        keep_unfinished(self._spool)
        fields = {
            name: {"dtype": dtype.str, "shape": [self.records, *shape]}
            for name, (shape, dtype) in self._shapes.items()
        }
        kept = self._spool.with_name(self._spool.name.lstrip("."))
        # The arrays matter most: keep them even if the header cannot be written.
        with contextlib.suppress(OSError):
            (self._spool / "header.json").write_text(json.dumps({**self._header, "fields": fields}))
            os.replace(self._spool, kept)
            self._spool = kept
        return self._spool


def load_trajectory(path: str | os.PathLike[str]) -> Trajectory:
    """Read a trajectory and check that it is complete.

    Raises:
      ValueError: the file is not a trajectory, is damaged, or of a newer version.
      OSError: the file cannot be read.
    """
    arrays = read_npz(path)
    header = _header(path, arrays.pop("header", None))
    first = header["records"], header["worlds"]
    for name in header["fields"]:
        if name not in arrays:
            raise ValueError(f"{path}: damaged: the array '{name}' is missing")
        if arrays[name].shape[:2] != first:
            shape = arrays[name].shape
            raise ValueError(f"{path}: damaged: '{name}' has shape {shape}, expected {first} first")
    return Trajectory(header, {name: arrays[name] for name in header["fields"]})


def _header(path: str | os.PathLike[str], text: np.ndarray | None) -> dict[str, Any]:
    """Return the header of a trajectory, if it is one."""
    foreign = f"{path}: not a jaxsim trajectory: "
    if text is None:
        raise ValueError(f"{foreign}it has no header")
    try:
        header = json.loads(str(text))
    except (ValueError, RecursionError):
        raise ValueError(f"{foreign}its header is not JSON") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"{foreign}its header names another format")
    if header.get("version") != VERSION:
        raise ValueError(
            f"{path}: version {header.get('version')} of the format; this jaxsim reads {VERSION}"
        )
    for name, kind in (("records", int), ("worlds", int), ("fields", list)):
        if not isinstance(header.get(name), kind):
            raise ValueError(f"{path}: damaged: its header lacks '{name}'")
    if not all(isinstance(name, str) for name in header["fields"]):
        raise ValueError(f"{path}: damaged: its header has field names that are no strings")
    return header
