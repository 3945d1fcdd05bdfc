"""Named phases of long operations that report no progress themselves: load, trace, compile.

The code that does the work names its phases; a program with a waiting user listens to them. Without
a listener a phase costs nothing.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Listener = Callable[[str], AbstractContextManager[None]]

_listeners: list[Listener] = []
_active: list[str] = []


@contextmanager
def named_phase(name: str) -> Iterator[None]:
    """Run the enclosed block as a named phase, such as "compile the learner"."""
    with contextlib.ExitStack() as stack:
        for listener in _listeners:
            stack.enter_context(listener(name))
        _active.append(name)
        stack.callback(_active.remove, name)
        yield


def is_active(beginning: str) -> bool:
    """Return whether a phase is open whose name has this beginning."""
    return any(name.startswith(beginning) for name in _active)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Enter the context that `listener` returns for each phase, while this context is open."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
