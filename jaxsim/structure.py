"""The static half of a model: everything that decides the shape of the program.

Counts, types, parents, addresses, limits and flags of a compiled model, as numpy tables under
MuJoCo's names. Two structures with equal content are the same program: jit compiles once for both.
Layouts that stages derive from the tables (levels, groups, pair lists) are computed on first use
and kept here, by `derived`.
"""

import functools
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Table = np.ndarray | int | tuple | str


class Structure:
    """Immutable tables of integers and names; hashable by content."""

    __slots__ = ("_hash", "_tables", "cache")

    def __init__(self, tables: Mapping[str, Table]):
        frozen: dict[str, Table] = {}
        for name, value in tables.items():
            if isinstance(value, np.ndarray):
                value = value.copy()
                value.flags.writeable = False
            frozen[name] = value
        self._tables = frozen
        self._hash: int | None = None
        self.cache: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self._tables[name]
        except KeyError:
            raise AttributeError(f"the model has no field {name!r}") from None

    def __contains__(self, name: str) -> bool:
        return name in self._tables

    def __iter__(self):
        return iter(self._tables)

    def replace(self, **values: Table) -> "Structure":
        """A structure with some tables changed."""
        return Structure({**self._tables, **values})

    def __hash__(self) -> int:
        if self._hash is None:
            digest = hashlib.sha256()
            for name in sorted(self._tables):
                value = self._tables[name]
                digest.update(name.encode())
                if isinstance(value, np.ndarray):
                    digest.update(str((value.dtype, value.shape)).encode())
                    digest.update(np.ascontiguousarray(value).tobytes())
                else:
                    digest.update(repr(value).encode())
            self._hash = int.from_bytes(digest.digest()[:8], "little", signed=True)
        return self._hash

    def __eq__(self, other) -> bool:
        if self is other:
            return True
        if not isinstance(other, Structure) or hash(self) != hash(other):
            return False
        mine, theirs = self._tables, other._tables
        return mine.keys() == theirs.keys() and all(
            np.array_equal(v, theirs[k]) if isinstance(v, np.ndarray) else v == theirs[k]
            for k, v in mine.items()
        )

    def __repr__(self) -> str:
        sizes = ", ".join(f"{n}={self._tables[n]}" for n in ("nq", "nv", "nu", "nbody", "ngeom"))
        return f"Structure({sizes})"


def derived(make: Callable[[Structure], Any]) -> Callable[[Any], Any]:
    """Makes `make(structure)` remembered: called with a Model or a Structure, computed once."""
    key = f"{make.__module__}.{make.__qualname__}"

    @functools.wraps(make)
    def lookup(owner):
        structure = owner if isinstance(owner, Structure) else owner.structure
        if key not in structure.cache:
            structure.cache[key] = make(structure)
        return structure.cache[key]

    return lookup
