"""Operations on signed distances: negative inside, positive outside.

These functions, and the shapes built from them, work equally on numpy arrays, for the compiler, and
on arrays of `jax.numpy`, traced or not, for the physics: the library is taken from the array.
Arguments broadcast. Boolean operations are minima and maxima of distances, which give a bound of
the distance where shapes meet (J. C. Hart, "Sphere tracing", The Visual Computer 12, 1996);
`-distance` is the complement.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

AnyArray = Any  # of numpy or jax.numpy
Number = Any  # an Array, or a float


def library(array: AnyArray) -> ModuleType:
    """Return the module of functions for an array: numpy or jax.numpy."""
    return array.__array_namespace__()


def length(u: AnyArray, v: AnyArray) -> AnyArray:
    """Return the norm of (u, v), with gradient zero where both are zero."""
    xp = library(u)
    square = u * u + v * v
    somewhere = square > 0
    return xp.where(somewhere, xp.sqrt(xp.where(somewhere, square, 1)), 0)


def azimuth(x: AnyArray, y: AnyArray) -> AnyArray:
    """Return the angle of (x, y) from the x axis, from -pi to pi; zero, as is its gradient, at the
    origin."""
    xp = library(x)
    somewhere = (x != 0) | (y != 0)
    return xp.atan2(xp.where(somewhere, y, 0), xp.where(somewhere, x, 1))


# JAX's derivative of `maximum` compares the result with the operands, and XLA may recompute an
# operand with another rounding, so that neither is equal. `where` has one derivative.


def union(a: AnyArray, b: AnyArray) -> AnyArray:
    """Return the distance from the union."""
    return library(a).where(a < b, a, b)


def intersection(a: AnyArray, b: AnyArray) -> AnyArray:
    """Return the distance from the intersection."""
    return library(a).where(a > b, a, b)


def slab(z: AnyArray, half: Number) -> AnyArray:
    """Return the distance from the slab between two planes."""
    return library(z).abs(z) - half


def smooth_union(a: AnyArray, b: AnyArray, width: Number) -> AnyArray:
    """Return the distance from the union with fillets: a quadratic blend where distances differ by
    < `width`."""
    xp, share = library(a), 0.5 + 0.5 * (b - a) / width
    share = xp.where(share < 0, 0, xp.where(share > 1, 1, share))
    return b * (1 - share) + a * share - width * share * (1 - share)


def smooth_intersection(a: AnyArray, b: AnyArray, width: Number) -> AnyArray:
    """Return the distance from the intersection, with rounded edges where the surfaces meet."""
    both = intersection(a, b)
    return intersection(both, -smooth_union(intersection(a, -b), intersection(b, -a), width))


def extrusion(profile: AnyArray, z: AnyArray, half: Number) -> AnyArray:
    """Return the distance from a planar shape extruded along z, from its distance in the plane."""
    xp = library(z)
    over, outside = slab(z, half), intersection(profile, slab(z, half))
    inside = xp.where(outside < 0, outside, 0)
    return inside + length(xp.where(profile > 0, profile, 0), xp.where(over > 0, over, 0))
