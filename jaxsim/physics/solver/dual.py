"""The dual problem: the forces of the rows as unknowns, in the form in which sweeps visit them.

MuJoCo's documentation, Computation: Constraint model, dual problem:

    minimize 1/2 f' (A + R) f + f' (J a0 - aref),   A = J M^-1 J',   M a0 = smooth,

with every force within its bounds: of an equality none, of dry friction +-floss, of a limit and of
an edge of a pyramid not below zero, of an elliptic contact its cone. An item is one row, or all
rows of an elliptic contact; items are in the order of MuJoCo's rows. A is never made: the
acceleration x = a0 + M^-1 J' f goes along, and the slope of the cost is J x - aref + R f.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import MINVAL, ConstraintState
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.bilinear import apply, apply_transpose
from jaxsim.physics.arrays.select import take
from jaxsim.physics.arrays.system.factor import InverseParts
from jaxsim.physics.constraint.cone import Elliptic, Pyramid
from jaxsim.physics.constraint.cost import Huber, OneSided, Quadratic
from jaxsim.physics.constraint.rows import Block, Rows, SingleRows
from jaxsim.physics.solver.ball import least_in_ball, solvable
from jaxsim.physics.solver.islands import Islands
from jaxsim.physics.solver.problem import Problem, RowForces

RISE = 1e-10  # by which the cost may grow before MuJoCo takes back the new force


class Items(NamedTuple):
    """Items with `size` places for rows each; what an item does not have is zero.

    Attributes:
      J, push: `[n, size, nv, *W]` Jacobian, and M^-1 J'.
      aref, R: `[n, size, *W]`.
      A: J M^-1 J' + R of each, `[n, size, size, *W]`; that of the identity for missing rows.
      low, high: bounds of the force of an item that is one row, `[n, *W]`.
      mu: friction coefficients along the rows, `[n, size, *W]`; zero for missing rows.
      cone: contacts of several rows, `[n, *W]` bool.
      solved: those whose friction MuJoCo can find.
      active: items that take part.
      island: their islands, int `[n, *W]`.
    """

    J: jax.Array
    push: jax.Array
    aref: jax.Array
    R: jax.Array
    A: jax.Array
    low: jax.Array
    high: jax.Array
    mu: jax.Array
    cone: jax.Array
    solved: jax.Array
    active: jax.Array
    island: jax.Array

    @property
    def rows(self) -> Array:
        """How many rows each has, `[n, *W]`."""
        return jnp.sum(self.R > 0, axis=1, dtype=jnp.int32)

    def states(self, f: Array) -> Array:
        """ConstraintState by the force, as MuJoCo's sweeps have it, `[n, *W]`."""
        state = jnp.full(self.low.shape, ConstraintState.QUADRATIC, jnp.int32)
        friction, mu = f[:, 1:], self.mu[:, 1:]
        length = jnp.sum((friction / jnp.where(mu > 0, mu, 1.0)) ** 2, axis=1)
        inside = (f[:, 0] >= 0) & (f[:, 0] ** 2 >= length)
        one_way = (self.low == 0) & (self.high > 0)
        for where, named in (
            (one_way & (f[:, 0] <= 0), ConstraintState.SATISFIED),
            (~one_way & (f[:, 0] <= self.low), ConstraintState.LINEARPOS),
            (~one_way & (f[:, 0] >= self.high), ConstraintState.LINEARNEG),
            (self.cone, ConstraintState.CONE),
            (self.cone & inside, ConstraintState.SATISFIED),
        ):
            state = jnp.where(where, np.int32(named), state)
        return state

    def pushing(self, state: Array) -> Array:
        """Rows that count as active, `[n, *W]` bool: equalities and dry friction always."""
        one_way = (self.low == 0) & (self.high > 0)
        return ~one_way | (state != np.int32(ConstraintState.SATISFIED))

    def moved_by(self, f: Array) -> Array:
        """M^-1 J' f, `[n, size, *W]` -> `[nv, *W]`."""
        return apply_transpose(_flat(self.push), _flat(f))

    def residual(self, x: Array) -> Array:
        """J x - aref, `[n, size, *W]`."""
        return apply(_flat(self.J), x).reshape(self.aref.shape) - self.aref

    def within(self, f: Array) -> Array:
        """Forces `[n, size, *W]` brought back into their bounds, as MuJoCo does after a leap."""
        normal, friction = f[:, 0], f[:, 1:]
        alone = jnp.clip(normal, self.low, self.high)[:, None]
        if not friction.shape[1]:
            return alone
        mu = self.mu[:, 1:]
        square = jnp.sum((friction / jnp.where(mu > 0, mu, 1.0)) ** 2, axis=1)
        large = square > normal**2
        shrink = jnp.where(large, jnp.abs(normal) / jnp.sqrt(jnp.maximum(square, MINVAL)), 1.0)
        held = jnp.where((normal < 0)[:, None], 0, f.at[:, 1:].multiply(shrink[:, None]))
        single = jnp.concatenate([alone, jnp.zeros_like(friction)], axis=1)
        return jnp.where(self.cone[:, None], held, single)

    def visit(self, x: Array, f: Array, here: Array) -> tuple[Array, Array, Array]:
        """Changes the force of one item so that the cost falls, in arrays without the first axis.

        Args:
          x: acceleration `[nv, *W]`.
          f: force of the item `[size, *W]`.
          here: `[*W]` bool, where it is visited.

        Returns:
          The acceleration and the force after it, and how much the cost falls `[*W]`.
        """
        size = len(f)
        r = jnp.sum(self.J * x[None], axis=1) - self.aref + self.R * f
        alone = jnp.clip(f[0] - r[0] / self.A[0, 0], self.low, self.high)
        new = [alone, *[jnp.zeros_like(alone)] * (size - 1)]
        if size > 1:
            pairs = zip(self._in_cone(f, r), new, strict=True)
            new = [jnp.where(self.cone, a, b) for a, b in pairs]
        step = jnp.stack(new) - f
        change = jnp.sum(step * (r + 0.5 * apply(self.A, step)), axis=0)
        moves = here & (change <= RISE)
        step, change = jnp.where(moves[None], step, 0), jnp.where(moves, change, 0)
        return x + jnp.sum(self.push * step[:, None], axis=0), f + step, -change

    def _in_cone(self, f: Array, r: Array) -> list:
        """First the best force along the ray through it, then the best friction of that normal."""
        A, size = self.A, len(f)
        along = jnp.sum(f * apply(A, f), axis=0)
        curved = along >= MINVAL
        ray = jnp.where(curved, -jnp.sum(f * r, axis=0) / jnp.where(curved, along, 1.0), 0)
        pushed = f[0] * (1 + jnp.maximum(ray, -1))
        normal = jnp.where(f[0] < MINVAL, jnp.maximum(f[0] - r[0] / A[0, 0], 0), pushed)
        rows = range(1, size)
        slope = [
            self.mu[j] * (r[j] - sum(A[j, k] * f[k] for k in rows) + A[j, 0] * (normal - f[0]))
            for j in rows
        ]
        y = least_in_ball(_scaled(A, self.mu), slope, normal, self.solved)
        return [normal, *(self.mu[k] * a for k, a in zip(rows, y, strict=True))]


