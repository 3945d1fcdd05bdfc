"""Inertia of a step under the discrete integrator, which is also the solver's.

MuJoCo's documentation, Computation: Numerical integration, Discrete-time. With D and K minus the
derivatives of the smooth forces by velocity and position, and q + h v' the configuration after a
step of length h, the acceleration (v' - v) / h of that step follows from

    (M + h D + h^2 K) a = qfrc_smooth - h K v + qfrc_constraint

D and K contain only contributions that keep the matrix positive definite, each where it is
dissipative or restoring: springs and dampers of joints and tendons, actuator feedback of length and
velocity, drag, elasticity of flexes (flex/stiffness.py) and passive contacts (passive/contact.py).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply
from jaxsim.arrays.gather import column, gather_static
from jaxsim.arrays.pattern import SparsityPattern
from jaxsim.enums import DisableBit, SolverType
from jaxsim.linalg.elimination import solve_general
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.actuator.force_slope import force_slope
from jaxsim.physics.actuator.transmission import moment_pattern
from jaxsim.physics.body.configuration import replace_items
from jaxsim.physics.body.free_body import free_body_blocks, free_body_dofs
from jaxsim.physics.flex.stiffness import implicit_flex_mask, implicit_flexes, moves_flexes
from jaxsim.physics.integrate.velocity_derivative import (
    bias_derivative,
    diagonal_matrix,
    fluid_derivative,
    has_fluid,
    weighted_gram,
)
from jaxsim.physics.passive.contact import contact_springs
from jaxsim.physics.passive.damper import dof_damping_rate, tendon_damping_rate
from jaxsim.physics.passive.spring import dof_spring_rate, tendon_spring_rate
from jaxsim.physics.tendon.path import tendon_pattern


class Metric(NamedTuple):
    """Effective inertia of a discrete step.

    Attributes:
      matrix: M + h D + h^2 K, `[nv, nv, *W]`.
      backbone: `matrix` with only the diagonal of tendons, actuators and rod hinges, and without
        flexes: it has the sparsity of M.
      shift: -h K qvel, `[nv, *W]` [N or N m].
      held: dofs that an implicit tendon, actuator or flex moves, `[nv, *W]` bool.
    """

    matrix: jax.Array
    backbone: jax.Array
    shift: jax.Array
    held: jax.Array


def step_metric(m: Model, d: Data) -> Metric:
    """Compute the metric of a state.

    Requires all results that follow from the velocity, and the actuator forces.
    """
    h = m.opt.timestep
    # Springs and dampers of dofs: diagonal.
    stiffness = dof_spring_rate(m, d)
    own = h * (_damping(m, dof_damping_rate(m, d), d.qvel) + h * stiffness)
    matrix = d.M + diagonal_matrix(own)
    # Drag of the medium, symmetrized.
    if has_fluid(m):
        drag = h[None] * fluid_derivative(m, d, drag_only=True)
        drag = 0.5 * (drag + drag.swapaxes(0, 1))
        matrix = matrix - jnp.where(column(_full_pattern(m.structure), d.qvel), drag, 0)
    # Tendons and actuators: J' (h b + h^2 k) J.
    backbone, shift = matrix, -h * stiffness * d.qvel
    held = jnp.zeros(d.qvel.shape, bool)
    for term in _couplings(m, d):
        # Rows of each coupling.
        weight = h * (term.damping + h * term.stiffness)
        entries = term.pattern.entries(term.matrix)
        squares = term.pattern.apply_transpose(entries * entries, weight)
        matrix = matrix + weighted_gram(term.pattern, term.matrix, weight)
        backbone = backbone + diagonal_matrix(squares)
        shift = shift - term.pattern.apply_transpose(entries, h * term.stiffness * term.velocity)
        held = held | (squares > 0)
    # Elasticity of flexes, and their passive contacts.
    flexes = implicit_flexes(m, d)
    if flexes is not None:
        matrix, shift = matrix + flexes.matrix, shift - flexes.shift
        if flexes.hinges is not None:
            backbone = backbone + diagonal_matrix(flexes.hinges)
    contacts = contact_springs(m, d)
    if contacts is not None:
        matrix = matrix + h[None] * h[None] * contacts.matrix()
        shift = shift - h * contacts.times_velocity(d.qvel)
    if implicit_flex_mask(m).any():
        held = held | column(moves_flexes(m), d.qvel)
    return Metric(matrix, backbone, shift, held)


def gyroscopic_systems(m: Model, d: Data, of: Metric, free: Array) -> "Gyroscopic | None":
    """Return the systems of standalone free bodies without contacts; None: the model has none.

    A spinning body would gain energy if its gyroscopic force were explicit. Where rows, tendons or
    actuators act on it MuJoCo leaves it explicit.

    Args:
      m, d: model and data.
      of: the metric.
      free: trees that no constraint row touches, `[ntree, *W]` bool.
    """
    dofs = free_body_dofs(m)
    if not dofs.size:
        return None
    # Add the derivative of the bias force; exclude bodies that anything holds.
    h = m.opt.timestep[None, None]
    own = free_body_blocks(of.matrix, dofs) + h * bias_derivative(m, d, dofs)
    held = gather_static(of.held, dofs.ravel()).reshape(*dofs.shape, *of.held.shape[1:]).any(axis=0)
    return Gyroscopic(dofs, own, ~held & gather_static(free, m.dof_treeid[dofs[0]]))


class Gyroscopic(NamedTuple):
    """Systems of standalone free bodies with the derivative of their bias force.

    Attributes:
      dofs: constant `[6, k]`.
      own: nonsymmetric blocks, `[6, 6, k, *W]`.
      alone: bodies to which they apply, `[k, *W]` bool.
    """

    dofs: np.ndarray
    own: jax.Array
    alone: jax.Array

    def solve(self, acc: Array, force: Array) -> Array:
        """Replace the accelerations `[nv, *W]` of these bodies by the solution for their force."""
        return self._put(acc, solve_general(self.own, self._take(force)))

    def multiply(self, force: Array, acc: Array) -> Array:
        """Replace the forces `[nv, *W]` on these bodies by those of their acceleration."""
        return self._put(force, apply(self.own, self._take(acc)))

    def _take(self, x: Array) -> Array:
        return gather_static(x, self.dofs.ravel()).reshape(*self.dofs.shape, *x.shape[1:])

    def _put(self, x: Array, new: Array) -> Array:
        return replace_items(x, self.dofs[0], list(jnp.where(self.alone[None], new, self._take(x))))


class _Coupling(NamedTuple):
    """Forces along the rows of a matrix `[n, nv, *W]`, implicit in their length.

    Attributes:
      pattern, matrix: sparsity pattern and values.
      stiffness, damping, velocity: of each row, `[n, *W]`; both rates are nonnegative.
    """

    pattern: SparsityPattern
    matrix: jax.Array
    stiffness: jax.Array
    damping: jax.Array
    velocity: jax.Array


def _couplings(m: Model, d: Data) -> list[_Coupling]:
    """Return the couplings by tendons and actuators; explicit with the PGS solver, as in MuJoCo."""
    out: list[_Coupling] = []
    if m.opt.solver == SolverType.PGS:
        return out
    # Tendons: springs and dampers.
    if m.ntendon:
        rates = tendon_spring_rate(m, d), _damping(m, tendon_damping_rate(m, d), d.ten_velocity)
        out.append(_Coupling(tendon_pattern(m), d.ten_J, *rates, d.ten_velocity))
    # Actuators: feedback of length and velocity.
    if m.nout and not m.opt.disableflags & DisableBit.ACTUATION:
        length, velocity = (force_slope(m, d, f"actuator_{x}") for x in ("length", "velocity"))
        rates = jnp.maximum(-length, 0), jnp.maximum(-velocity, 0)
        out.append(_Coupling(moment_pattern(m), d.actuator_moment, *rates, d.actuator_velocity))
    return out


@cache_by_structure
def _full_pattern(s: Structure) -> np.ndarray:
    """Return [nv, nv] bool, False between dofs of a body that MuJoCo stores as diagonal."""
    simple = s.body_simple[s.dof_bodyid] > 0
    return ~simple[:, None] | np.eye(s.nv, dtype=bool)


def _damping(m: Model, rate: Array, like: Array) -> Array:
    """Return a damper's rate where it is dissipative; 0 where dampers are disabled."""
    off = m.opt.disableflags & DisableBit.DAMPER
    return jnp.zeros_like(like) if off else jnp.maximum(rate, 0)
