"""Sparse matrices of mjData and mjModel, stored by rows (CSR)."""

import sys
from typing import Any, NamedTuple

import numpy as np

# Sparse fields of mjData: whether the pattern belongs to the model, and its prefix.
ROW_OWNERS = {
    "M": (True, "M"),
    "qLD": (True, "M"),
    "ten_J": (True, "ten_J"),
    "actuator_moment": (False, "moment"),
}


class SparsePattern(NamedTuple):
    """Row and column index of each stored entry; all other entries of the matrix are zero."""

    row: np.ndarray
    column: np.ndarray


def sparse_pattern(name: str, model: Any, data: Any) -> SparsePattern | None:
    """Return the sparsity pattern of a field of mjData; None for a dense field."""
    if name not in ROW_OWNERS:
        return None
    in_model, prefix = ROW_OWNERS[name]
    owner = model if in_model else data
    return _row_pattern(
        *(np.asarray(getattr(owner, f"{prefix}_{part}")) for part in ("rownnz", "rowadr", "colind"))
    )


def _row_pattern(count: np.ndarray, first: np.ndarray, columns: np.ndarray) -> SparsePattern:
    """Return the pattern of a matrix from the count, first address and columns of its rows."""
    row = np.repeat(np.arange(len(count)), count)
    value_adr = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
    return SparsePattern(row[np.argsort(value_adr)], columns[np.sort(value_adr)])


def dense_field(name: str, model: Any, data: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return a sparse field of mjData as a dense matrix; the mass matrix, of which MuJoCo stores
    one triangle, is symmetrized."""
    at = sparse_pattern(name, model, data)
    assert at is not None
    matrix = np.zeros(shape)
    matrix[at] = getattr(data, name)[: len(at.row)]
    return matrix + np.tril(matrix, -1).T if name == "M" else matrix


def constraint_row_field(name: str, model: Any, data: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return a field of the constraint rows of mjData, padded to our row capacity."""
    empty = -1 if name in ("efc_type", "efc_id", "efc_state") else 0
    count, theirs = data.nefc, getattr(data, name)
    if name == "efc_J":
        mujoco = sys.modules[type(model).__module__.partition(".")[0]]
        if mujoco.mj_isSparse(model):
            at = _row_pattern(data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
            matrix = np.zeros((count, model.nv))
            matrix[at] = theirs[: len(at.row)]
            theirs = matrix
        else:
            theirs = theirs[: count * model.nv].reshape(count, model.nv)
    out = np.full(shape, empty, np.asarray(theirs).dtype)
    out[:count] = theirs[:count]
    return out
