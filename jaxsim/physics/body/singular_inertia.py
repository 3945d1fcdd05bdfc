"""Joint-space inertias that are singular: their pivots are raised, and the warning is counted.

MuJoCo factors M = L' D L from the last dof to the first, raises a pivot below MINVAL to MINVAL and
counts mjWARN_INERTIA once for the factorization, with the first such dof. The pivot of a dof that
moves no mass is its entry on the diagonal, which is known without factors: it is raised in M, so
that such a dof rests where no force acts on it. In models with bodies that have several hinges, or
several slides, the pivots are computed too, but in doubt only: if axes of such joints are
dependent, a dof moves no mass, or the acceleration without constraints is bad. A pivot within the
rounding of its entry counts as too small. On accelerators a branch would wait for the host; there
the dependence of the axes decides alone.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.enums import MAXVAL, MINVAL, JointType, WarningType
from jaxsim.linalg.operator import MassMatrix
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.warning import Trouble, count_warning
from jaxsim.transforms.platform import platform

_MIN_DIAGONAL = 2 * MINVAL  # on a diagonal: a larger number was not raised
_MIN_AXES_VOLUME2 = 1e-10  # square of the area, or volume, of unit axes that are looked at
_PIVOT_ROUNDING_ULPS = (
    16  # what rounding leaves of a pivot that is zero, in units of that of its entry
)


def raise_diagonal(M: Array) -> Array:
    """Return M with numbers below MINVAL on its diagonal raised to it, `[nv, nv, *W]`."""
    if not len(M):
        return M
    unit = column(np.eye(len(M), dtype=bool), M[0])
    return jnp.where(unit & (M < MINVAL), jnp.asarray(MINVAL, M.dtype), M)


def diagonal_deficit(whole: Array) -> Array:
    """Return what a diagonal `[nv, *W]` lacks to MINVAL."""
    return jnp.maximum(MINVAL - lax.stop_gradient(whole), 0)


def count_massless(d: Data, whole: Array) -> Data:
    """Count the warning in worlds where a dof moves no mass, by the diagonal, `[nv, *W]`."""
    return count_warning(
        d, WarningType.INERTIA, _first_low_pivot(lax.stop_gradient(whole) < _MIN_DIAGONAL)
    )


def count_singular(m: Model, d: Data, inertia: MassMatrix, acc: Array) -> Data:
    """Count the warning in worlds where a pivot is too small.

    Args:
      m, d: model, and data with the axes of the dofs.
      inertia: the matrix that was solved with.
      acc: the acceleration without constraints, `[nv, *W]`.
    """
    if not m.nv:
        return d
    acc, inertia = lax.stop_gradient((acc, inertia))
    whole = inertia.diagonal
    shared = _shared_axes(m.structure)
    if not shared:
        return count_massless(d, whole)
    if not platform().recomputes:
        number = jnp.max(jnp.stack([_first_dependent(axes, d) for axes in shared]), axis=0)
        number = jnp.maximum(number, _first_low_pivot(whole < _MIN_DIAGONAL).info)
        return count_warning(d, WarningType.INERTIA, Trouble(number >= 0, number))
    sound = (jnp.abs(acc) <= MAXVAL) & (whole >= _MIN_DIAGONAL)
    doubtful = ~jnp.all(sound, axis=0, keepdims=True)
    for axes in shared:
        doubtful = doubtful | (_first_dependent(axes, d) >= 0)

    def met(inertia: MassMatrix) -> Array:
        D = inertia.pivots()
        rounding = _PIVOT_ROUNDING_ULPS * float(jnp.finfo(D.dtype).eps) * whole
        number = _first_low_pivot(jnp.maximum(MINVAL, rounding) >= D).info
        return jnp.broadcast_to(number, doubtful.shape)

    number = lax.cond(
        jnp.any(doubtful), met, lambda _: jnp.full(doubtful.shape, -1, jnp.int32), inertia
    )
    return count_warning(d, WarningType.INERTIA, Trouble(doubtful & (number >= 0), number))


def _first_low_pivot(low: Array) -> Trouble:
    """Return the worlds in which a pivot is too low, and the last such dof, eliminated first."""
    n = np.arange(len(low), dtype=np.int32)
    number = jnp.max(jnp.where(low, column(n, low), np.int32(-1)), axis=0, keepdims=True)
    return Trouble(number >= 0, number)


class _Axes(NamedTuple):
    """Dofs of hinges, or of slides, that share a body: two or three of each, `[k, n]`."""

    turns: bool
    dofs: np.ndarray


@cache_by_structure
def _shared_axes(s: Structure) -> list[_Axes]:
    """Return the dofs of bodies with several joints of one kind."""
    out = []
    for kind in (JointType.HINGE, JointType.SLIDE):
        joints = np.flatnonzero(s.jnt_type == kind)
        owners, counts = np.unique(s.jnt_bodyid[joints], return_counts=True)
        for size in (2, 3):
            bodies = owners[counts == size]
            dofs = [s.jnt_dofadr[joints[s.jnt_bodyid[joints] == body]] for body in bodies]
            out += [_Axes(kind == JointType.HINGE, np.array(dofs).T)] if dofs else []
    return out


def _first_dependent(axes: _Axes, d: Data) -> Array:
    """Return the dof with a vanishing pivot where such axes are dependent, else -1, `[1, *W]`.

    Axes nearly in a line or a plane are dependent. Elimination runs from the last dof to the first:
    the pivot of the first of them vanishes.
    """
    of = [gather_static(d.cdof.rot if axes.turns else d.cdof.lin, dofs) for dofs in axes.dofs]
    area = of[0].cross(of[1])
    square = area.dot(area) if len(of) == 2 else area.dot(of[2]) ** 2
    first = column(axes.dofs[0].astype(np.int32), square)
    return jnp.max(
        jnp.where(square < _MIN_AXES_VOLUME2, first, np.int32(-1)), axis=0, keepdims=True
    )
