"""Tables of the signed distance search: distance functions of a model's geoms as arrays."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather
from jaxsim.arrays.node import node
from jaxsim.extend.registry import shapes
from jaxsim.math import Vec
from jaxsim.model.model import Model
from jaxsim.physics.collision.field.distance import OCTREE_SDF, SdfGeoms, sdf_function_id
from jaxsim.physics.collision.field.kinds import (
    collidable_kinds,
    kind_of,
    octree_roots,
    sdf_plugin_constants,
)
from jaxsim.physics.collision.field.octree import SdfOctrees, child_cells
from jaxsim.physics.collision.shape import PlacedGeoms, add_slot_axis

NO_CODE = -1  # code of a geom without a signed distance function


@node("first", "second", "starts", "iterations", "depth")
class SdfTables:
    """The signed distance functions of the geoms of a model.

    Attributes:
      first, second: names of the functions of geoms that collide with `sdf` geoms, and of these.
      starts: number of initial points per pair.
      iterations: number of steps from each.
      depth: depth of the deepest octree.
      code: id of each geom's function, `[ngeom, *1]`.
      constants: constants of each plugin shape, arrays `[ngeom, *1]`.
      aabb: bounding boxes in the frames of the geoms, `[ngeom, 6, *W]`.
      root: first cell of the octree of each geom, `[ngeom, *1]`.
      child, value: children of all cells, and values at their corners, `[8 * noct, *W]`.
      cell: boxes of all cells, `[noct, 6, *W]`.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    starts: int
    iterations: int
    depth: int
    code: jax.Array
    constants: dict[str, tuple[jax.Array, ...]]
    aabb: jax.Array
    root: jax.Array
    child: jax.Array
    value: jax.Array
    cell: jax.Array

    def box(self, geoms: PlacedGeoms) -> tuple[Vec, Vec]:
        """Return center and half sides of the geoms' bounding boxes in their frames, `[n, *W]`."""
        return _box(self.aabb, geoms.id)

    def solid(self, geoms: PlacedGeoms, kinds: tuple[str, ...]) -> SdfGeoms:
        """Return geoms `[n, *W]` as signed distance functions with these names."""
        return self.solid_of(geoms.id, geoms.size, kinds)

    def solid_of(self, ids: Array, size: Vec, kinds: tuple[str, ...]) -> SdfGeoms:
        """Return geoms, given by ids and sizes, as signed distance functions with these names."""
        kind = _gather_entry(self.code, ids)
        shapes = {
            shape: tuple(_gather_entry(values, ids) for values in self.constants[shape])
            for shape in kinds
            if shape in self.constants
        }
        # Sizes of 0 become 1, so that functions of other types do not divide by zero.
        size = size.map(lambda c: jnp.where(c > 0, c, 1.0))
        octree = self._octree(ids) if OCTREE_SDF in kinds else None
        return SdfGeoms(kinds, *add_slot_axis((kind, size, shapes)), octree)

    def _octree(self, ids: Array) -> SdfOctrees:
        """Return the octrees of geoms; arbitrary for those that have none."""
        root = _gather_entry(self.root, ids)
        middle, half = _box(self.cell, root)
        root, low, side = add_slot_axis((root, middle - half, half + half))
        return SdfOctrees(self.depth, self.child, self.value, root, low, side)


def sdf_tables(m: Model) -> SdfTables:
    """Return the signed distance functions of the geoms of a model in the form of the physics."""
    s = m.structure
    kinds = [kind_of(s, g) for g in range(s.ngeom)]
    return fields_of(m, kinds, *collidable_kinds(s, m.pair_flags))


def fields_of(
    m: Model, kinds: Sequence[str], first: tuple[str, ...], second: tuple[str, ...] = ()
) -> SdfTables:
    """Return the signed distance functions of a model, given each geom's function name."""
    s, like = m.structure, m.geom_aabb[:, 0]

    def constant(table: np.ndarray) -> jax.Array:
        return jnp.asarray(column(table, like))

    return SdfTables(
        first=first,
        second=second,
        starts=m.opt.sdf_initpoints,
        iterations=m.opt.sdf_iterations,
        depth=int(s.oct_depth.max(initial=0)),
        code=constant(np.array([sdf_function_id(k) if k else NO_CODE for k in kinds], np.int32)),
        constants={
            shape: tuple(constant(values) for values in sdf_plugin_constants(m, shape).T)
            for shape in sorted({*first, *second} & {*shapes()})
        },
        aabb=m.geom_aabb,
        root=constant(octree_roots(s, kinds)),
        child=constant(child_cells(s)),
        value=m.oct_coeff.reshape(-1, *m.oct_coeff.shape[2:]),
        cell=m.oct_aabb,
    )


def _box(table: Array, index: Array) -> tuple[Vec, Vec]:
    """Return centers and half sides, from rows of six numbers `[k, 6, *W]`."""
    parts = [_gather_entry(table[:, k], index) for k in range(6)]
    return Vec(*parts[:3]), Vec(*parts[3:])


def _gather_entry(table: Array, index: Array) -> Array:
    """Gather from a table `[k, *W]` by an index `[n, *W]` that worlds may share."""
    worlds = jnp.broadcast_shapes(table.shape[1:], index.shape[1:])
    return gather(table, jnp.broadcast_to(index, (*index.shape[:1], *worlds)))
