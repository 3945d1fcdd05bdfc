"""The rows of each constraint island, for iterations that end island by island.

Newton's method takes a world as one problem, for its solution is the same. What is left when
iterations end early is not: those against slip (noslip.py) end island by island, as MuJoCo's do.
MuJoCo's documentation, Computation: Constraint islands.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.enums import DisableBit
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.bilinear import apply
from jaxsim.physics.arrays.select import column, total, weighted_sum
from jaxsim.physics.constraint.island import connected, first_of
from jaxsim.physics.integrate.ties import flex_ties, metric_ties
from jaxsim.physics.solver.problem import Problem


class Islands(NamedTuple):
    """The islands of a state; each has the number of its first tree.

    Attributes:
      member: block by block `[nisland, n, *W]`: 1 where a row (or a contact) is in the island; rows
        that are not active are in none.
      trace: `[nisland, *W]` sum of the diagonal of M over the dofs of the island; 0: there is none.
    """

    member: list
    trace: jax.Array


def find_islands(m: Model, p: Problem, touched: list[Array], inertia: Array) -> Islands:
    """The islands; one for the whole world where the flag `island` is off.

    Args:
      m: model.
      p: the problem.
      touched: the trees that its rows touch, as `touched_trees` gives them.
      inertia: diagonal of M, `[nv, *W]`.
    """
    inertia = lax.stop_gradient(inertia)
    if m.ntree == 1 or m.opt.disableflags & DisableBit.ISLAND:
        member = [trees.any(axis=1)[None].astype(inertia.dtype) for trees in touched]
        return Islands(member, total(inertia))
    soft = flex_ties(m, jnp.ones((m.ntree, *inertia.shape[1:]), bool))
    island = connected(p.rows, touched, [*metric_ties(m, inertia), *soft])
    member = [_numbered(first_of(trees, island), m.ntree, inertia) for trees in touched]
    of_tree = weighted_sum(1.0 * (m.dof_treeid == np.arange(m.ntree)[:, None]), inertia)
    return Islands(member, apply(_numbered(island, m.ntree, inertia), of_tree))


def _numbered(number: Array, count: int, like: Array) -> Array:
    """Numbers `[n, *W]` as a table of 0 and 1, `[count, n, *W]`."""
    place = column(np.arange(count, dtype=np.int32), number)[:, None]
    return (number[None] == place).astype(like.dtype)
