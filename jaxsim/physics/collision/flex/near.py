"""How far apart the boxes around elements and geoms are, before anything is searched."""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.math import Rot, Vec
from jaxsim.physics.collision.shape import PlacedGeoms


def element_box_gap(center1: Vec, half1: Vec, center2: Vec, half2: Vec) -> Array:
    """Largest gap along an axis of the world between boxes along these axes; negative: none [m]."""
    return _largest(center2 - center1, half1 + half2)


def geom_box_gap(geom: PlacedGeoms, center: Vec, half: Vec) -> Array:
    """Largest gap along an axis of the world, or of the geom's own box."""
    assert geom.box is not None
    middle, size = geom.box
    offset = center - middle
    along_world = _largest(offset, _rotated_half_sizes(geom.rot, size) + half)
    back = geom.rot.T
    return jnp.maximum(along_world, _largest(back @ offset, _rotated_half_sizes(back, half) + size))


def _largest(offset: Vec, reach: Vec) -> Array:
    gaps = [jnp.abs(x) - r for x, r in zip(offset.parts, reach.parts, strict=True)]
    return jnp.maximum(jnp.maximum(gaps[0], gaps[1]), gaps[2])


def _rotated_half_sizes(rot: Rot, half: Vec) -> Vec:
    """Half sizes of the box around a turned box."""
    return rot.map(jnp.abs) @ half
