"""Forward sensitivities of rollouts of many worlds along given directions.

The state of the next step is x' = f(x, theta, u). Tangents of the inputs of a rollout propagate by
the chain rule,

    dx' = df/dx dx + df/dtheta dtheta + df/du du

step by step. Each step is evaluated once and differentiated along all directions; the batch axis of
worlds is last, as in the rest of the physics (jaxsim/transforms/layout.py).
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.step import step
from jaxsim.transforms.layout import unpack_record
from jaxsim.transforms.tuning import tuning

# The solver's result does not depend on its initial point.
_IGNORED_FIELDS = ("time", "qacc_warmstart")


class RolloutInputs(NamedTuple):
    """Inputs of a rollout, or their tangents along some directions.

    Attributes:
      fields: leaves of the model, by their index; other leaves are those of the base model.
      state: "qpos", "qvel" and "act" at the start.
      ctrl: (steps, nu); None where it does not change.
    """

    fields: dict[int, Any]
    state: dict[str, Any]
    ctrl: Any


def changed_leaves(m: Model, new: Model) -> dict[int, jax.Array]:
    """Return the leaves of a model that differ from those of another, by their index."""
    pairs = enumerate(zip(jax.tree.leaves(m), jax.tree.leaves(new), strict=True))
    return {i: b for i, (a, b) in pairs if a is not b and b.size}


def replace_leaves(m: Model, leaves: Mapping[int, jax.Array]) -> Model:
    """Return a model with some leaves replaced, by their index."""
    own, structure = jax.tree.flatten(m)
    model: Model = jax.tree.unflatten(structure, [leaves.get(i, a) for i, a in enumerate(own)])
    return model


Observe = Callable[[Data, Data], Array]


def sensitivities(
    m: Model, start: Data, motion: RolloutInputs, change: RolloutInputs, observe: Observe
) -> tuple[jax.Array, jax.Array]:
    """Return observations of rollouts, and their derivatives.

    Args:
      m: the model.
      start: the worlds, whose state `motion` replaces; leading axis of worlds.
      motion: inputs of each world; leading axis of worlds.
      change: tangents of `motion`, with leading axes (worlds, directions).
      observe: (before, after) -> `[k, *W]`, from the world before a step and after it, in the form
        of the physics.

    Returns:
      (worlds, steps, k), and derivatives (worlds, directions, steps, k).
    """
    given = (start, motion, change)
    worlds, directions = change.state["qvel"].shape[:2]
    # The data of the directions of all worlds that run together fit the cache of a core.
    tile = _tile_size_of(worlds, max(tuning().max_tangent_lanes // directions, 1))
    if tile == worlds:
        return _tile_sensitivities(m, given, observe)
    tiles = jax.tree.map(lambda a: a.reshape(worlds // tile, tile, *a.shape[1:]), given)
    found = lax.map(lambda given: _tile_sensitivities(m, given, observe), tiles)
    rolled: tuple = jax.tree.map(lambda a: a.reshape(worlds, *a.shape[2:]), found)
    return rolled


def _tile_size_of(worlds: int, most: int) -> int:
    """Return how many worlds run together: a divisor of `worlds`, unless all are small."""
    tile = max(n for n in range(1, min(worlds, most) + 1) if worlds % n == 0)
    return tile if 4 * tile >= most else worlds


def _tile_sensitivities(m: Model, given: tuple, observe: Observe) -> tuple[jax.Array, jax.Array]:
    """Compute `sensitivities` of worlds that run together."""
    start, motion, change = jax.tree.map(lambda a: jnp.moveaxis(a, 0, -1), given)
    shared = jax.tree.map(lambda a: jnp.asarray(a)[..., None], m)

    def model(fields: dict[int, Array]) -> Model:
        return unpack_record(replace_leaves(shared, fields), 1)

    start = unpack_record(start, 1).replace(**motion.state)
    first = _state_tangents(start, change.state)

    def advance(carry: tuple, now: tuple) -> tuple:
        d, d_state = carry
        ctrl, d_ctrl = now
        varied = {} if d_ctrl is None else {"ctrl": ctrl}

        def one_step(fields: dict, state: list, inputs: dict) -> tuple:
            before = _set_state(d, state).replace(**{"ctrl": ctrl} | inputs)
            after = _carried_fields(step(model(fields), before), d)
            return (observe(before, after), _state(after)), after

        def jvp_along(d_fields: dict, d_state: list, d_ctrl: Any) -> tuple:
            at = (motion.fields, _state(d), varied)
            by = (d_fields, d_state, {} if d_ctrl is None else {"ctrl": d_ctrl})
            (seen, _), (d_seen, d_next), after = jax.jvp(one_step, at, by, has_aux=True)
            return seen, after, d_seen, d_next

        each = jax.vmap(jvp_along, out_axes=(None, None, 0, 0))
        found: tuple = each(change.fields, d_state, d_ctrl)
        seen, after, d_seen, d_next = found
        return (after, d_next), (seen, d_seen)

    d_ctrl = None if change.ctrl is None else jnp.moveaxis(change.ctrl, 1, 0)
    rolled: tuple = lax.scan(advance, (start, first), (motion.ctrl, d_ctrl))[1]
    seen, d_seen = rolled
    return jnp.moveaxis(seen, -1, 0), jnp.moveaxis(d_seen, (-1, 1), (0, 1))


def _carried_fields(new: Data, old: Data) -> Data:
    """Return a world after a step, with the fields that are carried."""
    carried = {n: getattr(new, n) for n in old.fields if getattr(old, n) is not None}
    return old.replace(**carried)


def _state(d: Data) -> list[Array]:
    """Return the real numbers that one step passes to the next."""
    leaves = jax.tree.leaves(_moving(d))
    return [a for a in leaves if jnp.issubdtype(a.dtype, jnp.floating)]


def _set_state(d: Data, state: list[Array]) -> Data:
    """Return a world with a state of `_state`."""
    leaves, structure = jax.tree.flatten(_moving(d))
    rest = iter(state)
    new = [next(rest) if jnp.issubdtype(a.dtype, jnp.floating) else a for a in leaves]
    same = {n: getattr(d, n) for n in _IGNORED_FIELDS}
    return jax.tree.unflatten(structure, new).replace(**same)


def _moving(d: Data) -> Data:
    return d.replace(**dict.fromkeys(_IGNORED_FIELDS))


def _state_tangents(start: Data, change: dict[str, Array]) -> list[Array]:
    """Return tangents of all of `_state`, from those of positions, velocities and activations."""
    directions = len(change["qvel"])
    zero = jax.tree.map(lambda a: jnp.zeros((directions, *a.shape), a.dtype), start)
    return _state(zero.replace(**change))
