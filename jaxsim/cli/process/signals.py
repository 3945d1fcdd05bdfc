"""Handle SIGTERM, SIGHUP and SIGINT so that a command cleans up before it ends.

Python runs signal handlers in the main thread, between two bytecode instructions: while that thread
is in the compiler, possibly for minutes, no handler runs. A second thread receives each signal
through a pipe. If the main thread does not respond in time, it cannot be unwound; the second thread
then deletes unfinished files and ends the process with the status of the signal. If a handler does
run during compilation, the compiler's threads would continue, so the handler ends the process too.
"""

import contextlib
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from jaxsim.atomic_write import discard_unfinished
from jaxsim.io.phase import is_active

# Closing a terminal does not send SIGHUP on every system.
STOP_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_GRACE_SECONDS = 0.4  # seconds in which the main thread must respond
_POLL_SECONDS = 0.01  # seconds between two checks of its response


class Stopped(KeyboardInterrupt):
    """A signal requested the command to stop."""

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def convert_stop_signals() -> Iterator[None]:
    """Convert stop signals to `Stopped`, so that every `finally` runs.

    Ctrl-C stays a KeyboardInterrupt. If the main thread does not respond, the process ends all the
    same. Signals that the caller handles himself, or ignores as `nohup` does, are unchanged.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
        return
    ours: dict[int, Any] = dict.fromkeys(STOP_SIGNALS, signal.SIG_DFL)
    ours[signal.SIGINT] = signal.default_int_handler
    ours = {n: handler for n, handler in ours.items() if signal.getsignal(n) == handler}
    answers = [-math.inf]  # times at which a handler has run

    def stop(number: int, _frame: object) -> None:
        answers.append(time.monotonic())
        if is_active("compile"):
            # the compiler's threads would continue, and crash when their caller unwinds
            _end_process_now(number)
        # One request is enough: another one would interrupt the cleanup.
        for request in ours:
            if request != signal.SIGINT:
                signal.signal(request, signal.SIG_IGN)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise Stopped(number)

    for number in ours:
        signal.signal(number, stop)
    try:
        with _watch_signals(set(ours), answers):
            yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)


@contextmanager
def _watch_signals(ours: set[int], answers: list[float]) -> Iterator[None]:
    """Start a thread that ends the process if a signal is not handled in time."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    thread = threading.Thread(target=_watch_signal_pipe, args=(reader, ours, answers), daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        writer.close()  # ends the thread
        thread.join()
        reader.close()


def _watch_signal_pipe(reader: socket.socket, ours: set[int], answers: list[float]) -> None:
    while received := reader.recv(64):
        # The handler may have run before this thread received the signal.
        earliest = time.monotonic() - _GRACE_SECONDS
        for number in filter(ours.__contains__, received):
            while answers[-1] < earliest:
                if time.monotonic() > earliest + 2 * _GRACE_SECONDS:
                    _end_process_now(number)
                time.sleep(_POLL_SECONDS)


def _end_process_now(number: int) -> None:
    """End the process without unwinding it."""
    discard_unfinished()
    interrupted = number == signal.SIGINT
    said = "interrupted" if interrupted else f"stopped by {signal.Signals(number).name}"
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"\n{said}\n")
    end_process(128 + number)


def end_process(code: int) -> NoReturn:
    """End the process at once: buffered output is flushed, nothing else is torn down."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
