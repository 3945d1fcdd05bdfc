"""The constrained dynamics of one step as a convex problem in the acceleration."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.physics.arrays.pin import pin
from jaxsim.physics.arrays.products import (
    apply,
    apply_basis,
    apply_basis_transpose,
    apply_transpose,
    gram,
    gram_basis,
)
from jaxsim.physics.arrays.select import take, total, weighted_sum
from jaxsim.physics.constraint.rows import ContactRows, DofRows, Rows
from jaxsim.physics.solver.cost import evaluate


class Problem(NamedTuple):
    """minimize 1/2 (x - a0)' M (x - a0) + sum s_i(J_i x - aref_i),  with M a0 = smooth.

    Attributes:
      M: joint-space inertia `[nv, nv, *W]`.
      smooth: generalized force without constraints `[nv, *W]`.
      rows: constraint rows.
    """

    M: jnp.ndarray
    smooth: jnp.ndarray
    rows: Rows

    @property
    def blocks(self) -> tuple:
        """All blocks of rows, in the order in which lists by block have them."""
        return (*self.rows.dof, *self.rows.dense, *self.rows.contact)


def multiply(p: Problem, x) -> list:
    """J x, block by block."""
    return [_multiply(block, x) for block in p.blocks]


def residual(p: Problem, x) -> list:
    """J x - aref, block by block."""
    return minus_reference(p, multiply(p, x))


def minus_reference(p: Problem, Jx: list) -> list:
    """J x - aref from J x."""
    arefs = [block.aref for block in p.blocks]
    return jax.tree.map(lambda a, b: a - b, Jx, arefs)


def _multiply(block, x):
    if isinstance(block, DofRows):
        return block.sign * take(x, block.dof)
    if isinstance(block, ContactRows):
        return list(apply_basis(block.J, x, block.used))
    return apply(block.J, x)


def constraint_force(p: Problem, pieces: list):
    """J' f, `[nv, *W]`."""
    out = jnp.zeros_like(p.smooth)
    for block, piece in zip(p.blocks, pieces, strict=True):
        if isinstance(block, DofRows):
            out = out + _to_dofs(block.dof, block.sign * piece.force, out.shape[0])
        elif isinstance(block, ContactRows):
            out = out + apply_basis_transpose(block.J, piece.force, block.used)
        else:
            out = out + apply_transpose(block.J, piece.force)
    return out


def hessian(p: Problem, pieces: list):
    """M + J' W J, `[nv, nv, *W]`, W the curvature of the cost."""
    nv = p.M.shape[0]
    H = p.M
    diagonal = None
    for block, piece in zip(p.blocks, pieces, strict=True):
        if isinstance(block, DofRows):
            own = _to_dofs(block.dof, piece.weight, nv)
            diagonal = own if diagonal is None else diagonal + own
        elif isinstance(block, ContactRows):
            H = gram_basis(H, block.J, piece.weight, block.used)
        else:
            H = H + gram(block.J, pin(piece.weight[:, None] * block.J, p.smooth))
    if diagonal is not None:
        eye = np.eye(nv, dtype=H.dtype).reshape(nv, nv, *(1,) * (H.ndim - 2))
        H = H + eye * diagonal[:, None]
    return H


def pieces_at(p: Problem, r: list) -> list:
    """Force, cost and curvature of each block at its residual."""
    return [evaluate(block, x) for block, x in zip(p.blocks, r, strict=True)]


def constraint_cost(pieces: list):
    """Sum of the rows' costs, `[1, *W]`."""
    return sum(total(piece.cost) for piece in pieces)


def _to_dofs(dof: np.ndarray, a, nv: int):
    """Sums one number a row onto its dof (a dof may have several rows)."""
    if np.array_equal(dof, np.arange(nv)):
        return a
    place = np.zeros((nv, len(dof)))
    place[dof, np.arange(len(dof))] = 1
    return weighted_sum(place, a)
