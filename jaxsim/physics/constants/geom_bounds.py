"""Bounds of geoms from their sizes: boxes, spheres, and sizes of height fields.

The half sides of primitive shapes are those of the compiler (`math/solids.py`). The bounds of a
mesh do not follow from a size: they are unchanged.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.arrays.kind_dispatch import compute_by_kind
from jaxsim.enums import MAXVAL, GeomType
from jaxsim.math import safe_sqrt
from jaxsim.math.solids import ROUND_ENDED, half_sides
from jaxsim.model.model import Model

_MESH_TYPES = (GeomType.MESH, GeomType.SDF)


def geom_bounds(m: Model) -> dict:
    """Compute `geom_size`, `geom_aabb` and `geom_rbound`, in the layout of the physics."""
    # In this order: boxes follow from the sizes, spheres from the boxes.
    m = m.replace(geom_size=_geom_half_sizes(m))
    boxes = {kind: partial(_box, m, kind) for kind in GeomType}
    m = m.replace(geom_aabb=compute_by_kind(m.geom_type, boxes, m.geom_aabb))
    radii = {kind: partial(_radius, m, kind) for kind in GeomType}
    rbound = compute_by_kind(m.geom_type, radii, m.geom_rbound)
    return {"geom_size": m.geom_size, "geom_aabb": m.geom_aabb, "geom_rbound": rbound}


def _geom_half_sizes(m: Model) -> Array:
    """Return the size of geoms; for a height field a box of its mean height and half its base."""
    geom = np.flatnonzero(m.geom_type == GeomType.HFIELD)
    if not len(geom):
        return m.geom_size
    # Half sides from the field; the half height is a quarter of the top plus half of the base.
    x, y, top, base = _hfield(m, geom)
    size = jnp.stack([x, y, 0.25 * top + 0.5 * base], axis=1)
    whole = jnp.broadcast_to(m.geom_size, (*m.geom_size.shape[:2], *size.shape[2:]))
    return whole.at[geom].set(size)


def _hfield(m: Model, ids: np.ndarray) -> list[Array]:
    """Return half sides, height and base depth of height fields."""
    return [gather_static(m.hfield_size[:, k], m.geom_dataid[ids]) for k in range(4)]


def _box(m: Model, kind: GeomType, ids: np.ndarray) -> Array:
    """Return the centers and half sides of the boxes around geoms of one type, `[k, 6, *W]`."""
    given = gather_static(m.geom_aabb, ids)
    if kind in _MESH_TYPES:
        return given
    if kind == GeomType.PLANE:  # the half space below it
        row = MAXVAL * np.array([0, 0, -0.5, 1, 1, 0.5])
        return jnp.broadcast_to(column(row, given[0])[None], given.shape)
    if kind == GeomType.HFIELD:
        x, y, top, base = _hfield(m, ids)
        zero = jnp.zeros_like(x)
        return jnp.stack([zero, zero, 0.5 * (top - base), x, y, 0.5 * (top + base)], axis=1)
    sides = half_sides(kind, [gather_static(m.geom_size[:, k], ids) for k in range(3)])
    return jnp.stack([jnp.zeros_like(sides[0])] * 3 + sides, axis=1)


def _radius(m: Model, kind: GeomType, ids: np.ndarray) -> Array:
    """Return the radii of the spheres around geoms of one type, from their boxes, `[k, *W]`."""
    given, box = gather_static(m.geom_rbound, ids), gather_static(m.geom_aabb, ids)
    if kind in _MESH_TYPES:
        return given
    if kind == GeomType.PLANE:  # unbounded
        return jnp.zeros_like(given)
    if kind in ROUND_ENDED:
        return jnp.max(box[:, 3:], axis=1)
    if kind == GeomType.CYLINDER:  # which touches the rims
        far = [box[:, 3], box[:, 5]]
    else:  # which touches the farthest corner of the box
        corner = jnp.abs(box[:, :3]) + box[:, 3:]
        far = [corner[:, k] for k in range(3)]
    return safe_sqrt(sum(x * x for x in far))
