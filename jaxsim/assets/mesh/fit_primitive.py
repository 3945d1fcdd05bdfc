"""Fit the size of a primitive to a mesh: to its inertia, or to its bounding box."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxsim.enums import GeomType

_FitFunction = Callable[[float, float, float], tuple[float, ...]]

# From the half sizes of the box with the mesh's inertia: intermediate cross sections and volume.
TO_INERTIA: dict[GeomType, _FitFunction] = {
    GeomType.SPHERE: lambda x, y, z: ((x + y + z) / 3,),
    GeomType.CAPSULE: lambda x, y, z: ((x + y) / 2, max(0.0, z - (x + y) / 4)),
    GeomType.CYLINDER: lambda x, y, z: ((x + y) / 2, z),
    GeomType.ELLIPSOID: lambda x, y, z: (x, y, z),
    GeomType.BOX: lambda x, y, z: (x, y, z),
}

# From the half sizes of the bounding box: the smallest shape whose own box contains it.
AROUND_BOX: dict[GeomType, _FitFunction] = {
    GeomType.SPHERE: lambda x, y, z: (max(x, y, z),),
    GeomType.CAPSULE: lambda x, y, z: (max(x, y), max(0.0, z - max(x, y))),
    GeomType.CYLINDER: lambda x, y, z: (max(x, y), z),
    GeomType.ELLIPSOID: lambda x, y, z: (x, y, z),
    GeomType.BOX: lambda x, y, z: (x, y, z),
}


def inertia_box(moments: np.ndarray) -> np.ndarray:
    """Return the half sizes of the box with these principal moments per mass [m^2], (3,)."""
    return np.sqrt(np.maximum(0.0, 1.5 * (moments.sum() - 2 * moments)))
