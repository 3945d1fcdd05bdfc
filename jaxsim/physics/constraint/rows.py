"""Constraint rows in the solver's representation: by structure, not as one matrix.

A block of rows consists of a Jacobian (jacobian.py), a cost of the residual J x - aref (cost.py,
cone.py) and the reference aref. The three are independent, so that a new kind of row is a new
class, not a new case in the solver. Every block has a fixed number of rows; an inactive row has
neither cost nor force.
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.node import node
from jaxsim.enums import ConstraintType
from jaxsim.physics.constraint.cone import Elliptic, Pyramid
from jaxsim.physics.constraint.contact.group_jacobian import GroupJacobian
from jaxsim.physics.constraint.cost import CostDerivatives, Huber, OneSided, Quadratic
from jaxsim.physics.constraint.impedance import regularization
from jaxsim.physics.constraint.jacobian import (
    BasisJacobian,
    DenseJacobian,
    DofJacobian,
    SparseJacobian,
)
from jaxsim.transforms.materialize import materialize

OfContacts = BasisJacobian | GroupJacobian
Jacobian = TypeVar("Jacobian", bound=DofJacobian | SparseJacobian | DenseJacobian | OfContacts)
_Cost = TypeVar("_Cost", bound=Quadratic | OneSided | Huber | Pyramid | Elliptic)


@node("type", "id")
class RowBlock(Generic[Jacobian, _Cost]):
    """Rows of one type.

    Attributes:
      type: type of the rows; for contacts that of contacts with friction.
      id: the equality, dof, tendon or joint of each row; empty for contacts. Equalities with
        several rows are interleaved: first rows of all constraints, second rows of all, ...
      J: Jacobian.
      cost: cost of the residual.
      aref: reference acceleration `[n, *W]`; for contacts a list over the basis.
      soft: regularization per unit of inverse inertia `[n, *W]`; for contacts that of the first
        row.
      weight: approximate inverse inertia that `cost` was built with, `[n, *W]`.
      pos, margin: reported values: position of the constraint, and where it becomes active, `[n,
        *W]`; None: zero, or that of the contacts.
    """

    type: ConstraintType
    id: tuple[int, ...]
    J: Jacobian
    cost: _Cost
    aref: Any
    soft: jax.Array
    weight: jax.Array
    pos: jax.Array | None = None
    margin: jax.Array | None = None

    @property
    def ids(self) -> np.ndarray:
        """Return `id` as a constant array."""
        return np.array(self.id, int)

    def derivatives(self, r: Any) -> CostDerivatives:
        """Return force, cost and curvature at a residual.

        Those of contacts whose number is known are evaluated where they are used, chunk by chunk.
        """
        if isinstance(self.cost, Pyramid | Elliptic) and self.cost.used is not None:
            return CostDerivatives.in_chunks(self.cost, r)
        derivatives: CostDerivatives = materialize(self.cost.at(r), self.soft)
        return derivatives

    def minus_reference(self, Jx: PyTree) -> PyTree:
        """Compute the residual J x - aref from J x."""
        return jax.tree.map(lambda a, b: a - b, Jx, self.aref)


SingleRows = RowBlock[DofJacobian | SparseJacobian | DenseJacobian, Quadratic | OneSided | Huber]
ContactRows = RowBlock[OfContacts, Pyramid | Elliptic]


class Terms(NamedTuple):
    """Terms of a block's rows besides their Jacobian.

    Attributes:
      cost: builds the cost from the inverse regularization D.
      active: active rows, `[n, *W]` bool, or all.
      aref, soft, weight, pos, margin: as in `RowBlock`.
    """

    cost: Callable[[Array], Quadratic | OneSided | Huber]
    active: Array | bool
    aref: jax.Array
    soft: jax.Array
    weight: jax.Array
    pos: jax.Array | None = None
    margin: jax.Array | None = None


def make_row_block(
    type: ConstraintType,
    id: np.ndarray,
    J: DenseJacobian | SparseJacobian | DofJacobian,
    terms: Terms,
) -> SingleRows:
    """Build a block whose rows belong to the objects `id`, a constant array."""
    D = jnp.where(terms.active, 1 / regularization(terms.soft, terms.weight), 0)
    return RowBlock(type, tuple(id.tolist()), J, terms.cost(D), *terms[2:])


@node()
class ConstraintBlocks:
    """All constraint rows of a step.

    Attributes:
      single: blocks with scalar rows: equalities, dry friction, limits.
      contact: the contacts, or None.
    """

    single: tuple[SingleRows, ...] = ()
    contact: ContactRows | None = None

    @property
    def blocks(self) -> tuple[RowBlock, ...]:
        """Return all blocks, in the order of lists by block."""
        return self.single if self.contact is None else (*self.single, self.contact)

    @property
    def empty(self) -> bool:
        """Return True if the model cannot have rows."""
        return not self.blocks

    @property
    def order(self) -> np.ndarray:
        """Return MuJoCo's order of the rows other than contacts: by type, then by object."""
        none = np.zeros(0, int)
        kind = np.concatenate([none, *(np.full(len(b.id), b.type) for b in self.single)])
        owner = np.concatenate([none, *(b.ids for b in self.single)])
        return np.lexsort((np.arange(len(kind)), owner, kind))
