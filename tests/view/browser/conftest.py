"""No test leaves a server or a thread of ours behind."""

import threading

import pytest


@pytest.fixture(autouse=True)
def no_thread_is_left():
    before = set(threading.enumerate())
    yield
    left = [t for t in set(threading.enumerate()) - before if t.is_alive() and not _of_a_pool(t)]
    for thread in left:
        thread.join(timeout=5)
    assert not [t for t in left if t.is_alive()]


def _of_a_pool(thread: threading.Thread) -> bool:
    """Idle threads of a pool that was shut down end by themselves."""
    return thread.name.startswith("ThreadPoolExecutor")
