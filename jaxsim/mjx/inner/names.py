"""Inner modules of MJX: their names, and the replacement of names without a counterpart.

A name is looked up in the module's own row of `_OWN_NAMES`, then in `jaxsim.mjx`, then among the
sibling modules. A name that none of them has is reported by `missing_name_message`.
"""

import sys
from types import ModuleType
from typing import Any

from jaxsim.functions import muscle
from jaxsim.mjx import math
from jaxsim.mjx.inner import functions, pytree_node, scan
from jaxsim.mjx.inner.flat_names import namespaces_by_name
from jaxsim.mjx.inner.missing_names import (
    MJX_PACKAGE,
    MJX_REPLACEMENTS,
    MODULES,
    missing_name_message,
)
from jaxsim.model.bind import Bound

_OWN_NAMES: dict[str, dict[str, Any]] = {
    "dataclasses": {"PyTreeNode": pytree_node.PyTreeNode, "dataclass": pytree_node.dataclass},
    "forward": {
        "_integrate_pos": functions.integrate_pos,
        "named_scope": functions.named_scope,
    },
    "math": {n: f for n, f in vars(math).items() if not n.startswith("__")},
    "ray": {"ray_geom": functions.ray_geom},
    "scan": {"body_tree": scan.body_tree, "flat": scan.flat},
    "support": {
        "BindData": Bound,
        "BindModel": Bound,
        "_decode_pyramid": functions.decode_pyramid,
        "local_to_global": functions.local_to_global,
        "muscle_bias": muscle.muscle_bias,
        "muscle_dynamics": muscle.muscle_dynamics,
        "muscle_dynamics_timescale": functions.muscle_dynamics_timescale,
        "muscle_gain": muscle.muscle_gain,
        "muscle_gain_length": functions.muscle_gain_length,
    },
}


class Inner(ModuleType):
    """An inner module of MJX, with the names that have a counterpart."""

    def __init__(self, name: str):
        super().__init__(f"{MJX_PACKAGE}._src.{name}", f"MJX's inner module `{name}`.")
        self.__path__: list[
            str
        ] = []  # as for a package: `from` then uses the finder of missing_names.py
        vars(self).update(_OWN_NAMES.get(name, {}))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        outer = sys.modules[MJX_PACKAGE]
        if name in vars(outer) or name in namespaces_by_name().keys() - MJX_REPLACEMENTS.keys():
            return getattr(outer, name)
        if name in MODULES:
            return sys.modules[f"{MJX_PACKAGE}._src.{name}"]
        raise AttributeError(missing_name_message(self.__name__, name))

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *dir(sys.modules[MJX_PACKAGE])})
