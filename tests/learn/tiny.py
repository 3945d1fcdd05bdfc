"""The task of tests/envs/tasks.py as a training names it: a class that takes no model."""

import jax.numpy as jnp
from envs import tasks

import jaxsim

# Settings of a short training, after the line of the task.
SHORT_TRAINING = """\
steps = 4_000
every = 4_000
seeds = 2
[worlds]
count = 16
length = 25
[ppo]
num_steps = 16
num_minibatches = 2
hidden = [8]
"""


class Hold(tasks.Hold):
    """A pendulum that is paid for being held aside."""

    def __init__(self, repeat=2):
        super().__init__(jaxsim.load_model(tasks.XML), repeat=repeat)


class Seen(Hold):
    """Sees a dict."""

    def observe(self, m, d):
        return {"place": d.qpos, "speed": d.qvel}


class Privileged(Hold):
    """A policy that sees the angle, a critic that sees the speed and the friction too."""

    def observe(self, m, d):
        seen = {"angle": jnp.concatenate([jnp.cos(d.qpos), jnp.sin(d.qpos)])}
        return seen | {"privileged_speed": d.qvel, "privileged_damping": m.dof_damping}


class Pair(Hold):
    """Is paid two numbers, which no learner takes."""

    def reward(self, m, before, after, action):
        return jnp.ones(2)


def number():
    """No task."""
    return 3
