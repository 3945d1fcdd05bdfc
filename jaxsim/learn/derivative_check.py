"""Check the derivatives of a task's reward and observations against central differences.

First-order learners differentiate `reward` and `observe`. Comparisons, rounded numbers and `argmax`
have derivative 0, `sqrt` and norms at 0 have none: a policy then learns nothing from that part,
without any error. The check moves random states along random directions, with actions, and compares
values, slopes and differences of every part. The physics is not involved: results are recomputed
from the moved state (`refresh_world`), forces and accelerations are those of the start.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.derivative.tangent import apply_tangent, tangent_size
from jaxsim.envs.core.current_results import refresh_world
from jaxsim.envs.env import Env
from jaxsim.envs.state import strip_results
from jaxsim.physics.public.api import forward
from jaxsim.transforms.platform import quick_jit

_STATES = 64  # number of random states
_SPREAD = 0.3  # standard deviation of the states around those of the start, in tangent coordinates
_FAR = 0.3  # distance along the directions at which a value varies
_STEP = 1e-3  # step of the central differences, along directions of unit deviation
_MAX_DIFFERENCE = 0.1  # largest difference of a slope, relative to the usual slope of that part
_MAX_SHARE = 0.1  # share of the states in which a slope may differ: kinks lie between the steps
_REMEDY = "learn it by ppo or sac, or make it a smooth function of the state"


class _Samples(NamedTuple):
    """Values of all parts, and their derivatives along the directions, (states, parts)."""

    value: np.ndarray
    far: np.ndarray  # values at a distance along the directions
    slope: np.ndarray
    difference: np.ndarray


def check_task_derivatives(env: Env, seed: int = 0) -> list[str]:
    """Return a message for each kind of fault in the derivatives of a task; [] if there is none.

    Args:
      env: the task.
      seed: random seed of the states and directions.
    """
    keys = jax.random.split(jax.random.key(seed), _STATES)
    sample = quick_jit(jax.vmap(lambda key: _sample(env, key)))
    samples = _Samples(*jax.device_get(sample(keys)))
    names = _part_names(env)
    messages = []
    for problem, parts in _faults(samples).items():
        found = [names[i] for i in np.flatnonzero(parts)]
        if found:
            more = f" and {len(found) - 6} more" if len(found) > 6 else ""
            messages.append(f"{', '.join(found[:6])}{more}: {problem}; {_REMEDY}")
    return messages


def _faults(samples: _Samples) -> dict[str, np.ndarray]:
    """Return which parts have a fault, bool (parts,), by its description."""
    value, far, slope, difference = samples
    bad = ~np.isfinite(slope).all(axis=0)
    slope = np.where(np.isfinite(slope), slope, 0)
    # A value that does not depend on the moved state, such as a command, has no derivative either.
    varies = (np.abs(far - value) > 1e-6 * np.maximum(np.abs(value), 1e-30)).any(axis=0)
    flat = ~bad & varies & (slope == 0).all(axis=0)
    # A slope is wrong if it differs by more than rounding and a share of the usual slope.
    usual = np.sqrt(np.mean(slope**2 + difference**2, axis=0))
    rounding = 8 * np.finfo(value.dtype).eps * np.abs(value) / _STEP
    wrong = np.abs(slope - difference) > _MAX_DIFFERENCE * usual + rounding
    jumps = ~bad & ~flat & (wrong.mean(axis=0) > _MAX_SHARE)
    return {
        "the derivative is not finite in some states": bad,
        "the derivative is 0 although the value varies": flat,
        "the derivative differs from finite differences": jumps,
    }


def _sample(env: Env, key: jax.Array) -> tuple[jax.Array, ...]:
    """Return `_Samples` of all parts in one random state."""
    m = env.m
    start_key, place_key, way_key, action_key, push_key = jax.random.split(key, 5)
    d = env.start(m, env.at_rest(m), start_key)
    size, dtype = tangent_size(m), d.qpos.dtype
    d = forward(m, apply_tangent(m, d, _SPREAD * jax.random.normal(place_key, (size,), dtype)))
    before, way = strip_results(d), jax.random.normal(way_key, (size,), dtype)
    action = _SPREAD * jax.random.normal(action_key, (env.action_size,), dtype)
    push = jax.random.normal(push_key, (env.action_size,), dtype)

    def parts(t: jax.Array) -> jax.Array:
        """Return reward and observations of a state that is moved along the direction."""
        after = refresh_world(m, apply_tangent(m, d, t * way))
        reward = env.reward(m, before, after, action + t * push)
        seen = jax.tree.leaves(env.observe(m, after))
        flat = [jnp.ravel(x).astype(dtype) for x in (reward, *seen)]
        return jnp.concatenate(flat)

    zero = jnp.zeros((), dtype)
    value, slope = jax.jvp(parts, (zero,), (zero + 1,))
    difference = (parts(zero + _STEP) - parts(zero - _STEP)) / (2 * _STEP)
    return value, parts(zero + _FAR), slope, difference


def _part_names(env: Env) -> list[str]:
    """Return the names of the reward and of all entries of the observations, in their order."""
    shapes: Any = jax.eval_shape(env.observe, env.m, env.begin)
    named = sorted(shapes.items()) if isinstance(shapes, Mapping) else [("observation", shapes)]
    entries = [f"{name}[{i}]" for name, shape in named for i in range(int(np.prod(shape.shape)))]
    return ["reward", *entries]
