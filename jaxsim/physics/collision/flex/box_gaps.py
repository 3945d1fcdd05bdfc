"""Gaps between the bounding boxes of elements and geoms, by separating axes."""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.math import Rot, Vec
from jaxsim.physics.collision.shape import PlacedGeoms


def element_box_gap(center1: Vec, half1: Vec, center2: Vec, half2: Vec) -> Array:
    """Return the largest gap along a world axis between axis-aligned boxes; negative: none [m]."""
    return _largest_gap(center2 - center1, half1 + half2)


def geom_box_gap(geom: PlacedGeoms, center: Vec, half: Vec) -> Array:
    """Return the largest gap along an axis of the world, or of the bounding box of the geom [m]."""
    assert geom.box is not None
    # Separating axes: those of the world, then those of the box of the geom.
    middle, size = geom.box
    offset = center - middle
    along_world = _largest_gap(offset, _rotated_half_sizes(geom.rot, size) + half)
    back = geom.rot.T
    return jnp.maximum(
        along_world, _largest_gap(back @ offset, _rotated_half_sizes(back, half) + size)
    )


def _largest_gap(offset: Vec, reach: Vec) -> Array:
    gaps = [jnp.abs(x) - r for x, r in zip(offset.parts, reach.parts, strict=True)]
    return jnp.maximum(jnp.maximum(gaps[0], gaps[1]), gaps[2])


def _rotated_half_sizes(rot: Rot, half: Vec) -> Vec:
    """Return the half sizes of the axis-aligned box around a rotated box."""
    return rot.map(jnp.abs) @ half
