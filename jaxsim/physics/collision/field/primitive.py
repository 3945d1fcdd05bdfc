"""Signed distance functions of primitive geoms, as MuJoCo's contact search uses them.

Points are in the frame of the geom, and sizes are `geom_size`. The distances are exact except for
ellipsoids and inside of boxes. Inside of a box the descent direction is a field that rotates from
the direction of the center to the normals of the faces, so that descent does not stall where two
faces are equally near. MuJoCo's descent direction is not always the gradient of its distance: see
`ellipsoid_slope` and `box_slope`.
"""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.math import Vec, safe_divide, safe_sqrt, select_where

# `where` instead of `maximum`: the derivative of a maximum compares the result with its operands,
# and a recomputed operand may be rounded differently, so that neither is equal.


def sdf_plane(x: Vec, size: Vec) -> Array:
    """Return the height over a plane, whatever its size."""
    return x.z


def sdf_sphere(x: Vec, size: Vec) -> Array:
    """Return the distance from a sphere."""
    return x.norm() - size.x


def sdf_capsule(x: Vec, size: Vec) -> Array:
    """Return the distance from a capsule: that from its segment, minus the radius."""
    half = size.y
    along = jnp.where(x.z > half, half, jnp.where(x.z < -half, -half, x.z))
    return Vec(x.x, x.y, x.z - along).norm() - size.x


def sdf_ellipsoid(x: Vec, size: Vec) -> Array:
    """Return a distance exact to first order at the surface (I. Quilez, Distance functions)."""
    scaled = _divide(x, size)
    k0, k1 = scaled.norm(), _divide(scaled, size).norm()
    return k0 * (k0 - 1) * safe_divide(1.0, k1)


def ellipsoid_slope(x: Vec, size: Vec, derivative: Vec) -> Vec:
    """Return the direction of the gradient."""
    return _normalize(derivative)


def sdf_cylinder(x: Vec, size: Vec) -> Array:
    """Return the distance from a cylinder."""
    side = safe_sqrt(x.x * x.x + x.y * x.y) - size.x
    cap = jnp.abs(x.z) - size.y
    # Inside, the larger of both distances; outside, the distance from side, cap or rim.
    inside = _maximum(side, cap)
    beside, above = _positive_part(side), _positive_part(cap)
    return jnp.where(inside < 0, inside, safe_sqrt(beside * beside + above * above))


def sdf_box(x: Vec, size: Vec) -> Array:
    """Return the distance from a box; inside, along the field of `_inside` to the nearest face."""
    over = _face_distances(x, size)
    outside = over.map(_positive_part).norm()
    # Inside, the shortest way along the field to a face.
    depth, way = over.map(_depth), _inside(over, size)
    faces = [d * safe_divide(1.0, w) for d, w in zip(depth.parts, way.parts, strict=True)]
    return jnp.where(_is_inside(over), -_minimum(faces), outside)


def box_slope(x: Vec, size: Vec, derivative: Vec) -> Vec:
    """Return the gradient outside, and the field of `_inside` inside of a box."""
    over = _face_distances(x, size)
    way = _inside(over, size)
    signed = (jnp.where(c < 0, -w, w) for c, w in zip(x.parts, way.parts, strict=True))
    return select_where(_is_inside(over), Vec(*signed), derivative)


def _face_distances(x: Vec, size: Vec) -> Vec:
    """Return the signed distances of a point from the pairs of faces, negative inside."""
    return Vec(*(jnp.abs(c) - s for c, s in zip(x.parts, size.parts, strict=True)))


def _is_inside(over: Vec) -> Array:
    """Return whether a point is inside."""
    return (over.x < 0) & (over.y < 0) & (over.z < 0)


def _depth(over: Array) -> Array:
    """Return the depth under a face, and 1 outside."""
    return jnp.where(over < 0, -over, 1.0)


def _inside(over: Vec, size: Vec) -> Vec:
    """Return the direction of the positive vector (size / depth): near a face, its normal."""
    return _normalize(_divide(size, over.map(_depth)))


def _divide(x: Vec, by: Vec) -> Vec:
    """Divide componentwise."""
    return Vec(*(c / s for c, s in zip(x.parts, by.parts, strict=True)))


def _normalize(x: Vec) -> Vec:
    """Return unit vectors; zero stays zero."""
    return x.scale(safe_divide(1.0, x.norm()))


def _positive_part(a: Array) -> Array:
    """Return the positive part."""
    return jnp.where(a > 0, a, 0.0)


def _maximum(a: Array, b: Array) -> Array:
    """Return the larger number."""
    return jnp.where(a > b, a, b)


def _minimum(values: list[Array]) -> Array:
    """Return the smallest number."""
    smallest = values[0]
    for value in values[1:]:
        smallest = jnp.where(value < smallest, value, smallest)
    return smallest
