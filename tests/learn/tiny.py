"""The task of tests/envs/tasks.py as a training names it: a class that takes no model."""

from envs import tasks

import jaxsim


class Hold(tasks.Hold):
    """A pendulum that is paid for being held aside."""

    def __init__(self, repeat=2):
        super().__init__(jaxsim.load_model(tasks.XML), repeat=repeat)


class Seen(Hold):
    """Sees a dict."""

    def observe(self, m, d):
        return {"place": d.qpos, "speed": d.qvel}


def number():
    """No task."""
    return 3
