"""Atomic file writes: a file is complete or absent.

A file is written under a unique name in the folder of its target, flushed to the disk and renamed,
so that readers see the old file or the new one. A symbolic link is kept: the file it points to is
replaced. Names of unfinished files are recorded, so that a process that must end at once can delete
them.
"""

import contextlib
import errno
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MAX_REPEATED_NAME = 100  # characters of a target's name that its temporary name repeats

_TEMPORARY = re.compile(r"\..+-[0-9a-f]{8}($|\.)")
_unfinished: set[Path] = set()


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file atomically; text in UTF-8.

    Raises:
      OSError: it cannot be written; an existing file is unchanged.
    """
    data = content.encode() if isinstance(content, str) else content
    with whole_file(path) as part:
        part.write_bytes(data)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary name to write to; on exit, the file is renamed to `path`.

    The temporary name is unique and has the extension of the target. After an exception the
    temporary file is deleted, and an existing file is unchanged.

    Raises:
      OSError: the file cannot be written.
    """
    target = Path(os.path.realpath(path))
    _check_plain(path, target)
    with unfinished(temporary_name(target)) as part:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, part)
        part.replace(target)


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """Yield the name of a file or folder that is deleted on exit, unless `keep_unfinished` was
    called."""
    _unfinished.add(path)
    try:
        yield path
    finally:
        if path in _unfinished:
            _delete(path)
            _unfinished.discard(path)


def keep_unfinished(path: Path) -> None:
    """Keep an unfinished file, as the only result of some work."""
    _unfinished.discard(path)


def discard_unfinished() -> None:
    """Delete all unfinished files; for a process that ends without unwinding."""
    for path in list(_unfinished):
        _delete(path)


def temporary_name(target: Path) -> Path:
    """Return an unused hidden name in the folder of a target, with its extension."""
    stem = target.name.removesuffix(target.suffix)[:_MAX_REPEATED_NAME]
    return target.with_name(f".{stem}-{secrets.token_hex(4)}{target.suffix}")


def discard_left_over(folder: Path) -> None:
    """Delete unfinished files that killed processes have left in one of our folders."""
    for path in folder.iterdir():
        if _TEMPORARY.match(path.name) and path not in _unfinished:
            _delete(path)


def target_of(path: str | os.PathLike[str]) -> Path:
    """Return the file that writing to a path creates or replaces, links followed; test its folder.

    Raises:
      OSError: there can be no such file, or its folder is not writable.
    """
    target = Path(os.path.realpath(path))
    _check_plain(path, target)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder '{target.parent}'; create it first")
    try:
        with tempfile.NamedTemporaryFile(
            prefix=f".{target.name[:_MAX_REPEATED_NAME]}-", dir=target.parent
        ) as trial:
            trial.write(b"\0")
            trial.flush()
    except OSError as error:
        raise OSError(f"'{target.parent}' cannot be written to: {error.strerror}") from None
    return target


def _check_plain(path: str | os.PathLike[str], target: Path) -> None:
    """Reject an existing path that is no regular file: folders, devices, circular links."""
    if target.is_symlink():
        raise OSError(errno.ELOOP, f"'{path}' is a link that leads to itself; name another file")
    if target.is_dir():
        raise IsADirectoryError(f"'{path}' is a folder; name a file")
    if target.exists() and not target.is_file():
        raise OSError(f"'{path}' is no regular file; name another one")


def _delete(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
