"""Requests to stop, from whoever: as with Control-C, a command cleans up before it ends."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# a terminal that is closed does not send SIGHUP on every system
REQUESTS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Stopped(KeyboardInterrupt):
    """Somebody asked the command to stop."""

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def stops_in_order() -> Iterator[None]:
    """Turns requests to stop into `Stopped`, which runs every `finally` on its way.

    What the caller handles himself, or ignores as `nohup` does, stays as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
        return
    ours = [number for number in REQUESTS if signal.getsignal(number) == signal.SIG_DFL]

    def stop(number: int, _frame: object) -> None:
        # one request is enough: another one would interrupt the cleaning
        for request in ours:
            signal.signal(request, signal.SIG_IGN)
        raise Stopped(number)

    for number in ours:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
