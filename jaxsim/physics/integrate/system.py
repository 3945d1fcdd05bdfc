"""Equations of motion without constraints, for the constraint solver.

For most integrators they are M qacc_smooth = qfrc_smooth; for the discrete integrator those of the
whole step, with its metric (metric.py).
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply
from jaxsim.linalg.block_diagonal import BlockDiagonal
from jaxsim.linalg.factor import solve_blocks
from jaxsim.linalg.tree_sparse import TreeSparse
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.actuator.actuation import actuation
from jaxsim.physics.constraint.island import touched_trees
from jaxsim.physics.integrate.discrete import is_discrete
from jaxsim.physics.integrate.metric import Gyroscopic, Metric, gyroscopic_systems, step_metric
from jaxsim.physics.partition import Parts, inertia_blocks, metric_blocks
from jaxsim.physics.solver.problem import ConstraintProblem


class System(NamedTuple):
    """Linear system inertia acc = force.

    Attributes:
      inertia: `[nv, nv, *W]`.
      force: `[nv, *W]`.
      parts: diagonal blocks of the inertia, as groups of dofs.
      backbone: inertia for regularization and no-slip iterations, `[nv, nv, *W]`.
      metric: metric of a discrete step; else None.
      sparse: the inertia without zeros between trees; None: dense.
    """

    inertia: jax.Array
    force: jax.Array
    parts: Parts
    backbone: jax.Array
    metric: Metric | None
    sparse: TreeSparse | BlockDiagonal | None = None

    def acceleration(self) -> Array:
        """Solve for the acceleration `[nv, *W]`."""
        if self.sparse is not None:
            return self.sparse.solve(self.force)
        return solve_blocks(self.inertia, self.force, self.parts)

    def for_slip(self, p: ConstraintProblem, smooth: Array) -> ConstraintProblem:
        """Return the problem for the no-slip iterations; `smooth`: acceleration without rows."""
        if self.metric is None:
            return p
        return replace(p, M=self.backbone, smooth=apply(self.backbone, smooth))

    def add_gyroscopic_forces(self, m: Model, d: Data) -> Data:
        """Make gyroscopic forces of free bodies without contacts implicit in `qacc`."""
        own = self._gyroscopic(m, d)
        return d if own is None else d.replace(qacc=own.solve(d.qacc, self.force))

    def multiply(self, m: Model, d: Data, acc: Array) -> Array:
        """Compute the force `[nv, *W]` that produces `acc`, the inverse of the solution."""
        force = apply(self.inertia, acc) if self.sparse is None else self.sparse.times(acc)
        own = self._gyroscopic(m, d)
        return force if own is None else own.multiply(force, acc)

    def _gyroscopic(self, m: Model, d: Data) -> Gyroscopic | None:
        if self.metric is None:
            return None
        # Free bodies whose tree no row touches.
        free = jnp.ones((m.ntree, *d.qvel.shape[1:]), bool)
        for touched in touched_trees(m, d):
            free = free & ~touched.any(axis=0)
        return gyroscopic_systems(m, d, self.metric, free)


def smooth_system(m: Model, d: Data) -> System:
    """Build the system of a state.

    Requires `qfrc_smooth`, and for a discrete step all its contributions.
    """
    # Most integrators: M and the smooth force.
    if not is_discrete(m) or not m.nv:
        return System(d.M, d.qfrc_smooth, inertia_blocks(m), d.M, None, d.inertia)
    of = step_metric(m, d)
    return System(of.matrix, d.qfrc_smooth + of.shift, metric_blocks(m), of.backbone, of)


def unforced_system(m: Model, d: Data) -> System:
    """Build the system without forces, except those added by a discrete step itself.

    Requires all results that follow from the velocity; actuators are computed where needed.
    """
    d = actuation(m, d) if is_discrete(m) else d
    return smooth_system(m, d.replace(qfrc_smooth=jnp.zeros_like(d.qvel)))
