"""Phases of a long work that give no sign of life by themselves: loading, tracing, compiling.

The code that does the work names its phases; a program that has a user waiting listens to them.
Without a listener a phase costs nothing.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Listener = Callable[[str], AbstractContextManager[None]]

_listeners: list[Listener] = []
_active: list[str] = []


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Do some work as a named phase: "compile the learner", say."""
    with contextlib.ExitStack() as stack:
        for listener in _listeners:
            stack.enter_context(listener(name))
        _active.append(name)
        stack.callback(_active.remove, name)
        yield


def is_active(beginning: str) -> bool:
    """Return whether a phase is open whose name begins so."""
    return any(name.startswith(beginning) for name in _active)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Enter the context that `listener` makes of the name of each phase while this one is open."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
