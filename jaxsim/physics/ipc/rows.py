"""The pairs that push as rows of the constraint solver.

With the points at x0 + h J w, w = v + h a, and the gap linear from where the points were last free,
wf, a row has the residual

    r(a) = (c - lambda / mu) / h^2 + J_n a + J_n (v - wf) / h

and costs h^2 mu r^2 / 2 where it is below zero.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import ConstraintType
from jaxsim.math import Vec
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.call.differentiated import differentiated
from jaxsim.physics.arrays.node import node
from jaxsim.physics.arrays.platform import platform
from jaxsim.physics.arrays.products import CHUNK, apply_basis, apply_basis_transpose, gram_basis
from jaxsim.physics.arrays.select import column, pick
from jaxsim.physics.arrays.system.lower import AnySymmetric
from jaxsim.physics.collision.compact import deepest, first_true
from jaxsim.physics.constraint.cost import OneSided
from jaxsim.physics.constraint.rows import Block
from jaxsim.physics.ipc.gap import Gap
from jaxsim.physics.ipc.near import REST, band
from jaxsim.physics.ipc.push import FADES, Pushes, fade
from jaxsim.physics.ipc.scene import Scene
from jaxsim.physics.passive.contact import NO_MASS, OMEGA2

LEAST = 1e-9  # of what has no mass [kg]
TOGETHER = 32  # rows of one world: a turn of a loop over few would be all reading and writing H


class Linear(NamedTuple):
    """The gaps of the pairs of a grid, linear about a configuration, `[room, *W]`.

    Attributes:
      gap: what was measured there.
      over: the gap less that at rest [m].
      stiffness: mu [N/m].
    """

    gap: Gap
    over: jax.Array
    stiffness: jax.Array


@node()
class PairJacobian:
    """Rows `[n, nv, *W]`, those that are there first.

    Attributes:
      matrix: the rows.
      used: rows up to the last that is there in any world, int scalar; None: not known.
    """

    matrix: jax.Array
    used: jax.Array | None

    @property
    def _together(self) -> int:
        """Rows that are taken together."""
        return TOGETHER if self.matrix.ndim == 2 else CHUNK

    def times(self, x: Array) -> Array:
        """J x, `[nv, *W]` -> `[n, *W]`."""
        return apply_basis(self.matrix[None], x, self.used, self._together)[0]

    def transposed(self, f: Array, nv: int) -> Array:
        """J' f, `[n, *W]` -> `[nv, *W]`."""
        del nv
        return apply_basis_transpose(self.matrix[None], [f], self.used, self._together)

    def add_gram(self, H: AnySymmetric, weight: Array) -> AnySymmetric:
        """H + J' W J."""
        return gram_basis(H, self.matrix[None], [[weight]], self.used, self._together)

    def dense(self, nv: int) -> Array:
        """The matrix `[n, nv, *W]`."""
        del nv
        return self.matrix


def linear(scene: Scene, found: Gap) -> Linear:
    """The gaps, and how stiff pairs are: by the least mass of a point that has one."""
    least = jnp.full_like(found.dist, NO_MASS)
    for point in found.points:
        mass = pick(scene.mass, point)
        least = jnp.minimum(least, jnp.where(mass > 0, mass, NO_MASS))
    stiffness = OMEGA2 * jnp.where(least < NO_MASS, least, LEAST)
    return Linear(found, found.dist - band(scene, found, REST), stiffness)


def ahead(of: Linear, way: Vec) -> Array:
    """How far the gaps are over that at rest after a way of the points, `[room, *W]` [m]."""
    over = of.over
    for point, share in zip(of.gap.points, of.gap.shares, strict=True):
        over = over + share * of.gap.normal.dot(pick(way, point))
    return over


def rows(
    scene: Scene, all: list[Linear], pushes: list[Pushes], speed: Array, way: Vec
) -> tuple[Block, Array]:
    """The rows of the pairs that are there; and which have one, bool `[n, *W]`.

    Where there are more pairs than rows those have one that are the deepest, now or after a way.

    Args:
      scene: the state.
      all, pushes: of each grid.
      speed: v - wf, `[nv, *W]`.
      way: of the points, if no pair pushes.
    """
    there = jnp.concatenate([p.there for p in pushes])
    size = min(scene.plan.rows, len(there))
    deep = [
        jnp.minimum(of.over, ahead(of, way)) - p.force / of.stiffness
        for of, p in zip(all, pushes, strict=True)
    ]
    kept = deepest(there, jnp.concatenate(deep), size)
    place, _ = first_true(kept, np.arange(len(there)), size)
    parts = [
        (*_four(of), of.gap.normal, of.over - p.force / of.stiffness, _stiff(of, p))
        for of, p in zip(all, pushes, strict=True)
    ]
    joined = jax.tree.map(lambda *a: jnp.concatenate(a), *parts)
    points, shares, normal, over, stiff = pick(joined, place)
    count = jnp.sum(there, axis=0, keepdims=True, dtype=jnp.int32)
    filled = column(np.arange(size, dtype=np.int32), count) < count
    J = scene.along(points, shares, normal)
    J = jnp.where(filled[:, None], J, 0)
    whole = differentiated() or not platform().chunks
    used = None if whole else jnp.minimum(jnp.max(count), size)
    jacobian, h = PairJacobian(J, used), scene.h
    D = jnp.where(filled, h * h * stiff, 0)
    aref = -(over / (h * h) + jacobian.times(speed) / h)
    one = jnp.ones_like(D)
    kind = ConstraintType.CONTACT_FRICTIONLESS
    return Block(kind, (), jacobian, OneSided(D), jnp.where(filled, aref, 0), one, one), kept


def _stiff(of: Linear, p: Pushes) -> Array:
    return of.stiffness * FADES ** fade(p.age).astype(of.over.dtype)


def _four(of: Linear) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Four points and their shares; a pair of fewer has its first again, without a share."""
    spare = 4 - len(of.gap.points)
    none = jnp.zeros_like(of.over)
    return (
        (*of.gap.points, *(of.gap.points[0],) * spare),
        (*of.gap.shares, *(none,) * spare),
    )
