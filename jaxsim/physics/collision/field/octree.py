"""The signed distance of a mesh, from its octree: trilinear interpolation of `oct_coeff`.

A cell either has eight children or is a leaf. In a leaf the distance is interpolated between its
corners; a point outside the octree gets the distance of the nearest point just inside, plus the
distance to it.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather
from jaxsim.arrays.node import node
from jaxsim.math import Vec, safe_sqrt
from jaxsim.model.structure import Structure, cache_by_structure

_NO_CHILD = -1  # marks a missing child
_BOUNDARY_INSET = 1e-6  # distance inside the boundary to which outside points are projected [m]


@node("depth")
class SdfOctrees:
    """The octrees of some geoms.

    Attributes:
      depth: largest depth (static).
      child: ids of all cells' children, `[8 * noct, *1]`.
      value: distances at all cells' corners, `[8 * noct, *W]`.
      root: root cell of the octree of each geom, `[1, n, *W]`.
      low, side: lower corner and side lengths of that cell, `[1, n, *W]`.
    """

    depth: int
    child: jax.Array
    value: jax.Array
    root: jax.Array
    low: Vec
    side: Vec


@cache_by_structure
def child_cells(s: Structure) -> np.ndarray:
    """Return the ids of the children of all cells, or _NO_CHILD, `[8 * noct]`."""
    first = np.zeros(s.noct, np.int64)
    for start, count in zip(s.mesh_octadr, s.mesh_octnum, strict=True):
        first[start : start + count] = start
    child = np.asarray(s.oct_child).reshape(-1, 8)
    return np.where(child < 0, _NO_CHILD, child + first[:, None]).astype(np.int32).ravel()


def octree_distance(x: Vec, octree: SdfOctrees) -> Array:
    """Return signed distances of points in the frame of the mesh.

    Args:
      x: points `[k, n, *W]`.
      octree: octree of each geom.
    """
    # Project on the octree, descend to the leaf, interpolate.
    axes = zip(x.parts, octree.low.parts, octree.side.parts, strict=True)
    u = [_clamp_to_octree(*axis) for axis in axes]
    cell, scale, origin = _find_leaf(octree, lax.stop_gradient([inside for inside, _ in u]))
    place = [inside * scale - o for (inside, _), o in zip(u, origin, strict=True)]
    value = _interpolate_leaf(octree, cell, place)
    beyond = [over for _, over in u]
    return value + safe_sqrt(sum(over * over for over in beyond))


def _clamp_to_octree(x: Array, low: Array, side: Array) -> tuple[Array, Array]:
    """Project on the octree along one axis: coordinate from 0 to 1, and distance to it."""
    half = 0.5 * side
    # Distance from the boundary, and the projection just inside of it.
    r = x - (low + half)
    over = jnp.abs(r) - half
    outside = over >= 0
    edge = jnp.where(r > 0, side - _BOUNDARY_INSET, _BOUNDARY_INSET)
    return jnp.where(outside, edge, x - low) / side, jnp.where(outside, over, 0.0)


def _find_leaf(octree: SdfOctrees, u: list[Array]) -> tuple[Array, Array, list[Array]]:
    """Return the leaf that contains each point.

    Args:
      octree: octree of each geom.
      u: coordinates in the root along each axis, from 0 to 1.

    Returns:
      Id of the cell; sides of the root per side of the cell; lower corner of the cell, in units of
      its sides.
    """

    def halve(_, state):
        """Descend by one level."""
        cell, scale, origin = state
        # Octant of the point: bit k is set in the upper half along axis k.
        upper = [2 * (a * scale - o) >= 1 for a, o in zip(u, origin, strict=True)]
        slot = sum(bit.astype(jnp.int32) << k for k, bit in enumerate(upper))
        child = _look_up(octree.child, 8 * cell + slot)
        inner = child != _NO_CHILD
        # Descend if the child exists; stay in a leaf.
        origin = [
            jnp.where(inner, 2 * o + bit.astype(o.dtype), o)
            for o, bit in zip(origin, upper, strict=True)
        ]
        return jnp.where(inner, child, cell), jnp.where(inner, 2 * scale, scale), origin

    one = jnp.ones_like(u[0] + octree.root.astype(u[0].dtype))
    start = (octree.root + jnp.zeros_like(one, jnp.int32), one, [jnp.zeros_like(one)] * 3)
    return lax.fori_loop(0, octree.depth, halve, start)


def _interpolate_leaf(octree: SdfOctrees, cell: Array, place: list[Array]) -> Array:
    """Interpolate trilinearly between the corners of a cell, the first axis fastest."""
    corners = [_look_up(octree.value, 8 * cell + k) for k in range(8)]
    for c in place:
        corners = [
            low * (1 - c) + high * c for low, high in zip(corners[::2], corners[1::2], strict=True)
        ]
    return corners[0]


def _look_up(table: Array, index: Array) -> Array:
    """Return entries of a table `[m, *W]` by an index `[k, n, *W]`."""
    flat = index.reshape(-1, *index.shape[2:])
    return gather(table, flat).reshape(index.shape)
