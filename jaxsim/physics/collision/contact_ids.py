"""Ids of the objects in contact: constants of the compiled program, or traced per world.

If every candidate contact has its own slot, all ids are constants (`StaticIds`) and gathers by them
cost nothing. If a budget decides, each world chooses its ids (`TracedIds`). Both classes have the
same methods, so that callers do not distinguish them. For the pairs 0-2, 0-3, 1-3 of geoms with the
masses 5, 6, 7, 8, and contacts of the pairs 0 and 2 in one world, 1 in another:

                                       StaticIds         TracedIds, two worlds
    pair                               (0, 1, 2)         [[0, 1], [2, 0]], slot 1 of world 1 unused
    pair.look_up([2, 3, 3])   geom 2   (2, 3, 3)         [[2, 3], [3, 2]]
    geom2.take(mass)                   [7, 8, 8]         [[7, 8], [8, 7]]

`look_up` and `values` gather from a constant table by id, `take` gathers items of a traced array,
and `like` is an array `[items, *W]` that defines the world axes and dtype.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.gather import column, gather, gather_static
from jaxsim.arrays.node import node

_WORD_BITS = 32  # columns of a bit table that are packed into one integer


@node("id")
class StaticIds:
    """Constant ids, one per item."""

    id: tuple[int, ...]

    @classmethod
    def of(cls, ids: np.ndarray) -> "StaticIds":
        """Return the ids of a constant array `[n]`."""
        return cls(tuple(ids.tolist()))

    def look_up(self, table: np.ndarray) -> "StaticIds":
        """Return the ids that a constant table maps these to."""
        return StaticIds.of(table[list(self.id)])

    def values(self, table: np.ndarray, like: Array) -> Array:
        """Return the numbers of a constant table at these ids, with the axes of `like`."""
        return jnp.asarray(column(table[list(self.id)], like))

    def take(self, x: PyTree) -> PyTree:
        """Return items of arrays `[k, *W]` at these ids."""
        return _gather_unique(lambda a: gather_static(a, self.id), x)

    def bits(self, table: np.ndarray, like: Array) -> np.ndarray:
        """Return rows of a constant 0/1 table `[k, columns]`: `[n, columns, *W]`."""
        return column(table[list(self.id)], like)

    def array(self, like: Array) -> Array:
        """Return the ids as an array with the axes of `like`, `[items, *W]`."""
        return jnp.asarray(column(np.array(self.id, np.int32), like))

    def repeated(self, times: int) -> "StaticIds":
        """Return the sequence of ids repeated `times` times."""
        return StaticIds(self.id * times)

    def ordered(self, order: np.ndarray) -> "StaticIds":
        """Return the ids in a constant order."""
        return StaticIds(tuple(self.id[k] for k in order))


@node()
class TracedIds:
    """Ids `[n, *W]` that differ between worlds."""

    id: jax.Array

    def look_up(self, table: np.ndarray) -> "TracedIds":
        """Return the ids that a constant table maps these to."""
        return TracedIds(self.values(table.astype(np.int32), self.id))

    def values(self, table: np.ndarray, like: Array) -> Array:
        """Return the numbers of a constant table at these ids, with the axes of `like`."""
        return gather(jnp.asarray(column(table, like)), self.id)

    def take(self, x: PyTree) -> PyTree:
        """Return items of arrays `[k, *W]` at these ids."""
        return _gather_unique(lambda a: gather(a, self.id), x)

    def bits(self, table: np.ndarray, like: Array) -> Array:
        """Return rows of a constant 0/1 table `[k, columns]`: `[n, columns, *W]`.

        One gather per 32 columns, which are packed as bits of an integer and unpacked again.
        """
        columns = table.shape[1]
        one = jnp.zeros((1, *like.shape[1:]), jnp.uint32)
        # Gather the packed words, repeat each for its columns, and shift the bits out.
        words = [gather(jnp.asarray(column(w, one)), self.id) for w in _pack_bits(table)]
        spread = [
            jnp.broadcast_to(
                w[:, None], (len(w), min(_WORD_BITS, columns - _WORD_BITS * k), *w.shape[1:])
            )
            for k, w in enumerate(words)
        ]
        shift = column((np.arange(columns) % _WORD_BITS).astype(np.uint32), one)[None]
        return ((jnp.concatenate(spread, axis=1) >> shift) & 1).astype(like.dtype)

    def array(self, like: Array) -> Array:
        """Return the ids as an array with the axes of `like`, `[items, *W]`."""
        return jnp.broadcast_to(self.id, (self.id.shape[0], *like.shape[1:]))

    def repeated(self, times: int) -> "TracedIds":
        """Return the sequence of ids repeated `times` times."""
        return TracedIds(jnp.tile(self.id, (times, *(1,) * (self.id.ndim - 1))))

    def ordered(self, order: np.ndarray) -> "TracedIds":
        """Return the ids in a constant order."""
        return TracedIds(gather_static(self.id, order))


IdArray = StaticIds | TracedIds


def _gather_unique(select: Callable[[Array], Array], x: PyTree) -> PyTree:
    """Gather from the arrays of a tree; an array that occurs several times is gathered once."""
    leaves, tree = jax.tree.flatten(x)
    selected = {id(a): select(a) for a in leaves}
    return jax.tree.unflatten(tree, [selected[id(a)] for a in leaves])


def join_ids(parts: Sequence[IdArray], like: Sequence[jax.Array]) -> IdArray:
    """Concatenate several lists of ids; `like` has an array `[items, *W]` for each."""
    fixed = [part.id for part in parts if isinstance(part, StaticIds)]
    if len(fixed) == len(parts):
        return StaticIds(sum(fixed, ()))
    arrays = (part.array(a) for part, a in zip(parts, like, strict=True))
    return TracedIds(
        jnp.concatenate([jnp.broadcast_to(i, a.shape) for i, a in zip(arrays, like, strict=True)])
    )


def _pack_bits(table: np.ndarray) -> list[np.ndarray]:
    """Pack the columns of a 0/1 table into integers, one per row and 32 columns."""
    words = []
    for start in range(0, table.shape[1], _WORD_BITS):
        block = table[:, start : start + _WORD_BITS].astype(np.uint64)
        words.append((block << np.arange(block.shape[1], dtype=np.uint64)).sum(1).astype(np.uint32))
    return words