def items(p: Problem, inverse: InverseParts, islands: Islands) -> Items:
    """The items of a problem.

    Args:
      p: the problem, with rows.
      inverse: M^-1.
      islands: its islands.
    """
    parts = [_single(b, k, len(p.M)) for b, k in zip(p.rows.single, islands.number, strict=False)]
    order = _order(p.rows)
    worlds = p.smooth.shape[1:]
    if p.rows.contact is not None:
        form = FORMS[type(p.rows.contact.cost)]
        parts.append(form.parts(p.rows.contact, islands.number[-1], worlds))
        order = np.concatenate([order, np.arange(len(order), len(order) + len(parts[-1].D))])
    size = max(part.J.shape[1] for part in parts)
    all_parts = jax.tree.map(
        lambda *a: take(jnp.concatenate(a), order), *(_with_room(q, size, worlds) for q in parts)
    )
    J, aref, D, mu, low, high, island = all_parts
    push = inverse.responses(_flat(J)).reshape(J.shape)
    exists = D > 0
    R = jnp.where(exists, 1 / jnp.where(exists, D, 1.0), 0)
    A = jnp.sum(J[:, :, None] * push[:, None], axis=3)
    unit = np.eye(size, dtype=A.dtype).reshape(1, size, size, *(1,) * len(worlds))
    A = A + unit * jnp.where(exists, R, 1.0)[:, :, None]
    dim = jnp.sum(exists, axis=1, dtype=jnp.int32)
    solved = dim > 1
    if size > 1:
        solved = solved & solvable(_scaled(jnp.moveaxis(A, 0, 2), jnp.moveaxis(mu, 0, 1)), dim)
    return Items(J, push, aref, R, A, low, high, mu, dim > 1, solved, exists[:, 0], island)


