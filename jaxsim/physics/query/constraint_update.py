"""Cost of the constraints and its derivatives at given residuals, for writing solvers.

MuJoCo's documentation, Computation: Constraint model, Primal problem. Rows are those of
`jaxsim.support.constraint_rows`, in their order.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply_transpose
from jaxsim.arrays.gather import sum_items
from jaxsim.enums import ConstraintState
from jaxsim.linalg.inverse_blocks import inverse_blocks
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.shaped import Float, Int
from jaxsim.physics.constraint.cone import Elliptic
from jaxsim.physics.constraint.efc.row_list import ConstraintRows, list_state_rows
from jaxsim.physics.constraint.efc.row_state import cone_row_states, single_row_states
from jaxsim.physics.integrate.system import unforced_system
from jaxsim.physics.partition import inertia_blocks
from jaxsim.physics.query.constraint_rows import add_state_rows


class ConstraintUpdate(NamedTuple):
    """Result of `constraint_update`.

    Attributes:
      efc_state: ConstraintState of each row, (n,); SATISFIED for inactive rows.
      efc_force: minus the gradient of the cost, (n,).
      qfrc_constraint: that force on the dofs, (nv,) [N or N m].
      cost: sum over the rows, ().
      cone_hessian: second derivative of the cost of each elliptic contact in the middle zone of its
        cone, else zero, (contacts, k, k) with k the largest dimension of a contact; in the order of
        the rows. None for a model without elliptic cones.
    """

    efc_state: Int[Array, "rows"]
    efc_force: Float[Array, "rows"]
    qfrc_constraint: Float[Array, "nv"]
    cost: Float[Array, ""]
    cone_hessian: Float[Array, "contacts k k"] | None


def constraint_update(m: Model, d: Data, jar: Float[Array, "rows"]) -> ConstraintUpdate:
    """Compute state, force and cost of the constraint rows at given residuals.

    Corresponds to `mj_constraintUpdate` in MuJoCo.

    Args:
      m: model.
      d: data, of which the state is used.
      jar: residual J qacc - aref per row of `constraint_rows`, (n,).

    Raises:
      ValueError: the number of values is not the number of rows.
    """
    # The rows do not depend on qacc; the residuals come from the caller.
    d = add_state_rows(m, d).replace(qacc=jnp.zeros_like(d.qvel))
    rows = list_state_rows(d)
    check_rows("constraint_update", "jar", jar, rows)
    # Evaluate each row on its own, then the elliptic cones as units.
    state, force, cost = single_row_states(rows, jar)
    hessian = None
    contact = d.rows.contact
    if contact is not None and isinstance(contact.cost, Elliptic):
        state, force, cost, hessian = cone_row_states(contact.cost, rows, jar, state, force, cost)
    # Inactive rows have no force and no cost.
    force = jnp.where(rows.active, force, 0)
    return ConstraintUpdate(
        jnp.where(rows.active, state, np.int32(ConstraintState.SATISFIED)),
        force,
        apply_transpose(rows.efc_J, force),
        sum_items(jnp.where(rows.active, cost, 0))[0],
        hessian,
    )


def project_constraint(m: Model, d: Data) -> Float[Array, "rows rows"]:
    """Compute J M^-1 J' + diag(R) of the rows of `constraint_rows`, (n, n).

    Under the discrete integrator M is the backbone of the step's inertia, see integrate/metric.py.
    Entries of inactive rows are zero. Corresponds to `mj_projectConstraint` in MuJoCo.
    """
    d = add_state_rows(m, d).replace(qacc=jnp.zeros_like(d.qvel))
    rows, inertia = list_state_rows(d), unforced_system(m, d).backbone
    active = rows.active.astype(rows.efc_D.dtype)
    # J M^-1 J' for the active rows.
    A = inverse_blocks(inertia, inertia_blocks(m)).products(active[:, None] * rows.efc_J)
    # R = 1 / D, zero for inactive rows.
    R = active / jnp.where(rows.active, rows.efc_D, 1)
    eye = np.eye(len(R)).reshape(len(R), len(R), *(1,) * (R.ndim - 1))
    return A + jnp.asarray(eye, R.dtype) * R[:, None]


def check_rows(function: str, name: str, given: Array, rows: ConstraintRows) -> None:
    """Raise ValueError if the number of values is not the number of rows."""
    count = rows.active.shape[0]
    if given.shape[0] != count:
        raise ValueError(
            f"{function}: {name}: expected shape ({count},), that of the rows of "
            f"constraint_rows, got ({given.shape[0]},)"
        )
