"""Mass matrix M, its factors L' D L and products, from the configuration alone.

M includes the armature of tendons and actuators, as in a step.
"""

from typing import NamedTuple

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply
from jaxsim.linalg.ldl import ltdl, solve_transposed
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.shaped import Float
from jaxsim.physics.body.inertia import com_pos, crb, mass_matrix
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.tendon.tendon import tendon


class MassFactor(NamedTuple):
    """Factors of M = L' D L, with the sparsity of M: nonzero only for a dof and its ancestors.

    Attributes:
      L: unit lower triangular, (nv, nv).
      D: diagonal, (nv,) [kg or kg m^2].
    """

    L: Float[Array, "nv nv"]
    D: Float[Array, "nv"]


def full_m(m: Model, d: Data) -> Float[Array, "nv nv"]:
    """Compute the joint-space inertia M at `d.qpos`, (nv, nv) [kg, kg m, kg m^2]; `mj_fullM`."""
    return _ensure_inertia(m, d).M


def add_m(m: Model, d: Data, dst: Float[Array, "nv nv"]) -> Float[Array, "nv nv"]:
    """Add M to another matrix, (nv, nv); both triangles, where MuJoCo adds the lower one only."""
    return dst + full_m(m, d)


def mul_m(m: Model, d: Data, vec: Float[Array, "nv"]) -> Float[Array, "nv"]:
    """Multiply an acceleration (nv,) by M, which gives a generalized force; `mj_mulM`."""
    return mass_matrix(m, _ensure_inertia(m, d)).times(vec)


def mul_m2(m: Model, d: Data, vec: Float[Array, "nv"]) -> Float[Array, "nv"]:
    """Multiply a velocity (nv,) by a square root of M: sqrt(D) L vec, with M = L' D L; `mj_mulM2`.

    Half of its squared norm is the kinetic energy of the velocity.
    """
    factor = factor_m(m, d)
    return jnp.sqrt(factor.D) * apply(factor.L, vec)


def solve_m(m: Model, d: Data, force: Float[Array, "nv"]) -> Float[Array, "nv"]:
    """Multiply a generalized force (nv,) by M^-1, which gives an acceleration; `mj_solveM`."""
    return mass_matrix(m, _ensure_inertia(m, d)).solve(force)


def solve_m2(m: Model, d: Data, force: Float[Array, "nv"]) -> Float[Array, "nv"]:
    """Multiply a force (nv,) by a square root of M^-1: D^-1/2 L'^-1 force; `mj_solveM2`.

    Its squared norm is force' M^-1 force.
    """
    factor = factor_m(m, d)
    return solve_transposed(factor.L, force) / jnp.sqrt(factor.D)


def factor_m(m: Model, d: Data) -> MassFactor:
    """Factorize M = L' D L (Featherstone, *Rigid Body Dynamics Algorithms*, section 6.5).

    The result is dense: MuJoCo's `qLD` has the entries of L below the diagonal, and D on it.
    Corresponds to `mj_factorM` in MuJoCo.

    Args:
      m: model.
      d: data, of which qpos and the poses of mocap bodies are used.

    Returns:
      A MassFactor.
    """
    return MassFactor(*ltdl(full_m(m, d)))


def _ensure_inertia(m: Model, d: Data) -> Data:
    return crb(m, tendon(m, com_pos(m, kinematics(m, d))))
