"""Recorded motion on disk: a .npz file that is written as a whole or not at all.

A file holds one array per recorded field, (records, worlds, ...), and a `header` of JSON text that
says what they are. Records are spooled to a temporary folder beside the file while the simulation
runs, so memory does not grow with its length; the finished file is renamed into place at the end.
"""

import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FORMAT, VERSION = "jaxsim trajectory", 1


@dataclass(frozen=True)
class Trajectory:
    """A recorded motion.

    Attributes:
      header: "model" (its name), "timestep", "every" (steps between records), "worlds", "records",
        "nq", "nv", "nu".
      fields: the recorded arrays by name, each (records, worlds, ...).
    """

    header: dict[str, Any]
    fields: dict[str, np.ndarray]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.fields[name]


class TrajectoryWriter:
    """Writes a trajectory; a context manager. Leaving it by an exception leaves no file.

    Args:
      path: the file to write.
      header: what `Trajectory.header` says, without the number of records.
    """

    def __init__(self, path: str | os.PathLike[str], header: Mapping[str, Any]):
        self.path = Path(path)
        self.records = 0
        self._header = dict(header)
        self._shapes: dict[str, tuple[tuple[int, ...], np.dtype]] = {}

    def __enter__(self) -> "TrajectoryWriter":
        folder = self.path.resolve().parent
        self._spool = Path(tempfile.mkdtemp(prefix=f".{self.path.name}-", dir=folder))
        self._files: dict[str, Any] = {}
        return self

    def append(self, chunk: Mapping[str, Any]) -> None:
        """Adds some records: arrays (records, worlds, ...) of the same fields as before."""
        for name, values in chunk.items():
            values = np.ascontiguousarray(values)
            shape = values.shape[1:], values.dtype
            if self._shapes.setdefault(name, shape) != shape:
                raise ValueError(f"{name}: records of shape {shape}, before {self._shapes[name]}")
            if name not in self._files:
                self._files[name] = (self._spool / name).open("wb")
            values.tofile(self._files[name])
        self.records += len(values)

    def __exit__(self, kind, error, trace) -> None:
        try:
            for file in self._files.values():
                file.close()
            if kind is None:
                finished = self._spool / "finished.npz"
                self._write(finished)
                os.replace(finished, self.path)
        finally:
            shutil.rmtree(self._spool, ignore_errors=True)

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
                    with (self._spool / name).open("rb") as raw:
                        shutil.copyfileobj(raw, member, 1 << 20)


def load_trajectory(path: str | os.PathLike[str]) -> Trajectory:
    """Reads a trajectory and checks that it is whole.

    Raises:
      ValueError: the file is not a trajectory, is damaged, or of a newer version.
      OSError: the file cannot be read.
    """
    arrays = read_npz(path)
    if "header" not in arrays:
        raise ValueError(f"{path}: not a jaxsim trajectory: it has no header")
    try:
        header = json.loads(str(arrays.pop("header")))
    except json.JSONDecodeError:
        raise ValueError(f"{path}: not a jaxsim trajectory: its header is not JSON") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"{path}: not a jaxsim trajectory: its header names another format")
    if header.get("version") != VERSION:
        raise ValueError(
            f"{path}: version {header.get('version')} of the format; this jaxsim reads {VERSION}"
        )
    first = header.get("records"), header.get("worlds")
    for name in header.get("fields", ()):
        if name not in arrays:
            raise ValueError(f"{path}: damaged: the array '{name}' is missing")
        if arrays[name].shape[:2] != first:
            shape = arrays[name].shape
            raise ValueError(f"{path}: damaged: '{name}' has shape {shape}, expected {first} first")
    return Trajectory(header, {name: arrays[name] for name in header.get("fields", ())})


def read_npz(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """All arrays of an .npz file; nothing in it is ever executed.

    Raises:
      ValueError: the file is not an .npz file, or is damaged.
      OSError: the file cannot be opened.
    """
    with Path(path).open("rb"):
        pass
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path}: not an .npz file, or cut off at its end")
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (zipfile.BadZipFile, EOFError, OSError, ValueError) as error:
        raise ValueError(f"{path}: damaged .npz file: {error}") from None
