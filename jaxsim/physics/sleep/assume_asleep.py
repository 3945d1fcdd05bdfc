"""Trace-time knowledge that a program runs only on states in which every tree sleeps."""

from contextlib import AbstractContextManager

import jax

_all_sleep = jax.make_user_context(default_value=False)


def assume_fully_asleep() -> AbstractContextManager:
    """Return a context for tracing programs of states in which every tree of every world sleeps."""
    return _all_sleep(True)


def fully_asleep() -> bool:
    """Return True if the traced program only runs where every tree sleeps."""
    return bool(_all_sleep.value)
