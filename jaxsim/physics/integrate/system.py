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
from jaxsim.linalg.dense import Dense
from jaxsim.linalg.operator import MassMatrix
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.actuator.actuation import actuation
from jaxsim.physics.body.inertia import mass_matrix
from jaxsim.physics.constraint.island import touched_trees
from jaxsim.physics.integrate.discrete import is_discrete
from jaxsim.physics.integrate.metric import Gyroscopic, Metric, gyroscopic_systems, step_metric
from jaxsim.physics.partition import inertia_blocks, metric_blocks
from jaxsim.physics.solver.problem import ConstraintProblem


class System(NamedTuple):
    """Linear system inertia acc = force.

    Attributes:
      inertia: in the form that is solved, without zeros between trees where that is faster.
      dense: the inertia in dense form, for solvers that take no other.
      force: `[nv, *W]`.
      backbone: inertia for regularization and no-slip iterations, `[nv, nv, *W]`.
      metric: metric of a discrete step; else None.
    """

    inertia: MassMatrix
    dense: Dense
    force: jax.Array
    backbone: jax.Array
    metric: Metric | None

    def acceleration(self) -> Array:
        """Solve for the acceleration `[nv, *W]`."""
        return self.inertia.solve(self.force)

    def for_slip(self, p: ConstraintProblem, smooth: Array) -> ConstraintProblem:
        """Return the problem for the no-slip iterations; `smooth`: acceleration without rows."""
        if self.metric is None:
            return p
        return replace(p, M=Dense(self.backbone), smooth=apply(self.backbone, smooth))

    def add_gyroscopic_forces(self, m: Model, d: Data) -> Data:
        """Make gyroscopic forces of free bodies without contacts implicit in `qacc`."""
        own = self._gyroscopic(m, d)
        return d if own is None else d.replace(qacc=own.solve(d.qacc, self.force))

    def multiply(self, m: Model, d: Data, acc: Array) -> Array:
        """Compute the force `[nv, *W]` that produces `acc`, the inverse of the solution."""
        force = self.inertia.times(acc)
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
        dense = Dense(d.M, inertia_blocks(m))
        return System(mass_matrix(m, d), dense, d.qfrc_smooth, d.M, None)
    of = step_metric(m, d)
    dense = Dense(of.matrix, metric_blocks(m))
    return System(dense, dense, d.qfrc_smooth + of.shift, of.backbone, of)


def unforced_system(m: Model, d: Data) -> System:
    """Build the system without forces, except those added by a discrete step itself.

    Requires all results that follow from the velocity; actuators are computed where needed.
    """
    d = actuation(m, d) if is_discrete(m) else d
    return smooth_system(m, d.replace(qfrc_smooth=jnp.zeros_like(d.qvel)))
