"""Projected Gauss-Seidel sweeps over the rows, with momentum: MuJoCo's PGS.

MuJoCo's documentation, Computation: Solver algorithms, PGS. A sweep sets one force after another
to the best value that its bounds leave, in an order that changes (shuffle.py). Before a sweep the
forces leap on in the direction of the last one (Nesterov), unless that led away, after which the
momentum begins anew (O'Donoghue and Candes, *Adaptive restart for accelerated gradient schemes*,
2015). Islands end apart, when a sweep lowers their cost by less than the tolerance.

The forces are those of the last sweep, which belong to the acceleration only at the minimum.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.physics.arrays.array import Array, Tree
from jaxsim.physics.arrays.pin import pin
from jaxsim.physics.arrays.platform import platform
from jaxsim.physics.arrays.select import column, total
from jaxsim.physics.arrays.system.factor import inverse_parts
from jaxsim.physics.collision.listed import picked
from jaxsim.physics.solver.dual.build import items, row_forces, warm_forces
from jaxsim.physics.solver.dual.items import Items
from jaxsim.physics.solver.islands import spread, sums
from jaxsim.physics.solver.problem import Problem
from jaxsim.physics.solver.shuffle import Order, in_order, shuffled
from jaxsim.physics.solver.solution import Settings, Solution
from jaxsim.physics.solver.statistics import Log


class _State(NamedTuple):
    """Between two sweeps.

    Attributes:
      turn: number of the sweep.
      force, before: forces now and before the last leap, `[n, size, *W]`.
      order: the last order.
      leaps: sweeps since the momentum began, `[nisland, *W]`.
      niter, busy: sweeps done, and whether there will be another, `[nisland, *W]`.
    """

    turn: jax.Array
    force: jax.Array
    before: jax.Array
    order: Order
    leaps: jax.Array
    niter: jax.Array
    busy: jax.Array
    log: Log | None


def gauss_seidel(
    p: Problem, settings: Settings, iterations: int, records: bool = False
) -> Solution:
    """The acceleration and the forces after MuJoCo's sweeps."""
    assert settings.islands is not None
    islands = settings.islands
    inverse = inverse_parts(p.M, p.inertia_parts)
    smooth = inverse.times(p.smooth)
    of = pin(items(p, inverse, islands), smooth)
    count = len(islands.trace)
    number = column(np.arange(count, dtype=np.int32), of.island)[:, None]
    member = ((of.island[None] == number) & of.active[None]).astype(smooth.dtype)

    def proceed(s: _State) -> Array:
        return (s.turn < iterations) & jnp.any(s.busy)

    def sweep(s: _State) -> _State:
        since = s.leaps.astype(smooth.dtype)
        beta = jnp.where(s.turn > 0, (since - 1) / (since + 2), 0)
        leaps = spread(s.busy & (beta > 0), of.island)[:, None]
        ahead = of.within(s.force + spread(beta, of.island)[:, None] * (s.force - s.before))
        leapt = jnp.where(leaps, ahead, s.force)
        order = shuffled(s.order)
        force, gain = _visit_all(of, order, smooth + of.moved_by(leapt), leapt, s.busy)
        onwards = jnp.sum((force - leapt) * (leapt - s.force), axis=1)
        back = (s.turn > 0) & (sums(member, onwards) < 0)
        goes_on = s.busy & (gain * islands.scale >= settings.tolerance)
        again = jnp.where(back, 0, s.leaps + 1)
        log = s.log
        if log is not None:
            state, old = of.states(force), of.states(s.force)
            rows = jnp.where(of.active, of.rows, 0).astype(smooth.dtype)
            changes = jnp.where(state != old, rows, 0)
            pushes = jnp.where(of.pushing(state), rows, 0)
            log = log.plus(
                s.turn,
                s.busy,
                improvement=gain * islands.scale,
                nactive=sums(member, pushes),
                nchange=sums(member, changes),
            )
        niter = s.niter + s.busy.astype(jnp.int32)
        return _State(s.turn + 1, force, s.force, order, again, niter, goes_on, log)

    force = _start(p, settings, of, smooth)
    order = in_order(of.active, of.island, count)
    none = jnp.zeros(order.size.shape, jnp.int32)
    some = order.size > 0
    log = Log.empty(islands.scale + none.astype(smooth.dtype), iterations) if records else None
    first = _State(jnp.int32(0), force, force, order, none, none, some, log)
    last = lax.while_loop(proceed, sweep, first)
    rows = row_forces(p, last.force)
    push = p.push(rows.blocks)
    most = jnp.max(last.niter, axis=0, keepdims=True)
    stat = None if last.log is None else last.log.kept(some)
    return Solution(smooth + inverse.times(push), smooth, push, most, rows, stat)


def _start(p: Problem, settings: Settings, of: Items, smooth: Array) -> Array:
    """The forces of the warm start, or none where these cost less, world by world."""
    none = jnp.zeros_like(of.aref)
    if settings.warm is None:
        return none
    force = warm_forces(p, of, settings.warm)
    x = smooth + of.moved_by(force)
    slopes = of.residual(smooth) + of.residual(x) + of.R * force
    cost = 0.5 * total(jnp.sum(force * slopes, axis=1))
    return jnp.where((cost > 0)[:, None], none, force)


def _visit_all(of: Items, order: Order, x: Array, force: Array, busy: Array) -> tuple[Array, Array]:
    """One sweep: the forces after it, and what each island gained `[nisland, *W]`."""

    def visit(turn: Array, carry: tuple) -> tuple:
        x, force, gain = carry
        at = lax.dynamic_slice_in_dim(order.items, turn, 1)
        one, f = _one((of, force), at)
        here = (turn < order.used) & spread(busy, one.island[None])
        x, new, gained = one.visit(x, f, here[0])
        place = column(np.arange(len(busy), dtype=np.int32), one.island[None])
        gain = gain + jnp.where(place == one.island[None], gained[None], 0)
        return x, _put(force, at, new), gain

    used = jnp.max(order.used) if platform().branches else len(force)
    start = (x, force, jnp.zeros(busy.shape, x.dtype))
    _, force, gain = lax.fori_loop(0, used, visit, start)
    return force, gain


def _one(tree: Tree, at: Array) -> Tree:
    """The items at a place `[1, *W]` that each world chooses for itself."""
    if at.ndim == 1:
        return jax.tree.map(lambda a: lax.dynamic_index_in_dim(a, at[0], keepdims=False), tree)
    return jax.tree.map(lambda a: a[0], picked(tree, at))


def _put(force: Array, at: Array, new: Array) -> Array:
    """Forces with those of one item of each world changed."""
    if at.ndim == 1:
        return force.at[at[0]].set(new)
    world = jnp.arange(at.shape[1])
    return force.at[at[0], :, world].set(new.T, unique_indices=True)
