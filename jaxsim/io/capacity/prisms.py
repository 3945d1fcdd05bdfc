"""Count the prisms of a height field that can be under a geom, an upper bound for contacts.

A prism is the volume below one triangle, half a cell of the grid. Sizes are those of the model when
it is made; later changes do not affect the contact capacity.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxsim.enums import GeomType
from jaxsim.physics.collision.convex.hull.tables import collidable_geoms

_ELEMENT_STRETCH = 1.25  # stretch of elements that the capacity allows for
_SHAPES_WITHOUT_PRISMS = (GeomType.PLANE, GeomType.HFIELD, GeomType.SDF)
_MAX_PRISMS = 2**30


def prisms_under(fields: Mapping[str, Any], farther: float = 0) -> np.ndarray:
    """Return the largest number of prisms of a height field under each geom, in any orientation.

    Args:
      fields: a compiled model's tables, under MuJoCo's names.
      farther: range of contact detection beyond margin and gap of two geoms [m].

    Returns:
      int32 (ngeom,); 0 for geoms that collide with no height field.
    """
    kind, touches = np.asarray(fields["geom_type"]), collidable_geoms(fields.__getitem__)
    most = np.zeros(len(kind))
    around = np.asarray(fields["geom_margin"]) + np.asarray(fields["geom_gap"])
    for geom in np.flatnonzero((kind == GeomType.HFIELD) & touches):
        width = 2 * (np.asarray(fields["geom_rbound"]) + around + around[geom] + farther)
        met = _cells_met(fields, int(geom), width[:, None])
        most = np.maximum(most, 2 * met[:, 0] * met[:, 1])
    most = np.where(
        touches & ~np.isin(kind, _SHAPES_WITHOUT_PRISMS), np.minimum(most, _MAX_PRISMS), 0
    )
    return most.astype(np.int32)


def _cells_met(fields: Mapping[str, Any], geom: int, width: np.ndarray | float) -> np.ndarray:
    """Return the number of cells along each side of a height field that an interval can overlap."""
    field = fields["geom_dataid"][geom]
    half = np.asarray(fields["hfield_size"]).reshape(-1, 4)[field, :2]
    cells = np.array([fields["hfield_ncol"][field], fields["hfield_nrow"][field]]) - 1
    step = 2 * half / np.maximum(cells, 1)
    # An interval overlaps one cell more than its length in cells.
    return np.minimum(np.ceil(width / step) + 1, cells)


def prisms_under_elements(fields: Mapping[str, Any], farther: float = 0) -> np.ndarray:
    """Return the largest number of prisms of a height field under a stretched element of each flex.

    Args:
      fields: a compiled model's tables, under MuJoCo's names.
      farther: range of contact detection beyond margin and gap [m].

    Returns:
      int32 (nflex,).
    """
    most = np.zeros(fields["nflex"])
    length = np.asarray(fields["flexedge_length0"])
    for f in range(fields["nflex"]):
        first = fields["flex_edgeadr"][f]
        edge = length[first : first + fields["flex_edgenum"][f]].max(initial=0)
        around = sum(fields[f"flex_{name}"][f] for name in ("radius", "margin", "gap")) + farther
        for geom in np.flatnonzero(np.asarray(fields["geom_type"]) == GeomType.HFIELD):
            reach = around + fields["geom_margin"][geom] + fields["geom_gap"][geom]
            met = _cells_met(fields, int(geom), _ELEMENT_STRETCH * edge + 2 * reach)
            most[f] = max(most[f], 2 * met[0] * met[1])
    return np.minimum(most, _MAX_PRISMS).astype(np.int32)
