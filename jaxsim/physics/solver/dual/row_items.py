"""Convert a block of rows to items of the dual problem, and contact forces back to the basis."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.physics.constraint.cone import Elliptic, Pyramid
from jaxsim.physics.constraint.cost import Huber, OneSided, Quadratic
from jaxsim.physics.constraint.rows import RowBlock, SingleRows
from jaxsim.physics.solver.dual.items import flatten_items


class DualItemPart(NamedTuple):
    """Items as in `Items`, with the inverse regularization D instead of R, `[n, size, *W]`."""

    J: jax.Array
    aref: jax.Array
    D: jax.Array
    mu: jax.Array
    low: jax.Array
    high: jax.Array
    island: jax.Array


def pad_items(part: DualItemPart, size: int, worlds: tuple) -> DualItemPart:
    """Broadcast a part to all worlds, and pad its items to `size` rows."""
    part = DualItemPart(*(_broadcast_to_worlds(a, worlds) for a in part))
    # Pad the axis of rows only.
    padding = ((0, 0), (0, size - part.D.shape[1]))

    def padded(a: Array) -> Array:
        return jnp.pad(a, (*padding, *((0, 0),) * (a.ndim - 2)))

    return DualItemPart._make([*(padded(a) for a in part[:4]), *part[4:]])


def _broadcast_to_worlds(a: Array, worlds: tuple) -> Array:
    """Broadcast an array `[..., *W]` to all worlds."""
    return jnp.broadcast_to(a, (*a.shape[: a.ndim - len(worlds)], *worlds))


def row_items(block: SingleRows, island: Array, nv: int) -> DualItemPart:
    """Convert rows that are not contacts to items of one row each."""
    cost = block.cost
    low, high = _FORCE_BOUNDS[type(cost)](cost)
    J, aref, D = (a[:, None] for a in (block.J.dense(nv), block.aref, cost.D))
    return DualItemPart(J, aref, D, jnp.zeros_like(D), low, high, island)


def _free(cost: Any) -> tuple[Array, Array]:
    none = jnp.full_like(cost.D, jnp.inf)
    return -none, none


def _not_negative(cost: Any) -> tuple[Array, Array]:
    return jnp.zeros_like(cost.D), jnp.full_like(cost.D, jnp.inf)


def _within_loss(cost: Huber) -> tuple[Array, Array]:
    loss = cost.floss + jnp.zeros_like(cost.D)
    return -loss, loss


# Bounds of the forces, by the type of their rows' cost.
_FORCE_BOUNDS: dict[type, Callable] = {
    Quadratic: _free,
    OneSided: _not_negative,
    Huber: _within_loss,
}


class _Form(NamedTuple):
    """Conversion of contacts to items and back.

    Attributes:
      parts: `(block, island, worlds) -> DualItemPart`.
      forces: `(cost, f) -> (forces over the basis, reach of pyramids or None)`.
    """

    parts: Callable[[RowBlock, Array, tuple], DualItemPart]
    forces: Callable[[Any, Array], tuple[list, list | None]]


def _pyramid_items(block: RowBlock, island: Array, worlds: tuple) -> DualItemPart:
    rows = []
    # Each edge is a one-sided row: Jacobian and reference combine normal and tangent.
    for edge in block.cost.rows:
        zero = jnp.zeros_like(edge.D)
        J, aref = edge.jacobian(block.J.basis), edge.evaluate(block.aref)
        rows.append((J, aref, edge.D, zero, zero, zero + jnp.inf, island))
    # The edges of each contact are consecutive items.
    fields = zip(*rows, strict=True)
    J, aref, D, mu, low, high, island = (
        flatten_items(jnp.stack([_broadcast_to_worlds(a, worlds) for a in edges], axis=1))
        for edges in fields
    )
    return DualItemPart._make([*(a[:, None] for a in (J, aref, D, mu)), low, high, island])


def _forces_to_edges(cost: Pyramid, f: Array) -> tuple[list, list | None]:
    edges = cost.rows
    by_edge = f[:, 0].reshape(-1, len(edges), *f.shape[2:])
    zero = jnp.zeros_like(by_edge[:, 0])
    force, reach = [zero] * len(cost.mu), [zero] * (len(cost.mu) - 1)
    # Each edge adds to the normal and, with its sign and coefficient, to one tangent.
    for place, (k, _, slope, _) in enumerate(edges):
        push = by_edge[:, place]
        force[0] = force[0] + push
        if k > 0:
            force[k] = force[k] + slope * push
            reach[k - 1] = reach[k - 1] + cost.mu[k] * push
    return force, reach


def _cone_items(block: RowBlock, island: Array, worlds: tuple) -> DualItemPart:
    del worlds
    cost = block.cost
    # Rows with D = 0 are beyond the dimension of their contact.
    D = jnp.stack(cost.D, axis=1)
    exists = D > 0
    aref = jnp.where(exists, jnp.stack(block.aref, axis=1), 0)
    J = jnp.where(exists[:, :, None], jnp.moveaxis(block.J.basis, 0, 1), 0)
    zero = jnp.zeros_like(D[:, 0])
    mu = jnp.stack([zero, *(m + zero for m in cost.mu[1:])], axis=1)
    return DualItemPart(J, aref, D, jnp.where(exists, mu, 0), zero, zero + jnp.inf, island)


def _forces_to_basis(cost: Elliptic, f: Array) -> tuple[list, list | None]:
    return [f[:, k] for k in range(len(cost.mu))], None


ITEM_FORMS: dict[type, _Form] = {
    Pyramid: _Form(_pyramid_items, _forces_to_edges),
    Elliptic: _Form(_cone_items, _forces_to_basis),
}
