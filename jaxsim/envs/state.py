"""State of an environment between two actions."""

from collections.abc import Iterable
from typing import Any

import jax
from flax import struct

from jaxsim.model.data import ALWAYS_KEPT, WAITING_FIELDS, Data
from jaxsim.physics.pipeline.sleeping import PASSIVE_AND_BIAS_FORCES

Observation = jax.Array | dict[str, jax.Array]

# fields of Data that are the state and inputs of a world; a step computes all others from them
_WARNING_FIELDS = ("warning", "warning_lastinfo")
KEPT_STATE_FIELDS = ALWAYS_KEPT - {*_WARNING_FIELDS, "solver_niter"}
# results that sleeping trees keep, which belong to the state of trees that begin asleep
_ASLEEP_FIELDS = (*WAITING_FIELDS, *PASSIVE_AND_BIAS_FORCES, "sensordata")


class State(struct.PyTreeNode):
    """A world and the last observation and reward of its agent, with MuJoCo Playground's names.

    Attributes:
      data: the physical state.
      obs: observation: an array, or a dict of arrays.
      reward: reward of the last action.
      done: 1 where the episode has ended, else 0, in the precision of the reward.
      metrics: numbers to log, by name.
      info: values that wrappers and tasks remember; `terminated`, `truncated`, `diverged` (bool),
        and `steps`, the actions of this episode so far.
    """

    data: Data
    obs: Observation
    reward: jax.Array
    done: jax.Array
    metrics: dict[str, jax.Array]
    info: dict[str, Any]


def select_tree(condition: jax.Array, a: Any, b: Any) -> Any:
    """Return `a` where a condition (a scalar) holds, else `b`, for trees of the same form."""
    return jax.tree.map(lambda x, y: x if x is y else jax.numpy.where(condition, x, y), a, b)


def with_state_of(d: Data, other: Data, where: jax.Array) -> Data:
    """Return a world with the state of another where a condition holds, and unchanged results."""
    return _select_fields(d, other, where, KEPT_STATE_FIELDS)


def reset_where(d: Data, fresh: Data, where: jax.Array) -> Data:
    """Return a world that is another at its start where a condition holds, ready for a step.

    Results are unchanged, except those that trees keep which begin asleep.
    """
    return _select_fields(
        d,
        fresh,
        where,
        KEPT_STATE_FIELDS if fresh.tree_start is None else KEPT_STATE_FIELDS.union(_ASLEEP_FIELDS),
    )


def _select_fields(d: Data, other: Data, where: jax.Array, names: Iterable[str]) -> Data:
    changed = {
        name: select_tree(where, getattr(other, name), getattr(d, name))
        for name in sorted(names)  # sorted, since programs are cached by their text
        if getattr(d, name) is not None
    }
    return d.replace(**changed)


def with_warnings_of(d: Data, other: Data) -> Data:
    """Return a world that continues the warning counts of another."""
    return d.replace(**{name: getattr(other, name) for name in _WARNING_FIELDS})


def strip_results(d: Data) -> Data:
    """Return a world without results, so that results of another state cannot be read."""
    kept = KEPT_STATE_FIELDS | {*_WARNING_FIELDS}
    gone = [n for n, f in Data.fields.items() if n not in kept and not f.static]
    return d.replace(**{name: None for name in gone if getattr(d, name) is not None})
