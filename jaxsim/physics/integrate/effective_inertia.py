"""Effective inertia of a step whose forces are implicit in velocity.

MuJoCo's documentation, Computation: Numerical integration. With D = -d force / d qvel the velocity
after a step of length h is

    qvel + h a,   (M + h D) a = qfrc_smooth + qfrc_constraint

Integrators differ in which forces contribute to D (table `_IMPLICIT_INERTIAS`).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply
from jaxsim.arrays.gather import gather_static
from jaxsim.enums import DisableBit, IntegratorType
from jaxsim.linalg.dense import Dense
from jaxsim.linalg.elimination import General, solve_general
from jaxsim.linalg.operator import MassMatrix
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.configuration import replace_items
from jaxsim.physics.body.free_body import free_body_blocks, free_body_dofs
from jaxsim.physics.integrate.velocity_derivative import (
    bias_derivative,
    damping_rate,
    diagonal_matrix,
    is_diagonal,
    smooth_derivative,
)
from jaxsim.physics.partition import inertia_blocks
from jaxsim.physics.passive.damper import dof_damping_rate


class EffectiveInertia(NamedTuple):
    """Effective inertia M + h D.

    Attributes:
      matrix: in the form of M if D is diagonal, else dense.
      dofs: constant `[6, k]`: dofs of standalone free bodies, whose rows `own` replaces.
      own: their nonsymmetric blocks `[6, 6, k, *W]`; None: no such rows.
    """

    matrix: MassMatrix | General
    dofs: np.ndarray | None = None
    own: jax.Array | None = None

    def solve(self, force: Array) -> Array:
        """Compute the acceleration `[nv, *W]` of a force."""
        # Solve the whole system, then replace the rows of free bodies.
        out = self.matrix.solve(force)
        return out if self.own is None else self._with_rows(out, solve_general, force)

    def multiply(self, acc: Array) -> Array:
        """Compute the force `[nv, *W]` of an acceleration."""
        out = self.matrix.times(acc)
        return out if self.own is None else self._with_rows(out, apply, acc)

    def _with_rows(self, out: Array, function: Callable, x: Array) -> Array:
        """Replace the rows of free bodies in `out` by `function(blocks, x)`."""
        assert self.dofs is not None  # they come with `own`
        own = gather_static(x, self.dofs.ravel()).reshape(*self.dofs.shape, *x.shape[1:])
        return replace_items(out, self.dofs[0], list(function(self.own, own)))


def effective_inertia(
    m: Model, d: Data, kind: IntegratorType | None = None
) -> EffectiveInertia | None:
    """Return the effective inertia of an integrator, by default the model's; None: it is M.

    Requires all results that follow from the velocity, and the actuator forces.
    """
    make = _IMPLICIT_INERTIAS.get(IntegratorType(m.opt.integrator) if kind is None else kind)
    return make(m, d) if make and m.nv else None


def _dof_damping(m: Model, d: Data) -> EffectiveInertia | None:
    """Build Euler's effective inertia: dof damping, including that reflected by actuators."""
    off = m.opt.disableflags & (DisableBit.EULERDAMP | DisableBit.DAMPER)
    if off or not m.flg_damping:
        return None
    # M + h D with diagonal D.
    rate = m.opt.timestep * dof_damping_rate(m, d)
    if d.inertia is not None:
        return EffectiveInertia(d.inertia.add_diagonal(rate))
    return EffectiveInertia(Dense(d.M + diagonal_matrix(rate), inertia_blocks(m)))


def _implicitfast_inertia(m: Model, d: Data) -> EffectiveInertia:
    """Build the effective inertia of implicitfast: passive and actuator forces, symmetrized.

    Free bodies have the blocks of the integrator implicit: they would gain energy if their
    gyroscopic force were explicit.
    """
    hD = -m.opt.timestep[None] * smooth_derivative(m, d)
    matrix: MassMatrix
    if d.inertia is not None and is_diagonal(m):
        # Diagonal D keeps the sparsity of M.
        matrix = d.inertia.add_diagonal(m.opt.timestep * damping_rate(m, d))
    else:
        # Symmetrized derivative, as in MuJoCo.
        matrix = Dense(d.M + 0.5 * (hD + hD.swapaxes(0, 1)))
    # Free bodies: full derivative in their 6 x 6 blocks.
    dofs = free_body_dofs(m)
    if not dofs.size:
        return EffectiveInertia(matrix)
    own = free_body_blocks(d.M + hD, dofs) + m.opt.timestep[None, None] * bias_derivative(
        m, d, dofs
    )
    return EffectiveInertia(matrix, dofs, own)


def _implicit_inertia(m: Model, d: Data) -> EffectiveInertia:
    """Build the effective inertia of implicit: passive, actuator and bias forces, not symmetric."""
    minus_D = smooth_derivative(m, d) - bias_derivative(m, d, np.arange(m.nv))
    return EffectiveInertia(General(d.M - m.opt.timestep[None] * minus_D))


_IMPLICIT_INERTIAS = {
    IntegratorType.EULER: _dof_damping,
    IntegratorType.IMPLICITFAST: _implicitfast_inertia,
    IntegratorType.IMPLICIT: _implicit_inertia,
}
