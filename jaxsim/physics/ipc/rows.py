"""Active pairs as rows of the constraint solver.

With points x0 + h J w, w = v + h a, and gaps linearized at the last velocity wf free of impacts, a
row has the residual

    r(a) = (c - lambda / mu) / h^2 + J_n a + J_n (v - wf) / h

and the cost h^2 mu r^2 / 2 where it is negative.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather
from jaxsim.arrays.node import node
from jaxsim.arrays.products import (
    apply_basis,
    apply_basis_transpose,
    gram_basis,
)
from jaxsim.enums import ConstraintType
from jaxsim.linalg.operator import AnySymmetric
from jaxsim.math import Vec
from jaxsim.physics.collision.compact import compact_true, select_deepest
from jaxsim.physics.constraint.cost import OneSided
from jaxsim.physics.constraint.rows import RowBlock
from jaxsim.physics.ipc.broadphase import REST_GAP, detection_band
from jaxsim.physics.ipc.gap import Gap
from jaxsim.physics.ipc.multipliers import FADE_FACTOR, ActivePairs, fade_count
from jaxsim.physics.ipc.scene import IpcScene
from jaxsim.physics.passive.contact import FREQUENCY_SQUARED, NO_MASS
from jaxsim.transforms.derivative_context import is_differentiated
from jaxsim.transforms.platform import platform
from jaxsim.transforms.tuning import tuning

_MIN_MASS = 1e-9  # mass of points without one [kg]


class LinearGaps(NamedTuple):
    """Gaps of the pairs of a grid, linearized at a configuration, `[capacity, *W]`.

    Attributes:
      gap: the gaps there.
      c: gap less the gap at rest [m].
      stiffness: mu [N/m].
    """

    gap: Gap
    c: jax.Array
    stiffness: jax.Array


@node()
class PairJacobian:
    """Jacobian rows `[n, nv, *W]`, active ones first.

    Attributes:
      matrix: the rows.
      used: number of rows up to the last active one in any world, int scalar; None: not known.
    """

    matrix: jax.Array
    used: jax.Array | None

    @property
    def _together(self) -> int:
        """Return the number of rows per loop iteration."""
        # In one world few rows would spend the time on reading and writing H.
        of_one = self.matrix.ndim == 2
        return tuning().ipc_rows_per_chunk if of_one else tuning().contacts_per_chunk

    def times(self, x: Array) -> Array:
        """Compute J x, `[nv, *W]` -> `[n, *W]`."""
        return apply_basis(self.matrix[None], x, self.used, self._together)[0]

    def transpose_times(self, f: Array, nv: int) -> Array:
        """Compute J' f, `[n, *W]` -> `[nv, *W]`."""
        del nv
        return apply_basis_transpose(self.matrix[None], [f], self.used, self._together)

    def add_gram(self, H: AnySymmetric, weight: Array) -> AnySymmetric:
        """Return H + J' W J."""
        return gram_basis(H, self.matrix[None], [[weight]], self.used, self._together)

    def dense(self, nv: int) -> Array:
        """Return the matrix `[n, nv, *W]`."""
        del nv
        return self.matrix


def linearize_gaps(scene: IpcScene, found: Gap) -> LinearGaps:
    """Linearize gaps; the stiffness follows from the smallest mass among a pair's points."""
    # Stiffness mu = omega^2 m.
    least = jnp.full_like(found.dist, NO_MASS)
    for point in found.points:
        mass = gather(scene.mass, point)
        least = jnp.minimum(least, jnp.where(mass > 0, mass, NO_MASS))
    stiffness = FREQUENCY_SQUARED * jnp.where(least < NO_MASS, least, _MIN_MASS)
    return LinearGaps(found, found.dist - detection_band(scene, found, REST_GAP), stiffness)


def predicted_gaps(of: LinearGaps, motion: Vec) -> Array:
    """Predict the gaps less those at rest after a motion of the points, `[capacity, *W]` [m]."""
    # Add the normal displacement of each point, by its weight.
    c = of.c
    for point, share in zip(of.gap.points, of.gap.weights, strict=True):
        c = c + share * of.gap.normal.dot(gather(motion, point))
    return c


def ipc_rows(
    scene: IpcScene, all: list[LinearGaps], pairs: list[ActivePairs], speed: Array, motion: Vec
) -> tuple[RowBlock, Array]:
    """Build the constraint rows of the pairs, and the mask of pairs that have a row, `[n, *W]`.

    If there are more pairs than rows, the deepest have one, at present or after the motion.

    Args:
      scene: the scene of the step.
      all, pairs: gaps and multipliers of each grid.
      speed: v - wf, `[nv, *W]`.
      motion: motion of the points without active pairs.
    """
    # Select the deepest pairs up to the row capacity, and gather them from all grids.
    there = jnp.concatenate([p.there for p in pairs])
    size = min(scene.plan.rows, len(there))
    deep = [
        jnp.minimum(of.c, predicted_gaps(of, motion)) - p.multiplier / of.stiffness
        for of, p in zip(all, pairs, strict=True)
    ]
    kept = select_deepest(there, jnp.concatenate(deep), size)
    place, _ = compact_true(kept, np.arange(len(there)), size)
    parts = [
        (
            *_pad_to_four_points(of),
            of.gap.normal,
            of.c - p.multiplier / of.stiffness,
            _row_stiffness(of, p),
        )
        for of, p in zip(all, pairs, strict=True)
    ]
    joined = jax.tree.map(lambda *a: jnp.concatenate(a), *parts)
    points, weights, normal, c, stiff = gather(joined, place)
    count = jnp.sum(there, axis=0, keepdims=True, dtype=jnp.int32)
    filled = column(np.arange(size, dtype=np.int32), count) < count
    # Jacobian of the gaps, and reference acceleration from the residual above.
    J = scene.gap_jacobian(points, weights, normal)
    J = jnp.where(filled[:, None], J, 0)
    # Rows of one world, or of a batch, up to the last used one.
    whole = is_differentiated() or not platform().chunks
    used = None if whole else jnp.minimum(jnp.max(count), size)
    jacobian, h = PairJacobian(J, used), scene.h
    D = jnp.where(filled, h * h * stiff, 0)
    aref = -(c / (h * h) + jacobian.times(speed) / h)
    one = jnp.ones_like(D)
    kind = ConstraintType.CONTACT_FRICTIONLESS
    return RowBlock(kind, (), jacobian, OneSided(D), jnp.where(filled, aref, 0), one, one), kept


def _row_stiffness(of: LinearGaps, p: ActivePairs) -> Array:
    return of.stiffness * FADE_FACTOR ** fade_count(p.age).astype(of.c.dtype)


def _pad_to_four_points(of: LinearGaps) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Pad to four points and weights; missing ones repeat the first with weight 0."""
    spare = 4 - len(of.gap.points)
    none = jnp.zeros_like(of.c)
    return (
        (*of.gap.points, *(of.gap.points[0],) * spare),
        (*of.gap.weights, *(none,) * spare),
    )
