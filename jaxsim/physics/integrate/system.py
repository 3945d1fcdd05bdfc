"""The equations of motion without constraints, as the constraint solver sees them.

Of most integrators they are M qacc_smooth = qfrc_smooth. Under the discrete integrator they are
those of the whole step, with its metric.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.actuator.actuation import actuation
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.bilinear import apply
from jaxsim.physics.arrays.system.apart import Apart
from jaxsim.physics.arrays.system.factor import solve_parts
from jaxsim.physics.arrays.system.tree import TreeMatrix
from jaxsim.physics.constraint.island import touched_trees
from jaxsim.physics.discrete import is_discrete
from jaxsim.physics.integrate.metric import Gyroscopic, Metric, gyroscopic, metric
from jaxsim.physics.parts import Parts, inertia_parts, metric_parts
from jaxsim.physics.solver.problem import Problem


class System(NamedTuple):
    """inertia acc = force.

    Attributes:
      inertia: `[nv, nv, *W]`.
      force: `[nv, *W]`.
      parts: dofs that have to do with each other.
      backbone: the inertia that regularization and no-slip iterations see, `[nv, nv, *W]`.
      metric: of a discrete step; else None.
      sparse: the inertia without zeros between trees; None: there are not many.
    """

    inertia: jax.Array
    force: jax.Array
    parts: Parts
    backbone: jax.Array
    metric: Metric | None
    sparse: TreeMatrix | Apart | None = None

    def acceleration(self) -> Array:
        """The acceleration `[nv, *W]`."""
        if self.sparse is not None:
            return self.sparse.solve(self.force)
        return solve_parts(self.inertia, self.force, self.parts)

    def for_slip(self, p: Problem, smooth: Array) -> Problem:
        """The problem as the no-slip iterations see it; `smooth`: acceleration without rows."""
        if self.metric is None:
            return p
        return replace(p, M=self.backbone, smooth=apply(self.backbone, smooth))

    def spinning(self, m: Model, d: Data) -> Data:
        """With the gyroscopic forces of free bodies that nothing holds implicit."""
        own = self._gyroscopic(m, d)
        return d if own is None else d.replace(qacc=own.solve(d.qacc, self.force))

    def multiply(self, m: Model, d: Data, acc: Array) -> Array:
        """The force `[nv, *W]` of which `acc` follows, the opposite of all of the above."""
        force = apply(self.inertia, acc) if self.sparse is None else self.sparse.times(acc)
        own = self._gyroscopic(m, d)
        return force if own is None else own.multiply(force, acc)

    def _gyroscopic(self, m: Model, d: Data) -> Gyroscopic | None:
        if self.metric is None:
            return None
        free = jnp.ones((m.ntree, *d.qvel.shape[1:]), bool)
        for touched in touched_trees(m, d):
            free = free & ~touched.any(axis=0)
        return gyroscopic(m, d, self.metric, free)


def smooth_system(m: Model, d: Data) -> System:
    """The equations of a state.

    Needs `qfrc_smooth`, and for a discrete step all that it is made of.
    """
    if not is_discrete(m) or not m.nv:
        return System(d.M, d.qfrc_smooth, inertia_parts(m), d.M, None, d.inertia)
    of = metric(m, d)
    return System(of.matrix, d.qfrc_smooth + of.shift, metric_parts(m), of.backbone, of)


def unforced_system(m: Model, d: Data) -> System:
    """The same without forces, but for those that a discrete step itself adds.

    Needs what follows from the velocity; the actuators are computed, where they count.
    """
    d = actuation(m, d) if is_discrete(m) else d
    return smooth_system(m, d.replace(qfrc_smooth=jnp.zeros_like(d.qvel)))
