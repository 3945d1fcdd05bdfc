"""Bounds of geoms from their sizes: boxes, spheres, and sizes of height fields.

The same formulas as those of the compiler (`compile/geometry/primitive.py`), on traced sizes. The
bounds of
a mesh do not follow from a size: they are unchanged.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.arrays.kind_dispatch import compute_by_kind
from jaxsim.enums import MAXVAL, GeomType
from jaxsim.math import safe_sqrt
from jaxsim.model.model import Model


def geom_bounds(m: Model) -> dict:
    """Compute `geom_size`, `geom_aabb` and `geom_rbound`, in the layout of the physics."""
    m = m.replace(geom_size=_geom_half_sizes(m))
    aabb = compute_by_kind(
        m.geom_type,
        {k: _evaluate_by_type(m, box) for k, (box, _) in _BOUNDS_FUNCTIONS.items()},
        m.geom_aabb,
    )
    m = m.replace(geom_aabb=aabb)
    rbound = compute_by_kind(
        m.geom_type,
        {k: _evaluate_by_type(m, r) for k, (_, r) in _BOUNDS_FUNCTIONS.items()},
        m.geom_rbound,
    )
    return {"geom_size": m.geom_size, "geom_aabb": aabb, "geom_rbound": rbound}


def _evaluate_by_type(m: Model, formula: Callable) -> Callable:
    return lambda ids: formula(m, ids)


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


# Boxes: center and half sizes `[k, 6, *W]`.


def _centered(*half: str) -> Callable:
    """Return a function for boxes about the origin, with half sizes such as "x" or "xy" (a sum)."""

    def box(m: Model, ids: np.ndarray) -> Array:
        sizes = dict(
            zip("xyz", (gather_static(m.geom_size[:, k], ids) for k in range(3)), strict=True)
        )
        sides = [sum(sizes[name] for name in names) for names in half]
        return jnp.stack([jnp.zeros_like(sizes["x"])] * 3 + sides, axis=1)

    return box


def _half_space(m: Model, ids: np.ndarray) -> Array:
    row = MAXVAL * np.array([0, 0, -0.5, 1, 1, 0.5])
    like = gather_static(m.geom_aabb, ids)
    return jnp.broadcast_to(column(row, like[0])[None], like.shape)


def _field(m: Model, ids: np.ndarray) -> Array:
    x, y, top, base = _hfield(m, ids)
    zero = jnp.zeros_like(x)
    return jnp.stack([zero, zero, 0.5 * (top - base), x, y, 0.5 * (top + base)], axis=1)


def _box_as_it_is(m: Model, ids: np.ndarray) -> Array:
    return gather_static(m.geom_aabb, ids)


# Radii of bounding spheres `[k, *W]`.


def _unbounded_radius(m: Model, ids: np.ndarray) -> Array:
    return jnp.zeros_like(gather_static(m.geom_rbound, ids))


def _radius_as_it_is(m: Model, ids: np.ndarray) -> Array:
    return gather_static(m.geom_rbound, ids)


def _longest_half_side(m: Model, ids: np.ndarray) -> Array:
    """Return the largest half side of the box, for shapes that are round at their ends."""
    return jnp.max(gather_static(m.geom_aabb, ids)[:, 3:], axis=1)


def _corner_distance(m: Model, ids: np.ndarray) -> Array:
    """Return the distance of the box's farthest corner from the origin."""
    # Largest absolute coordinate along each axis.
    box = gather_static(m.geom_aabb, ids)
    far = jnp.abs(box[:, :3]) + box[:, 3:]
    return safe_sqrt(sum(far[:, k] * far[:, k] for k in range(3)))


def _rim_distance(m: Model, ids: np.ndarray) -> Array:
    """Return the distance of a cylinder's rim from its center."""
    radius, half = (gather_static(m.geom_size[:, k], ids) for k in range(2))
    return safe_sqrt(radius * radius + half * half)


_BOUNDS_FUNCTIONS: dict[GeomType, tuple[Callable, Callable]] = {
    GeomType.PLANE: (_half_space, _unbounded_radius),
    GeomType.HFIELD: (_field, _corner_distance),
    GeomType.SPHERE: (_centered("x", "x", "x"), _longest_half_side),
    GeomType.CAPSULE: (_centered("x", "x", "xy"), _longest_half_side),
    GeomType.ELLIPSOID: (_centered("x", "y", "z"), _longest_half_side),
    GeomType.CYLINDER: (_centered("x", "x", "y"), _rim_distance),
    GeomType.BOX: (_centered("x", "y", "z"), _corner_distance),
    GeomType.MESH: (_box_as_it_is, _radius_as_it_is),
    GeomType.SDF: (_box_as_it_is, _radius_as_it_is),
}
