"""Small records of the physics that JAX takes apart by itself.

@node("dof")
class DofJacobian:
    dof: tuple[int, ...]  # static: part of the structure, hashable
    sign: jax.Array
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar, dataclass_transform

import jax

Class = TypeVar("Class", bound=type[Any])


@dataclass_transform(frozen_default=True)
def node(*static: str) -> Callable[[Class], Class]:
    """Makes a frozen dataclass of a class, and a pytree whose `static` fields are its structure."""

    def register(cls: Class) -> Class:
        made: Any = dataclass(frozen=True)(cls)
        traced = [f.name for f in fields(made) if f.name not in static]
        return jax.tree_util.register_dataclass(made, traced, list(static))

    return register
