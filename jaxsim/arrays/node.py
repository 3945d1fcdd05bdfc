"""Frozen dataclasses that are registered as pytrees, for small records of the physics.

@node("dof")
class DofJacobian:  # physics/constraint/jacobian.py
    dof: tuple[int, ...]  # static: part of the tree structure, hashable
    sign: jax.Array
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar, dataclass_transform

import jax

Class = TypeVar("Class", bound=type[Any])


@dataclass_transform(frozen_default=True)
def node(*static: str) -> Callable[[Class], Class]:
    """Make a class a frozen dataclass and a pytree; the `static` fields belong to its structure."""

    def register(cls: Class) -> Class:
        made: Any = dataclass(frozen=True)(cls)
        traced = [f.name for f in fields(made) if f.name not in static]
        return jax.tree_util.register_dataclass(made, traced, list(static))

    return register
