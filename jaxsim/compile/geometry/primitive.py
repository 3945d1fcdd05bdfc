"""Mass properties and bounds of primitive shapes from their size parameters.

A shape is solid, or a shell with its mass on the surface. The formulas are those of
`math/solids.py`. Lengths in m; `size` is MuJoCo's: radius, half lengths, or semi-axes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxsim.enums import MAXVAL, GeomType
from jaxsim.math.solids import ROUND_ENDED, half_sides, mass_distribution


@dataclass(frozen=True, eq=False)
class Solid:
    """Mass properties and bounds of a shape.

    Attributes:
      content: volume [m^3] of a solid, area [m^2] of a shell; the mass is density times this.
      inertia: principal moments per mass [m^2], (3,).
      aabb: center and half sizes of the bounding box in the shape's frame [m], (6,).
      rbound: radius of the bounding sphere about the center [m]; 0 for an unbounded shape.
    """

    content: float
    inertia: np.ndarray
    aabb: np.ndarray
    rbound: float


def primitive(kind: GeomType, size: np.ndarray, shell: bool = False) -> Solid:
    """Return the properties of a primitive shape of the given size, (3,)."""
    content, inertia = mass_distribution(kind, size, shell)
    box, rbound = _bounds(kind, size)
    return Solid(float(content), np.array(inertia, float), box, float(rbound))


def _bounds(kind: GeomType, size: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the center and half sides of the bounding box, (6,), and the bounding radius."""
    if kind == GeomType.PLANE:  # the half space below it
        return MAXVAL * np.array([0, 0, -0.5, 1, 1, 0.5]), 0.0
    x, y, z = half_sides(kind, size)
    if kind in ROUND_ENDED:
        radius = max(x, y, z)
    elif kind == GeomType.CYLINDER:
        radius = np.hypot(x, z)
    else:
        radius = np.sqrt(x**2 + y**2 + z**2)
    return np.array([0, 0, 0, x, y, z]), radius