def warm_forces(p: Problem, of: Items, x: Array) -> Array:
    """The forces that belong to an acceleration `[nv, *W]`: `[n, size, *W]`."""
    r = of.residual(x)
    D = jnp.where(of.R > 0, 1 / jnp.where(of.R > 0, of.R, 1.0), 0)
    alone = jnp.clip(-D[:, 0] * r[:, 0], of.low, of.high)
    contact = p.rows.contact
    if of.R.shape[1] == 1 or contact is None:
        return alone[:, None]
    first = len(_order(p.rows))
    piece = contact.cost.at([r[first:, k] for k in range(r.shape[1])])
    single = jnp.zeros_like(r[:first]).at[:, 0].set(alone[:first])
    return jnp.concatenate([single, jnp.stack(piece.force, axis=1)])


def row_forces(p: Problem, f: Array) -> RowForces:
    """The forces `[n, size, *W]` of items, block by block."""
    order = _order(p.rows)
    single = take(f[: len(order), 0], np.argsort(order))
    forces: list = []
    for block in p.rows.single:
        forces.append(single[: len(block.id)])
        single = single[len(block.id) :]
    contact, reach = p.rows.contact, None
    if contact is not None:
        of_contacts, reach = FORMS[type(contact.cost)].forces(contact.cost, f[len(order) :])
        forces.append(of_contacts)
    return RowForces(forces, reach)


def _scaled(A: Array, mu: Array) -> list:
    """The friction of A in units of its bounds; the identity for missing rows."""
    rows = range(1, len(mu))
    return [
        [mu[j] * A[j, k] * mu[k] + (jnp.where(mu[j] > 0, 0.0, 1.0) if j == k else 0.0)
         for k in rows]
        for j in rows
    ]  # fmt: skip


def _flat(a: Array) -> Array:
    """`[n, size, ...]` as `[n size, ...]`."""
    return a.reshape(-1, *a.shape[2:])


class _Part(NamedTuple):
    """Some items as in `Items`, with the inverse regularization `[n, size, *W]`."""

    J: jax.Array
    aref: jax.Array
    D: jax.Array
    mu: jax.Array
    low: jax.Array
    high: jax.Array
    island: jax.Array


def _with_room(part: _Part, size: int, worlds: tuple) -> _Part:
    """With all worlds, and as many places for rows as the largest items have."""

    part = _Part(*(_spread(a, worlds) for a in part))
    room = ((0, 0), (0, size - part.D.shape[1]))

    def padded(a: Array) -> Array:
        return jnp.pad(a, (*room, *((0, 0),) * (a.ndim - 2)))

    return _Part._make([*(padded(a) for a in part[:4]), *part[4:]])


def _spread(a: Array, worlds: tuple) -> Array:
    """An array `[..., *W]` with all worlds."""
    return jnp.broadcast_to(a, (*a.shape[: a.ndim - len(worlds)], *worlds))


def _order(rows: Rows) -> np.ndarray:
    """MuJoCo's order of the rows that are not of contacts: by type, then by object."""
    blocks, none = rows.single, np.zeros(0, int)
    kind = np.concatenate([none, *(np.full(len(b.id), b.type) for b in blocks)])
    owner = np.concatenate([none, *(b.ids for b in blocks)])
    return np.lexsort((np.arange(len(kind)), owner, kind))


