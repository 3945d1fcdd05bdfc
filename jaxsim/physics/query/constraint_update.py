"""The cost of the constraints and what follows from it, at residuals that a caller names.

MuJoCo's documentation, Computation: Constraint model, Primal problem. Solvers are built from this.
Rows are those of `jaxsim.constraint_rows`, in their order.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import ConstraintState, ConstraintType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.bilinear import apply_transpose
from jaxsim.physics.arrays.select import total
from jaxsim.physics.arrays.system.factor import inverse_parts
from jaxsim.physics.constraint.cone import Elliptic
from jaxsim.physics.constraint.row_list import ConstraintRows, listed
from jaxsim.physics.integrate.system import unforced_system
from jaxsim.physics.parts import inertia_parts
from jaxsim.physics.query.constraint_rows import state_rows
from jaxsim.physics.stage import stage

DRY = (ConstraintType.FRICTION_DOF, ConstraintType.FRICTION_TENDON)


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
    state, force, cost = _each(rows, jar)
    hessian = None
    contact = d.rows.contact
    if contact is not None and isinstance(contact.cost, Elliptic):
        state, force, cost, hessian = _cones(contact.cost, rows, jar, state, force, cost)
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


def _each(rows: ConstraintRows, jar: Array) -> tuple[Array, Array, Array]:
    """State, force and cost of rows on their own."""
    D, floss = rows.efc_D, rows.efc_frictionloss
    kind = rows.efc_type
    dry = (kind == DRY[0]) | (kind == DRY[1])
    bound = floss / jnp.where(rows.active, D, 1)
    pulls, pushes = dry & (jar <= -bound), dry & (jar >= bound)
    free = ~dry & (kind != ConstraintType.EQUALITY) & (jar >= 0)
    state = jnp.full(jar.shape, ConstraintState.QUADRATIC, jnp.int32)
    for where, named in (
        (free, ConstraintState.SATISFIED),
        (pulls, ConstraintState.LINEARNEG),
        (pushes, ConstraintState.LINEARPOS),
    ):
        state = jnp.where(where, np.int32(named), state)
    force = jnp.where(free, 0, jnp.where(pulls, floss, jnp.where(pushes, -floss, -D * jar)))
    beyond = floss * (jnp.abs(jar) - 0.5 * bound)
    cost = jnp.where(pulls | pushes, beyond, jnp.where(free, 0, 0.5 * D * jar * jar))
    return state, force, cost


def _cones(
    of: Elliptic, rows: ConstraintRows, jar: Array, state: Array, force: Array, cost: Array
) -> tuple[Array, Array, Array, Array]:
    """The same with the rows of elliptic contacts, which stand last, contact by contact."""
    size = len(of.D)
    contacts = of.D[0].shape[0]
    first = len(jar) - size * contacts

    def apart(a: Array) -> list:
        a = jnp.broadcast_to(a, (len(jar), *rows.efc_D.shape[1:]))[first:]
        return [a.reshape(contacts, size, *a.shape[1:])[:, k] for k in range(size)]

    def joined(a: Array, parts: list) -> Array:
        new = jnp.stack(parts, axis=1)
        return jnp.concatenate([a[:first], new.reshape(size * contacts, *new.shape[2:])])

    r = apart(jar)
    piece = of.at(r)
    free, below = of.zones(r)
    quadratic, satisfied = ConstraintState.QUADRATIC, ConstraintState.SATISFIED
    zone = jnp.where(below, np.int32(quadratic), np.int32(ConstraintState.CONE))
    zone = jnp.where(free, np.int32(satisfied), zone)
    none = jnp.zeros_like(piece.cost)
    bends = (of.D[0] > 0) & ~free & ~below
    hessian = jnp.stack(
        [jnp.stack([jnp.where(bends, a, 0) for a in row], axis=1) for row in piece.weight], axis=1
    )
    return (
        joined(state, [zone] * size),
        joined(force, piece.force),
        joined(cost, [piece.cost, *[none] * (size - 1)]),
        hessian,
    )
