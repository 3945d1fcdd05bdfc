"""Parameters and states of plugin instances, by name."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.model.model import Model
from jaxsim.model.names import name2id
from jaxsim.physics.plugin import instance_params
from jaxsim.physics.public.arguments import check_model


def get_plugin_params(m: Model, instance: int | str) -> Any:
    """Return the parameters of a plugin instance, as created by its `params`.

    Args:
      m: the model; leading axes of a batch of it come first.
      instance: its name, or its number.

    Raises:
      ValueError: there is no such instance.

    Example: gradients by the weights of a network that moves a model::

      def loss(weights):
          robot = jaxsim.support.set_plugin_params(m, "motors", weights)
          d, _ = jaxsim.rollout(robot, d0, steps=100)
          return jnp.sum((d.qpos - goal) ** 2)

      slope = jax.grad(loss)(jaxsim.support.get_plugin_params(m, "motors"))
    """
    check_model("get_plugin_params", m)
    return instance_params(m, _resolve_instance(m, "get_plugin_params", instance))


def set_plugin_params(m: Model, instance: int | str, params: Any) -> Model:
    """Return the model with other parameters of a plugin instance.

    Args:
      m: the model.
      instance: its name or id.
      params: tree with the structure and shapes of `get_plugin_params`.

    Raises:
      ValueError: no such instance exists, or structure or shapes differ.
    """
    check_model("set_plugin_params", m)
    number = _resolve_instance(m, "set_plugin_params", instance)
    start, size = m.plugin_paramadr[number], m.plugin_paramnum[number]
    old = instance_params(m, number)
    # Compare the tree structures, then the shapes of the leaves.
    expected, got = str(jax.tree.structure(old)), str(jax.tree.structure(params))
    if expected != got:
        raise ValueError(f"set_plugin_params: params: expected {expected}, got {got}")
    for before, after in zip(jax.tree.leaves(old), jax.tree.leaves(params), strict=True):
        if np.shape(before) != np.shape(after):
            raise ValueError(
                f"set_plugin_params: params: expected an array of shape {np.shape(before)}, got "
                f"{np.shape(after)}"
            )
    # Flatten and write to the instance's part of `plugin_params`.
    dtype = m.plugin_params.dtype
    flat = [jnp.ravel(jnp.asarray(leaf, dtype)) for leaf in jax.tree.leaves(params)]
    new = jnp.concatenate([jnp.zeros(0, dtype), *flat])
    return m.replace(plugin_params=m.plugin_params.at[start : start + size].set(new))


def plugin_state_index(m: Model, instance: int | str) -> slice:
    """Return the slice of a plugin instance's state in `d.plugin_state`.

    Args:
      m: the model.
      instance: its name or id.

    Raises:
      ValueError: no such instance exists.
    """
    number = _resolve_instance(m, "plugin_state_index", instance)
    start = int(m.plugin_stateadr[number])
    return slice(start, start + int(m.plugin_statenum[number]))


def _resolve_instance(m: Model, function: str, instance: int | str) -> int:
    if isinstance(instance, str):
        return name2id(m, "plugin", instance)
    if not 0 <= instance < m.nplugin:
        raise ValueError(f"{function}: the model has {m.nplugin} plugins, no number {instance}")
    return int(instance)
