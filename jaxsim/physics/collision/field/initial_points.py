"""Initial points of the contact search: a Halton sequence in the intersection of both boxes."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.math import Rot, Vec
from jaxsim.physics.collision.shape import add_slot_axis, per_slot

_HALTON_BASES = (2, 3, 5)  # bases of the Halton sequence along x, y and z


def starting_points(
    box1: tuple[Vec, Vec], box2: tuple[Vec, Vec], rot: Rot, offset: Vec, count: int
) -> tuple[Vec, Array]:
    """Return points in the box of the first geom and the box around the box of the second.

    Args:
      box1, box2: center and half sides in the frame of each geom, `[n, *W]`.
      rot, offset: pose of the second geom in the frame of the first.
      count: number of points.

    Returns:
      Points `[count, n, *W]` in the frame of the first geom; and whether the boxes overlap `[n,
      *W]`.
    """
    (middle1, half1), (middle2, half2) = box1, box2
    # Box around the second box in the frame of the first, and the intersection of both.
    middle2 = rot @ middle2 + offset
    half2 = rot.map(jnp.abs) @ half2
    low = _map_components(jnp.maximum, middle1 - half1, middle2 - half2)
    high = _map_components(jnp.minimum, middle1 + half1, middle2 + half2)
    meet = (low.x <= high.x) & (low.y <= high.y) & (low.z <= high.z)
    # Halton points in the intersection.
    share = Vec(*(per_slot(radical_inverse(count, base), low.x) for base in _HALTON_BASES))
    low, side = add_slot_axis((low, high - low))
    return low + _map_components(jnp.multiply, side, share), meet


def radical_inverse(count: int, base: int) -> np.ndarray:
    """Return the first `count` numbers of the van der Corput sequence, the radical inverse."""
    index, out, scale = np.arange(count), np.zeros(count), 1.0
    while index.any():
        scale /= base
        index, digit = np.divmod(index, base)
        out += scale * digit
    return out


def _map_components(function: Callable, a: Vec, b: Vec) -> Vec:
    """Apply a function to the components of two vectors."""
    return Vec(*(function(p, q) for p, q in zip(a.parts, b.parts, strict=True)))
