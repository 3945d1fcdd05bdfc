"""Nearest points on segments c + t u with a unit direction u and |t| <= half."""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.math import Vec


def nearest_on_segment(point: Vec, u: Vec, half: Array) -> Array:
    """Return the parameter t nearest to `point`, which is relative to the segment's center."""
    return jnp.clip(point.dot(u), -half, half)


def nearest_on_segments(
    offset: Vec, u: Vec, half1: Array, v: Vec, half2: Array
) -> tuple[Array, Array]:
    """Return the parameters (s, t) of the nearest points of two segments.

    Parallel segments have many nearest points, of which one is returned.

    Args:
      offset: center of the second segment minus center of the first.
      u, half1, v, half2: unit directions and half lengths.
    """
    cosine = u.dot(v)
    across = u - v.scale(cosine)  # without cancellation where the two are nearly parallel
    square = across.dot(across)
    parallel = square == 0
    s = jnp.where(parallel, 0.0, offset.dot(across) / jnp.where(parallel, 1.0, square))
    # The squared distance is a convex quadratic over a rectangle of (s, t). Clipping s and then
    # minimizing over t finds its minimum unless t is clipped too; then s is recomputed.
    s = jnp.clip(s, -half1, half1)
    t = jnp.clip(s * cosine - offset.dot(v), -half2, half2)
    s = jnp.clip(t * cosine + offset.dot(u), -half1, half1)
    return s, t
