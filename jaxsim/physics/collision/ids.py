"""Which objects contacts are of: known when the model is compiled, or chosen by each world.

Where every candidate has its own place, all ids are constants and what they select costs nothing;
where a budget decides, each world chooses. Both answer alike, so nobody else asks which it is.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.physics.arrays.array import Array, Tree
from jaxsim.physics.arrays.node import node
from jaxsim.physics.arrays.select import column, pick, take

WORD = 32  # columns of a table of bits that are looked up together


@node("id")
class Fixed:
    """Constant ids, one an item."""

    id: tuple[int, ...]

    @classmethod
    def of(cls, ids: np.ndarray) -> "Fixed":
        """The ids of a constant array `[n]`."""
        return cls(tuple(ids.tolist()))

    def look_up(self, table: np.ndarray) -> "Fixed":
        """The ids that a constant table has for these."""
        return Fixed.of(table[list(self.id)])

    def values(self, table: np.ndarray, like: Array) -> Array:
        """The numbers that a constant table has for these, with the axes of `like`."""
        return jnp.asarray(column(table[list(self.id)], like))

    def take(self, x: Tree) -> Tree:
        """Items of values `[k, *W]`."""
        return _each_once(lambda a: take(a, self.id), x)

    def bits(self, table: np.ndarray, like: Array) -> np.ndarray:
        """Rows of a constant table `[k, columns]` of 0 and 1: `[n, columns, *W]`."""
        return column(table[list(self.id)], like)

    def array(self, like: Array) -> Array:
        """The ids as an array with the axes of `like`, `[items, *W]`."""
        return jnp.asarray(column(np.array(self.id, np.int32), like))

    def repeated(self, times: int) -> "Fixed":
        """All ids, again and again."""
        return Fixed(self.id * times)

    def ordered(self, order: np.ndarray) -> "Fixed":
        """The ids in a constant order."""
        return Fixed(tuple(self.id[k] for k in order))


@node()
class Chosen:
    """Ids `[n, *W]` that each world chooses."""

    id: jax.Array

    def look_up(self, table: np.ndarray) -> "Chosen":
        """The ids that a constant table has for these."""
        return Chosen(self.values(table.astype(np.int32), self.id))

    def values(self, table: np.ndarray, like: Array) -> Array:
        """The numbers that a constant table has for these, with the axes of `like`."""
        return pick(jnp.asarray(column(table, like)), self.id)

    def take(self, x: Tree) -> Tree:
        """Items of values `[k, *W]`."""
        return _each_once(lambda a: pick(a, self.id), x)

    def bits(self, table: np.ndarray, like: Array) -> Array:
        """Rows of a constant table `[k, columns]` of 0 and 1: `[n, columns, *W]`.

        The columns are looked up by the word of 32, and taken apart again.
        """
        columns = table.shape[1]
        one = jnp.zeros((1, *like.shape[1:]), jnp.uint32)
        words = [pick(jnp.asarray(column(w, one)), self.id) for w in _words(table)]
        spread = [
            jnp.broadcast_to(w[:, None], (len(w), min(WORD, columns - WORD * k), *w.shape[1:]))
            for k, w in enumerate(words)
        ]
        shift = column((np.arange(columns) % WORD).astype(np.uint32), one)[None]
        return ((jnp.concatenate(spread, axis=1) >> shift) & 1).astype(like.dtype)

    def array(self, like: Array) -> Array:
        """The ids as an array with the axes of `like`, `[items, *W]`."""
        return jnp.broadcast_to(self.id, (self.id.shape[0], *like.shape[1:]))

    def repeated(self, times: int) -> "Chosen":
        """All ids, again and again."""
        return Chosen(jnp.tile(self.id, (times, *(1,) * (self.id.ndim - 1))))

    def ordered(self, order: np.ndarray) -> "Chosen":
        """The ids in a constant order."""
        return Chosen(take(self.id, order))


Ids = Fixed | Chosen


def _each_once(select: Callable[[Array], Array], x: Tree) -> Tree:
    """The arrays of a tree, selected from; one that stands in several places is looked up once."""
    leaves, tree = jax.tree.flatten(x)
    selected = {id(a): select(a) for a in leaves}
    return jax.tree.unflatten(tree, [selected[id(a)] for a in leaves])


def joined(parts: Sequence[Ids], like: Sequence[jax.Array]) -> Ids:
    """Several lists of ids as one; `like` has an array `[items, *W]` for each."""
    fixed = [part.id for part in parts if isinstance(part, Fixed)]
    if len(fixed) == len(parts):
        return Fixed(sum(fixed, ()))
    arrays = (part.array(a) for part, a in zip(parts, like, strict=True))
    return Chosen(
        jnp.concatenate([jnp.broadcast_to(i, a.shape) for i, a in zip(arrays, like, strict=True)])
    )


def _words(table: np.ndarray) -> list[np.ndarray]:
    """The columns of a table of 0 and 1 as bits, one word a row for each 32 columns."""
    words = []
    for start in range(0, table.shape[1], WORD):
        block = table[:, start : start + WORD].astype(np.uint64)
        words.append((block << np.arange(block.shape[1], dtype=np.uint64)).sum(1).astype(np.uint32))
    return words
