"""The cost of the constraints and what follows from it, at residuals that a caller names.

MuJoCo's documentation, Computation: Constraint model, Primal problem. Solvers are built from this.
Rows are those of `jaxsim.constraint_rows`, in their order.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import ConstraintState
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.bilinear import apply_transpose
from jaxsim.physics.arrays.select import total
from jaxsim.physics.arrays.system.factor import inverse_parts
from jaxsim.physics.constraint.cone import Elliptic
from jaxsim.physics.constraint.row_list import ConstraintRows, listed
from jaxsim.physics.constraint.row_state import cones, each
from jaxsim.physics.integrate.system import unforced_system
from jaxsim.physics.parts import inertia_parts
from jaxsim.physics.query.constraint_rows import state_rows
from jaxsim.physics.stage import stage


class ConstraintUpdate(NamedTuple):
    """What `constraint_update` finds.

    Attributes:
      efc_state: ConstraintState of each row, (n,); SATISFIED of one that is not active.
      efc_force: minus the gradient of the cost, (n,).
      qfrc_constraint: that on the dofs, (nv,) [N or N m].
      cost: sum over the rows, ().
      cone_hessian: second derivative of the cost of each elliptic contact in the middle zone of its
        cone, else zero, (contacts, k, k) with k the largest dimension of a contact; in the order of
        the rows. None for a model whose contacts are no elliptic cones.
    """

    efc_state: jax.Array
    efc_force: jax.Array
    qfrc_constraint: jax.Array
    cost: jax.Array
    cone_hessian: jax.Array | None


@stage(reads="time qpos qvel act history plastic ctrl eq_active mocap_pos mocap_quat")
def constraint_update(m: Model, d: Data, jar: Array) -> ConstraintUpdate:
    """State, force and cost of the constraint rows at given residuals.

    Args:
      m: model.
      d: data, of which the state counts.
      jar: residual J qacc - aref of each of the rows that `constraint_rows` has, (n,).

    Raises:
      ValueError: there is not a number for each row.
    """
    d = state_rows(m, d).replace(qacc=jnp.zeros_like(d.qvel))
    rows = listed(d)
    check_rows("constraint_update", "jar", jar, rows)
    state, force, cost = each(rows, jar)
    hessian = None
    contact = d.rows.contact
    if contact is not None and isinstance(contact.cost, Elliptic):
        state, force, cost, hessian = cones(contact.cost, rows, jar, state, force, cost)
    force = jnp.where(rows.active, force, 0)
    return ConstraintUpdate(
        jnp.where(rows.active, state, np.int32(ConstraintState.SATISFIED)),
        force,
        apply_transpose(rows.efc_J, force),
        total(jnp.where(rows.active, cost, 0))[0],
        hessian,
    )


@stage(reads="time qpos qvel act history plastic ctrl eq_active mocap_pos mocap_quat")
def project_constraint(m: Model, d: Data) -> Array:
    """J M^-1 J' + diag(R) of the rows that `constraint_rows` has, (n, n).

    Under the discrete integrator M is the backbone of the step's inertia, see integrate/metric.py.
    Rows and columns that are not active are zero.
    """
    d = state_rows(m, d).replace(qacc=jnp.zeros_like(d.qvel))
    rows, inertia = listed(d), unforced_system(m, d).backbone
    active = rows.active.astype(rows.efc_D.dtype)
    A = inverse_parts(inertia, inertia_parts(m)).products(active[:, None] * rows.efc_J)
    R = active / jnp.where(rows.active, rows.efc_D, 1)
    eye = np.eye(len(R)).reshape(len(R), len(R), *(1,) * (R.ndim - 1))
    return A + jnp.asarray(eye, R.dtype) * R[:, None]


def check_rows(function: str, name: str, given: Array, rows: ConstraintRows) -> None:
    """Raises ValueError if there is not a number for each row."""
    count = rows.active.shape[0]
    if given.shape[0] != count:
        raise ValueError(
            f"{function}: {name}: expected shape ({count},), that of the rows of "
            f"constraint_rows, got ({given.shape[0]},)"
        )
