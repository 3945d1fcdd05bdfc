"""The mass matrix M, its factor L' D L and products with them, from the configuration alone.

M has tendons' and actuators' inertia in it, as a step sees it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.bilinear import apply
from jaxsim.physics.arrays.system.factor import solve_parts
from jaxsim.physics.arrays.system.ldl import ltdl, solve_transposed
from jaxsim.physics.body.inertia import com_pos, crb
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.parts import inertia_parts
from jaxsim.physics.tendon.tendon import tendon


class MassFactor(NamedTuple):
    """M = L' D L, which keeps the zeros of M: an entry is there only for a dof and its ancestors.

    Attributes:
      L: unit lower triangular, (nv, nv).
      D: the diagonal, (nv,) [kg or kg m^2].
    """

    L: jax.Array
    D: jax.Array


def full_m(m: Model, d: Data) -> Array:
    """The joint-space inertia M at `d.qpos`, (nv, nv) [kg, kg m, kg m^2]."""
    return _with_inertia(m, d).M


def add_m(m: Model, d: Data, dst: Array) -> Array:
    """M plus another matrix, (nv, nv); both triangles, where MuJoCo adds to the lower one only."""
    return dst + full_m(m, d)


def mul_m(m: Model, d: Data, vec: Array) -> Array:
    """M times an acceleration, (nv,): a generalized force."""
    d = _with_inertia(m, d)
    return apply(d.M, vec) if d.inertia is None else d.inertia.times(vec)


def mul_m2(m: Model, d: Data, vec: Array) -> Array:
    """A square root of M times a velocity, (nv,): sqrt(D) L vec, with M = L' D L.

    Half of the square of its length is the kinetic energy of the velocity.
    """
    factor = factor_m(m, d)
    return jnp.sqrt(factor.D) * apply(factor.L, vec)


def solve_m(m: Model, d: Data, force: Array) -> Array:
    """M^-1 times a generalized force, (nv,): an acceleration."""
    d = _with_inertia(m, d)
    if d.inertia is not None:
        return d.inertia.solve(force)
    return solve_parts(d.M, force, inertia_parts(m))


def solve_m2(m: Model, d: Data, force: Array) -> Array:
    """Half of `solve_m`, (nv,): D^-1/2 L'^-1 force, with M = L' D L.

    The square of its length is force' M^-1 force.
    """
    factor = factor_m(m, d)
    return solve_transposed(factor.L, force) / jnp.sqrt(factor.D)


def factor_m(m: Model, d: Data) -> MassFactor:
    """The factors of M = L' D L (Featherstone, Rigid Body Dynamics Algorithms, section 6.5).

    Dense: MuJoCo's `qLD` are the entries of L below the diagonal, and D on it.

    Args:
      m: model.
      d: data, of which qpos (and the poses of mocap bodies) count.

    Returns:
      A MassFactor.
    """
    return MassFactor(*ltdl(full_m(m, d)))


def _with_inertia(m: Model, d: Data) -> Data:
    return crb(m, tendon(m, com_pos(m, kinematics(m, d))))
