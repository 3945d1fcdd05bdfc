"""The static half of a model: everything that decides the shape of the program.

Counts, types, parents, addresses, limits and flags of a compiled model, as numpy tables under
MuJoCo's names. Two structures with equal content are the same program: jit compiles once for both.
Layouts that stages derive from the tables (levels, groups, pair lists) are computed on first use
and kept here, by `derived`. So what is known first is a structure first, and is then extended.
"""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from jaxsim.enums import EqType

HULLS_MOVED = "hulls_moved"  # a table: vertices of meshes may differ from the loaded ones

Table = np.ndarray | int | tuple | str


NONE: Mapping[str, Table] = MappingProxyType({})
LARGE = 2**16  # bytes of a table whose contents the hash leaves out: an image, a mesh


class Structure:
    """Immutable tables of integers and names; hashable by content.

    A table that is read-only already is shared, any other one is copied.
    """

    __slots__ = ("_counts", "_hash", "_tables", "cache")

    def __init__(self, tables: Mapping[str, Table], known: Mapping[str, Table] = NONE):
        """Make a structure of tables, and of those of another one that they do not replace."""
        self._tables = {**known, **{name: _frozen(value) for name, value in tables.items()}}
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
        """Return the same, and what follows from the tables: sizes of the fields of a Data."""
        return _sizes(self)

    def replace(self, **values: Table) -> "Structure":
        """Return a structure with some tables changed."""
        return Structure(values, self._tables)

    def extended(self, **values: Table) -> "Structure":
        """Return a structure with more tables, which has what was derived without them."""
        present = values.keys() & self._tables.keys()
        if present:
            raise ValueError(f"{min(present)} is a table of the structure already")
        new = self.replace(**values)
        new.cache.update(self.cache)
        return new

    def __reduce__(self):
        # the rest is found again: the hash of a string and the derived layouts are of this process
        return Structure, (self._tables,)

    def __deepcopy__(self, memo) -> "Structure":
        return self

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset((n, _content(v, LARGE)) for n, v in self._tables.items()))
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


# tables that may be changed in a model that is made (io/restructure.py)
CHANGEABLE = frozenset(
    """jnt_limited jnt_actfrclimited jnt_group tendon_limited tendon_actfrclimited tendon_group
    actuator_ctrllimited actuator_forcelimited actuator_actlimited actuator_group
    geom_contype geom_conaffinity geom_condim geom_priority geom_group site_group""".split()
)


def _frozen(value: Table) -> Table:
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.copy()
        value.flags.writeable = False
    return value


def _content(value: Table, most: float = np.inf) -> Any:
    """What two equal tables have in common; the numbers only of those up to a size in bytes."""
    if not isinstance(value, np.ndarray):
        return value
    numbers = value.tobytes() if value.nbytes <= most else None
    return value.dtype.str, value.shape, numbers


def derived(make: Callable[..., Any]) -> Callable[..., Any]:
    """Make `make(structure, *flags)` remembered: asked with a Model or a Structure, computed once.

    It must not ask whether there is a table: one that comes later (`extended`) changes nothing.
    """
    name = f"{make.__module__}.{make.__qualname__}"

    @functools.wraps(make)
    def lookup(owner, *flags):
        structure = owner if isinstance(owner, Structure) else owner.structure
        key = (name, *flags)
        if key not in structure.cache:
            structure.cache[key] = make(structure, *flags)
        return structure.cache[key]

    return lookup


@derived
def _sizes(s: Structure) -> Mapping[str, int]:
    return {**s.counts, "nrow": _row_room(s), "nhistorytime": _times_in_history(s)}


def _times_in_history(s: Structure) -> int:
    """Return the times of samples in all buffers, and the tick of each buffer."""
    addresses = np.concatenate([s.actuator_historyadr, s.sensor_historyadr])
    size = np.concatenate([s.actuator_history[:, 0], s.sensor_history[:, 0]])
    return int(np.sum(np.where(addresses >= 0, size + 1, 0)))


def _rows_of_flexes(s: Structure) -> int:
    """Return the rows of constraints of edges and of strains, beyond one each."""
    edges = s.flex_edgenum[s.eq_obj1id[s.eq_type == EqType.FLEX]]
    modes = s.eq_modenum[s.eq_type == EqType.FLEXSTRAIN]
    return int(np.sum(edges - 1) + np.sum(modes - 1))


def _row_room(s: Structure) -> int:
    """Return the most constraint rows that a state can have, in any cone and with any flags."""
    dim = max((1, *s.geom_condim.tolist(), *s.pair_dim.tolist(), *s.flex_condim.tolist()))
    return rows_beside_contacts(s) + s.ncontact * max(1, 2 * (dim - 1))


@derived
def rows_beside_contacts(s: Structure) -> int:
    """Return the most rows that are not of contacts."""
    of_equality = {EqType.CONNECT: 3, EqType.WELD: 6}
    rows = sum(of_equality.get(kind, 1) for kind in s.eq_type.tolist())
    rows += _rows_of_flexes(s)
    rows += np.sum(s.dof_hasfriction) + np.sum(s.tendon_hasfriction)
    for limited, both in ((s.jnt_limited, s.jnt_hasmargin), (s.tendon_limited, s.tendon_hasmargin)):
        rows += np.sum(np.where(limited, 1 + both.astype(int), 0))
    return int(rows)
