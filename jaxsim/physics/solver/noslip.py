"""The no-slip iterations: friction without regularization, after the solver.

A regularized contact creeps under any load. Here only the forces of dry friction and those along
the tangents of contacts change, as if R were zero, while all other forces stay what the solver has
found. MuJoCo's documentation, Computation: Solver algorithms, NoSlip. It is a method of Gauss and
Seidel on the dual problem,

    minimize 1/2 f' A f + f' (J a0 - aref),   A = J M^-1 J',   M a0 = smooth,

one row or one contact after another in MuJoCo's order. A is never made: the acceleration is carried
along instead. Of a row that is next, r = J x - aref is the slope of the dual cost; a force that
changes by df moves x by M^-1 J' df.

What comes out is no minimum that further iterations keep, so its derivative is that of the
iterations that were done.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.enums import MINVAL, ConstraintType
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array, Tree
from jaxsim.physics.arrays.factor import inverse_spd
from jaxsim.physics.arrays.pin import pin
from jaxsim.physics.arrays.platform import platform
from jaxsim.physics.arrays.products import apply, apply_transpose, gram
from jaxsim.physics.arrays.select import total
from jaxsim.physics.constraint.cone import Elliptic, Pyramid
from jaxsim.physics.constraint.cost import Piece
from jaxsim.physics.constraint.rows import Block, ContactRows, SingleRows
from jaxsim.physics.solver.ball import least_in_ball, solvable
from jaxsim.physics.solver.islands import find_islands
from jaxsim.physics.solver.problem import Problem

DRY = (ConstraintType.FRICTION_DOF, ConstraintType.FRICTION_TENDON)
RISE = 1e-10  # by which the cost may grow before MuJoCo takes back the new force of a contact


class RowForces(NamedTuple):
    """Forces of the rows where they do not follow from their residuals.

    Attributes:
      blocks: block by block, as `Piece.force`.
      reach: of pyramids: largest force along each tangent, as `Pyramid.reach`; else None.
    """

    blocks: list
    reach: list | None


class NoSlip(NamedTuple):
    """Acceleration and constraint force `[nv, *W]`, iterations `[1, *W]`, forces of the rows."""

    qacc: jax.Array
    force: jax.Array
    niter: jax.Array
    rows: RowForces


def without_slip(m: Model, p: Problem, qacc: Array) -> NoSlip:
    """The solution after the no-slip iterations.

    Args:
      m: model, for the options.
      p: the problem.
      qacc: its solution `[nv, *W]`.
    """

    # an early end cannot be differentiated backwards: there all iterations are done, with masks
    @jax.custom_jvp
    def run(p: Problem, qacc: Array, tolerance: Array) -> NoSlip:
        return _iterate(m, p, qacc, tolerance, SHORT)

    @run.defjvp
    def tangent(primals, tangents):
        return jax.jvp(lambda *args: _iterate(m, *args, WHOLE), primals, tangents)

    return run(p, qacc, m.opt.noslip_tolerance)


class _State(NamedTuple):
    """Between two iterations; `force` has lists over the tangents of `[n, 1, *W]`."""

    x: jax.Array
    force: list
    niter: jax.Array
    busy: jax.Array  # islands that go on, `[nisland, *W]`


def _iterate(m: Model, p: Problem, qacc: Array, tolerance: Array, way: "_Way") -> NoSlip:
    """Iterations until what each island gains falls below the tolerance."""
    r = p.residual(qacc)
    pieces = p.pieces(r)
    response = inverse_spd(p.M)
    x = apply(response, p.smooth + p.force(pieces))
    slides = [k for k, block in enumerate(p.rows.blocks) if _has_friction(block)]
    groups = [_group(p.rows.blocks[k], r[k], pieces[k], response) for k in slides]
    groups, force = pin(([g for g, _ in groups], [f for _, f in groups]), x)

    islands = find_islands(m, p)
    scale = jnp.where(islands.trace > 0, 1 / jnp.where(islands.trace > 0, islands.trace, 1.0), 0)
    # the regularization counts as gained when it goes away
    held = [_regularization(*pair) for pair in zip(p.rows.blocks, pieces, strict=True)]
    held = lax.stop_gradient(held)
    start = sum(apply(member, a) for member, a in zip(islands.member, held, strict=True))
    member = [islands.member[k] for k in slides]

    def turn(k: Array, state: _State) -> _State:
        x, forces, niter, busy = state
        gain, new = jnp.where(k == 0, start, 0), []
        goes_on = busy.astype(x.dtype)
        for group, force, of in zip(groups, forces, member, strict=True):
            here = (apply_transpose(of, goes_on) > 0)[:, None]
            x, force, gained = way.rows(group, x, force, here)
            gain = gain + apply(of, lax.stop_gradient(gained)[:, 0])
            new.append(force)
        return _State(x, new, niter + busy.astype(niter.dtype), busy & (gain * scale >= tolerance))

    rows = [jnp.sum(of, axis=1) for of in islands.member]
    busy = sum(rows[1:], rows[0]) > 0
    first = _State(x, force, jnp.zeros(busy.shape, jnp.int32), busy)
    last = way.turns(turn, first, m.opt.noslip_iterations)

    forces = [piece.force for piece in pieces]
    reach = None
    for k, group, force in zip(slides, groups, last.force, strict=True):
        along = [f[:, 0] for f in force]
        contact = isinstance(p.rows.blocks[k].cost, Pyramid | Elliptic)
        forces[k] = [forces[k][0], *along] if contact else along[0]
        if contact and isinstance(group, _Bounded):
            reach = [b[:, 0] for b in group.bound]
    push = p.push(forces)
    niter = jnp.max(last.niter, axis=0, keepdims=True)
    return NoSlip(apply(response, p.smooth + push), push, niter, RowForces(forces, reach))


class _Way(NamedTuple):
    """How to go through iterations, and through the rows of a group in each."""

    turns: Callable
    rows: Callable


def _until_done(turn: Callable, first: _State, iterations: int) -> _State:
    """Turns until no island goes on."""

    def proceed(carry):
        k, state = carry
        return (k < iterations) & jnp.any(state.busy)

    def step(carry):
        k, state = carry
        return k + 1, turn(k, state)

    return lax.while_loop(proceed, step, (jnp.int32(0), first))[1]


def _all_turns(turn: Callable, first: _State, iterations: int) -> _State:
    """All turns, those of islands that are done without effect. Backwards each is done again."""
    again = jax.checkpoint(turn)
    turns = jnp.arange(iterations, dtype=jnp.int32)
    return lax.scan(lambda state, k: (again(k, state), None), first, turns)[0]


class _Bounded(NamedTuple):
    """Rows whose friction has a bound each: dry friction, and tangents of pyramids.

    A pyramid's tangent has two edges, the sum of whose forces stays; so the bound of their
    difference is known, and a contact is as many rows of dry friction as it has tangents.
    Lists over the tangents, one for rows of dry friction.

    Attributes:
      J, push: `[n, nv, *W]` Jacobian, and M^-1 J'.
      aref, A, bound: `[n, 1, *W]`; A is J M^-1 J'.
    """

    J: list
    push: list
    aref: list
    A: list
    bound: list

    @property
    def slips(self) -> Array:
        """Rows whose force may be other than zero, `[n, 1, *W]` bool."""
        return sum(self.bound[1:], self.bound[0]) > 0

    def visit(self, x: Array, force: list, here: Array) -> tuple[Array, list, Array]:
        """One row or contact, in the arrays of this without their first axis.

        Returns:
          The acceleration and the forces after it, and how much the dual cost falls `[1, *W]`.
        """
        gain, new = jnp.zeros_like(x[:1]), []
        for J, push, aref, A, bound, f in zip(*self, force, strict=True):
            r = total(J * x) - aref
            free = f - r / jnp.maximum(A, MINVAL)
            to = jnp.where(free > bound, bound, jnp.where(free < -bound, -bound, free))
            step = jnp.where(here, to - f, 0)
            gain = gain - (0.5 * A * step + r) * step
            x = x + push * step
            new.append(f + step)
        return x, new, gain


class _Cone(NamedTuple):
    """Tangents of elliptic contacts, bounded together: |f_k / mu_k| <= normal force.

    As in `_Bounded`, but:

    Attributes:
      A: nested lists, J M^-1 J' of each contact.
      mu: friction coefficients; 0: the contact has no such tangent.
      normal: normal force `[n, 1, *W]`.
      solved: MuJoCo finds a minimum.
    """

    J: list
    push: list
    aref: list
    A: list
    mu: list
    normal: jax.Array
    solved: jax.Array

    @property
    def slips(self) -> Array:
        """As that of `_Bounded`."""
        return self.normal > 0

    def visit(self, x: Array, force: list, here: Array) -> tuple[Array, list, Array]:
        """As that of `_Bounded`."""
        size, A = len(force), self.A
        r = [total(J * x) - aref for J, aref in zip(self.J, self.aref, strict=True)]
        slope = [r[j] - _dot(A[j], force) for j in range(size)]
        scaled = _scaled(A, self.mu)
        slope = [mu * b for mu, b in zip(self.mu, slope, strict=True)]
        y = least_in_ball(scaled, slope, self.normal, self.solved & here)
        step = [mu * a - f for mu, a, f in zip(self.mu, y, force, strict=True)]
        rise = _dot(step, r) + 0.5 * _dot(step, [_dot(row, step) for row in A])
        moves = here & (rise <= RISE)
        step = [jnp.where(moves, a, 0) for a in step]
        for push, a in zip(self.push, step, strict=True):
            x = x + push * a
        new = [f + a for f, a in zip(force, step, strict=True)]
        return x, new, jnp.where(moves, -rise, 0)


def _visit(x: Array, item: tuple) -> tuple:
    """One row or contact, in the form of a scan."""
    one, force, here = item
    x, force, gain = one.visit(x, force, here)
    return x, (force, gain)


def _all_rows(group: "_Bounded | _Cone", x: Array, force: list, here: Array) -> tuple:
    """Visits the rows of a group one after another; gains `[n, 1, *W]`."""
    x, (force, gain) = lax.scan(_visit, x, (group, force, here))
    return x, force, gain


def _used_rows(group: "_Bounded | _Cone", x: Array, force: list, here: Array) -> tuple:
    """As far as there is one that can slip in some world."""
    if not platform().branches:
        return _all_rows(group, x, force, here)
    items = (group, force, here)

    def visit(k, carry):
        x, out = carry
        x, new = _visit(x, jax.tree.map(lambda a: a[k], items))
        return x, jax.tree.map(lambda a, b: a.at[k].set(b), out, new)

    slips = (group.slips & here).any(axis=tuple(range(1, here.ndim)))
    used = jnp.max(jnp.where(slips, np.arange(1, len(slips) + 1, dtype=np.int32), 0))
    start = (force, jnp.zeros(here.shape, x.dtype))
    x, (force, gain) = lax.fori_loop(0, used, visit, (x, start))
    return x, force, gain


SHORT = _Way(_until_done, _used_rows)
WHOLE = _Way(_all_turns, _all_rows)


def _has_friction(block: Block) -> bool:
    """Whether rows of a block can slip."""
    cost = block.cost
    return len(cost.mu) > 1 if isinstance(cost, Pyramid | Elliptic) else block.type in DRY


def _group(
    block: SingleRows | ContactRows, r: Tree, piece: Piece, response: Array
) -> tuple[_Bounded | _Cone, list]:
    """The rows of a block that slip, and their forces."""
    cost, nv = block.cost, len(response)
    contact = isinstance(cost, Pyramid | Elliptic)
    J = list(block.J.basis[1:]) if contact else [block.J.dense(nv)]
    push = [gram(jnp.swapaxes(a, 0, 1), response) for a in J]

    def single(a: Array) -> Array:
        return jnp.broadcast_to(a, (len(a), *response.shape[2:]))[:, None]

    aref = [single(a) for a in (block.aref[1:] if contact else [block.aref])]
    force = [single(a) for a in (piece.force[1:] if contact else [piece.force])]
    if not isinstance(cost, Elliptic):
        A = [_rows_dot(a, b)[:, None] for a, b in zip(J, push, strict=True)]
        bound = (
            cost.reach(r) if isinstance(cost, Pyramid) else [jnp.where(cost.D > 0, cost.floss, 0)]
        )
        return _Bounded(J, push, aref, A, [single(a) for a in bound]), force
    A = [[_rows_dot(a, b)[:, None] for b in push] for a in J]
    mu = [single(a) for a in cost.mu[1:]]
    dim = 1 + sum((a > 0).astype(jnp.int32) for a in mu)
    solved = solvable(_scaled(A, mu), dim)
    return _Cone(J, push, aref, A, mu, single(piece.force[0]), solved), force


def _regularization(block: Block, piece: Piece) -> Array:
    """1/2 f' R f of each row or contact, `[n, *W]`: but for dry friction it is the row's cost."""
    D = block.cost.D
    if block.type not in DRY:
        return piece.cost
    return jnp.where(D > 0, 0.5 * piece.force**2 / jnp.where(D > 0, D, 1.0), 0)


def _scaled(A: list, mu: list) -> list:
    """A in units of the bounds; the identity for tangents that a contact does not have."""
    return [
        [mu[j] * a * mu[k] + (jnp.where(mu[j] > 0, 0.0, 1.0) if j == k else 0.0)
         for k, a in enumerate(row)]
        for j, row in enumerate(A)
    ]  # fmt: skip


def _rows_dot(a: Array, b: Array) -> Array:
    """Products of rows with rows, `[n, nv, *W]` -> `[n, *W]`."""
    return jnp.sum(a * b, axis=1)


def _dot(a: list, b: list) -> Array:
    return sum((x * y for x, y in zip(a[1:], b[1:], strict=True)), a[0] * b[0])
