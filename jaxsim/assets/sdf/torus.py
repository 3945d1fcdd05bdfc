"""A torus about the z axis."""

from __future__ import annotations

from jaxsim.assets.sdf.operations import AnyArray, Number, length


def torus(x: AnyArray, y: AnyArray, z: AnyArray, radius1: Number, radius2: Number) -> AnyArray:
    """Return the signed distance from a torus of radius `radius1`, whose tube has radius
    `radius2`."""
    return length(length(x, y) - radius1, z) - radius2


def torus_half_box(radius1: float, radius2: float) -> tuple[float, float, float]:
    """Return the half sizes of the box around it."""
    return radius1 + radius2, radius1 + radius2, radius2