def _single(block: SingleRows, island: Array, nv: int) -> _Part:
    cost = block.cost
    low, high = BOUNDS[type(cost)](cost)
    J, aref, D = (a[:, None] for a in (block.J.dense(nv), block.aref, cost.D))
    return _Part(J, aref, D, jnp.zeros_like(D), low, high, island)


def _free(cost: Any) -> tuple[Array, Array]:
    none = jnp.full_like(cost.D, jnp.inf)
    return -none, none


def _not_negative(cost: Any) -> tuple[Array, Array]:
    return jnp.zeros_like(cost.D), jnp.full_like(cost.D, jnp.inf)


def _within_loss(cost: Huber) -> tuple[Array, Array]:
    loss = cost.floss + jnp.zeros_like(cost.D)
    return -loss, loss


# the bounds of forces by the cost of their rows
BOUNDS: dict[type, Callable] = {Quadratic: _free, OneSided: _not_negative, Huber: _within_loss}


class _Form(NamedTuple):
    """How contacts are items: `parts(block, island, worlds)`, and `forces(cost, f)` back over the
    basis, with the reach of pyramids."""

    parts: Callable[[Block, Array, tuple], _Part]
    forces: Callable[[Any, Array], tuple[list, list | None]]


def _edges(cost: Pyramid) -> list[tuple[int, int, Array]]:
    """Edges +1, -1, +2, ... of each contact: basis vector, sign, inverse regularization.

    A frictionless contact, whose slopes are zero, has one row: its normal.
    """
    places = [(k, sign) for k in range(1, len(cost.mu)) for sign in (1, -1)] or [(0, 1)]
    edges = [(k, sign, cost.edges(k).D) for k, sign in places]
    if cost.normal is not None:
        k, sign, D = edges[0]
        edges[0] = (k, sign, D + cost.normal.D)
    return edges


def _of_pyramids(block: Block, island: Array, worlds: tuple) -> _Part:
    cost, basis, rows = block.cost, block.J.basis, []
    for k, sign, D in _edges(cost):
        slope = sign * cost.mu[k]
        J = basis[0] + slope[:, None] * basis[k]
        aref = block.aref[0] + slope * block.aref[k]
        zero = jnp.zeros_like(D)
        rows.append((J, aref, D, zero, zero, zero + jnp.inf, island))
    # edge after edge of each contact
    fields = zip(*rows, strict=True)
    J, aref, D, mu, low, high, island = (
        _flat(jnp.stack([_spread(a, worlds) for a in edges], axis=1)) for edges in fields
    )
    return _Part._make([*(a[:, None] for a in (J, aref, D, mu)), low, high, island])


def _on_edges(cost: Pyramid, f: Array) -> tuple[list, list | None]:
    edges = _edges(cost)
    by_edge = f[:, 0].reshape(-1, len(edges), *f.shape[2:])
    zero = jnp.zeros_like(by_edge[:, 0])
    force, reach = [zero] * len(cost.mu), [zero] * (len(cost.mu) - 1)
    for place, (k, sign, _) in enumerate(edges):
        push = by_edge[:, place]
        force[0] = force[0] + push
        if k > 0:
            force[k] = force[k] + sign * cost.mu[k] * push
            reach[k - 1] = reach[k - 1] + cost.mu[k] * push
    return force, reach


def _of_cones(block: Block, island: Array, worlds: tuple) -> _Part:
    del worlds
    cost = block.cost
    D = jnp.stack(cost.D, axis=1)
    exists = D > 0
    aref = jnp.where(exists, jnp.stack(block.aref, axis=1), 0)
    J = jnp.where(exists[:, :, None], jnp.moveaxis(block.J.basis, 0, 1), 0)
    zero = jnp.zeros_like(D[:, 0])
    mu = jnp.stack([zero, *(m + zero for m in cost.mu[1:])], axis=1)
    return _Part(J, aref, D, jnp.where(exists, mu, 0), zero, zero + jnp.inf, island)


def _in_basis(cost: Elliptic, f: Array) -> tuple[list, list | None]:
    return [f[:, k] for k in range(len(cost.mu))], None


FORMS: dict[type, _Form] = {
    Pyramid: _Form(_of_pyramids, _on_edges),
    Elliptic: _Form(_of_cones, _in_basis),
}
