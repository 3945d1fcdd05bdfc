"""Progress bars with rate and remaining time, and reports on phases without countable steps."""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TextIO

_BAR_WIDTH = 30
_REDRAW_SECONDS = 0.1  # seconds between updates on a terminal
_LOG_SECONDS = 10.0  # seconds between lines in a log
_SILENCE_SECONDS = 1.0  # seconds without output before a phase is reported
_PHASE_SECONDS = 0.5  # seconds between updates of a phase, on a terminal


class Progress:
    """Progress bar on a terminal; elsewhere an occasional line.

    Args:
      total: number of steps.
      worlds: worlds that advance at each step.
      stream: output stream; stderr by default.
      start: steps completed before.
      unit: name of a step.
    """

    def __init__(
        self,
        total: int,
        worlds: int,
        stream: TextIO | None = None,
        *,
        start: int = 0,
        unit: str = "steps",
    ):
        self._total, self._worlds, self._before, self._unit = total, worlds, start, unit
        self._stream = sys.stderr if stream is None else stream
        self._live = self._stream.isatty()
        self._start = self._drawn = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Return the seconds since the start."""
        return time.perf_counter() - self._start

    def show(self, done: int) -> None:
        """Draw the bar after `done` steps, unless it was drawn just before."""
        now = time.perf_counter()
        if done < self._total and now - self._drawn < (
            _REDRAW_SECONDS if self._live else _LOG_SECONDS
        ):
            return
        self._drawn = now
        text = self._line(done)
        self._write(f"\r{text}" if self._live else f"{text}\n")

    def say(self, text: str) -> None:
        """Write a permanent line; the bar continues below it."""
        self._write(f"\r{text:<100}\n" if self._live else f"{text}\n")

    def close(self) -> None:
        """End the line."""
        if self._live:
            self._write("\n")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):  # the terminal is closed
            self._stream.write(text)
            self._stream.flush()

    def _line(self, done: int) -> str:
        filled = _BAR_WIDTH * done // self._total
        rate = (done - self._before) / max(self.seconds, 1e-9)
        left = (self._total - done) / rate if rate else 0.0
        return (
            f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {done}/{self._total} {self._unit}, "
            f"{format_count(rate * self._worlds)} world {self._unit}/s, {left:.0f} s left "
        )


class Phases:
    """Reporter of phases that take more than a second, so that no command is silent for long.

    On a terminal one line counts the seconds; elsewhere a line is written after a second, and
    further lines at intervals. The last line gives the duration. A thread writes it while the main
    thread is in the compiler.

    Args:
      stream: output stream; stderr by default.
      patience: seconds that a phase may take without output.
    """

    def __init__(self, stream: TextIO | None = None, patience: float = _SILENCE_SECONDS):
        self._stream = sys.stderr if stream is None else stream
        self._live = self._stream.isatty()
        self._patience = patience

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Report on a phase: `with phases("compile the rollout"):`."""
        began, done = time.perf_counter(), threading.Event()
        thread = threading.Thread(target=self._watch, args=(name, began, done), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            seconds = time.perf_counter() - began
            if seconds >= self._patience:
                end = "" if sys.exc_info()[0] is None else ", not finished"
                self._write(f"{name}: {seconds:.1f} s{end}", last=True)

    def _watch(self, name: str, began: float, done: threading.Event) -> None:
        wait = self._patience
        while not done.wait(wait):
            self._write(f"{name} ... {time.perf_counter() - began:.0f} s")
            wait = _PHASE_SECONDS if self._live else _LOG_SECONDS

    def _write(self, text: str, last: bool = False) -> None:
        with contextlib.suppress(OSError, ValueError):  # the terminal is closed
            self._stream.write((f"\r{text:<60}" + "\n" * last) if self._live else f"{text}\n")
            self._stream.flush()


def format_count(x: float) -> str:
    """Return a number with a metric suffix: 31.4k, 2.1M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if x >= limit:
            return f"{x / limit:.3g}{unit}"
    return f"{x:.3g}"


def format_bytes(n: float) -> str:
    """Return a number of bytes with a unit: 34.1 kB."""
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n >= limit:
            return f"{n / limit:.3g} {unit}"
    return f"{n:.0f} bytes"
