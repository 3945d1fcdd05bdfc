"""Contact frames: two tangents to a normal, with the convention of `mju_makeFrame` in MuJoCo."""

import jax.numpy as jnp

from jaxsim.math import Rot, Vec, select_where


def contact_frame(normal: Vec, tangent: Vec | None = None) -> Rot:
    """Return a right-handed frame whose rows are the normal and two tangents.

    Args:
      normal: unit vectors.
      tangent: directions that the first tangent follows; None or zero: the world's y axis, or its z
        axis if the normal is within 60 degrees of y.
    """
    zero = jnp.zeros_like(normal.y)
    steep = jnp.abs(normal.y) >= 0.5
    guide = Vec(zero, jnp.where(steep, zero, zero + 1), jnp.where(steep, zero + 1, zero))
    if tangent is not None:
        given = tangent.dot(tangent) > 0.25
        guide = select_where(given, tangent, guide)
    # Gram-Schmidt: the part of the guide orthogonal to the normal.
    first = guide - normal.scale(normal.dot(guide))
    if tangent is None:
        first = first.normalize()
    else:  # an upright capsule has its axis along the normal: only rounding errors remain
        short = first.dot(first) < (4096 * jnp.finfo(zero.dtype).eps) ** 2
        first = select_where(short, _orthogonal_unit(normal), first.normalize())
    return Rot.from_rows(normal, first, normal.cross(first))


def _orthogonal_unit(normal: Vec) -> Vec:
    """Return a unit vector orthogonal to the normal, along x if possible."""
    one, zero = jnp.ones_like(normal.x), jnp.zeros_like(normal.x)
    along_x = jnp.abs(normal.x) < 0.5
    guide = Vec(jnp.where(along_x, one, zero), jnp.where(along_x, zero, one), zero)
    return (guide - normal.scale(normal.dot(guide))).normalize()
