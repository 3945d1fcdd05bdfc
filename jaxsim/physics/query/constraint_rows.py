"""The constraint rows of a state, and products with their Jacobian.

What is not active stays in its place, marked so; in `d.efc_J` and its kin, of a Data that keeps
them, those that are active come first.
"""

import jax.numpy as jnp

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.bilinear import apply, apply_transpose
from jaxsim.physics.callback import control
from jaxsim.physics.collision.driver import in_place
from jaxsim.physics.constraint.row_list import ConstraintRows, listed
from jaxsim.physics.constraint.weigh import weighed_rows
from jaxsim.physics.forward import (
    fwd_actuation,
    fwd_constraint,
    fwd_position,
    fwd_velocity,
    smooth_force,
)
from jaxsim.physics.integrate.system import unforced_system
from jaxsim.physics.stage import stage


@stage(
    reads=(
        "time qpos qvel act history plastic qacc_warmstart ctrl qfrc_applied xfrc_applied "
        "eq_active mocap_pos "
        "mocap_quat qacc"
    )
)
def constraint_rows(m: Model, d: Data) -> ConstraintRows:
    """The constraint rows at the state of `d`, with the forces that belong to `d.qacc`.

    What PGS and no-slip iterations make of the forces does not follow from `d.qacc`: a model that
    has them gets the forces that `forward` finds at the state and inputs of `d`.

    They are ordered by type, within a type by object, within an object as MuJoCo orders them, so
    that `rows.efc_J[rows.active]` is the matrix that MuJoCo has.
    """
    if m.solves_for_forces:
        d = in_places(m, d)
        for part in (control, fwd_actuation, smooth_force, fwd_constraint):
            d = part(m, d)
        return listed(d)
    return listed(state_rows(m, d))


def state_rows(m: Model, d: Data) -> Data:
    """The data with the rows of its state."""
    d = in_places(m, d)
    return d.replace(rows=weighed_rows(m, d, unforced_system(m, d).backbone), forces=None)


def in_places(m: Model, d: Data) -> Data:
    """The data with what follows from position and velocity, rows in the places that we promise."""
    with in_place():
        return fwd_velocity(m, fwd_position(m, d))


def mul_jac_vec(m: Model, d: Data, vec: Array) -> Array:
    """The constraint Jacobian times a velocity or acceleration, (nv,).

    Returns:
      (n,): one number for each of the rows that `constraint_rows` has; 0 where one is not active.
    """
    rows = _rows(m, d)
    return jnp.where(rows.active, apply(rows.efc_J, vec), 0)


def mul_jac_t_vec(m: Model, d: Data, efc_vec: Array) -> Array:
    """The transpose of the constraint Jacobian times numbers of its rows: a generalized force.

    Args:
      m: model.
      d: data, of which the state counts.
      efc_vec: a number for each of the rows that `constraint_rows` has, (n,); that of one that is
        not active does not count.

    Returns:
      (nv,) [N or N m].

    Raises:
      ValueError: there is not a number for each row.
    """
    rows = _rows(m, d)
    if efc_vec.shape[0] != rows.active.shape[0]:
        raise ValueError(
            f"mul_jac_t_vec: efc_vec: expected shape ({rows.active.shape[0]},), that of the rows "
            f"of constraint_rows, got ({efc_vec.shape[0]},)"
        )
    return apply_transpose(rows.efc_J, jnp.where(rows.active, efc_vec, 0))


def _rows(m: Model, d: Data) -> ConstraintRows:
    """The rows at the state, whose Jacobian does not depend on the acceleration."""
    return constraint_rows(m, d.replace(qacc=jnp.zeros_like(d.qvel)))
