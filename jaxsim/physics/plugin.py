"""Plugins in a step: functions of one world, called for all worlds.

`extend/plugin.py` documents the interface of a plugin; `compile/options/plugins.py` reads it from
MJCF.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.cache import bounded_cache
from jaxsim.enums import DynType
from jaxsim.extend.plugin import Attached, Config, Plugin, settings_in
from jaxsim.extend.registry import Key, plugin_of
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure
from jaxsim.transforms.layout import call_as_one_world


def plugin_row(s: Structure, instance: int | np.integer) -> Plugin:
    """Return the plugin of an instance.

    Raises:
      ValueError: it is no longer registered, or was registered again since the model was loaded.
    """
    key = s.plugin_keys[instance]
    row = plugin_of(key)
    if row is None:
        raise ValueError(
            f"the plugin {key[0]!r} is not the one that the model was loaded with; register it, "
            "and load the model again"
        )
    return row


def missing_function(m: Model, instance: int | np.integer, function: str) -> str | None:
    """Return the reason why an instance cannot be simulated, for a message; None if it can."""
    key = m.structure.plugin_keys[instance]
    row = plugin_of(key)
    return None if row is not None and getattr(row, function) else f"the plugin {key[0]}"


def plugin_instances(owner: np.ndarray) -> list[int]:
    """Return the instances referenced by some elements, from their column `..._plugin`."""
    return [int(i) for i in np.unique(owner) if i >= 0]


def plugin_config(s: Structure, instance: int | np.integer) -> Config:
    """Return the settings of an instance: those of the model, and the plugin's defaults."""
    start = s.plugin_attradr[instance]
    return settings_in(plugin_row(s, instance), s.plugin_attr, start)


def served_elements(m: Model, instance: int, owner: np.ndarray) -> Attached:
    """Return the actuators or bodies attached to an instance, from their column `..._plugin`."""
    return Attached(plugin_config(m.structure, instance), np.flatnonzero(owner == instance))


def own_activations(s: Structure, instance: int) -> np.ndarray:
    """Return the addresses of the activations of an instance, per attached actuator `(n, k)`."""
    served = np.flatnonzero(s.actuator_plugin == instance)
    # Activations beyond the one of dyntype belong to the plugin.
    dynamic = s.actuator_dyntype[served] != DynType.NONE
    number = np.unique(s.actuator_actnum[served] - dynamic)
    first = s.actuator_actadr[served]
    return first[:, None] + np.arange(number.max(initial=0))


def call_plugin(
    m: Model,
    d: Data,
    instance: int,
    function: str,
    served: Attached,
    shape: tuple[int, ...],
    *more: Array,
) -> Array:
    """Call a function of a plugin for each world, `[*shape, *W]`.

    Args:
      m, d: in the form of the physics.
      instance: which instance.
      function: name of the function.
      served: the elements it serves.
      shape: what the function is to return for one world.
      more: further arguments `[n, *W]`.

    Raises:
      ValueError: the function returns another shape.
    """
    row = plugin_row(m.structure, instance)

    # The result is checked against the declared shape.
    def one(m: Model, d: Data, *more):
        call: Callable = getattr(row, function)
        out = jnp.asarray(
            call(m, d, _instance_in_world(m, d, instance, served), *more), m.qpos0.dtype
        )
        if out.shape != shape:
            raise ValueError(
                f"plugin {row.name!r}: {function} returned shape {out.shape}, expected {shape}"
            )
        return out

    return call_as_one_world(one, m, d, *more)


def _instance_in_world(m: Model, d: Data, instance: int, served: Attached) -> Attached:
    """Return the attached elements with parameters and state of the instance in one world."""
    s = m.structure
    start, number = s.plugin_stateadr[instance], s.plugin_statenum[instance]
    act = d.act[own_activations(s, instance)] if served.id.size and s.na else None
    return Attached(
        served.config,
        served.id,
        served.objtype,
        served.objid,
        served.reftype,
        served.refid,
        params=instance_params(m, instance),
        state=d.plugin_state[start : start + number],
        act=act,
    )


def instance_params(m: Model, instance: int) -> Any:
    """Return the parameters of an instance, of one world in the user's layout."""
    s = m.structure
    config_items = tuple(plugin_config(s, instance).items())
    leaves, tree = _form(s.plugin_keys[instance], config_items)
    # Consecutive slices of plugin_params, reshaped to the leaves.
    start, values = int(s.plugin_paramadr[instance]), []
    for leaf in leaves:
        flat = m.plugin_params[..., start : start + leaf.size]
        values.append(flat.reshape(*flat.shape[:-1], *leaf.shape))
        start += leaf.size
    return jax.tree.unflatten(tree, values)


@bounded_cache(64)
def _form(key: Key, config_items: tuple[tuple[str, str], ...]) -> tuple[list, Any]:
    """Return the shapes of the parameters of an instance, and their tree structure."""
    row = plugin_of(key)
    assert row is not None
    made = jax.eval_shape(lambda: jax.tree.map(jnp.asarray, row.params(dict(config_items))))
    return jax.tree.flatten(made)
