"""Constraint rows as the solver sees them: by structure, not as one matrix.

A row that touches one dof is a sign and a dof; a row of a tendon or an equality has a dense
Jacobian; a contact keeps the Jacobian of its basis (normal, tangents, spin, roll), from which the
edges of a friction pyramid are combinations. Every block has a fixed number of rows; one that is
not active has D = 0 and so neither cost nor force.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import ConstraintType


class DofRows(NamedTuple):
    """Rows that touch one dof each: dry friction and joint limits.

    Attributes:
      type: FRICTION_DOF or LIMIT_JOINT.
      id: constant `[n]` dof or joint whose friction or limit it is.
      dof: constant `[n]` dof of each row.
      sign: `[n, *W]` its Jacobian there.
      D: `[n, *W]` inverse regularization; 0: not active.
      aref: `[n, *W]` reference acceleration.
      floss: `[n, *W]` bound of a friction row, or None for limits.
    """

    type: ConstraintType
    id: np.ndarray
    dof: np.ndarray
    sign: jnp.ndarray
    D: jnp.ndarray
    aref: jnp.ndarray
    floss: jnp.ndarray | None


class DenseRows(NamedTuple):
    """Rows with a Jacobian `[n, nv, *W]`: equalities, tendons, ball limits.

    Attributes:
      type: EQUALITY, FRICTION_TENDON, LIMIT_JOINT or LIMIT_TENDON.
      id: constant `[n]` equality, tendon or joint of each row. Equalities of several rows have them
        apart: first rows of all constraints, second rows of all, ...
      J, D, aref: as in `DofRows`.
      floss: bound of a friction row, else None.
    """

    type: ConstraintType
    id: np.ndarray
    J: jnp.ndarray
    D: jnp.ndarray
    aref: jnp.ndarray
    floss: jnp.ndarray | None


class ContactRows(NamedTuple):
    """Contacts in their basis.

    Attributes:
      cone: ConeType.
      J: `[basis, ncon, nv, *W]`, the basis being normal, tangent 1, 2, spin, roll 1, 2.
      D: `[ncon, *W]` inverse regularization of the pyramid's edges, or of the cone's normal.
      aref: list over the basis `[ncon, *W]`: the reference of edge +-k is aref[0] +- mu[k] aref[k].
      mu: list over the basis `[ncon, *W]` of friction coefficients; mu[0] of an elliptic cone
        is its slope after regularization. Zero beyond the contact's own dimension.
      Dt: list over the basis of an elliptic cone's regularizations (Dt[0] is D); None for pyramids.
      flat: `[ncon, *W]` bool: frictionless (one row, not a pyramid); None where the model's
        contacts all have friction, or none has.
      used: contacts up to the last that pushes in any world, int scalar; None: not known.
    """

    cone: int
    J: jnp.ndarray
    D: jnp.ndarray
    aref: list
    mu: list
    Dt: list | None
    flat: jnp.ndarray | None
    used: jnp.ndarray | None


class Rows(NamedTuple):
    """All constraint rows of a step."""

    dof: tuple[DofRows, ...] = ()
    dense: tuple[DenseRows, ...] = ()
    contact: tuple[ContactRows, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether the model can have no rows at all."""
        return not (self.dof or self.dense or self.contact)
