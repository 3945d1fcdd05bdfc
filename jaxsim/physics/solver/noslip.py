"""No-slip iterations: friction without regularization, after the solver.

MuJoCo's documentation, Computation: Solver algorithms, NoSlip (`solNoSlip`). A regularized
contact creeps under load. This pass updates only the forces of dry friction and of contact
tangents, as if R were zero, and keeps all others. It is projected Gauss-Seidel on the dual problem,

    minimize 1/2 f' A f + f' (J a0 - aref),   A = J M^-1 J',   M a0 = smooth,

over one row or one contact after another in MuJoCo's order. A is never formed: the acceleration x
is updated with each force. The gradient of the dual cost of a row is r = J x - aref, and a force
change df changes x by M^-1 J' df.

The result is not a fixed point of the iteration, so its derivative is that of the iterations done,
not that of an optimality condition.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply, apply_transpose
from jaxsim.linalg.cholesky import inverse_spd
from jaxsim.model.model import Model
from jaxsim.physics.constraint.cone import Elliptic, Pyramid
from jaxsim.physics.constraint.cost import CostDerivatives, Huber
from jaxsim.physics.constraint.rows import RowBlock
from jaxsim.physics.solver.friction import Bounded, FrictionGroup, can_slip, friction_group
from jaxsim.physics.solver.islands import find_islands
from jaxsim.physics.solver.problem import ConstraintProblem, RowForces
from jaxsim.transforms.materialize import materialize
from jaxsim.transforms.platform import platform


class NoSlip(NamedTuple):
    """Result: acceleration and constraint force `[nv, *W]`, iterations `[1, *W]`, row forces."""

    qacc: jax.Array
    force: jax.Array
    niter: jax.Array
    rows: RowForces


class NoslipStart(NamedTuple):
    """Initial state of the no-slip iterations.

    Attributes:
      problem: the problem.
      qacc: its solution `[nv, *W]`.
      rows: forces of its rows; None: those that follow from `qacc`.
      touched: trees that its rows touch, see `touched_trees`.
      inertia: diagonal of M, `[nv, *W]`, which scales improvements.
    """

    problem: ConstraintProblem
    qacc: jax.Array
    rows: RowForces | None
    touched: list[jax.Array]
    inertia: jax.Array


def run_noslip(m: Model, start: NoslipStart) -> NoSlip:
    """Return the solution after the no-slip iterations; `m` provides the options."""

    # A while loop has no reverse mode: under differentiation all iterations run, masked.
    @jax.custom_jvp
    def run(start: NoslipStart, tolerance: Array) -> NoSlip:
        return _iterate_to_tolerance(m, start, tolerance, way=_ADAPTIVE_LOOP)

    @run.defjvp
    def tangent(primals, tangents):
        return jax.jvp(partial(_iterate_to_tolerance, m, way=_FULL_LOOP), primals, tangents)

    return run(start, m.opt.noslip_tolerance)


class _State(NamedTuple):
    """Loop state; `force` has lists over the tangents of `[n, 1, *W]`."""

    x: jax.Array
    force: list
    niter: jax.Array
    active: jax.Array  # islands that have not converged, `[nisland, *W]`


def _iterate_to_tolerance(
    m: Model, start: NoslipStart, tolerance: Array, way: "_LoopKind"
) -> NoSlip:
    """Iterate until the improvement of each island falls below the tolerance."""
    p, qacc, rows, touched, inertia = start
    # Forces at the solution, and M^-1, with which each row's response is precomputed.
    r = p.residual(qacc)
    terms = _evaluate_rows(p, r, rows)
    reach = None if rows is None else rows.reach
    # M^-1 of the whole system: every row needs its response.
    response = inverse_spd(p.M.matrix)
    x = apply(response, p.smooth + p.force(terms))
    sliding = [k for k, block in enumerate(p.rows.blocks) if can_slip(block)]
    made = [friction_group(p.rows.blocks[k], r[k], terms[k], reach, response) for k in sliding]
    groups, force = materialize(([g for g, _ in made], [f for _, f in made]), x)

    islands = find_islands(m, p, touched, inertia)
    scale = islands.scale
    # The first improvement includes the regularization cost that is dropped.
    held = [_regularization(*pair) for pair in zip(p.rows.blocks, terms, strict=True)]
    held = lax.stop_gradient(held)
    freed = sum(apply(member, a) for member, a in zip(islands.member, held, strict=True))
    # Islands in which each group of rows is a member.
    member = [islands.member[k] for k in sliding]

    def iteration(k: Array, state: _State) -> _State:
        x, forces, niter, active = state
        gain: Array = jnp.where(k == 0, freed, 0)
        # Sweep over the rows of each group, in islands that have not converged.
        new = []
        goes_on = active.astype(x.dtype)
        for one, force, of in zip(groups, forces, member, strict=True):
            here = (apply_transpose(of, goes_on) > 0)[:, None]
            x, force, gained = way.rows(one, x, force, here)
            gain = gain + apply(of, lax.stop_gradient(gained)[:, 0])
            new.append(force)
        return _State(
            x, new, niter + active.astype(niter.dtype), active & (gain * scale >= tolerance)
        )

    active = islands.rows > 0
    # All islands with rows start active.
    first = _State(x, force, jnp.zeros(active.shape, jnp.int32), active)
    last = way.run_iterations(iteration, first, m.opt.noslip_iterations)

    # Replace the friction forces in the blocks of rows, and add up J' f.
    forces = [term.force for term in terms]
    for k, one, force in zip(sliding, groups, last.force, strict=True):
        along = [f[:, 0] for f in force]
        of_contacts = isinstance(forces[k], list)
        forces[k] = [forces[k][0], *along] if of_contacts else along[0]
        if of_contacts and isinstance(one, Bounded):
            reach = [b[:, 0] for b in one.bound]
    push = p.transpose_times(forces)
    niter = jnp.max(last.niter, axis=0, keepdims=True)
    return NoSlip(apply(response, p.smooth + push), push, niter, RowForces(forces, reach))


class _LoopKind(NamedTuple):
    """Loop strategy.

    Attributes:
      run_iterations: runs the iterations.
      rows: visits the rows of a group within one iteration.
    """

    run_iterations: Callable
    rows: Callable


def _until_converged(iteration: Callable, first: _State, iterations: int) -> _State:
    """Iterate until all islands have converged."""

    def not_converged(carry):
        k, state = carry
        return (k < iterations) & jnp.any(state.active)

    def step(carry):
        k, state = carry
        return k + 1, iteration(k, state)

    return lax.while_loop(not_converged, step, (jnp.int32(0), first))[1]


def _scan_iterations(iteration: Callable, first: _State, iterations: int) -> _State:
    """Run all iterations, masked in converged islands; each is rematerialized in reverse mode."""
    again = jax.checkpoint(iteration)
    turns = jnp.arange(iterations, dtype=jnp.int32)
    return lax.scan(lambda state, k: (again(k, state), None), first, turns)[0]


def _visit_item(x: Array, item: tuple[FrictionGroup, list, Array]) -> tuple:
    """Visit one row or contact, as the body of a scan."""
    one, force, here = item
    x, force, gain = one.visit(x, force, here)
    return x, (force, gain)


def _visit_rows(rows: FrictionGroup, x: Array, force: list, here: Array) -> tuple:
    """Visit the rows of a group one after another; the gains are `[n, 1, *W]`."""
    done: tuple = lax.scan(_visit_item, x, (rows, force, here))
    x, (force, gain) = done
    return x, force, gain


def _used_rows(rows: FrictionGroup, x: Array, force: list, here: Array) -> tuple:
    """Visit the rows of a group up to the last one that can slip in some world."""
    if not platform().branches:
        return _visit_rows(rows, x, force, here)
    items = (rows, force, here)

    def visit(k, carry):
        x, out = carry
        x, new = _visit_item(x, jax.tree.map(lambda a: a[k], items))
        return x, jax.tree.map(lambda a, b: a.at[k].set(b), out, new)

    slips = (rows.nonzero_rows & here).any(axis=tuple(range(1, here.ndim)))
    used = jnp.max(jnp.where(slips, np.arange(1, len(slips) + 1, dtype=np.int32), 0))
    gain: Array = jnp.zeros(here.shape, x.dtype)
    x, (force, gain) = lax.fori_loop(0, used, visit, (x, (force, gain)))
    return x, force, gain


_ADAPTIVE_LOOP = _LoopKind(_until_converged, _used_rows)
_FULL_LOOP = _LoopKind(_scan_iterations, _visit_rows)


def _evaluate_rows(p: ConstraintProblem, r: list, rows: RowForces | None) -> list[CostDerivatives]:
    """Evaluate the rows at the residual; given forces replace force and cost (1/2 f' R f)."""
    terms = p.evaluate(r)
    if rows is None:
        return terms
    # PGS: given forces, with the regularization 1/2 f' R f as their cost.
    blocks = zip(p.rows.blocks, terms, rows.blocks, strict=True)
    return [
        term._replace(force=force, cost=_regularization_cost(block.cost, force, rows.reach))
        for block, term, force in blocks
    ]


def _regularization(block: RowBlock, term: CostDerivatives) -> Array:
    """Return 1/2 f' R f of each row or contact, `[n, *W]`; except for dry friction, its cost."""
    if not isinstance(block.cost, Huber):
        return term.cost
    return _regularization_cost(block.cost, term.force, None)


def _regularization_cost(cost: Any, force: Any, reach: list | None) -> Array:
    """Compute 1/2 f' R f for arbitrary forces, `[n, *W]`."""
    if isinstance(cost, Elliptic):
        squares = [_half_square(D, f) for D, f in zip(cost.D, force, strict=True)]
        return sum(squares[1:], squares[0])
    if not isinstance(cost, Pyramid):
        return _half_square(cost.D, force)
    # Pyramids: recover the two edge forces of each tangent from their difference and sum.
    flat = len(cost.mu) == 1 or cost.flat
    out = jnp.where(False if flat is None else flat, _half_square(cost.D, force[0]), 0)
    for mu, f, both in zip(cost.mu[1:], force[1:], reach or [], strict=True):
        per_edge = 1 / jnp.where(mu > 0, 2 * mu, 1.0)
        edges = [_half_square(cost.D, (both + sign * f) * per_edge) for sign in (1, -1)]
        out = out + jnp.where(mu > 0, edges[0] + edges[1], 0)
    return out


def _half_square(D: Array, f: Array) -> Array:
    return jnp.where(D > 0, 0.5 * f**2 / jnp.where(D > 0, D, 1.0), 0)
