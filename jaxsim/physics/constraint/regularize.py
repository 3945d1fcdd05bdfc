"""Regularization of rows from their inertia in the present state.

MuJoCo's documentation, Computation: Constraint model, Parameters. R is (1 - d) / d times the
diagonal of A = J M^-1 J', which rows approximate from the pose qpos0 (`dof_invweight0`,
`body_invweight0`, `tendon_invweight0`). Two options
change that: under the discrete integrator M is that of the step (integrate/metric.py), and the
approximation is corrected by the ratio of diagonals; the flag diagexact computes the diagonal
itself.
"""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply
from jaxsim.arrays.gather import diagonal
from jaxsim.enums import EnableBit
from jaxsim.linalg.inverse_blocks import inverse_blocks
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.constraint.cone import Pyramid
from jaxsim.physics.constraint.contact.rows import raise_reference_by_adhesion
from jaxsim.physics.constraint.impedance import regularization
from jaxsim.physics.constraint.rows import ConstraintBlocks, ContactRows, SingleRows
from jaxsim.physics.integrate.discrete import is_discrete
from jaxsim.physics.partition import inertia_blocks

# From Jacobians J `[n, nv, *W]` and approximate weights `[n, *W]` to the weights of the rows.
Weigh = Callable[[Array, Array], Array]


def regularized_rows(m: Model, d: Data, inertia: Array) -> ConstraintBlocks:
    """Return the rows of `d` with the regularization for an inertia `[nv, nv, *W]`.

    The inertia must have the sparsity of the mass matrix.
    """
    exact = bool(m.opt.enableflags & EnableBit.DIAGEXACT)
    # Default: the approximation made with the rows.
    if d.rows.empty or not (exact or is_discrete(m)):
        return d.rows
    weigh = _exact_inverse_inertia(m, inertia) if exact else _rescale_by_inertia(d, inertia)
    single = tuple(_single_rows_diagonal(block, weigh, m.nv) for block in d.rows.single)
    contact = d.rows.contact
    return ConstraintBlocks(single, None if contact is None else _contacts(d, contact, weigh))


def _exact_inverse_inertia(m: Model, inertia: Array) -> Weigh:
    """Return a function that computes J M^-1 J' of each row."""
    # Blockwise inverse of M.
    inverse = inverse_blocks(inertia, inertia_blocks(m))
    return lambda J, _: inverse.squares(J)


def _rescale_by_inertia(d: Data, inertia: Array) -> Weigh:
    """Return a function that scales the approximation by the ratio of diagonal inertias."""
    # Diagonals of the step's inertia and of M.
    now, bare = 1 / diagonal(inertia), 1 / diagonal(d.M)

    def weigh(J: Array, weight: Array) -> Array:
        squares = J * J
        before = apply(squares, bare)
        # below that the entries of J are rounding errors
        moves = before > jnp.finfo(before.dtype).eps ** 2
        return weight * jnp.where(moves, apply(squares, now), 1) / jnp.where(moves, before, 1)

    return weigh


def _single_rows_diagonal(block: SingleRows, weigh: Weigh, nv: int) -> SingleRows:
    weight = weigh(block.J.dense(nv), block.weight)
    D = block.cost.D * _regularization_factor(block, weight)
    return replace(block, weight=weight, cost=replace(block.cost, D=D))


def _contacts(d: Data, block: ContactRows, weigh: Weigh) -> ContactRows:
    """Reweight contacts by their first row, the normal or an edge; the others are proportional."""
    # First row of pyramids: normal plus scaled tangent.
    J, cost = block.J.basis[0], block.cost
    if isinstance(cost, Pyramid) and len(cost.mu) > 1:
        J = J + cost.mu[1][:, None] * block.J.basis[1]
    weight = weigh(J, block.weight)
    change = _regularization_factor(block, weight)
    # All rows scale together.
    D = jax.tree.map(lambda a: a * change, cost.D)
    edges = isinstance(cost, Pyramid)
    # Adhesion shifts the reference by R: undo the old shift, apply the new one.
    before, after = (jax.tree.leaves(a)[0] for a in (cost.D, D))
    normal, *rest = block.aref
    c = d.found.contacts
    normal = raise_reference_by_adhesion(
        c, after, raise_reference_by_adhesion(c, before, normal, edges, -1.0), edges
    )
    aref = [normal, *rest]
    return replace(block, weight=weight, cost=replace(cost, D=D), aref=aref)


def _regularization_factor(block: SingleRows | ContactRows, weight: Array) -> Array:
    """Return the factor of the inverse regularization."""
    D = jax.tree.leaves(block.cost.D)[0]
    soft = jnp.where(D > 0, block.soft, 1)  # soft is not finite at the onset of a smoothed contact
    return regularization(soft, block.weight) / regularization(soft, weight)
