"""Operations on signed distances: negative inside, positive outside.

The functions here, and the shapes made of them, work alike on numpy's arrays, for the compiler, and
on those of `jax.numpy`, traced or not, for the physics: an array names its own library of
functions. Arguments broadcast. Boolean operations are minima and maxima of distances, which leave
a bound of the distance where shapes meet (J. C. Hart, "Sphere tracing", The Visual Computer 12,
1996); `-distance` is the complement.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

Array = Any  # of numpy or jax.numpy
Number = Any  # the same, or a float


def library(array: Array) -> ModuleType:
    """Return the functions for an array: numpy or jax.numpy."""
    return array.__array_namespace__()


def length(u: Array, v: Array) -> Array:
    """Return the norm of (u, v), with gradient zero where both are zero."""
    xp = library(u)
    square = u * u + v * v
    somewhere = square > 0
    return xp.where(somewhere, xp.sqrt(xp.where(somewhere, square, 1)), 0)


def azimuth(x: Array, y: Array) -> Array:
    """Return the angle of (x, y) from the x axis, from -pi to pi; zero, as is its gradient, at the
    origin."""
    xp = library(x)
    somewhere = (x != 0) | (y != 0)
    return xp.atan2(xp.where(somewhere, y, 0), xp.where(somewhere, x, 1))


# The derivative of a `maximum` in JAX asks which operand equals the result, and XLA may compute an
# operand once more with another rounding, so that neither does. A choice has one derivative.


def union(a: Array, b: Array) -> Array:
    """In one of both."""
    return library(a).where(a < b, a, b)


def intersection(a: Array, b: Array) -> Array:
    """In both."""
    return library(a).where(a > b, a, b)


def slab(z: Array, half: Number) -> Array:
    """Between two planes."""
    return library(z).abs(z) - half


def smooth_union(a: Array, b: Array, width: Number) -> Array:
    """In one of both, with fillets: a quadratic blend where the distances differ by < `width`."""
    xp, share = library(a), 0.5 + 0.5 * (b - a) / width
    share = xp.where(share < 0, 0, xp.where(share > 1, 1, share))
    return b * (1 - share) + a * share - width * share * (1 - share)


def smooth_intersection(a: Array, b: Array, width: Number) -> Array:
    """In both, less a rounding of the edges where the surfaces meet."""
    both = intersection(a, b)
    return intersection(both, -smooth_union(intersection(a, -b), intersection(b, -a), width))


def extrusion(profile: Array, z: Array, half: Number) -> Array:
    """Return a flat shape drawn out along z, from its distance in the plane."""
    xp = library(z)
    over, outside = slab(z, half), intersection(profile, slab(z, half))
    inside = xp.where(outside < 0, outside, 0)
    return inside + length(xp.where(profile > 0, profile, 0), xp.where(over > 0, over, 0))
