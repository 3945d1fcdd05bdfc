"""Mass distribution, bounds and equivalent ellipsoids of primitive shapes, from their sizes.

A shape is solid, or a shell with its mass on the surface. Moments of inertia are about the center,
in the frame of the shape, for a total mass of 1: those of the uniform solid or surface (any
mechanics handbook). Sizes are MuJoCo's [m]: radius, half lengths, or semi-axes.

Formulas use operators alone, so that sizes may be numbers, as in the compiler, or arrays of equal
shape, numpy's or traced ones, as in `set_inertia` and `set_const`. This file does not import JAX.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

from jaxsim.enums import GeomType

_THOMSEN_POWER = 1.6075  # exponent of Knud Thomsen's formula for the area of an ellipsoid
_SHELL_THICKNESS = 1e-6  # thickness of the thin ellipsoidal shell [m] that gives MuJoCo's inertia
# Nodes of Gauss's rule on [0, 1]; both weights are 1/2.
_GAUSS_NODES = (0.5 - math.sqrt(1 / 12), 0.5 + math.sqrt(1 / 12))

# Half sides of the bounding box of a shape: for each axis, the indices of the sizes that are added;
# (0, 1): sum of sizes 0 and 1. They are also the semi-axes of the ellipsoid that represents the
# shape in the fluid model.
_HALF_SIDES = {
    GeomType.SPHERE: ((0,), (0,), (0,)),
    GeomType.CAPSULE: ((0,), (0,), (0, 1)),
    GeomType.CYLINDER: ((0,), (0,), (1,)),
}
_OWN_SIZES = ((0,), (1,), (2,))  # of all other types

# Shapes whose bounding sphere has the longest half side as its radius. The sphere of a cylinder
# touches its rims, that of any other shape the corners of its box.
ROUND_ENDED = (GeomType.SPHERE, GeomType.CAPSULE, GeomType.ELLIPSOID)

# Volume [m^3] or area [m^2], and three moments per mass [m^2].
Moments = tuple[Any, tuple[Any, ...]]


def half_side_sizes(kind: GeomType) -> tuple[tuple[int, ...], ...]:
    """Return for each axis the indices of the sizes whose sum is the half side of the box."""
    return _HALF_SIDES.get(kind, _OWN_SIZES)


def half_sides(kind: GeomType, sizes: Any) -> list:
    """Return the half sides of the bounding box of a shape, from its three sizes."""
    return [sum(sizes[n] for n in slots) for slots in half_side_sizes(kind)]


def mass_distribution(kind: GeomType, sizes: Any, shell: bool = False) -> Moments:
    """Return volume or area, and moments of inertia per mass, of a shape from its three sizes."""
    return (_SHELLS if shell else _SOLIDS)[kind](*sizes)


def _no_moments(*_: Any) -> Moments:
    return 0.0, (0.0, 0.0, 0.0)


def _ball(r: Any, *_: Any) -> Moments:
    return 4 / 3 * math.pi * r**3, (0.4 * r**2,) * 3


def _sphere_shell(r: Any, *_: Any) -> Moments:
    return 4 * math.pi * r**2, (2 / 3 * r**2,) * 3


def _capsule(r: Any, half: Any, *_: Any) -> Moments:
    """Return the sum of a cylinder and two half balls, whose centers of mass are 3/8 r beyond its
    ends."""
    barrel, caps = 2 * math.pi * r**2 * half, 4 / 3 * math.pi * r**3
    axial = barrel * r**2 / 2 + caps * 0.4 * r**2
    across = barrel * (r**2 / 4 + half**2 / 3) + caps * (0.4 * r**2 + half**2 + 0.75 * half * r)
    return _per_mass(barrel + caps, across, across, axial)


def _capsule_shell(r: Any, half: Any, *_: Any) -> Moments:
    """Return the sum of an open tube and two hemispheres, whose centers of mass are r/2 beyond its
    ends."""
    tube, caps = 4 * math.pi * r * half, 4 * math.pi * r**2
    axial = tube * r**2 + caps * 2 / 3 * r**2
    across = tube * (r**2 / 2 + half**2 / 3) + caps * (2 / 3 * r**2 + half**2 + half * r)
    return _per_mass(tube + caps, across, across, axial)


def _cylinder(r: Any, half: Any, *_: Any) -> Moments:
    across = r**2 / 4 + half**2 / 3
    return 2 * math.pi * r**2 * half, (across, across, r**2 / 2)


def _cylinder_shell(r: Any, half: Any, *_: Any) -> Moments:
    """Return a tube closed by two disks."""
    tube, disks = 4 * math.pi * r * half, 2 * math.pi * r**2
    axial = tube * r**2 + disks * r**2 / 2
    across = tube * (r**2 / 2 + half**2 / 3) + disks * (r**2 / 4 + half**2)
    return _per_mass(tube + disks, across, across, axial)


def _ellipsoid(x: Any, y: Any, z: Any) -> Moments:
    principal = (y**2 + z**2) / 5, (x**2 + z**2) / 5, (x**2 + y**2) / 5
    return 4 / 3 * math.pi * x * y * z, principal


def _ellipsoid_shell(x: Any, y: Any, z: Any) -> Moments:
    """Return the area by Thomsen's formula, and the moments of a thin layer of uniform thickness.

    The layer is a small difference of two large solids. It is computed without cancellation as the
    integral, over the thickness, of the rate at which the solid grows.
    """
    p = _THOMSEN_POWER
    mean = ((x * y) ** p + (x * z) ** p + (y * z) ** p) / 3
    # Integrate volume and moments of the layer by Gauss's rule with two nodes.
    depths = [node * _SHELL_THICKNESS for node in _GAUSS_NODES]
    rates = [_ellipsoid_growth(x + depth, y + depth, z + depth) for depth in depths]
    volume, *layer = (first + second for first, second in zip(*rates, strict=True))
    return 4 * math.pi * mean ** (1 / p), _per_mass(volume, *layer)[1]


def _ellipsoid_growth(x: Any, y: Any, z: Any) -> tuple[Any, ...]:
    """Return the derivatives of x y z, and of x y z (y^2 + z^2) / 5 and its permutations, by a
    common change of the semi-axes."""
    product, rate = x * y * z, x * y + x * z + y * z
    pairs = (y, z), (x, z), (x, y)
    return rate, *((rate * (a**2 + b**2) + 2 * product * (a + b)) / 5 for a, b in pairs)


def _box(x: Any, y: Any, z: Any) -> Moments:
    return 8 * x * y * z, ((y**2 + z**2) / 3, (x**2 + z**2) / 3, (x**2 + y**2) / 3)


def _box_shell(x: Any, y: Any, z: Any) -> Moments:
    """Return the sum of six rectangles, a pair across each axis.

    The mean square of a coordinate is the squared half side over the pair across its axis, and a
    third of it over the others.
    """
    sides = 8 * y * z, 8 * x * z, 8 * x * y
    total = sides[0] + sides[1] + sides[2]
    xx, yy, zz = (
        (total + 2 * side) * half**2 / 3 for side, half in zip(sides, (x, y, z), strict=True)
    )
    return _per_mass(total, yy + zz, xx + zz, xx + yy)


def _per_mass(content: Any, *moments: Any) -> Moments:
    """Divide by the content; in double precision the moments of a shape without any are zero."""
    divisor = content + sys.float_info.min  # the content, if it is not zero
    return content, tuple(moment / divisor for moment in moments)


_SOLIDS: dict[GeomType, Callable[..., Moments]] = {
    GeomType.PLANE: _no_moments,
    GeomType.SPHERE: _ball,
    GeomType.CAPSULE: _capsule,
    GeomType.ELLIPSOID: _ellipsoid,
    GeomType.CYLINDER: _cylinder,
    GeomType.BOX: _box,
}

_SHELLS: dict[GeomType, Callable[..., Moments]] = {
    GeomType.PLANE: _no_moments,
    GeomType.SPHERE: _sphere_shell,
    GeomType.CAPSULE: _capsule_shell,
    GeomType.ELLIPSOID: _ellipsoid_shell,
    GeomType.CYLINDER: _cylinder_shell,
    GeomType.BOX: _box_shell,
}
