"""The rows of each constraint island, for iterations that end island by island.

Newton's method takes a world as one problem, for its solution is the same. What is left when
iterations end early is not: conjugate gradients (conjugate.py), those of the dual problem (pgs.py)
and those against slip (noslip.py) end island by island, as MuJoCo's do.
MuJoCo's documentation, Computation: Constraint islands.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.enums import DisableBit
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.bilinear import apply
from jaxsim.physics.arrays.select import column, pick, take, total, weighted_sum
from jaxsim.physics.constraint.island import connected, first_of
from jaxsim.physics.integrate.ties import flex_ties, metric_ties
from jaxsim.physics.solver.problem import Problem


class Islands(NamedTuple):
    """The islands of a state; each has the number of its first tree.

    Attributes:
      member: block by block `[nisland, n, *W]`: 1 where a row (or a contact) is in the island; rows
        that are not active are in none.
      trace: `[nisland, *W]` sum of the diagonal of M over the dofs of the island; 0: there is none.
      number: block by block `[n, *W]`: the island of each row that is active.
      of_dof: `[nv, *W]`: the island of each dof.
    """

    member: list
    trace: jax.Array
    number: list
    of_dof: jax.Array

    @property
    def rows(self) -> Array:
        """How many rows (or contacts) each has, `[nisland, *W]`."""
        counts = [jnp.sum(of, axis=1) for of in self.member]
        return sum(counts[1:], counts[0])

    @property
    def dofs(self) -> Array:
        """`[nisland, nv, *W]`: 1 where a dof is in the island."""
        return _numbered(self.of_dof, len(self.trace), self.trace)

    @property
    def scale(self) -> Array:
        """1 / trace, which makes improvements comparable; 0 where there is no island."""
        some = self.trace > 0
        return jnp.where(some, 1 / jnp.where(some, self.trace, 1.0), 0)


def sums(member: Array, values: Array) -> Array:
    """Sums over the items of each island: `[nisland, n, *W]`, `[n, *W]` -> `[nisland, *W]`.

    Where there is one island for all, items that are not in it have to be zero.
    """
    if len(member) == 1:
        return total(values)
    if values.ndim == 1:
        return apply(member, values)
    return jnp.sum(member * values[None], axis=1)


def spread(numbers: Array, island: Array) -> Array:
    """The number of its island for each item: `[nisland, *W]`, `[n, *W]` -> `[n, *W]`."""
    return numbers if len(numbers) == 1 else pick(numbers, island)


def find_islands(
    m: Model, p: Problem, touched: list[Array], inertia: Array, more: Sequence[Array] = ()
) -> Islands:
    """The islands; one for the whole world where the flag `island` is off.

    Args:
      m: model.
      p: the problem.
      touched: the trees that its rows touch, as `touched_trees` gives them.
      inertia: diagonal of M, `[nv, *W]`.
      more: trees that something else ties together, as `passive_ties` gives them.
    """
    inertia = lax.stop_gradient(inertia)
    if m.ntree == 1 or m.opt.disableflags & DisableBit.ISLAND:
        member = [trees.any(axis=1)[None].astype(inertia.dtype) for trees in touched]
        number = [jnp.zeros(of.shape[1:], jnp.int32) for of in member]
        return Islands(member, total(inertia), number, jnp.zeros(inertia.shape, jnp.int32))
    soft = flex_ties(m, jnp.ones((m.ntree, *inertia.shape[1:]), bool))
    island = connected(p.rows, touched, [*metric_ties(m, inertia), *soft, *more])
    first = [first_of(trees, island) for trees in touched]
    member = [_numbered(number, m.ntree, inertia) for number in first]
    of_tree = weighted_sum(1.0 * (m.dof_treeid == np.arange(m.ntree)[:, None]), inertia)
    trace = apply(_numbered(island, m.ntree, inertia), of_tree)
    number = [jnp.minimum(number, np.int32(m.ntree - 1)) for number in first]
    return Islands(member, trace, number, take(island, m.dof_treeid))


def _numbered(number: Array, count: int, like: Array) -> Array:
    """Numbers `[n, *W]` as a table of 0 and 1, `[count, n, *W]`."""
    place = column(np.arange(count, dtype=np.int32), number)[:, None]
    return (number[None] == place).astype(like.dtype)
