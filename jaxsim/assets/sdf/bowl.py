"""A spherical shell about the origin, open above."""

from __future__ import annotations

import math

from jaxsim.assets.sdf.operations import Array, Number, length, library


def bowl(
    x: Array, y: Array, z: Array, height: Number, radius: Number, thickness: Number, rim: Number
) -> Array:
    """Signed distance from a sphere cut at z = `height`, grown by `thickness` to both sides.

    The cut leaves a rim, a circle; it is nearest to what is above the cone from the origin to it.
    """
    xp = library(x)
    rho = length(x, y)
    from_rim = length(rho - rim, z - height)
    from_sphere = xp.abs(length(rho, z) - radius)
    return xp.where(height * rho < rim * z, from_rim, from_sphere) - thickness


def constants(height: float, radius: float, thickness: float) -> tuple[float, ...]:
    """Return the settings, and the radius of the rim."""
    return height, radius, thickness, math.sqrt(radius * radius - height * height)


def half_box(height: float, radius: float, thickness: float) -> tuple[float, float, float]:
    """Return half the sides of the box around the whole sphere."""
    return (radius + thickness,) * 3


def fault(height: float, radius: float, thickness: float) -> str:
    """Return the plane of the rim must meet the sphere."""
    return "" if radius >= abs(height) else "radius must not be less than height, up or down"
