"""Matrices of a state in CSR format, with MuJoCo's sparsity patterns.

The patterns are tables of the model, known when a program is traced: values are gathered from the
dense matrices, and the indices are constants. Under `jax.vmap` the matrices have leading axes.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.sparse import BCSR

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.shaped import Float
from jaxsim.physics.actuator.transmission import moment_pattern
from jaxsim.physics.public.arguments import check_data, check_model
from jaxsim.physics.public.wrapper import make_public
from jaxsim.physics.query.mass_matrix import full_m

_full_m = make_public(full_m)
_CsrPattern = tuple[np.ndarray, np.ndarray, np.ndarray]


def sparse_m(m: Model, d: Data) -> Float[BCSR, "nv nv"]:
    """Return the lower triangle of M in CSR format, with the pattern M_rownnz, M_rowadr, M_colind.

    The whole is `A + jnp.tril(A, -1).T` with `A = sparse_m(m, d).todense()`.

    Args:
      m: the model.
      d: one world; `d.M` if it keeps that, else the mass matrix at its qpos.

    Returns:
      A `jax.experimental.sparse.BCSR` (nv, nv): `data` are the values, in MuJoCo's order, `indices`
      the columns, `indptr` where rows begin.
    """
    check_model("sparse_m", m)
    check_data("sparse_m", m, d)
    s = m.structure
    return _gather_entries(
        _full_m(m, d) if d.M is None else d.M, (s.M_rownnz, s.M_rowadr, s.M_colind)
    )


def sparse_ten_j(m: Model, d: Data) -> Float[BCSR, "ntendon nv"]:
    """Return the Jacobian of the tendons (ntendon, nv), with the pattern of `ten_J` in mjModel.

    Args, returns: as for `sparse_m`; `d` keeps `ten_J`.

    Raises:
      ValueError: `d` does not keep `ten_J`.
    """
    s = m.structure
    pattern = s.ten_J_rownnz, s.ten_J_rowadr, s.ten_J_colind
    return _gather_entries(_check_kept("sparse_ten_j", m, d, "ten_J"), pattern)


def sparse_actuator_moment(m: Model, d: Data) -> Float[BCSR, "nout nv"]:
    """Return the moment arms of the actuators (nout, nv) in CSR format.

    MuJoCo finds this pattern at each state. Here it is that of the model: of joints and tendons the
    same, of sites, cranks and bodies all dofs that move them.

    Args, returns: as for `sparse_m`; `d` keeps `actuator_moment`.

    Raises:
      ValueError: `d` does not keep `actuator_moment`.
    """
    # Count the entries of each row to build the CSR pointers.
    at = moment_pattern(m)
    count = np.bincount(at.row, minlength=m.nout)
    pattern = count, np.cumsum(count) - count, at.col
    return _gather_entries(_check_kept("sparse_actuator_moment", m, d, "actuator_moment"), pattern)


def sparse_flexedge_j(m: Model, d: Data) -> Float[BCSR, "nflexedge nv"]:
    """Return the Jacobian of the edges of flexes (nflexedge, nv), with the pattern in mjModel.

    As in MuJoCo it has no entries of a flex without edge constraints and passive edge forces.

    Args, returns: as for `sparse_m`; `d` keeps `flexedge_J`, which has the values already.

    Raises:
      ValueError: `d` does not keep `flexedge_J`.
    """
    s = m.structure
    values = _check_kept("sparse_flexedge_j", m, d, "flexedge_J")
    pattern = s.flexedge_J_rownnz, s.flexedge_J_rowadr, s.flexedge_J_colind
    return _matrix(values, pattern, (s.nflexedge, s.nv))


def _check_kept(function: str, m: Model, d: Data, name: str) -> jax.Array:
    check_model(function, m)
    check_data(function, m, d)
    if getattr(d, name) is None:
        raise ValueError(
            f"{function}: this Data does not carry {name!r}; keep it: make_data(m, keep=[{name!r}])"
        )
    value: jax.Array = getattr(d, name)
    return value


def _gather_entries(dense: jax.Array, pattern: _CsrPattern) -> BCSR:
    """Gather the entries of a matrix in a pattern."""
    count, _, columns = pattern
    row = np.repeat(np.arange(len(count)), count)
    return _matrix(dense[row, columns[: len(row)]], pattern, dense.shape)


def _matrix(values: jax.Array, pattern: _CsrPattern, shape: tuple[int, ...]) -> BCSR:
    count, _, columns = pattern
    ends = np.concatenate([[0], np.cumsum(count)])
    indices, pointers = jnp.asarray(columns[: ends[-1]], jnp.int32), jnp.asarray(ends, jnp.int32)
    return BCSR((values[: ends[-1]], indices, pointers), shape=shape)
