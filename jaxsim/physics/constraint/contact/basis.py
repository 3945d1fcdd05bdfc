"""Velocity along the axes of each contact per unit speed of each dof."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from jaxsim.math import Spatial, Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.bilinear import outer_sum
from jaxsim.physics.arrays.pin import pin
from jaxsim.physics.arrays.select import take
from jaxsim.physics.collision.driver import Contacts
from jaxsim.physics.collision.flex.levers import item_edge, turning_rows
from jaxsim.physics.collision.flex.shares import moved_by_flexes
from jaxsim.physics.topology import ancestors


def basis_jacobian(m: Model, d: Data, c: Contacts, size: int) -> Array:
    """Jacobians of the first `size` basis vectors of contacts, `[size, ncon, nv, *W]`.

    Needs `cdof` and `subtree_com`, and of flexes `flexvert_xpos`.
    """
    sign = _sides(m, d, c)
    roots = np.unique(m.body_rootid[m.dof_bodyid])
    if len(roots) == 1:
        arm = c.pos - take(d.subtree_com, roots)
        rows = [sign * _along(d.cdof, c.frame.rows[k % 3], arm, turns=k >= 3) for k in range(size)]
        return jnp.stack(pin(_with_rods(m, d, c, rows), d.qvel))
    cdof = d.cdof
    origin = take(d.subtree_com, m.body_rootid[m.dof_bodyid])
    # velocity of the contact point per unit speed of each dof
    arm = Vec(*(p[:, None] - o[None] for p, o in zip(c.pos.parts, origin.parts, strict=True)))
    point = Spatial(*(a[None] for a in cdof.parts))
    linear = point.at(arm)
    rows = []
    for k in range(size):
        axis = Vec(*(a[:, None] for a in c.frame.rows[k % 3].parts))
        rows.append(sign * axis.dot(linear if k < 3 else point.rot))
    return jnp.stack(pin(_with_rods(m, d, c, rows), d.qvel))


def _with_rods(
    m: Model, d: Data, c: Contacts, rows: Sequence[Array | np.ndarray]
) -> Sequence[Array | np.ndarray]:
    """Rows of the basis with what contacts on edges of rods add, which turn by hinges."""
    if c.item is None or not (item_edge(m) >= 0).any():
        return rows
    return [a + b for a, b in zip(rows, turning_rows(m, d, c, len(rows)), strict=True)]


def _along(cdof: Spatial, axis: Vec, arm: Vec, turns: bool) -> Array:
    """Velocity along an axis of each contact per unit speed of each dof, `[ncon, nv, *W]`.

    Args:
      cdof: motion axes about one point, `[nv, *W]`.
      axis: of each contact, `[ncon, *W]`.
      arm: of each contact, from that point.
      turns: whether it is the angular velocity.
    """
    pairs = list(zip((axis if turns else arm.cross(axis)).parts, cdof.rot.parts, strict=True))
    if not turns:  # axis . (rot x arm) = (arm x axis) . rot
        pairs += zip(axis.parts, cdof.lin.parts, strict=True)
    return outer_sum(pairs)


def _sides(m: Model, d: Data, c: Contacts) -> Array | np.ndarray:
    """+1 where a dof moves the second body only, -1 the first only, 0 both or none.

    Of elements of flexes several bodies move, each by its share.
    """
    first, second = (body.bits(ancestors(m), c.dist) for body in c.body)
    if c.item is None:
        return second - first
    first, second = (
        jnp.where((c.each(geom) >= 0)[:, None], bits, 0)
        for geom, bits in zip(c.geom, (first, second), strict=True)
    )
    return second - first + moved_by_flexes(m, d, c)[0]
