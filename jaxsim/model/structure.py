"""The static part of a model: everything that decides the shape of the program.

Counts, types, parents, addresses, limits and flags of a compiled model, as numpy tables under
MuJoCo's names. Structures with equal contents identify the same program, so that jit compiles once
for both. Layouts that stages derive from the tables (levels, groups, pair lists) are computed on
first use and cached here by `cache_by_structure`, for each set of thresholds that they may depend
on.
"""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from jaxsim.enums import EqType
from jaxsim.trace_context import trace_context

HULLS_MOVED = "hulls_moved"  # table: mesh vertices may differ from the loaded ones
STRAIGHT_THROUGH = "smooth_in_derivatives"  # table: contacts are smooth in derivatives alone

Table = np.ndarray | int | tuple | str


_NO_TABLES: Mapping[str, Table] = MappingProxyType({})
# bytes; the contents of larger tables (images, meshes) are left out of the hash
MAX_HASHED_BYTES = 2**16


class Structure:
    """Immutable tables of integers and names; hashable by content.

    A read-only table is shared, any other is copied.
    """

    __slots__ = ("_counts", "_hash", "_tables", "cache")

    def __init__(self, tables: Mapping[str, Table], known: Mapping[str, Table] = _NO_TABLES):
        """Build a structure from tables, and from those tables of another one that they do not
        replace."""
        self._tables = {**known, **{name: _make_read_only(value) for name, value in tables.items()}}
        self._counts: dict[str, int] | None = None
        self._hash: int | None = None
        self.cache: dict[tuple, Any] = {}

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

    @property
    def counts(self) -> Mapping[str, int]:
        """Return the counts among the tables, by name: sizes of the fields of a Model."""
        if self._counts is None:
            self._counts = {n: v for n, v in self._tables.items() if isinstance(v, int)}
        return self._counts

    @property
    def sizes(self) -> Mapping[str, int]:
        """Return the counts, and the sizes derived from the tables: sizes of the fields of a
        Data."""
        return _table_sizes(self)

    def replace(self, **values: Table) -> "Structure":
        """Return a structure with some tables replaced."""
        return Structure(values, self._tables)

    def with_tables(self, **values: Table) -> "Structure":
        """Return a structure with more tables that keeps the cached derived layouts."""
        present = values.keys() & self._tables.keys()
        if present:
            raise ValueError(f"{min(present)} is a table of the structure already")
        new = self.replace(**values)
        new.cache.update(self.cache)
        return new

    def __reduce__(self):
        # Pickle the tables only: string hashes and derived layouts belong to this process.
        return Structure, (self._tables,)

    def __deepcopy__(self, memo) -> "Structure":
        return self

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(
                frozenset((n, _content(v, MAX_HASHED_BYTES)) for n, v in self._tables.items())
            )
        return self._hash

    def __eq__(self, other) -> bool:
        if self is other:
            return True
        if not isinstance(other, Structure) or hash(self) != hash(other):
            return False
        mine, theirs = self._tables, other._tables
        return mine.keys() == theirs.keys() and all(
            v is theirs[k] or _content(v) == _content(theirs[k]) for k, v in mine.items()
        )

    def __repr__(self) -> str:
        sizes = ", ".join(f"{n}={self._tables[n]}" for n in ("nq", "nv", "nu", "nbody", "ngeom"))
        return f"Structure({sizes})"


# Tables that may be changed in a finished model (io/restructure.py).
CHANGEABLE = frozenset(
    """jnt_limited jnt_actfrclimited jnt_group tendon_limited tendon_actfrclimited tendon_group
    actuator_ctrllimited actuator_forcelimited actuator_actlimited actuator_group
    geom_contype geom_conaffinity geom_condim geom_priority geom_group site_group""".split()
)


def _make_read_only(value: Table) -> Table:
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.copy()
        value.flags.writeable = False
    return value


def _content(value: Table, most: float = np.inf) -> Any:
    """Return the content by which tables are compared; values only up to `most` bytes."""
    if not isinstance(value, np.ndarray):
        return value
    numbers = value.tobytes() if value.nbytes <= most else None
    return value.dtype.str, value.shape, numbers


def cache_by_structure(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return `make(structure, *flags)` cached in the structure; it may be called with a Model too.

    `make` must not test whether a table exists: a table added later (`with_tables`) would not
    update the cached result. It may read thresholds (transforms/tuning.py) that are equal on all
    platforms.
    """
    name = f"{make.__module__}.{make.__qualname__}"

    @functools.wraps(make)
    def lookup(owner, *flags):
        structure = owner if isinstance(owner, Structure) else owner.structure
        key = (name, trace_context().tuning, *flags)
        if key not in structure.cache:
            structure.cache[key] = make(structure, *flags)
        return structure.cache[key]

    return lookup


@cache_by_structure
def _table_sizes(s: Structure) -> Mapping[str, int]:
    return {**s.counts, "nrow": _row_capacity(s), "nhistorytime": _times_in_history(s)}


def _times_in_history(s: Structure) -> int:
    """Return the number of sample times in all buffers, plus the tick of each buffer."""
    addresses = np.concatenate([s.actuator_historyadr, s.sensor_historyadr])
    size = np.concatenate([s.actuator_history[:, 0], s.sensor_history[:, 0]])
    return int(np.sum(np.where(addresses >= 0, size + 1, 0)))


def _rows_of_flexes(s: Structure) -> int:
    """Return the number of rows of edge and strain constraints beyond one per constraint."""
    edges = s.flex_edgenum[s.eq_obj1id[s.eq_type == EqType.FLEX]]
    modes = s.eq_modenum[s.eq_type == EqType.FLEXSTRAIN]
    return int(np.sum(edges - 1) + np.sum(modes - 1))


def _row_capacity(s: Structure) -> int:
    """Return the largest number of constraint rows of any state, for any cone and any flags."""
    dim = max((1, *s.geom_condim.tolist(), *s.pair_dim.tolist(), *s.flex_condim.tolist()))
    return max_noncontact_rows(s) + s.ncontact * max(1, 2 * (dim - 1))


@cache_by_structure
def max_noncontact_rows(s: Structure) -> int:
    """Return the largest number of rows that do not belong to contacts."""
    of_equality = {EqType.CONNECT: 3, EqType.WELD: 6}
    rows = sum(of_equality.get(kind, 1) for kind in s.eq_type.tolist())
    rows += _rows_of_flexes(s)
    rows += np.sum(s.dof_hasfriction) + np.sum(s.tendon_hasfriction)
    for limited, both in ((s.jnt_limited, s.jnt_hasmargin), (s.tendon_limited, s.tendon_hasmargin)):
        rows += np.sum(np.where(limited, 1 + both.astype(int), 0))
    return int(rows)
