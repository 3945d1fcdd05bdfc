"""Matrices that MuJoCo keeps by rows, as the values of the entries that may differ from zero."""

import sys
from typing import Any, NamedTuple

import numpy as np


class Pattern(NamedTuple):
    """Row and column of each entry; numbers of the matrix without an entry are zero."""

    row: np.ndarray
    column: np.ndarray


def pattern(name: str, model: Any, data: Any) -> Pattern | None:
    """Where the entries of a field of mjData are; None for a field that is an array."""
    if name not in OWNERS:
        return None
    in_model, prefix = OWNERS[name]
    owner = model if in_model else data
    return _pattern(
        *(np.asarray(getattr(owner, f"{prefix}_{part}")) for part in ("rownnz", "rowadr", "colind"))
    )


def _pattern(count: np.ndarray, first: np.ndarray, columns: np.ndarray) -> Pattern:
    """Return the entries of a matrix by rows: how many each row has, where they begin, their
    columns."""
    row = np.repeat(np.arange(len(count)), count)
    place = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
    return Pattern(row[np.argsort(place)], columns[np.sort(place)])


def dense(name: str, model: Any, data: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return a sparse field of mjData in full; the mass matrix, of which half is kept,
    symmetric."""
    at = pattern(name, model, data)
    assert at is not None
    matrix = np.zeros(shape)
    matrix[at] = getattr(data, name)[: len(at.row)]
    return matrix + np.tril(matrix, -1).T if name == "M" else matrix


def rows(name: str, model: Any, data: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return a field of the constraint rows of mjData, with as many places as there is room for."""
    empty = -1 if name in ("efc_type", "efc_id", "efc_state") else 0
    count, theirs = data.nefc, getattr(data, name)
    if name == "efc_J":
        mujoco = sys.modules[type(model).__module__.partition(".")[0]]
        if mujoco.mj_isSparse(model):
            at = _pattern(data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
            matrix = np.zeros((count, model.nv))
            matrix[at] = theirs[: len(at.row)]
            theirs = matrix
        else:
            theirs = theirs[: count * model.nv].reshape(count, model.nv)
    out = np.full(shape, empty, np.asarray(theirs).dtype)
    out[:count] = theirs[:count]
    return out


# fields of mjData that are sparse: whether the model has the pattern, and how it is called
OWNERS = {
    "M": (True, "M"),
    "qLD": (True, "M"),
    "ten_J": (True, "ten_J"),
    "actuator_moment": (False, "moment"),
}
