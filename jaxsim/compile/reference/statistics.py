"""`stat`: length, position and inertia scales of a model in the reference pose.

All are computed; a later pass replaces those that `<statistic>` sets (options/option.py).
`meaninertia` is the mean of M's diagonal; `meanmass` and `meansize` are means over bodies. `center`
and `extent` [m] are the center and largest side of the box around bodies, their centers of mass,
joints, sites and geoms; `extent` is at least 2 `meansize`, and `NO_EXTENT` for an empty model.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compile.reference.constants import Constants
from jaxsim.enums import MINVAL, GeomType
from jaxsim.model.derived import (
    FINITE_PLANE,
    INFINITE_PLANE,
    NO_EXTENT,
    NO_INERTIA,
    NO_MASS,
    NO_SIZE,
)


def statistics(constants: Constants) -> dict[str, float | np.ndarray]:
    """Return all statistics of a model, from its fields."""
    f = constants.fields
    center, extent = _box(constants)
    several = f["nbody"] > 1
    meansize = float(constants.body_length[1:].mean()) if several else NO_SIZE
    return {
        "meaninertia": float(constants.inertia.diagonal().mean()) if f["nv"] else NO_INERTIA,
        "meanmass": float(f["body_mass"][1:].mean()) if several else NO_MASS,
        "meansize": meansize,
        "extent": NO_EXTENT if extent < MINVAL else max(extent, 2.0 * meansize),
        "center": center,
    }


def _box(constants: Constants) -> tuple[np.ndarray, float]:
    """Return the center (3,) and largest side of the box around a model."""
    f, reference = constants.fields, constants.reference
    positions = [reference.xpos[1:], reference.xipos[1:], reference.xanchor, reference.site_xpos]
    radii = [np.zeros(len(p)) for p in positions]
    positions.append(reference.geom_xpos)
    radii.append(_geom_radius(f))
    points, radius = np.concatenate(positions), np.concatenate(radii)[:, None]
    if not len(points):
        return np.zeros(3), 0.0
    low, high = np.min(points - radius, axis=0), np.max(points + radius, axis=0)
    return 0.5 * (low + high), float(np.max(high - low))


def _geom_radius(f) -> np.ndarray:
    """Return the radius with which each geom enters the box, (ngeom,) [m]."""
    size = f["geom_size"][:, :2]
    plane = np.where(
        (size > 0).any(axis=1), FINITE_PLANE * size.max(axis=1, initial=0), INFINITE_PLANE
    )
    return np.where(f["geom_type"] == GeomType.PLANE, plane, f["geom_rbound"])
