"""A bolt and its nut: screw threads with triangular profile, and hexagonal heads.

Both lie along the z axis, with their heads below the origin, and are 1 wide across the flats.
"""

from __future__ import annotations

import math

from jaxsim.assets.sdf.operations import (
    AnyArray,
    Number,
    azimuth,
    intersection,
    length,
    library,
    slab,
    union,
)

_PER_LENGTH = 12  # thread pitches per unit length
_FLAT_DISTANCE = 0.5  # distance from the axis to a side of the hexagon
_HEAD_SPAN = (-0.25, 0.25)  # center and half height of a head
_CHAMFER = 0.22  # chamfer of the corners of a head by a cone
_SLOPE = math.sqrt(0.5)  # slope of the flanks of the thread, and of all cones


def bolt(x: AnyArray, y: AnyArray, z: AnyArray, radius: Number) -> AnyArray:
    """Return a bound of the signed distance from a bolt whose thread has this inner radius."""
    beyond = length(x, y) - radius
    shank = intersection(_thread(x, y, z, beyond), slab(z + 0.5, 0.5))
    tip = -((z - beyond) * _SLOPE + _SLOPE)
    return union(intersection(shank, tip), _head(x, y, z, beyond))


def nut(x: AnyArray, y: AnyArray, z: AnyArray, radius: Number) -> AnyArray:
    """Return a bound of the signed distance from a nut whose hole has this inner radius."""
    beyond = length(x, y) - radius
    cone = (z - beyond) * _SLOPE
    hole = intersection(_thread(x, y, z, beyond), -(cone + 0.5 * _SLOPE))
    hole = union(hole, -cone - 0.05 * _SLOPE)
    return intersection(_head(x, y, z, beyond), -hole)


def bolt_half_box(radius: float) -> tuple[float, float, float]:
    """Return the half sizes of a box around a bolt."""
    side = max(0.6, 1.2 * radius)
    return side, side, 1.0


def nut_half_box(radius: float) -> tuple[float, float, float]:
    """Return the half sizes of a box around a nut, which do not depend on the hole."""
    return 0.6, 0.6, 1.0


def _thread(x: AnyArray, y: AnyArray, z: AnyArray, beyond: AnyArray) -> AnyArray:
    """Return a cylinder with a helical triangle wave around it, of pitch 1 / _PER_LENGTH."""
    xp = library(x)
    turn = z * _PER_LENGTH - azimuth(x, y) / (2 * math.pi)
    wave = xp.abs(turn - xp.floor(turn) - 0.5)
    return (beyond - wave / _PER_LENGTH) * _SLOPE


def _head(x: AnyArray, y: AnyArray, z: AnyArray, beyond: AnyArray) -> AnyArray:
    """Return a hexagonal prism whose upper corners are chamfered by a cone."""
    xp = library(x)
    sixth = math.pi / 3
    across = xp.floor(azimuth(x, y) / sixth + 0.5) * sixth  # direction of the nearest side
    hexagon = xp.cos(across) * x + xp.sin(across) * y - _FLAT_DISTANCE
    middle, half = _HEAD_SPAN
    prism = intersection(hexagon, slab(z - middle, half))
    return intersection(prism, (z + beyond - _CHAMFER) * _SLOPE)
