"""Jacobian of contacts: velocity along the contact axes per unit velocity of each dof.

Corresponds to `mj_jacDifPair` and the rotation to the contact frame in MuJoCo. Models with one
kinematic root take a bilinear form of contact and dof axes; others build the velocity of each
point.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import outer_sum
from jaxsim.arrays.gather import gather_static
from jaxsim.math import Spatial, Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.collision.driver import Contacts
from jaxsim.physics.collision.flex.flex_jacobian import flex_jacobian_shares
from jaxsim.physics.collision.flex.rod_jacobian import item_edge, turning_rows
from jaxsim.physics.topology import ancestors
from jaxsim.transforms.materialize import materialize


def basis_jacobian(m: Model, d: Data, c: Contacts, size: int) -> Array:
    """Compute Jacobians of the first `size` basis vectors of contacts, `[size, ncon, nv, *W]`.

    Requires `cdof` and `subtree_com`, and for flexes `flexvert_xpos`.
    """
    # Sign of each dof's effect on the relative velocity.
    sign = _side_signs(m, d, c)
    roots = np.unique(m.body_rootid[m.dof_bodyid])
    # One common origin of the motion axes: products of contact axes with dof axes.
    if len(roots) == 1:
        arm = c.pos - gather_static(d.subtree_com, roots)
        rows = [
            sign * _axis_velocity(d.cdof, c.frame.rows[k % 3], arm, angular=k >= 3)
            for k in range(size)
        ]
        return jnp.stack(materialize(_add_rod_rotation(m, d, c, rows), d.qvel))
    cdof = d.cdof
    origin = gather_static(d.subtree_com, m.body_rootid[m.dof_bodyid])
    # Several origins: velocity of the contact point per unit velocity of each dof.
    arm = Vec(*(p[:, None] - o[None] for p, o in zip(c.pos.parts, origin.parts, strict=True)))
    point = Spatial(*(a[None] for a in cdof.parts))
    linear = point.at(arm)
    rows = []
    for k in range(size):
        axis = Vec(*(a[:, None] for a in c.frame.rows[k % 3].parts))
        rows.append(sign * axis.dot(linear if k < 3 else point.rot))
    return jnp.stack(materialize(_add_rod_rotation(m, d, c, rows), d.qvel))


def _add_rod_rotation(
    m: Model, d: Data, c: Contacts, rows: Sequence[Array | np.ndarray]
) -> Sequence[Array | np.ndarray]:
    """Add the rotation of rod edges by their hinges to the rows of contacts on them."""
    if c.item is None or not (item_edge(m) >= 0).any():
        return rows
    return [a + b for a, b in zip(rows, turning_rows(m, d, c, len(rows)), strict=True)]


def _axis_velocity(cdof: Spatial, axis: Vec, arm: Vec, angular: bool) -> Array:
    """Compute the velocity along an axis of each contact per dof velocity, `[ncon, nv, *W]`.

    Args:
      cdof: motion axes about one point, `[nv, *W]`.
      axis: axis of each contact, `[ncon, *W]`.
      arm: vector from that point to each contact.
      angular: True for angular velocity.
    """
    # Bilinear form: components of axis and motion axes.
    pairs = list(zip((axis if angular else arm.cross(axis)).parts, cdof.rot.parts, strict=True))
    if not angular:  # axis . (rot x arm) = (arm x axis) . rot
        pairs += zip(axis.parts, cdof.lin.parts, strict=True)
    return outer_sum(pairs)


def _side_signs(m: Model, d: Data, c: Contacts) -> Array | np.ndarray:
    """Return +1 where a dof moves the second body only, -1 the first only, 0 both or none.

    Flex elements are moved by several bodies, each with its weight.
    """
    # 1 where a dof moves the first, or the second body.
    first, second = (body.bits(ancestors(m), c.dist) for body in c.body)
    if c.item is None:
        return second - first
    first, second = (
        jnp.where((c.each(geom) >= 0)[:, None], bits, 0)
        for geom, bits in zip(c.geom, (first, second), strict=True)
    )
    return second - first + flex_jacobian_shares(m, d, c)[0]
