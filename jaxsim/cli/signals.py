"""Requests to stop, by a terminal, a user or a system: a command cleans up before it ends.

Python runs signal handlers in the main thread, between two instructions of its own: while that
thread is in the compiler, which may be minutes, none runs. A second thread receives each signal
through a pipe. If the main thread does not answer soon, nothing of it can be unwound; then the
second thread deletes unfinished files and ends the process, with the status that it would have had.
Where the compiler does let a handler run, its threads go on, so the handler ends the process too.
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

# a terminal that is closed does not send SIGHUP on every system
REQUESTS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
GRACE = 0.4  # seconds in which the main thread has to answer
TICK = 0.01  # seconds between two looks at its answer


class Stopped(KeyboardInterrupt):
    """Somebody asked the command to stop."""

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def stops_in_order() -> Iterator[None]:
    """Convert requests to stop into `Stopped`, which runs every `finally` on its way.

    A Control-C stays a KeyboardInterrupt. Where the main thread does not answer, the process ends
    all the same. What the caller handles himself, or ignores as `nohup` does, stays as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
        return
    ours: dict[int, Any] = dict.fromkeys(REQUESTS, signal.SIG_DFL)
    ours[signal.SIGINT] = signal.default_int_handler
    ours = {n: handler for n, handler in ours.items() if signal.getsignal(n) == handler}
    answers = [-math.inf]  # times at which a handler has run

    def stop(number: int, _frame: object) -> None:
        answers.append(time.monotonic())
        if is_active("compile"):
            _end(number)  # threads of the compiler go on, and crash where its caller unwinds
        # one request is enough: another one would interrupt the cleaning
        for request in ours:
            if request != signal.SIGINT:
                signal.signal(request, signal.SIG_IGN)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise Stopped(number)

    for number in ours:
        signal.signal(number, stop)
    try:
        with _watched(set(ours), answers):
            yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)


@contextmanager
def _watched(ours: set[int], answers: list[float]) -> Iterator[None]:
    """Let a thread end the process where a signal of ours is not answered."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    thread = threading.Thread(target=_watch, args=(reader, ours, answers), daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        writer.close()  # ends the thread
        thread.join()
        reader.close()


def _watch(reader: socket.socket, ours: set[int], answers: list[float]) -> None:
    while received := reader.recv(64):
        # the handler may have run before this thread was told
        earliest = time.monotonic() - GRACE
        for number in filter(ours.__contains__, received):
            while answers[-1] < earliest:
                if time.monotonic() > earliest + 2 * GRACE:
                    _end(number)
                time.sleep(TICK)


def _end(number: int) -> None:
    """End the process without unwinding it."""
    discard_unfinished()
    interrupted = number == signal.SIGINT
    said = "interrupted" if interrupted else f"stopped by {signal.Signals(number).name}"
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"\n{said}\n")
    leave(128 + number)


def leave(code: int) -> NoReturn:
    """End the process at once: what was printed is written, nothing is taken down."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
