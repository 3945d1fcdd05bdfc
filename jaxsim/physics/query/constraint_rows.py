"""Constraint rows of a state, and products with their Jacobian.

Inactive rows keep their index and are marked; the fields `d.efc_J` and so on, of a Data that keeps
them, list the active rows first.
"""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply, apply_transpose
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.shaped import Float
from jaxsim.physics.callback import call_control
from jaxsim.physics.constraint.efc.row_list import ConstraintRows, list_state_rows
from jaxsim.physics.constraint.regularize import regularized_rows
from jaxsim.physics.integrate.system import unforced_system
from jaxsim.physics.pipeline.forward import fwd_dynamics, fwd_position, fwd_velocity
from jaxsim.trace_context import trace_with


def constraint_rows(m: Model, d: Data) -> ConstraintRows:
    """Return the constraint rows at the state of `d`, with the forces at `d.qacc`.

    Forces of PGS and no-slip iterations do not follow from `d.qacc`: a model that has them gets the
    forces that `forward` computes at the state and inputs of `d`.

    Rows are ordered by type, within a type by object, within an object as in MuJoCo, so that
    `rows.efc_J[rows.active]` is MuJoCo's matrix.
    """
    # The forces of PGS and no-slip follow from the solver only: run the pipeline up to it.
    if m.solves_for_forces:
        return list_state_rows(fwd_dynamics(m, call_control(m, add_ordered_rows(m, d))))
    return list_state_rows(add_state_rows(m, d))


def add_state_rows(m: Model, d: Data) -> Data:
    """Return the data with the constraint rows of its state."""
    d = add_ordered_rows(m, d)
    return d.replace(rows=regularized_rows(m, d, unforced_system(m, d).backbone), forces=None)


def add_ordered_rows(m: Model, d: Data) -> Data:
    """Return the data with position and velocity results, and contacts in the public order."""
    with trace_with(keeps_candidate_slots=True):
        return fwd_velocity(m, fwd_position(m, d))


def mul_jac_vec(m: Model, d: Data, vec: Float[Array, "nv"]) -> Float[Array, "rows"]:
    """Multiply a velocity or acceleration (nv,) by the constraint Jacobian; `mj_mulJacVec`.

    Returns:
      (n,): one value per row of `constraint_rows`; 0 for inactive rows.
    """
    rows = _state_rows(m, d)
    return jnp.where(rows.active, apply(rows.efc_J, vec), 0)


def mul_jac_t_vec(m: Model, d: Data, efc_vec: Float[Array, "rows"]) -> Float[Array, "nv"]:
    """Multiply values of the rows by the transposed constraint Jacobian; `mj_mulJacTVec`.

    Args:
      m: model.
      d: data, of which the state is used.
      efc_vec: a value per row of `constraint_rows`, (n,); those of inactive rows are ignored.

    Returns:
      Generalized force, (nv,) [N or N m].

    Raises:
      ValueError: the number of values is not the number of rows.
    """
    rows = _state_rows(m, d)
    if efc_vec.shape[0] != rows.active.shape[0]:
        raise ValueError(
            f"mul_jac_t_vec: efc_vec: expected shape ({rows.active.shape[0]},), that of the rows "
            f"of constraint_rows, got ({efc_vec.shape[0]},)"
        )
    return apply_transpose(rows.efc_J, jnp.where(rows.active, efc_vec, 0))


def _state_rows(m: Model, d: Data) -> ConstraintRows:
    """Return the rows at the state; their Jacobian does not depend on the acceleration."""
    return constraint_rows(m, d.replace(qacc=jnp.zeros_like(d.qvel)))
