"""Statistics of the solver iterations (`mjData.solver`), for a Data that keeps them.

MuJoCo's documentation, Programming: Simulation, Diagnostics (mjSolverStat). CG and PGS record each
island as MuJoCo does; Newton's method solves a world as one island.
"""

from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, sum_items
from jaxsim.arrays.products import values_of
from jaxsim.enums import ConstraintState
from jaxsim.model.data import NISLAND, NSOLVER, SolverStat
from jaxsim.physics.collision.compact import compact_true
from jaxsim.physics.collision.contact_list import gather_world_items
from jaxsim.physics.constraint.cone import Elliptic, Pyramid
from jaxsim.physics.constraint.cost import Huber, OneSided, Parabola, SummedLine
from jaxsim.physics.constraint.rows import RowBlock
from jaxsim.physics.solver.islands import Islands, sums
from jaxsim.physics.solver.problem import ConstraintProblem, Point


class Log(NamedTuple):
    """Statistics as in `SolverStat`, during iterations: `[nisland, iterations, *W]`."""

    improvement: jax.Array
    gradient: jax.Array
    lineslope: jax.Array
    nactive: jax.Array
    nchange: jax.Array
    neval: jax.Array
    nupdate: jax.Array

    @classmethod
    def empty(cls, like: Array, iterations: int) -> Self:
        """Return zeros for as many iterations as there may be; `like` is `[nisland, *W]`."""
        # At most NSOLVER iterations are recorded.
        count = min(iterations, NSOLVER)
        real = jnp.zeros((len(like), count, *like.shape[1:]), like.dtype)
        whole = real.astype(jnp.int32)
        return cls(real, real, real, whole, whole, whole, whole)

    def plus(self, iteration: Array, done: Array, **numbers: Array) -> Self:
        """Record one iteration, number `iteration`, in the islands where `done` is true."""
        place = column(np.arange(self.nactive.shape[1], dtype=np.int32), done)[None]
        here = (place == iteration) & done[:, None]
        new = {}
        for name, number in numbers.items():
            old = getattr(self, name)
            new[name] = jnp.where(here, number[:, None].astype(old.dtype), old)
        return self._replace(**new)

    def compact_islands(self, some: Array) -> SolverStat:
        """Convert to MuJoCo's layout, existing islands (`some`, `[nisland, *W]` bool) first."""
        # Compact the existing islands, and pad to MuJoCo's array sizes.
        index, count = compact_true(some, np.arange(len(some)), len(some))
        there = column(np.arange(len(some), dtype=np.int32), index) < count
        lacks = ((0, max(0, NISLAND - len(some))), (0, NSOLVER - self.nactive.shape[1]))

        def to_slots(a: Array) -> Array:
            a = jnp.where(there[:, None], gather_world_items(a, index), 0)
            return jnp.pad(a, (*lacks, *((0, 0),) * (a.ndim - 2)))[:NISLAND]

        return SolverStat().replace_unchecked(
            {n: to_slots(a) for n, a in self._asdict().items()}, True
        )


def no_statistics(like: SolverStat | None) -> SolverStat | None:
    """Return zero statistics, for a state without rows."""
    return jax.tree.map(jnp.zeros_like, like)


def row_states(blocks: tuple[RowBlock, ...], r: list) -> list[Array]:
    """Return the state of every row at its residual, block by block `[rows, n, *W]`."""
    return [_row_states(block.cost, x) for block, x in zip(blocks, r, strict=True)]


def count_changes(
    states: list[Array], before: list[Array], islands: Islands | None
) -> dict[str, Array]:
    """Compute `nactive` and `nchange` of each island; of the world where `islands` is None."""
    satisfied = np.int32(ConstraintState.SATISFIED)
    active: list = [a != satisfied for a in states]
    changed = [a != b for a, b in zip(states, before, strict=True)]
    return {"nactive": _count(active, islands), "nchange": _count(changed, islands)}


def improvement_and_slope(p: ConstraintProblem, before: Point, after: Point) -> tuple[Array, Array]:
    """Return the decrease of the cost between two points, and the slope at the second."""
    move = jax.tree.map(jnp.subtract, after, before)
    one = jnp.ones_like(sum_items(move.x))
    gain, slope = jnp.zeros_like(one), jnp.zeros_like(one)
    for term in p.restrict_to_line(before, move):
        # Sum over the terms of the cost, at step 1.
        gain = gain - _cost_change(term, one)
        slope = slope + term.derivatives(one)[0]
    length = jnp.sqrt(sum_items(move.x * move.x))
    return gain, jnp.abs(slope) / jnp.where(length > 0, length, 1.0)


def _cost_change(term: Parabola | SummedLine, step: Array) -> Array:
    if isinstance(term, Parabola):
        return term.change(step)
    return sum_items(values_of(term.rows).change(step))


def _count(rows: list, islands: Islands | None) -> Array:
    """Count the rows of each island that are true."""
    # Rows per contact, then sums over the members of each island.
    numbers: list = [jnp.sum(a, axis=0, dtype=jnp.int32).astype(jnp.float32) for a in rows]
    if islands is None:
        found = [sum_items(a) for a in numbers]
    else:
        members = [of.astype(jnp.float32) for of in islands.member]
        found = [sums(of, a) for of, a in zip(members, numbers, strict=True)]
    return sum(found[1:], found[0]).astype(jnp.int32)


def _row_states(cost: Any, r: Any) -> Array:
    """Return the states of the rows of one block; an inactive row is satisfied."""
    # Elliptic cone: zones of the residual.
    if isinstance(cost, Elliptic) and len(cost.mu) > 1:
        free, below = cost.zones(r)
        zone = jnp.where(below, np.int32(ConstraintState.QUADRATIC), np.int32(ConstraintState.CONE))
        zone = jnp.where(free, np.int32(ConstraintState.SATISFIED), zone)
        return jnp.stack([_where_active(D, zone) for D in cost.D])
    if isinstance(cost, Elliptic):
        return _one_sided_states(cost.D[0], r[0])[None]
    # Pyramid: each edge is one-sided.
    if isinstance(cost, Pyramid):
        edges = [
            _one_sided_states(cost.edges(k).D, r[0] + sign * cost.mu[k] * r[k])
            for k in range(1, len(cost.mu))
            for sign in (1, -1)
        ]
        normal = [] if cost.normal is None else [_one_sided_states(cost.normal.D, r[0])]
        return jnp.stack(edges + normal)
    if isinstance(cost, OneSided):
        return _one_sided_states(cost.D, r)[None]
    # Dry friction: linear beyond its bound.
    state = jnp.full(r.shape, ConstraintState.QUADRATIC, jnp.int32)
    if isinstance(cost, Huber):
        beyond = jnp.abs(cost.D * r) >= cost.floss
        side = jnp.where(
            r < 0, np.int32(ConstraintState.LINEARNEG), np.int32(ConstraintState.LINEARPOS)
        )
        state = jnp.where(beyond, side, state)
    return _where_active(cost.D, state)[None]


def _one_sided_states(D: Array, r: Array) -> Array:
    pushes = jnp.where(
        r < 0, np.int32(ConstraintState.QUADRATIC), np.int32(ConstraintState.SATISFIED)
    )
    return _where_active(D, pushes)


def _where_active(D: Array, state: Array) -> Array:
    return jnp.where(D > 0, state, np.int32(ConstraintState.SATISFIED))
