"""What a search finds: points, distances and normals in the frames of the second geoms."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.enums import MINVAL
from jaxsim.math import Vec
from jaxsim.model.data import FAR
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.collision.shape import Placed, Touch, slots

SAME = 4.5  # points closer than this many roundings of one are the same; in double: MINVAL


class Found(NamedTuple):
    """Points in which searches ended, `[k, n, *W]`.

    Attributes:
      x: where they are, in the frame of the second geom.
      dist: what counts as the distance there, or FAR.
      normal: from the first geom to the second, in that frame.
    """

    x: Vec
    dist: Array
    normal: Vec


def contacts(found: Found, possible: Array) -> Found:
    """What is found, with FAR for what is no contact: apart, without normal, or found before."""
    touches = possible & (found.dist <= 0) & (found.normal.dot(found.normal) > MINVAL)
    touches = touches & ~_repeated(found.x, touches)
    return found._replace(dist=jnp.where(touches, found.dist, FAR))


def in_world(found: Found, frame: Placed) -> Touch:
    """Contacts seen from the world: they lie half a distance before the point of the search."""
    pos, rot = slots((frame.pos, frame.rot))
    normal = rot @ found.normal
    back = jnp.where(found.dist > 0, 0.0, 0.5 * found.dist)  # what is no contact stays where it is
    pos = pos + rot @ found.x + normal.scale(back)
    return Touch(found.dist, pos, normal)


def _repeated(x: Vec, counts: Array) -> Array:
    """Whether a point was found before, by an earlier search that counts."""
    number = jnp.arange(counts.shape[0], dtype=jnp.int32).reshape(-1, *(1,) * (counts.ndim - 1))
    near = (SAME * jnp.finfo(x.x.dtype).eps) ** 2

    def compare(k, again):
        here, first = (
            jax.tree.map(lambda c: lax.dynamic_slice_in_dim(c, k, 1), v) for v in (x, counts)
        )
        gap = x - here
        return again | (first & (number > k) & (gap.dot(gap) < near))

    return lax.fori_loop(0, counts.shape[0], compare, jnp.zeros_like(counts))
