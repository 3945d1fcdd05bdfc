"""Log of a point: the output of its training, the exit code, and a lock while it runs.

The training writes to an open file that it inherits, and this file is locked. The operating system
keeps the lock as long as the training or the sweep lives, and releases it when both are killed: a
second sweep cannot start a training that a killed one has left behind.
"""

import re
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

LOG_FILE = "log.txt"
_MAX_TAIL_BYTES = 2**13  # bytes that are read from the end of a log
_LOCK_TRIES = 3  # a table that is written at the same time holds the lock for an instant
_RETRY_SECONDS = 0.05
_EXIT_LINE = re.compile(r"exit code (-?\d+)")


def open_log(folder: Path, command: Sequence[str]) -> IO[bytes] | None:
    """Create the folder of a point and open its log, for the output of a command.

    Returns:
      The locked file, to which the command is written; None if a training is writing to it.

    Raises:
      OSError: the file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / LOG_FILE).open("ab")
    for _ in range(_LOCK_TRIES):
        if _lock(file, alone=True):
            file.write(f"$ {shlex.join(command)}\n".encode("utf-8", "backslashreplace"))
            file.flush()
            return file
        time.sleep(_RETRY_SECONDS)
    file.close()
    return None


def close_log(file: IO[bytes], code: int) -> None:
    """Write the exit code of a training and release the lock."""
    file.write(f"\nexit code {code}\n".encode())
    file.close()


def is_running(folder: Path) -> bool:
    """Return whether a training is writing to the log of a point."""
    try:
        with (folder / LOG_FILE).open("rb") as file:
            return not _lock(file, alone=False)
    except OSError:
        return False


def read_end(folder: Path, count: int) -> tuple[int | None, list[str]]:
    """Return the end of a log.

    Returns:
      The exit code of the last training, None if it has none, and its last lines, at most `count`.
    """
    try:
        with (folder / LOG_FILE).open("rb") as file:
            file.seek(max(file.seek(0, 2) - _MAX_TAIL_BYTES, 0))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return None, []
    lines = [line.rstrip() for line in re.split(r"[\r\n]+", text) if line.strip()]
    found = _EXIT_LINE.fullmatch(lines[-1]) if lines else None
    return (int(found[1]), lines[-1 - count : -1]) if found else (None, lines[-count:])


def _lock(file: IO[bytes], *, alone: bool) -> bool:
    """Lock an open file, until it is closed; return False if another process has locked it."""
    if sys.platform != "win32":
        import fcntl

        kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # the file system has no locks
            return True
    return True
