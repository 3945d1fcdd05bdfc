"""Prisms of height fields: which of them are under a geom, and their shapes.

A cell of the grid is two triangles, separated by the line from (row, column) to (row + 1, column +
1); a prism extends from a triangle down to the base of the field. The order is MuJoCo's: by row, by
cell in the row, first the triangle on the side of the next row.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.dynamic import take_clipped
from jaxsim.arrays.gather import gather
from jaxsim.arrays.node import node
from jaxsim.enums import GeomType
from jaxsim.math import Rot, Vec
from jaxsim.model.model import Model
from jaxsim.physics.collision.convex.search import Lanes
from jaxsim.physics.collision.convex.solid import (
    Assets,
    ConvexShape,
    convex_assets,
    core_radius,
    core_support,
)


class HfieldGrids(NamedTuple):
    """Constant integers of each field: rows, columns, and address of its heights."""

    rows: jax.Array
    cols: jax.Array
    adr: jax.Array


@node("slots")
class HfieldTables:
    """Tables for collisions with height fields.

    Attributes:
      convex: tables of the convex shapes.
      field: field of each geom, 0 for those that are none.
      grids: of each field.
      size: half sides, height and depth of the base, `[nhfield, *W]` each [m].
      data: heights of all fields, `[nhfielddata, *W]`.
      slots: largest number of contacts of a field and a geom.
    """

    convex: Assets
    field: jax.Array
    grids: HfieldGrids
    size: tuple[jax.Array, ...]
    data: jax.Array
    slots: int


MAX_CONTACTS_PER_PAIR = 50  # largest number of contacts of two geoms in MuJoCo (mjMAXCONPAIR)


def max_prism_contacts(prisms: int) -> int:
    """Return the contact slots of a geom over this many prisms: one each, up to the maximum."""
    return max(1, min(MAX_CONTACTS_PER_PAIR, prisms))


def hfield_tables(m: Model) -> HfieldTables:
    """Return the tables of the height fields of a model."""
    s = m.structure
    convex = convex_assets(m)
    met = s.geom_type[s.geom_prismnum > 0].tolist()
    kinds = tuple(k for k in convex.kinds if k in met)
    grids = HfieldGrids(
        *(jnp.asarray(x, jnp.int32) for x in (s.hfield_nrow, s.hfield_ncol, s.hfield_adr))
    )
    return HfieldTables(
        convex=replace(convex, kinds=(GeomType.HFIELD, *kinds), patches=False),
        field=jnp.asarray(np.where(s.geom_type == GeomType.HFIELD, s.geom_dataid, 0), jnp.int32),
        grids=grids,
        size=tuple(m.hfield_size[:, k] for k in range(4)),
        data=m.hfield_data,
        slots=max_prism_contacts(int(np.max(s.geom_prismnum, initial=0))),
    )


class Over(NamedTuple):
    """Geoms over fields, for lanes `[n]`.

    Attributes:
      solid: the geom.
      pos, rot: its pose in the frame of the field.
      size: half sides of the field, its height, and the depth of its base.
      grid: its grid.
      world: column of `HfieldTables.data`.
    """

    solid: ConvexShape
    pos: Vec
    rot: Rot
    size: tuple[Array, ...]
    grid: HfieldGrids
    world: Array


def field_of(fields: HfieldTables, geom: Array) -> tuple[HfieldGrids, tuple[Array, ...]]:
    """Return grids and sizes of geoms that are fields, `[n, *W]`."""
    field = fields.field[geom]
    return jax.tree.map(lambda x: x[field], fields.grids), gather(fields.size, field)


class PrismRange(NamedTuple):
    """The prisms whose cells a geom may reach, for lanes `[n]`.

    Attributes:
      row, col: the first cell.
      rows, cols: number of rows and columns.
      low: height that a prism must reach to be in contact [m].
    """

    row: Array
    col: Array
    rows: Array
    cols: Array
    low: Array

    @property
    def number(self) -> Array:
        """Return the number of prisms."""
        return 2 * self.rows * self.cols

    def prism(self, k: Array) -> "Prism":
        """Return the k-th prism."""
        cell = k // 2
        cols = jnp.maximum(self.cols, 1)
        return Prism(self.row + cell // cols, self.col + cell % cols, k % 2)


class Prism(NamedTuple):
    """Location of prisms: row and column of the cell, and 1 for the second prism of the cell."""

    row: Array
    col: Array
    second: Array


def range_of(fields: HfieldTables, over: Over, reach: Array) -> PrismRange:
    """Return the prisms under the bounding boxes of geoms in the field's frame."""
    # Cells under the bounding box, inflated by the reach; none if it is above or below the field.
    low, high = _bounds_in_field(fields.convex, over)
    x, y, top, base = over.size
    row, rows = _cells(low.y - reach, high.y + reach, y, over.grid.rows)
    col, cols = _cells(low.x - reach, high.x + reach, x, over.grid.cols)
    meets = (high.z + reach >= -base) & (low.z - reach <= top * jnp.max(fields.data))
    return PrismRange(row, col, jnp.where(meets, rows, 0), cols, low.z - reach)


