"""Constraint islands as index tables, for methods that converge island by island.

Newton's method solves a world as one problem, since the minimum is the same. The result of a
limited number of iterations is not: conjugate gradients (conjugate_gradient.py), PGS (pgs.py) and
no-slip (noslip.py) test convergence per island, as MuJoCo does. MuJoCo's documentation,
Computation: Constraint islands; corresponds to `mj_island`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply
from jaxsim.arrays.gather import column, gather, gather_static, sum_items, weighted_sum
from jaxsim.enums import DisableBit
from jaxsim.model.model import Model
from jaxsim.physics.constraint.island import connected_components, smallest_label
from jaxsim.physics.integrate.tree_couplings import flex_couplings, metric_couplings
from jaxsim.physics.solver.problem import ConstraintProblem


class Islands(NamedTuple):
    """Islands of a state; an island has the id of its first tree.

    Attributes:
      member: block by block `[nisland, n, *W]`: 1 where a row (or a contact) is in the island;
        inactive rows are in none.
      trace: trace of M over the dofs of the island `[nisland, *W]`; 0: no such island.
      number: block by block `[n, *W]`: the island of each active row.
      of_dof: `[nv, *W]`: the island of each dof.
    """

    member: list
    trace: jax.Array
    number: list
    of_dof: jax.Array

    @property
    def rows(self) -> Array:
        """Return the number of rows (or contacts) of each island, `[nisland, *W]`."""
        counts = [jnp.sum(of, axis=1) for of in self.member]
        return sum(counts[1:], counts[0])

    @property
    def dofs(self) -> Array:
        """Return the one-hot table of dofs `[nisland, nv, *W]`: 1 where a dof is in the island."""
        return _one_hot_ids(self.of_dof, len(self.trace), self.trace)

    @property
    def scale(self) -> Array:
        """Return 1 / trace, which makes improvements comparable; 0 where there is no island."""
        some = self.trace > 0
        return jnp.where(some, 1 / jnp.where(some, self.trace, 1.0), 0)


def sums(member: Array, values: Array) -> Array:
    """Sum over the items of each island: `[nisland, n, *W]`, `[n, *W]` -> `[nisland, *W]`.

    With a single island for all, items outside of it must be zero.
    """
    if len(member) == 1:
        return sum_items(values)
    if values.ndim == 1:
        return apply(member, values)
    return jnp.sum(member * values[None], axis=1)


def gather_by_island(numbers: Array, island: Array) -> Array:
    """Gather the value of each item's island: `[nisland, *W]`, `[n, *W]` -> `[n, *W]`."""
    return numbers if len(numbers) == 1 else gather(numbers, island)


def find_islands(
    m: Model, p: ConstraintProblem, touched: list[Array], inertia: Array, more: Sequence[Array] = ()
) -> Islands:
    """Find the islands; one for the whole world where the flag `island` is off.

    Args:
      m: model.
      p: the problem.
      touched: trees that the rows touch, see `touched_trees`.
      inertia: diagonal of M, `[nv, *W]`.
      more: further sets of coupled trees, see `passive_couplings`.
    """
    inertia = lax.stop_gradient(inertia)
    if m.ntree == 1 or m.opt.disableflags & DisableBit.ISLAND:
        member = [trees.any(axis=1)[None].astype(inertia.dtype) for trees in touched]
        number = [jnp.zeros(of.shape[1:], jnp.int32) for of in member]
        return Islands(member, sum_items(inertia), number, jnp.zeros(inertia.shape, jnp.int32))
    # Connected components of the trees, coupled by rows, by M and by flexes.
    soft = flex_couplings(m, jnp.ones((m.ntree, *inertia.shape[1:]), bool))
    island = connected_components(p.rows, touched, [*metric_couplings(m, inertia), *soft, *more])
    # The island of a row is the component of its trees.
    first = [smallest_label(trees, island) for trees in touched]
    member = [_one_hot_ids(number, m.ntree, inertia) for number in first]
    # Trace of M over each island, from that over each tree.
    of_tree = weighted_sum(1.0 * (m.dof_treeid == np.arange(m.ntree)[:, None]), inertia)
    trace = apply(_one_hot_ids(island, m.ntree, inertia), of_tree)
    number = [jnp.minimum(number, np.int32(m.ntree - 1)) for number in first]
    return Islands(member, trace, number, gather_static(island, m.dof_treeid))


def _one_hot_ids(number: Array, count: int, like: Array) -> Array:
    """Convert ids `[n, *W]` to a one-hot table `[count, n, *W]`."""
    place = column(np.arange(count, dtype=np.int32), number)[:, None]
    return (number[None] == place).astype(like.dtype)
