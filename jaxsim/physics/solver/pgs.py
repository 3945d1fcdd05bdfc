"""Projected Gauss-Seidel on the dual problem, with momentum.

MuJoCo's documentation, Computation: Solver algorithms, PGS (`solPGS`). A sweep minimizes the
dual cost over one force after another, subject to its bounds, in an order that is reshuffled before
each sweep (shuffle.py). Before a sweep the forces are extrapolated along their last change
(Nesterov); where the sweep moves against the extrapolation, the momentum restarts (O'Donoghue and
Candes, *Adaptive restart for accelerated gradient schemes*, 2015). Islands converge separately,
when a sweep lowers their cost by less than the tolerance.

The result has the forces of the last sweep; they match the acceleration only at the minimum.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.dynamic import dynamic_index_in_dim, dynamic_slice_in_dim
from jaxsim.arrays.gather import column, sum_items
from jaxsim.physics.collision.contact_list import gather_world_items
from jaxsim.physics.solver.dual.build import dual_items, item_row_forces, warm_forces
from jaxsim.physics.solver.dual.items import Items
from jaxsim.physics.solver.islands import Islands, gather_by_island, sums
from jaxsim.physics.solver.problem import ConstraintProblem
from jaxsim.physics.solver.shuffle import Order, active_items_in_order, shuffle_order
from jaxsim.physics.solver.solution import ConstraintSolution, SolverSettings
from jaxsim.physics.solver.statistics import Log
from jaxsim.transforms.materialize import materialize
from jaxsim.transforms.platform import platform


class _State(NamedTuple):
    """Loop state.

    Attributes:
      iteration: number of the sweep.
      force, before: current forces, and those of the previous sweep, `[n, size, *W]`.
      order: the last visiting order.
      momentum_age: sweeps since the last restart of the momentum, `[nisland, *W]`.
      niter, active: sweeps done, and islands that have not converged, `[nisland, *W]`.
      log: statistics, or None.
    """

    iteration: jax.Array
    force: jax.Array
    before: jax.Array
    order: Order
    momentum_age: jax.Array
    niter: jax.Array
    active: jax.Array
    log: Log | None


def gauss_seidel(
    p: ConstraintProblem, settings: SolverSettings, iterations: int, records: bool = False
) -> ConstraintSolution:
    """Return the acceleration and the forces after MuJoCo's PGS sweeps."""
    assert settings.islands is not None
    islands, inverse = settings.islands, p.inverse_inertia()
    smooth = inverse.times(p.smooth)
    # Rows in MuJoCo's order, with M^-1 J' precomputed, and their one-hot islands, for sums.
    of = materialize(dual_items(p, inverse, islands), smooth)
    count = len(islands.trace)
    number = column(np.arange(count, dtype=np.int32), of.island)[:, None]
    member = ((of.island[None] == number) & of.active[None]).astype(smooth.dtype)
    # Start from the forces of the warm start, in unshuffled order.
    force = _cheaper_start(p, settings, of, smooth)
    order = active_items_in_order(of.active, of.island, count)
    none, some = jnp.zeros(order.size.shape, jnp.int32), order.size > 0
    log = Log.empty(islands.scale + none.astype(smooth.dtype), iterations) if records else None
    first = _State(jnp.int32(0), force, force, order, none, none, some, log)

    # Sweep until all islands have converged.
    def not_converged(s: _State) -> Array:
        return (s.iteration < iterations) & jnp.any(s.active)

    def sweep(s: _State) -> _State:
        return _sweep(of, islands, member, smooth, settings.tolerance, s)

    last = lax.while_loop(not_converged, sweep, first)
    # Forces by block, and J' f.
    rows = item_row_forces(p, last.force)
    Jf = p.transpose_times(rows.blocks)
    most = jnp.max(last.niter, axis=0, keepdims=True)
    stat = None if last.log is None else last.log.compact_islands(some)
    return ConstraintSolution(smooth + inverse.times(Jf), smooth, Jf, most, rows, stat)


