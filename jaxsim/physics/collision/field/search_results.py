"""The results of a search: points, distances and normals in the frames of the second geoms."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.dynamic import dynamic_slice_in_dim
from jaxsim.enums import MINVAL
from jaxsim.math import Vec
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.physics.collision.shape import ContactPoints, PlacedGeoms, add_slot_axis

_SAME_POINT_ULPS = 4.5  # tolerance of equal points, in units of machine epsilon; in double: MINVAL


class SdfSearchResult(NamedTuple):
    """Final points of searches, `[k, n, *W]`.

    Attributes:
      x: position in the frame of the second geom.
      dist: contact distance, or NO_CONTACT_DISTANCE.
      normal: from the first geom to the second, in that frame.
    """

    x: Vec
    dist: Array
    normal: Vec


def filter_contacts(found: SdfSearchResult, possible: Array) -> SdfSearchResult:
    """Set NO_CONTACT_DISTANCE for points that are apart, have no normal, or are repeated."""
    touches = possible & (found.dist <= 0) & (found.normal.dot(found.normal) > MINVAL)
    touches = touches & ~_is_repeated(found.x, touches)
    return found._replace(dist=jnp.where(touches, found.dist, NO_CONTACT_DISTANCE))


def contacts_in_world(found: SdfSearchResult, frame: PlacedGeoms) -> ContactPoints:
    """Return contacts in the world frame: final points, moved by dist / 2 along the normal."""
    pos, rot = add_slot_axis((frame.pos, frame.rot))
    normal = rot @ found.normal
    shift = jnp.where(found.dist > 0, 0.0, 0.5 * found.dist)  # only contacts are moved
    pos = pos + rot @ found.x + normal.scale(shift)
    return ContactPoints(found.dist, pos, normal)


def _is_repeated(x: Vec, counts: Array) -> Array:
    """Return whether an earlier search with `counts` found the same point."""
    index = jnp.arange(counts.shape[0], dtype=jnp.int32).reshape(-1, *(1,) * (counts.ndim - 1))
    near = (_SAME_POINT_ULPS * jnp.finfo(x.x.dtype).eps) ** 2

    def compare(k, again):
        """Flag the later points equal to the k-th."""
        here, first = (
            jax.tree.map(lambda c: dynamic_slice_in_dim(c, k, 1), v) for v in (x, counts)
        )
        gap = x - here
        return again | (first & (index > k) & (gap.dot(gap) < near))

    return lax.fori_loop(0, counts.shape[0], compare, jnp.zeros_like(counts))
