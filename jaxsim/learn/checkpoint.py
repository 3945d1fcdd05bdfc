"""Checkpoints of a training, by orbax: the whole state, with a checksum of every file.

    runs/hopper/checkpoints/50176/
      checksums.json     SHA-256 of the other files, shapes of the state, rows of the curve so far
      ...                files of orbax

A checkpoint is written under a temporary name, completed by `checksums.json` and renamed: a folder
without that file is not a checkpoint. On restoring, every file is compared with its checksum before
orbax reads any, so any damage is detected; the previous checkpoint is used instead.
"""

import contextlib
import hashlib
import json
import secrets
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.atomic_write import discard_left_over, temporary_name, unfinished
from jaxsim.batch.processes import is_writer, to_host
from jaxsim.errors import InputError, LocatedProblem, SourceLocation
from jaxsim.optional import require

orbax = require("orbax.checkpoint", "rl")

_CHECKSUM_FILE = "checksums.json"
FORMAT, VERSION = "jaxsim checkpoint", 1
_MAX_STEP_DIGITS = 18  # digits of a step: longer names are not checkpoints


class _DamagedError(Exception):
    """A damaged checkpoint; the message names the damage."""


class Checkpoints:
    """Checkpoints of a run.

    Args:
      folder: their folder; created by the first `save`.
      keep: number of the last checkpoints that are kept.
    """

    def __init__(self, folder: Path, keep: int = 1):
        self.folder, self._keep = folder.absolute(), keep

    def steps(self) -> list[int]:
        """Return the steps of all checkpoints, in order; their files are not read."""
        return [step for step in self._entries() if (self._path(step) / _CHECKSUM_FILE).is_file()]

    def any(self) -> bool:
        """Return whether there are checkpoints, damaged ones included."""
        return bool(self._entries())

    def save(self, step: int, state: Any, rows: Sequence[dict[str, Any]] = ()) -> None:
        """Write the state of a step; a failed save leaves nothing behind.

        All processes must call it; process 0 writes. The files do not depend on the devices. An
        existing folder of that name, which must be damaged, is moved aside.

        Args:
          step: step of the state.
          state: a pytree of arrays.
          rows: rows of the curve up to this step.

        Raises:
          InputError: the checkpoint cannot be written.
        """
        numbers = {name: _leaf_numbers(x) for name, x in _named_leaves(state).items()}
        arrays = {name: np.asarray(x) for name, x in to_host(numbers).items()}
        if not is_writer():
            return
        final = self._path(step)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            discard_left_over(self.folder)
            with unfinished(temporary_name(final)) as part:
                saver = _make_checkpointer()
                saver.save(part, args=orbax.args.StandardSave(arrays))
                _write_checksums(part, step, arrays, rows)
                if final.exists() or final.is_symlink():
                    final.rename(final.with_name(f"{step}.damaged-{secrets.token_hex(4)}"))
                part.rename(final)
        except Exception as error:  # orbax and its libraries raise errors of many types
            raise InputError(
                LocatedProblem(
                    SourceLocation(str(self.folder)),
                    f"checkpoint {step} cannot be written: {_reason(error)}; free disk space, then "
                    "continue with --resume",
                )
            ) from error
        for old in [s for s in self.steps() if s <= step][: -self._keep]:
            with contextlib.suppress(OSError), unfinished(temporary_name(self._path(old))) as gone:
                self._path(old).rename(gone)

    def restore(
        self, like: Any, step: int | None = None, tell: Callable[[str], None] = warnings.warn
    ) -> tuple[int, Any]:
        """Return a saved state and its step.

        Args:
          like: a state of the same form, arrays or their shapes.
          step: step of the checkpoint; None: the last intact one.
          tell: called with a message for each damaged checkpoint that is skipped.

        Raises:
          InputError: there is no such checkpoint, it has another form, or none is intact.
        """
        step, state, _ = self.restore_with_rows(like, step, tell)
        return step, state

    def restore_with_rows(
        self, like: Any, step: int | None = None, tell: Callable[[str], None] = warnings.warn
    ) -> tuple[int, Any, list[dict[str, Any]]]:
        """Return the results of `restore`, and the rows of the curve up to the step."""
        entries = self._entries()
        if not entries or (step is not None and step not in entries):
            steps = self.steps()
            have = f"there are {', '.join(map(str, steps))}" if steps else "there are none"
            what = "no checkpoint" if step is None else f"no checkpoint of step {step}"
            raise self._error(f"{what}; {have}")
        faults: list[str] = []
        for candidate in reversed(entries) if step is None else [step]:
            try:
                state, rows = self._restore(candidate, like)
            except _DamagedError as error:
                faults.append(f"checkpoint {candidate} is damaged: {error}")
                continue
            for fault in faults:
                tell(f"{self.folder}: {fault}; continuing from {candidate}")
            return candidate, state, rows
        remedy = "" if step is None else f"; there are {', '.join(map(str, self.steps()))}"
        raise self._error("; ".join(faults) + (remedy or "; no other is left"))

    def _restore(self, step: int, like: Any) -> tuple[Any, list[dict[str, Any]]]:
        """Return the state of a step and its rows, after checking every file."""
        try:
            content = _verify_checksums(self._path(step), step)
        except OSError as error:
            raise _DamagedError(_reason(error)) from None
        shapes = {name: jax.eval_shape(_leaf_numbers, x) for name, x in _named_leaves(like).items()}
        expected = _shapes(shapes)
        if content["shapes"] != expected:
            saved = content["shapes"]
            name = next(n for n in {**saved, **expected} if saved.get(n) != expected.get(n))
            raise self._error(
                f"checkpoint {step} has other settings: {name} is {_format_shape(saved.get(name))} "
                f"there, {_format_shape(expected.get(name))} with these"
            )
        try:
            reader = _make_checkpointer()
            saved = reader.restore(self._path(step), args=orbax.args.StandardRestore(shapes))
        # intact and yet unreadable, for example by another version of orbax
        except Exception as error:
            raise _DamagedError(f"orbax cannot read it: {_reason(error)}") from error
        leaves, form = jax.tree.flatten_with_path(like)
        restored = [_restore_leaf(x, saved.get(jax.tree_util.keystr(p))) for p, x in leaves]
        return jax.tree.unflatten(form, restored), content["rows"]

    def _entries(self) -> list[int]:
        """Return the steps of all entries named like a checkpoint, in order."""
        try:
            names = [entry.name for entry in self.folder.iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._error(f"cannot be read: {_reason(error)}") from None
        digits = [n for n in names if n.isascii() and n.isdigit() and len(n) <= _MAX_STEP_DIGITS]
        return sorted(int(name) for name in digits if name == str(int(name)))

    def _path(self, step: int) -> Path:
        return self.folder / str(step)

    def _error(self, message: str) -> InputError:
        return InputError(LocatedProblem(SourceLocation(str(self.folder)), message))


def _make_checkpointer() -> Any:
    """Return a Checkpointer of orbax that does not wait for other processes: arrays are whole."""
    own = jax.process_index()
    alone = orbax.options.MultiprocessingOptions(
        primary_host=own, active_processes={own}, barrier_sync_key_prefix=f"process-{own}"
    )
    handler = orbax.StandardCheckpointHandler(multiprocessing_options=alone)
    return orbax.Checkpointer(handler, multiprocessing_options=alone)


def _write_checksums(folder: Path, step: int, arrays: dict[str, Any], rows: Any) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    content = {
        "format": FORMAT,
        "version": VERSION,
        "step": step,
        "shapes": _shapes(arrays),
        "rows": list(rows),
        "files": {path.relative_to(folder).as_posix(): _digest(path) for path in files},
    }
    text = json.dumps({**content, "sha256": _digest_of(content)}, indent=1)
    (folder / _CHECKSUM_FILE).write_text(text + "\n", encoding="utf-8")


def _verify_checksums(folder: Path, step: int) -> Any:
    """Return the content of checksums.json, after verifying it and all files."""
    if not folder.is_dir():
        raise _DamagedError("it is not a folder")
    if not (folder / _CHECKSUM_FILE).is_file():
        raise _DamagedError(f"it has no {_CHECKSUM_FILE}")
    try:
        content = json.loads((folder / _CHECKSUM_FILE).read_bytes())
        own = content.pop("sha256")
        whole = own == _digest_of(content)
    except (ValueError, RecursionError, TypeError, AttributeError, KeyError):
        whole = False
    if not whole or content.get("format") != FORMAT:
        raise _DamagedError(f"{_CHECKSUM_FILE} has been modified")
    if content["version"] != VERSION:
        raise _DamagedError(f"it has version {content['version']}; this jaxsim reads {VERSION}")
    if content["step"] != step:
        raise _DamagedError(f"it is of step {content['step']}")
    for name, digest in content["files"].items():
        if not (folder / name).is_file():
            raise _DamagedError(f"the file {name} is missing")
        if _digest(folder / name) != digest:
            raise _DamagedError(f"the file {name} has been modified")
    return content


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest_of(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _shapes(arrays: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the type and shape of each leaf, in JSON form."""
    return {name: [str(x.dtype), *map(int, x.shape)] for name, x in arrays.items()}


def _format_shape(shape: list[Any] | None) -> str:
    return "missing" if shape is None else f"{shape[0]}{shape[1:]}"


def _reason(error: BaseException) -> str:
    """Return the message of an error, on one line."""
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(said).strip().splitlines()[0][:200]


def _named_leaves(state: Any) -> dict[str, Any]:
    """Return the leaves by their path, without those of size zero, which orbax rejects."""
    leaves = jax.tree.leaves_with_path(state)
    return {jax.tree_util.keystr(path): x for path, x in leaves if x.size}


def _is_key(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def _leaf_numbers(x: Any) -> Any:
    """Return a leaf as plain numbers; random keys become their data."""
    return jax.random.key_data(x) if _is_key(x) else x


def _restore_leaf(like: Any, saved: Any) -> jax.Array:
    """Return a leaf from its saved numbers; leaves of size zero were not saved."""
    if saved is None:
        return jnp.zeros(like.shape, like.dtype)
    if _is_key(like):
        return jax.random.wrap_key_data(jnp.asarray(saved))
    return jnp.asarray(saved)
