"""What is known of sleep when a program is traced: whether it runs only where everything sleeps."""

from contextlib import AbstractContextManager

import jax

_all_sleep = jax.make_user_context(default_value=False)


def where_all_sleep() -> AbstractContextManager:
    """A context for programs of states in which every tree of every world sleeps, and goes on."""
    return _all_sleep(True)


def all_sleep() -> bool:
    """Whether what is traced is only run where everything sleeps."""
    return bool(_all_sleep.value)
