"""Differences between a compiled model and new values of its fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


class Changes:
    """Fields of a compiled model, and new values for some of them.

    A new value is compared in its own precision: a float32 value is a change if it differs from the
    compiled value rounded to float32. `new` has all fields, in float64 where they are real.
    """

    def __init__(self, base: Mapping[str, Any], given: Mapping[str, Any]):
        self.base = base
        self.given = {name: np.asarray(value) for name, value in given.items() if name in base}
        self.new: dict[str, Any] = dict(base)
        self.names: set[str] = set()
        for name, value in self.given.items():
            old = np.asarray(base[name])
            if value.size != old.size:
                raise ValueError(f"{name}: has shape {value.shape}, the model has {old.shape}")
            where = differ(old, value)
            if where.any():
                value = value.reshape(old.shape).astype(np.float64)
                self.new[name] = np.where(where, value, old).astype(old.dtype)
                self.names.add(name)

    def rows(self, *names: str) -> list[int]:
        """Return the rows in which one of these fields is different."""
        found: set[int] = set()
        for name in self.names.intersection(names):
            old, new = self.base[name], self.new[name]
            different = (old != new).reshape(len(old), -1).any(axis=1)
            found |= set(np.flatnonzero(different).tolist())
        return sorted(found)

    def changed_fields(self) -> dict[str, np.ndarray]:
        """Return the changed fields, as they were given."""
        return {name: self.given[name] for name in self.names}

    def __bool__(self) -> bool:
        return bool(self.names)


def differ(compiled: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return where a value differs from the compiled one, in the precision of the value."""
    compiled = np.asarray(compiled)
    value = np.asarray(value).reshape(compiled.shape)
    seen = compiled.astype(value.dtype) if value.dtype.kind == "f" else compiled
    different = seen != value
    if value.dtype.kind == "f":
        different &= ~(np.isnan(seen) & np.isnan(value))
    return np.asarray(different)
