"""Signed distances of primitive geoms, in the form that MuJoCo's search for contacts descends on.

Points are in the frame of the geom, and sizes are `geom_size`. The distances are exact but for
ellipsoids, and for the inside of boxes: there the slope is that of a field which turns from the
direction of the center to the normals of the faces, so that descent does not stop where two faces
are equally near. What MuJoCo takes for the slope is not always the derivative of its distance;
`ellipsoid_slope` and `box_slope` say what it is.
"""

import jax.numpy as jnp

from jaxsim.math import Vec, safe_divide, safe_sqrt, select
from jaxsim.physics.arrays.array import Array

# Choices instead of maxima: the derivative of a maximum asks which operand equals the result, and
# an operand that is computed once more may be rounded otherwise, so that none does.


def plane(x: Vec, size: Vec) -> Array:
    """Height over a plane, whatever its size."""
    return x.z


def sphere(x: Vec, size: Vec) -> Array:
    """Distance from a sphere."""
    return x.norm() - size.x


def capsule(x: Vec, size: Vec) -> Array:
    """Distance from a capsule: that from its axis, less the radius."""
    half = size.y
    along = jnp.where(x.z > half, half, jnp.where(x.z < -half, -half, x.z))
    return Vec(x.x, x.y, x.z - along).norm() - size.x


def ellipsoid(x: Vec, size: Vec) -> Array:
    """A distance that is exact to first order at the surface (I. Quilez, Distance functions)."""
    scaled = _divided(x, size)
    k0, k1 = scaled.norm(), _divided(scaled, size).norm()
    return k0 * (k0 - 1) * safe_divide(1.0, k1)


def ellipsoid_slope(x: Vec, size: Vec, derivative: Vec) -> Vec:
    """Direction of the derivative."""
    return _unit(derivative)


def cylinder(x: Vec, size: Vec) -> Array:
    """Distance from a cylinder."""
    side = safe_sqrt(x.x * x.x + x.y * x.y) - size.x
    cap = jnp.abs(x.z) - size.y
    inside = _larger(side, cap)
    beside, above = _positive(side), _positive(cap)
    return jnp.where(inside < 0, inside, safe_sqrt(beside * beside + above * above))


def box(x: Vec, size: Vec) -> Array:
    """Distance from a box; inside, along the field of `_inside` to the nearest face."""
    over = _over(x, size)
    outside = over.map(_positive).norm()
    depth, way = over.map(_depth), _inside(over, size)
    faces = [d * safe_divide(1.0, w) for d, w in zip(depth.parts, way.parts, strict=True)]
    return jnp.where(_is_inside(over), -_smallest(faces), outside)


def box_slope(x: Vec, size: Vec, derivative: Vec) -> Vec:
    """Inside, the field instead of the derivative."""
    over = _over(x, size)
    way = _inside(over, size)
    signed = (jnp.where(c < 0, -w, w) for c, w in zip(x.parts, way.parts, strict=True))
    return select(_is_inside(over), Vec(*signed), derivative)


def _over(x: Vec, size: Vec) -> Vec:
    """How far a point is beyond the faces, negative under them."""
    return Vec(*(jnp.abs(c) - s for c, s in zip(x.parts, size.parts, strict=True)))


def _is_inside(over: Vec) -> Array:
    return (over.x < 0) & (over.y < 0) & (over.z < 0)


def _depth(over: Array) -> Array:
    """Depth under a face, with a number in its place where there is none."""
    return jnp.where(over < 0, -over, 1.0)


def _inside(over: Vec, size: Vec) -> Vec:
    """The direction of (size / depth), of positive components: near a face, its normal."""
    return _unit(_divided(size, over.map(_depth)))


def _divided(x: Vec, by: Vec) -> Vec:
    return Vec(*(c / s for c, s in zip(x.parts, by.parts, strict=True)))


def _unit(x: Vec) -> Vec:
    return x.scale(safe_divide(1.0, x.norm()))


def _positive(a: Array) -> Array:
    return jnp.where(a > 0, a, 0.0)


def _larger(a: Array, b: Array) -> Array:
    return jnp.where(a > b, a, b)


def _smallest(values: list[Array]) -> Array:
    smallest = values[0]
    for value in values[1:]:
        smallest = jnp.where(value < smallest, value, smallest)
    return smallest
