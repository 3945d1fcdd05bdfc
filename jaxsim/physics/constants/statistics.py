"""Length scales of a model: sizes of bodies, and the statistics `stat` at qpos0.

The same measures as those of the compiler (`compile/reference/statistics.py`), on traced values.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, diagonal, gather_static, max_by_row, sum_items
from jaxsim.arrays.kind_dispatch import concatenate_kinds
from jaxsim.enums import MINVAL, GeomType, JointType
from jaxsim.math import Vec, concat
from jaxsim.model.data import Data
from jaxsim.model.derived import (
    FINITE_PLANE,
    INFINITE_PLANE,
    MIN_BODY_SIZE,
    NO_EXTENT,
    NO_INERTIA,
    NO_MASS,
    NO_SIZE,
)
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.flex.edges import flex_edges
from jaxsim.physics.topology import group_by_owner


def body_length(m: Model, d: Data) -> Array:
    """Compute the size of each body [m]: from its com to the farthest geom bound or joint.

    Its own joints and those of its children count, and edges of flexes with their length.
    """
    joint_body = m.jnt_bodyid
    # Distances from the center of mass to the bounds of geoms and to joints.
    to_geom = (d.geom_xpos - gather_static(d.xipos, m.geom_bodyid)).norm() + m.geom_rbound
    to_joint = [
        (d.xanchor - gather_static(d.xipos, body)).norm()
        for body in (joint_body, m.body_parentid[joint_body])
    ]
    least = jnp.full_like(d.xipos.x[:1], MIN_BODY_SIZE)
    edge = [m.flexedge_length0] * 2 if m.nflex else []
    # Maximum over the items of each body, at least MIN_BODY_SIZE.
    far = concatenate_kinds([to_geom, *to_joint, *edge, least])
    return max_by_row(far, _items_of_bodies(m))


@cache_by_structure
def _items_of_bodies(s: Structure) -> np.ndarray:
    """Return the geoms, the joints, the joints of the children and the edges of each body."""
    owner = np.concatenate([s.geom_bodyid, s.jnt_bodyid, s.body_parentid[s.jnt_bodyid]])
    if s.nflex:
        owner = np.concatenate([owner, flex_edges(s).body.T.ravel()])
    return group_by_owner(owner, s.nbody)


def dof_length(m: Model, length: Array) -> Array:
    """Return the length scale of dofs: 1 for translations, else the body size, `[nv, *W]`."""
    kind, place = m.jnt_type[m.dof_jntid], np.arange(m.nv) - m.jnt_dofadr[m.dof_jntid]
    # Rotational dofs: all but slides and the translations of free joints.
    turns = (kind != JointType.SLIDE) & ~((kind == JointType.FREE) & (place < 3))
    return jnp.where(column(turns, length), gather_static(length, m.dof_bodyid), 1)


def model_statistics(m: Model, d: Data, length: Array) -> dict:
    """Compute `stat`, in the layout of the physics.

    Args:
      m: model.
      d: data in the reference pose, after `crb`.
      length: sizes of the bodies `[nbody, *W]`.
    """
    several = m.nbody > 1
    one = jnp.ones_like(length[:1])
    meansize = _mean(length[1:]) if several else NO_SIZE * one
    # Bounding box of all bodies at the reference pose.
    center, extent = _box(m, d)
    return {
        "meaninertia": _mean(diagonal(d.M)) if m.nv else NO_INERTIA * one,
        "meanmass": _mean(m.body_mass[1:]) if several else NO_MASS * one,
        "meansize": meansize,
        "extent": jnp.where(extent < MINVAL, NO_EXTENT, jnp.maximum(extent, 2 * meansize)),
        "center": center,
    }


def _mean(a: Array) -> Array:
    return sum_items(a) / a.shape[0]


def _box(m: Model, d: Data) -> tuple[Vec, Array]:
    """Return center and largest side of the box around bodies, coms, joints, sites and geoms."""
    # All points, geoms last because only these have a radius.
    points = concat([d.xpos[1:], d.xipos[1:], d.xanchor, d.site_xpos, d.geom_xpos])
    if not points.shape[0]:
        zero = jnp.zeros_like(d.xpos.x[:1])
        return Vec(zero, zero, zero), zero
    count = points.shape[0] - m.ngeom
    radius = _geom_radius(m)
    radius = jnp.concatenate([jnp.zeros((count, *radius.shape[1:]), radius.dtype), radius])
    # Corners of the box.
    low = points.map(lambda a: jnp.min(a - radius, axis=0, keepdims=True))
    high = points.map(lambda a: jnp.max(a + radius, axis=0, keepdims=True))
    sides = high - low
    longest = jnp.maximum(jnp.maximum(sides.x, sides.y), sides.z)
    return (low + high).scale(0.5), longest


def _geom_radius(m: Model) -> Array:
    """Return the radius of each geom for this box, `[ngeom, *W]` [m]."""
    x, y = m.geom_size[:, 0], m.geom_size[:, 1]
    # Planes count with a multiple of their drawn size.
    finite = (x > 0) | (y > 0)
    plane = jnp.where(finite, FINITE_PLANE * jnp.maximum(jnp.maximum(x, y), 0), INFINITE_PLANE)
    is_plane = column(m.geom_type == GeomType.PLANE, plane)
    return jnp.where(is_plane, plane, m.geom_rbound)