def _sweep(
    of: Items, islands: Islands, member: Array, smooth: Array, tolerance: Array, s: _State
) -> _State:
    """Perform one sweep: extrapolate, minimize over each force, restart the momentum.

    Args:
      of: the rows, with M^-1 J'.
      islands: the islands.
      member: one-hot island of each active row.
      smooth: unconstrained acceleration `[nv, *W]`.
      tolerance: improvement below which an island has converged.
      s: state before the sweep.
    """
    # Nesterov extrapolation, projected onto the bounds.
    since = s.momentum_age.astype(smooth.dtype)
    beta = jnp.where(s.iteration > 0, (since - 1) / (since + 2), 0)
    extrapolates = gather_by_island(s.active & (beta > 0), of.island)[:, None]
    ahead = of.within(s.force + gather_by_island(beta, of.island)[:, None] * (s.force - s.before))
    start = jnp.where(extrapolates, ahead, s.force)
    # Gauss-Seidel sweep in shuffled order, from the acceleration of the extrapolated forces.
    order = shuffle_order(s.order)
    force, gain = _visit_all(of, order, smooth + of.acceleration_of(start), start, s.active)
    # Restart the momentum where the sweep moved against the extrapolation.
    onwards = jnp.sum((force - start) * (start - s.force), axis=1)
    back = (s.iteration > 0) & (sums(member, onwards) < 0)
    active = s.active & (gain * islands.scale >= tolerance)
    age = jnp.where(back, 0, s.momentum_age + 1)
    # Statistics of the sweep.
    log = s.log
    if log is not None:
        state, old = of.states(force), of.states(s.force)
        rows = jnp.where(of.active, of.rows, 0).astype(smooth.dtype)
        changed = jnp.where(state != old, rows, 0)
        pushing = jnp.where(of.active_rows(state), rows, 0)
        log = log.plus(
            s.iteration,
            s.active,
            improvement=gain * islands.scale,
            nactive=sums(member, pushing),
            nchange=sums(member, changed),
        )
    niter = s.niter + s.active.astype(jnp.int32)
    return _State(s.iteration + 1, force, s.force, order, age, niter, active, log)


def _cheaper_start(
    p: ConstraintProblem, settings: SolverSettings, of: Items, smooth: Array
) -> Array:
    """Return the forces of the warm start, or zero where that costs less, per world."""
    none = jnp.zeros_like(of.aref)
    if settings.warm is None:
        return none
    force = warm_forces(p, of, settings.warm)
    # Dual cost 1/2 f' (A + R) f + f' (J a0 - aref), with the gradients at 0 and at f.
    x = smooth + of.acceleration_of(force)
    slopes = of.residual(smooth) + of.residual(x) + of.R * force
    cost = 0.5 * sum_items(jnp.sum(force * slopes, axis=1))
    return jnp.where((cost > 0)[:, None], none, force)


def _visit_all(
    of: Items, order: Order, x: Array, force: Array, active: Array
) -> tuple[Array, Array]:
    """Run one sweep; return the forces and the improvement of each island `[nisland, *W]`."""

    def visit(iteration: Array, carry: tuple) -> tuple:
        x, force, gain = carry
        # Gather the item of each world, minimize over its force, scatter it back.
        at = dynamic_slice_in_dim(order.items, iteration, 1)
        one, f = _gather_item((of, force), at)
        here = (iteration < order.used) & gather_by_island(active, one.island[None])
        x, new, gained = one.visit(x, f, here[0])
        place = column(np.arange(len(active), dtype=np.int32), one.island[None])
        gain = gain + jnp.where(place == one.island[None], gained[None], 0)
        return x, _scatter_force(force, at, new), gain

    used = jnp.max(order.used) if platform().branches else len(force)
    start = (x, force, jnp.zeros(active.shape, x.dtype))
    _, force, gain = lax.fori_loop(0, used, visit, start)
    return force, gain


def _gather_item(tree: PyTree, at: Array) -> PyTree:
    """Gather the item at an index `[1, *W]` of each world's own."""
    # One world: a dynamic index. A batch: a gather with one index per world.
    if at.ndim == 1:
        return jax.tree.map(lambda a: dynamic_index_in_dim(a, at[0], keepdims=False), tree)
    return jax.tree.map(lambda a: a[0], gather_world_items(tree, at))


def _scatter_force(force: Array, at: Array, new: Array) -> Array:
    """Scatter the force of one item per world."""
    if at.ndim == 1:
        return force.at[at[0]].set(new)
    world = jnp.arange(at.shape[1])
    return force.at[at[0], :, world].set(new.T, unique_indices=True)
