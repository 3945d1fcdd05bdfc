"""What an environment carries from one action to the next."""

from collections.abc import Iterable
from typing import Any

import jax
from flax import struct

from jaxsim.model.data import ALWAYS_KEPT, WAITING_FIELDS, Data
from jaxsim.physics.forward import PASSIVE_AND_BIAS_FORCES

Observation = jax.Array | dict[str, jax.Array]

# what of Data is the state of a world and its inputs; all the rest follows from it in a step
_WARNING_FIELDS = ("warning", "warning_lastinfo")
KEPT_STATE_FIELDS = ALWAYS_KEPT - {*_WARNING_FIELDS, "solver_niter"}
# results that a tree that sleeps keeps as they were, and so a state of trees that begin asleep has
_ASLEEP_FIELDS = (*WAITING_FIELDS, *PASSIVE_AND_BIAS_FORCES, "sensordata")


class State(struct.PyTreeNode):
    """A world and what its agent was told last. The names are those of MuJoCo Playground.

    Attributes:
      data: the physical state.
      obs: what the agent sees: an array, or a dict of arrays.
      reward: of the last action.
      done: 1 where the episode has ended, else 0, in the reward's precision.
      metrics: numbers worth a curve, by name.
      info: what wrappers and tasks remember; `terminated`, `truncated`, `diverged` (bool), and
        `steps`, the actions of this episode so far.
    """

    data: Data
    obs: Observation
    reward: jax.Array
    done: jax.Array
    metrics: dict[str, jax.Array]
    info: dict[str, Any]


def select_tree(condition: jax.Array, a: Any, b: Any) -> Any:
    """`a` where a condition (a scalar) holds, else `b`, for trees of the same form."""
    return jax.tree.map(lambda x, y: x if x is y else jax.numpy.where(condition, x, y), a, b)


def with_state_of(d: Data, other: Data, where: jax.Array) -> Data:
    """A world whose state is that of another where a condition holds, with results as they are."""
    return _with(d, other, where, KEPT_STATE_FIELDS)


def reset_where(d: Data, fresh: Data, where: jax.Array) -> Data:
    """Return a world that is another at its start where a condition holds, ready for a step.

    Results stay as they are, but those that trees keep which begin asleep.
    """
    return _with(
        d,
        fresh,
        where,
        KEPT_STATE_FIELDS if fresh.tree_start is None else KEPT_STATE_FIELDS.union(_ASLEEP_FIELDS),
    )


def _with(d: Data, other: Data, where: jax.Array, names: Iterable[str]) -> Data:
    changed = {
        name: select_tree(where, getattr(other, name), getattr(d, name))
        for name in sorted(names)  # in one order in all processes: programs are cached by text
        if getattr(d, name) is not None
    }
    return d.replace(**changed)


def with_warnings_of(d: Data, other: Data) -> Data:
    """A world that goes on counting what went wrong where another has stopped."""
    return d.replace(**{name: getattr(other, name) for name in _WARNING_FIELDS})


def strip_results(d: Data) -> Data:
    """A world without its results, so that nobody reads what belongs to another moment."""
    kept = KEPT_STATE_FIELDS | {*_WARNING_FIELDS}
    gone = [n for n, f in Data.fields.items() if n not in kept and not f.static]
    return d.replace(**{name: None for name in gone if getattr(d, name) is not None})
