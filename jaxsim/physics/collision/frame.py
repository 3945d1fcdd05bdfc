"""Contact frames: two tangents to a normal, chosen as MuJoCo chooses them (mju_makeFrame)."""

import jax.numpy as jnp

from jaxsim.math import Rot, Vec, select


def contact_frame(normal: Vec, tangent: Vec | None = None) -> Rot:
    """A right-handed frame whose rows are the normal and two tangents.

    Args:
      normal: unit vectors.
      tangent: directions that the first tangent follows; None or zero: the world's y axis, or its z
        axis where the normal is within 60 degrees of y.
    """
    zero = jnp.zeros_like(normal.y)
    steep = jnp.abs(normal.y) >= 0.5
    guide = Vec(zero, jnp.where(steep, zero, zero + 1), jnp.where(steep, zero + 1, zero))
    if tangent is not None:
        given = tangent.dot(tangent) > 0.25
        guide = select(given, tangent, guide)
    first = guide - normal.scale(normal.dot(guide))
    if tangent is None:
        first = first.normalize()
    else:  # of a capsule that stands on its end nothing is left but rounding
        short = first.dot(first) < (4096 * jnp.finfo(zero.dtype).eps) ** 2
        first = select(short, _across(normal), first.normalize())
    return Rot.from_rows(normal, first, normal.cross(first))


def _across(normal: Vec) -> Vec:
    """A unit vector at right angles to the normal: along x where that is possible."""
    one, zero = jnp.ones_like(normal.x), jnp.zeros_like(normal.x)
    along_x = jnp.abs(normal.x) < 0.5
    guide = Vec(jnp.where(along_x, one, zero), jnp.where(along_x, zero, one), zero)
    return (guide - normal.scale(normal.dot(guide))).normalize()
