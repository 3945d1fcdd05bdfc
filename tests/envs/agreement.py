"""Shared parts of task tests: one program for all tasks of a robot, and batches of starts."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import ks_2samp

from jaxsim.envs import Env
from jaxsim.envs.tasks import make


class Robot(NamedTuple):
    """Tasks of one robot by name, its first states, and one action of all tasks."""

    tasks: dict[str, Env]
    reset: object
    act: object


def robot(names: Sequence[str]) -> Robot:
    """Tasks that have the same model, in one program."""
    tasks = {name: make(name) for name in names}
    first = tasks[names[0]]
    form = jax.eval_shape(first.reset, jax.random.key(0))

    def act(d, action):
        after = first.advance(first.m, first.control(first.m, d, action))
        zero = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), form.replace(data=None))
        told = {n: t.evaluate_step(t.m, zero, d, after, action) for n, t in tasks.items()}
        return after, {n: (t.obs, t.reward, t.info["terminated"]) for n, t in told.items()}

    return Robot(tasks, jax.jit(first.reset), jax.jit(act))


def same_distribution(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Column by column, by the test of Kolmogorov and Smirnov; what does not vary is the same.

    Samples of one distribution are apart by more than 2.6 with a chance of 3e-6.
    """
    assert ours.shape[1] == theirs.shape[1]
    for a, b in zip(ours.T, theirs.T, strict=True):
        if np.ptp(b) == 0:
            np.testing.assert_allclose(a, b[0], atol=1e-15)
            continue
        apart = ks_2samp(a, b).statistic
        assert apart * np.sqrt(len(a) * len(b) / (len(a) + len(b))) < 2.6
