"""Inverse weights at the reference pose: mobility of bodies, dofs, tendons and actuators.

An inverse weight is the mean of the diagonal of J M^-1 J', with J the Jacobian of a quantity.
Constraints are scaled by them (MuJoCo's documentation, Computation: Constraint model).
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, diagonal, gather_static, weighted_sum
from jaxsim.arrays.linear import HIGHEST_PRECISION
from jaxsim.enums import MINVAL, JointType
from jaxsim.linalg.cholesky import inverse_spd
from jaxsim.math import safe_sqrt
from jaxsim.model.data import Data
from jaxsim.model.derived import SLIDERS_ONLY
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.actuator.reflected_inertia import dof_armature
from jaxsim.physics.actuator.transmission import SUPPORTED_TRANSMISSIONS, output_trntype
from jaxsim.physics.body.point_motion import point_jacobian
from jaxsim.physics.constants.flex_edges import edge_invweight
from jaxsim.physics.topology import ancestors


def inverse_weights(m: Model, d: Data) -> dict:
    """Compute the fields that depend on M, in the layout of the physics.

      dof_M0               diagonal of M without the armature of tendons
      *_invweight0         mean of the diagonal of J M^-1 J'
      actuator_acc0        |M^-1 moment|, the acceleration from a unit force

    Args:
      m: model.
      d: data in the reference pose, after `crb` and `transmission`.
    """
    # All weights use the same inverse of M.
    inverse = inverse_spd(d.M)
    body = _body_invweight(m, d, inverse)
    moment = _times_inverse(d.actuator_moment, inverse)
    acc0 = safe_sqrt(jnp.sum(moment * moment, axis=1))
    known = np.isin(output_trntype(m), [*SUPPORTED_TRANSMISSIONS])
    found = {
        "dof_M0": d.cdof.dot(gather_static(d.crb, m.dof_bodyid) @ d.cdof) + dof_armature(m),
        "dof_invweight0": _dof_invweight(m, inverse),
        "body_invweight0": body,
        "tendon_invweight0": _inverse_inertia_diagonal(d.ten_J, inverse),
        "actuator_acc0": jnp.where(column(known, acc0), acc0, m.actuator_acc0),
    }
    if m.nflex:
        found["flexedge_invweight0"] = edge_invweight(m, d, body, inverse)
    return found


def actuator_mobility(d: Data) -> Array:
    """Compute the diagonal of J M^-1 J' of the force outputs, `[nout, *W]`.

    Args:
      d: data in the reference pose, after `crb` and `transmission`.
    """
    return _inverse_inertia_diagonal(d.actuator_moment, inverse_spd(d.M))


def _times_inverse(J: Array, inverse: Array) -> Array:
    """Compute J M^-1: `[n, nv, *W]`."""
    return jnp.einsum("bi...,ij...->bj...", J, inverse, precision=HIGHEST_PRECISION)


def _inverse_inertia_diagonal(J: Array, inverse: Array) -> Array:
    """Compute the diagonal of J M^-1 J', `[n, *W]`."""
    return jnp.sum(_times_inverse(J, inverse) * J, axis=1)


def _slide_weight(m: Model) -> Array:
    """Return 1 / mass of bodies, the inverse weight of those with slides only."""
    return 1 / jnp.maximum(m.body_mass, MINVAL)


def _dof_invweight(m: Model, inverse: Array) -> Array:
    """Compute the diagonal of M^-1, averaged over triples of dofs of ball and free joints."""
    # Average over the dofs of each rotation or translation.
    weight = weighted_sum(_means(m), diagonal(inverse))
    slides = m.body_simple[m.dof_bodyid] == SLIDERS_ONLY
    return jnp.where(column(slides, weight), gather_static(_slide_weight(m), m.dof_bodyid), weight)


@cache_by_structure
def _means(s: Structure) -> np.ndarray:
    """Return the averaging matrix over dofs that share an inverse weight, [nv, nv]."""
    mean = np.eye(s.nv)
    for kind, first in zip(s.jnt_type, s.jnt_dofadr, strict=True):
        for part in range(0, JointType(kind).nv // 3 * 3, 3):
            dofs = slice(first + part, first + part + 3)
            mean[dofs, dofs] = 1 / 3
    return mean


def _body_invweight(m: Model, d: Data, inverse: Array) -> Array:
    """Compute inverse weights of bodies: translation, rotation, `[nbody, 2, *W]`."""
    # Bodies with sliding joints only have weight 1 / mass and no rotation.
    moves = ancestors(m).any(axis=1) & (m.body_weldid != 0)
    slides = moves & (m.body_simple == SLIDERS_ONLY)
    worlds = inverse.shape[2:]
    slide = jnp.broadcast_to(_slide_weight(m), (m.nbody, *worlds))
    weight = [jnp.where(column(slides, slide), slide, 0), jnp.zeros_like(slide)]
    # Others: mean mobility of the center of mass, translation and rotation.
    body = np.flatnonzero(moves & ~slides)
    if len(body):
        jacobians = point_jacobian(m, d, body, gather_static(d.xipos, body))
        for k, J in enumerate(jacobians):
            mean = sum(_inverse_inertia_diagonal(row, inverse) for row in J.parts) / 3
            weight[k] = weight[k].at[body].set(mean)
    return jnp.stack(weight, axis=1)
