"""Values that plugins contribute to a model: initial states and parameters."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxsim.extend.plugin import Config, Plugin, settings_in
from jaxsim.extend.registry import registered_plugins

_PluginTables = Mapping[str, Any]


def plugin_numbers(fields: _PluginTables, names: Sequence[str]) -> dict[str, Any]:
    """Return the fields `plugin_state0`, `plugin_params`, and the addresses of the parameters.

    Args:
      fields: tables of the model.
      names: name of the plugin of each instance; an unregistered plugin contributes nothing.

    Raises:
      ValueError: the parameters of a plugin are no real numbers.
    """
    known = registered_plugins()
    start = np.zeros(int(fields["npluginstate"]))
    params = [np.zeros(0)]
    for name, at, adr, num in zip(
        names,
        fields["plugin_attradr"],
        fields["plugin_stateadr"],
        fields["plugin_statenum"],
        strict=True,
    ):
        if name not in known:
            params.append(np.zeros(0))
            continue
        config = settings_in(known[name], fields["plugin_attr"], at)
        start[adr : adr + num] = np.asarray(known[name].state(config), float).ravel()
        params.append(_flatten_params(known[name], config))
    number = np.array([len(p) for p in params[1:]], np.int32)
    return {
        "plugin_state0": start,
        "plugin_params": np.concatenate(params),
        "npluginparam": int(number.sum()),
        "plugin_paramadr": (np.cumsum(number) - number).astype(np.int32),
        "plugin_paramnum": number,
    }


def _flatten_params(plugin: Plugin, config: Config) -> np.ndarray:
    """Return the parameters of an instance as one vector."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(plugin.params(config))]
    for leaf in leaves:
        if leaf.dtype.kind not in "fiu":
            raise ValueError(
                f"plugin {plugin.name!r}: params: expected real numbers, got {leaf.dtype}"
            )
    return np.concatenate([np.zeros(0), *[leaf.astype(float).ravel() for leaf in leaves]])
