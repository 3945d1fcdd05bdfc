"""Mass properties and bounds of primitive shapes from their size parameters.

A shape is solid, or a shell with its mass on the surface. Inertia is about the center, in the frame
of the shape, for a total mass of 1: moments of the uniform solid or surface (any mechanics
handbook). Lengths in m; `size` is MuJoCo's: radius, half lengths, or semi-axes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxsim.enums import MAXVAL, GeomType
from jaxsim.model.derived import OWN_SEMIAXES, SEMIAXES

_THOMSEN_POWER = 1.6075  # exponent of Thomsen's formula for the area of an ellipsoid
SHELL_THICKNESS = 1e-6  # thickness of the thin ellipsoidal shell [m] that gives MuJoCo's inertia


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
    content, inertia = (SHELLS if shell else SOLIDS)[kind](*size)
    box, rbound = _BOUNDS[kind](*size)
    return Solid(float(content), np.array(inertia, float), np.array(box, float), float(rbound))


def semiaxes(kind: GeomType, size: np.ndarray) -> np.ndarray:
    """Return the semi-axes of the ellipsoid that represents a primitive in the fluid model,
    (3,)."""
    sums = SEMIAXES.get(kind, OWN_SEMIAXES)
    return np.array([sum(size[slot] for slot in slots) for slots in sums])


# --- mass distribution: (content, moments per mass) ---

# Sizes are numbers or arrays, of any library.
Moments = tuple[Any, tuple[Any, ...]]


def _no_moments(*_: Any) -> Moments:
    return 0.0, (0.0, 0.0, 0.0)


def _ball(r: Any, *_: Any) -> Moments:
    return 4 / 3 * np.pi * r**3, (0.4 * r**2,) * 3


def _sphere_shell(r: Any, *_: Any) -> Moments:
    return 4 * np.pi * r**2, (2 / 3 * r**2,) * 3


def _capsule(r: Any, half: Any, *_: Any) -> Moments:
    """Return the sum of a cylinder and two half balls, whose centers of mass are 3/8 r beyond its
    ends."""
    barrel, caps = 2 * np.pi * r**2 * half, 4 / 3 * np.pi * r**3
    axial = barrel * r**2 / 2 + caps * 0.4 * r**2
    across = barrel * (r**2 / 4 + half**2 / 3) + caps * (0.4 * r**2 + half**2 + 0.75 * half * r)
    return barrel + caps, _per_mass(barrel + caps, across, across, axial)


def _capsule_shell(r: Any, half: Any, *_: Any) -> Moments:
    """Return the sum of an open tube and two hemispheres, whose centers of mass are r/2 beyond its
    ends."""
    tube, caps = 4 * np.pi * r * half, 4 * np.pi * r**2
    axial = tube * r**2 + caps * 2 / 3 * r**2
    across = tube * (r**2 / 2 + half**2 / 3) + caps * (2 / 3 * r**2 + half**2 + half * r)
    return tube + caps, _per_mass(tube + caps, across, across, axial)


def _cylinder(r: Any, half: Any, *_: Any) -> Moments:
    across = r**2 / 4 + half**2 / 3
    return 2 * np.pi * r**2 * half, (across, across, r**2 / 2)


def _cylinder_shell(r: Any, half: Any, *_: Any) -> Moments:
    """Return a tube closed by two disks."""
    tube, disks = 4 * np.pi * r * half, 2 * np.pi * r**2
    axial = tube * r**2 + disks * r**2 / 2
    across = tube * (r**2 / 2 + half**2 / 3) + disks * (r**2 / 4 + half**2)
    return tube + disks, _per_mass(tube + disks, across, across, axial)


def _ellipsoid(x: Any, y: Any, z: Any) -> Moments:
    moments = (y**2 + z**2) / 5, (x**2 + z**2) / 5, (x**2 + y**2) / 5
    return 4 / 3 * np.pi * x * y * z, moments


def _ellipsoid_shell(x: Any, y: Any, z: Any) -> Moments:
    """Return the area, and the moments of a thin layer of uniform thickness."""
    inner, inner_moments = _ellipsoid(x, y, z)
    outer, outer_moments = _ellipsoid(*(axis + SHELL_THICKNESS for axis in (x, y, z)))
    layer = outer * np.array(outer_moments) - inner * np.array(inner_moments)
    return ellipsoid_area(x, y, z), tuple(layer / (outer - inner))


def ellipsoid_area(x: Any, y: Any, z: Any) -> Any:
    """Return the area of an ellipsoid by Knud Thomsen's formula, from its semi-axes [m^2]."""
    p = _THOMSEN_POWER
    mean = ((x * y) ** p + (x * z) ** p + (y * z) ** p) / 3
    return 4 * np.pi * mean ** (1 / p)


def _box(x: Any, y: Any, z: Any) -> Moments:
    return 8 * x * y * z, ((y**2 + z**2) / 3, (x**2 + z**2) / 3, (x**2 + y**2) / 3)


def _box_shell(x: Any, y: Any, z: Any) -> Moments:
    """Return the sum of six rectangles, a pair across each axis.

    The mean square of a coordinate over a pair is the squared half size if the pair is across that
    axis, otherwise a third of it.
    """
    sides, squares = (8 * y * z, 8 * x * z, 8 * x * y), (x**2, y**2, z**2)
    total = sides[0] + sides[1] + sides[2]
    xx, yy, zz = ((total + 2 * sides[i]) * squares[i] / 3 for i in range(3))
    return total, _per_mass(total, yy + zz, xx + zz, xx + yy)


def _per_mass(content: Any, *moments: Any) -> tuple[Any, ...]:
    if isinstance(content, float) and not content > 0:
        return (0.0,) * len(moments)
    return tuple(moment / content for moment in moments)


SOLIDS: dict[int, Callable[..., Moments]] = {
    GeomType.PLANE: _no_moments,
    GeomType.SPHERE: _ball,
    GeomType.CAPSULE: _capsule,
    GeomType.ELLIPSOID: _ellipsoid,
    GeomType.CYLINDER: _cylinder,
    GeomType.BOX: _box,
}

SHELLS: dict[int, Callable[..., Moments]] = {
    GeomType.PLANE: _no_moments,
    GeomType.SPHERE: _sphere_shell,
    GeomType.CAPSULE: _capsule_shell,
    GeomType.ELLIPSOID: _ellipsoid_shell,
    GeomType.CYLINDER: _cylinder_shell,
    GeomType.BOX: _box_shell,
}

# --- bounds: (box center and half sizes, bounding radius) ---

Bounds = tuple[tuple[float, ...], float]

_BOUNDS: dict[GeomType, Callable[[float, float, float], Bounds]] = {
    GeomType.PLANE: lambda x, y, z: ((0, 0, -MAXVAL / 2, MAXVAL, MAXVAL, MAXVAL / 2), 0.0),
    GeomType.SPHERE: lambda r, *_: ((0, 0, 0, r, r, r), r),
    GeomType.CAPSULE: lambda r, half, _: ((0, 0, 0, r, r, r + half), r + half),
    GeomType.ELLIPSOID: lambda x, y, z: ((0, 0, 0, x, y, z), max(x, y, z)),
    GeomType.CYLINDER: lambda r, half, _: ((0, 0, 0, r, r, half), np.hypot(r, half)),
    GeomType.BOX: lambda x, y, z: ((0, 0, 0, x, y, z), np.sqrt(x**2 + y**2 + z**2)),
}
