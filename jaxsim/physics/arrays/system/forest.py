"""Sums along the paths of a constant forest: over the ancestors of each item, or its descendants.

One loop over the items, which a kernel of a CPU runs in some nanoseconds a turn. Its work grows
with the items, that of a product with a 0/1 matrix with their square. The sums are linear and each
is the transposed of the other, which JAX is told: of a loop that changes an array it would keep the
array of every turn.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from jaxsim.physics.arrays.array import Array, Tree

Forest = tuple[int, ...]  # of each item the number of its parent, which is smaller; -1: none


def ancestor_sums(x: Tree, forest: Forest) -> Tree:
    """Sums over each item and its ancestors, `[n, *W] -> [n, *W]`."""
    return _in_columns(x, forest, down=True)


def descendant_sums(x: Tree, forest: Forest) -> Tree:
    """Sums over each item and its descendants, `[n, *W] -> [n, *W]`."""
    return _in_columns(x, forest, down=False)


def _in_columns(x: Tree, forest: Forest, down: bool) -> Tree:
    """All arrays side by side, so that one loop goes through them."""
    leaves, structure = jax.tree.flatten(x)
    rows = [a.reshape(len(a), math.prod(a.shape[1:])) for a in leaves]
    sums = SUMS.bind(jnp.concatenate(rows, axis=1), forest=forest, down=down)
    ends = np.cumsum([a.shape[1] for a in rows])[:-1].tolist()
    parts = jnp.split(sums, ends, axis=1)
    return jax.tree.unflatten(
        structure, [p.reshape(a.shape) for p, a in zip(parts, leaves, strict=True)]
    )


@partial(jax.jit, static_argnames=("forest", "down"))
def _sums(x: Array, *, forest: Forest, down: bool) -> Array:
    """Each item is added to another one: from the roots its parent to it, from the leaves it to
    its parent."""
    parent = np.array(forest, np.int32)
    child = np.flatnonzero(parent >= 0).astype(np.int32)
    if not len(child):
        return x
    child = child if down else child[::-1]
    pair = (parent[child], child) if down else (child, parent[child])
    source, target = (jnp.asarray(a) for a in pair)
    row, first = (1, x.shape[1]), np.int32(0)

    def add(turn: Array, x: Array) -> Array:
        here, there = (target[turn], first), (source[turn], first)
        added = lax.dynamic_slice(x, here, row) + lax.dynamic_slice(x, there, row)
        return lax.dynamic_update_slice(x, added, here)

    sums: Array = lax.fori_loop(0, len(child), add, x)
    return sums


SUMS = Primitive("forest_sums")
SUMS.def_impl(_sums)
SUMS.def_abstract_eval(lambda x, **_: jax.core.ShapedArray(x.shape, x.dtype))
mlir.register_lowering(SUMS, mlir.lower_fun(_sums, multiple_results=False))


def _transposed(weights: Array, x: Array, *, forest: Forest, down: bool) -> list[Array]:
    del x
    return [SUMS.bind(weights, forest=forest, down=not down)]


def _batched(x: tuple, axis: tuple, **how: object) -> tuple[Array, int]:
    a = jnp.moveaxis(x[0], axis[0], 2)
    return SUMS.bind(a.reshape(len(a), -1), **how).reshape(a.shape), 2


ad.deflinear2(SUMS, _transposed)
batching.primitive_batchers[SUMS] = _batched
