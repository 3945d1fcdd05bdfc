"""A spherical shell about the origin, open at the top."""

from __future__ import annotations

import math

from jaxsim.assets.sdf.operations import AnyArray, Number, length, library


def bowl(
    x: AnyArray,
    y: AnyArray,
    z: AnyArray,
    height: Number,
    radius: Number,
    thickness: Number,
    rim: Number,
) -> AnyArray:
    """Return the signed distance from a sphere cut at z = `height`, thickened by `thickness` on
    both sides.

    The cut leaves a circular rim, the closest feature for points above the cone from the origin to
    it.
    """
    xp = library(x)
    rho = length(x, y)
    from_rim = length(rho - rim, z - height)
    from_sphere = xp.abs(length(rho, z) - radius)
    return xp.where(height * rho < rim * z, from_rim, from_sphere) - thickness


def bowl_constants(height: float, radius: float, thickness: float) -> tuple[float, ...]:
    """Return the settings, and the radius of the rim."""
    return height, radius, thickness, math.sqrt(radius * radius - height * height)


def bowl_half_box(height: float, radius: float, thickness: float) -> tuple[float, float, float]:
    """Return the half sizes of the box around the whole sphere."""
    return (radius + thickness,) * 3


def bowl_fault(height: float, radius: float, thickness: float) -> str:
    """Return a fault if the plane of the rim does not intersect the sphere, or ""."""
    return (
        "" if radius >= abs(height) else "radius must not be less than the absolute value of height"
    )
