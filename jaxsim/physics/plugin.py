"""Plugins of users in a step: their functions of one world, called for all worlds.

`extend/plugin.py` says what a row of the registry is; `compile/whole/plugins.py` reads it in MJCF.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import ObjType
from jaxsim.extend.plugin import Attached, Plugin
from jaxsim.extend.registry import plugin_of
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.native import as_one_world


def plugin_row(m: Model, instance: int | np.integer) -> Plugin:
    """The plugin of an instance.

    Raises:
      ValueError: it is not registered any more, or anew, since the model was loaded.
    """
    key = m.structure.plugin_keys[instance]
    row = plugin_of(key)
    if row is None:
        raise ValueError(
            f"the plugin {key[0]!r} is not the one that the model was loaded with; register it, "
            "and load the model again"
        )
    return row


def lack(m: Model, instance: int | np.integer) -> str | None:
    """What keeps an instance from being simulated, for a message; None: nothing."""
    key = m.structure.plugin_keys[instance]
    row = plugin_of(key)
    return None if row is not None and row.compute is not None else f"the plugin {key[0]}"


def instances(owner: np.ndarray) -> list[int]:
    """The instances that serve some elements, by the column `..._plugin` of these."""
    return [int(i) for i in np.unique(owner) if i >= 0]


def config(m: Model, instance: int) -> dict[str, str]:
    """The settings of an instance: those that the model gives, and the plugin's defaults."""
    defaults = plugin_row(m, instance).settings
    start = m.plugin_attradr[instance]
    given = m.plugin_attr[start:].astype(np.uint8).tobytes().split(b"\0", len(defaults))
    return {
        key: text.decode() or default
        for (key, default), text in zip(defaults.items(), given, strict=False)
    }


def attached(m: Model, instance: int, owner: np.ndarray) -> Attached:
    """Actuators or bodies that an instance serves, by the column `..._plugin` of these."""
    ids = np.flatnonzero(owner == instance)
    none = np.full(len(ids), -1)
    return Attached(config(m, instance), ids, ObjType.UNKNOWN, none, ObjType.UNKNOWN, none)


def compute(
    m: Model, d: Data, instance: int, served: Attached, shape: tuple[int, ...], *more: Array
) -> Array:
    """What the function of a plugin gives, `[*shape, *W]`.

    Args:
      m, d: in the form of the physics.
      instance: which instance.
      served: the elements it serves.
      shape: what the function is to return for one world.
      more: further arguments `[n, *W]`.

    Raises:
      ValueError: the function returns another shape.
    """
    row = plugin_row(m, instance)
    assert row.compute is not None, "a model with such a plugin is refused"
    function: Callable = row.compute

    def one(m: Model, d: Data, *more):
        out = jnp.asarray(function(m, d, served, *more), m.qpos0.dtype)
        if out.shape != shape:
            raise ValueError(
                f"plugin {row.name!r}: its function returned shape {out.shape}, expected {shape}"
            )
        return out

    return as_one_world(one, m, d, *more)
