"""Constraint rows as the solver sees them: by structure, not as one matrix.

A block of rows is a Jacobian (jacobian.py), a cost of the residual J x - aref (cost.py, cone.py)
and the reference aref. Each of the three knows only itself, so that a new kind of row is a new
class, not a new case in the solver. Every block has a fixed number of rows; one that is not active
has neither cost nor force.
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import ConstraintType
from jaxsim.physics.arrays.array import Array, Tree
from jaxsim.physics.arrays.node import node
from jaxsim.physics.constraint.cone import Elliptic, Pyramid
from jaxsim.physics.constraint.contact.group_jacobian import GroupJacobian
from jaxsim.physics.constraint.cost import Huber, OneSided, Quadratic
from jaxsim.physics.constraint.impedance import regularization
from jaxsim.physics.constraint.jacobian import (
    BasisJacobian,
    DenseJacobian,
    DofJacobian,
    SparseJacobian,
)

OfContacts = BasisJacobian | GroupJacobian
Jacobian = TypeVar("Jacobian", bound=DofJacobian | SparseJacobian | DenseJacobian | OfContacts)
Cost = TypeVar("Cost", bound=Quadratic | OneSided | Huber | Pyramid | Elliptic)


@node("type", "id")
class Block(Generic[Jacobian, Cost]):
    """Rows of one type.

    Attributes:
      type: what the rows are of; of contacts the type of those with friction.
      id: of each row the equality, dof, tendon or joint; empty for contacts. Equalities of several
        rows have them apart: first rows of all constraints, second rows of all, ...
      J: the Jacobian.
      cost: the cost of the residual.
      aref: reference acceleration `[n, *W]`; of contacts a list over the basis.
      soft: regularization per unit of inverse inertia `[n, *W]`; of contacts that of the first row.
      weight: the approximate inverse inertia that `cost` was made with, likewise.
      pos, margin: what people read beside them: position of the constraint, and where it begins to
        act, `[n, *W]`; None: zero, or that of the contacts.
    """

    type: ConstraintType
    id: tuple[int, ...]
    J: Jacobian
    cost: Cost
    aref: Any
    soft: jax.Array
    weight: jax.Array
    pos: jax.Array | None = None
    margin: jax.Array | None = None

    @property
    def ids(self) -> np.ndarray:
        """`id` as a constant array."""
        return np.array(self.id, int)

    def minus_reference(self, Jx: Tree) -> Tree:
        """The residual J x - aref from J x."""
        return jax.tree.map(lambda a, b: a - b, Jx, self.aref)


SingleRows = Block[DofJacobian | SparseJacobian | DenseJacobian, Quadratic | OneSided | Huber]
ContactRows = Block[OfContacts, Pyramid | Elliptic]


class Terms(NamedTuple):
    """What the rows of a block are, beside their Jacobian.

    Attributes:
      cost: makes the cost, of the inverse regularization D.
      active: rows that take part, `[n, *W]` bool, or all.
      aref, soft, weight, pos, margin: as in `Block`.
    """

    cost: Callable[[Array], Quadratic | OneSided | Huber]
    active: Array | bool
    aref: jax.Array
    soft: jax.Array
    weight: jax.Array
    pos: jax.Array | None = None
    margin: jax.Array | None = None


def block(
    type: ConstraintType,
    id: np.ndarray,
    J: DenseJacobian | SparseJacobian | DofJacobian,
    terms: Terms,
) -> SingleRows:
    """A block whose rows are of the objects `id`, a constant array."""
    D = jnp.where(terms.active, 1 / regularization(terms.soft, terms.weight), 0)
    return Block(type, tuple(id.tolist()), J, terms.cost(D), *terms[2:])


@node()
class Rows:
    """All constraint rows of a step.

    Attributes:
      single: blocks with one row in each place: equalities, dry friction, limits.
      contact: the contacts, or None.
    """

    single: tuple[SingleRows, ...] = ()
    contact: ContactRows | None = None

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks, in the order in which lists by block have them."""
        return self.single if self.contact is None else (*self.single, self.contact)

    @property
    def empty(self) -> bool:
        """Whether the model can have no rows at all."""
        return not self.blocks

    @property
    def order(self) -> np.ndarray:
        """MuJoCo's order of the rows that are not of contacts: by type, then by object."""
        none = np.zeros(0, int)
        kind = np.concatenate([none, *(np.full(len(b.id), b.type) for b in self.single)])
        owner = np.concatenate([none, *(b.ids for b in self.single)])
        return np.lexsort((np.arange(len(kind)), owner, kind))