def _bounds_in_field(assets: Assets, over: Over) -> tuple[Vec, Vec]:
    """Return the bounding box of geoms along the axes of the field."""
    # Support points along both directions of each axis of the field.
    axes = over.rot.rows  # axes of the field in the frame of the geom
    d = jax.tree.map(lambda *x: jnp.stack(x), *axes, *(-axis for axis in axes))
    each = jax.tree.map(lambda x: x[None], over.solid)
    _, point = core_support(assets, each, d)
    far = d.dot(point) + core_radius(each)
    return over.pos - Vec(far[3], far[4], far[5]), over.pos + Vec(far[0], far[1], far[2])


def _cells(low: Array, high: Array, half: Array, points: Array) -> tuple[Array, Array]:
    """Return the first cell that an interval overlaps, and how many."""
    last = points - 1
    per = last.astype(low.dtype) / (2 * half)
    at = [jnp.floor((low + half) * per), jnp.ceil((high + half) * per)]
    first, end = (jnp.clip(a, 0, last.astype(low.dtype)).astype(jnp.int32) for a in at)
    return first, jnp.maximum(end - first, 0)


def prism_heights(fields: HfieldTables, over: Over, p: Prism) -> Vec:
    """Return the heights of the upper corners of prisms above the field's origin [m]."""
    cols = over.grid.cols
    corner = over.grid.adr + p.row * cols + p.col
    steps = ((cols, 1), (0, cols + 1), (cols + 1, 0))  # offsets in the first and second prism
    index = (corner + jnp.where(p.second > 0, second, first) for first, second in steps)
    return Vec(*(_gather_items(fields.data, i, over) for i in index)).scale(over.size[2])


def _gather_items(data: Array, index: Array, over: Over) -> Array:
    """Return items of `[n]`, `[n, 1]`, or, per world, of `[n, worlds]`."""
    if data.ndim == 2 and data.shape[1] > 1:
        return take_clipped(data, index, jnp.broadcast_to(over.world, index.shape))
    return take_clipped(data.reshape(-1), index)


def prism_pairs(fields: HfieldTables, over: Over, p: Prism) -> tuple[Lanes, Vec]:
    """Return prisms and the geoms over them as pairs for the search.

    Returns:
      The pairs, in frames with the axes of the field; and the origins of these frames in the field,
      at the centroid of the upper triangle, so that precision does not depend on the position in
      the field.
    """
    tops = prism_heights(fields, over, p)
    x, y, _, base = over.size
    # Size of a cell, and the centroid of the upper triangle.
    dx, dy = (
        2 * half / jnp.maximum(points - 1, 1).astype(half.dtype)
        for half, points in ((x, over.grid.cols), (y, over.grid.rows))
    )
    side = jnp.where(p.second > 0, -1, 1).astype(dx.dtype)
    middle = Vec(
        (p.col.astype(dx.dtype) + 0.5 - side / 6) * dx - x,
        (p.row.astype(dx.dtype) + 0.5 + side / 6) * dy - y,
        (tops.x + tops.y + tops.z) / 3,
    )
    size = Vec(side * dx, side * dy, -base - middle.z)
    none = jnp.zeros_like(p.row)
    kind = jnp.full_like(none, GeomType.HFIELD)
    corners = over.solid.corners
    if corners is not None:  # both shapes must have the same tree structure
        corners = tuple(c.map(jnp.zeros_like) for c in corners)
    # Prism and geom relative to that centroid.
    prism = ConvexShape(kind, size, none, tops.map(lambda top: top - middle.z), corners)
    return Lanes(prism, over.solid, over.pos - middle, over.rot), middle


def lanes_at(lanes: PyTree, index: Array) -> PyTree:
    """Gather lanes by index."""
    return jax.tree.map(lambda x: take_clipped(x, index), lanes)
