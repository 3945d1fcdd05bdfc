"""Ray intersections with planes and boxes."""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.enums import MINVAL
from jaxsim.math import Vec
from jaxsim.physics.ray.local_rays import NO_HIT, Hit, LocalRays


def ray_plane(ray: LocalRays) -> Hit:
    """Intersect with a plane from its front, within its rectangle; a size of 0 is unbounded."""
    # Only a ray toward the front side meets the plane.
    falls = ray.way.z <= -MINVAL
    t = -ray.pos.z / jnp.where(falls, ray.way.z, -1)
    within = falls & (t >= 0)
    # Inside the drawn rectangle.
    for p, u, half in zip(ray.pos.parts[:2], ray.way.parts[:2], ray.size.parts[:2], strict=True):
        within &= (half <= 0) | (jnp.abs(p + t * u) <= half)
    zero = jnp.zeros_like(t)
    return Hit(jnp.where(within, t, NO_HIT), Vec(zero, zero, zero + 1))


def ray_box(ray: LocalRays) -> Hit:
    """Intersect with a box of half sides `size`."""
    near, far = box_crossings(ray.pos, ray.way, ray.size)
    # A ray that begins inside meets the exit face.
    enters = near[0] >= 0
    t = jnp.where(enters, near[0], far[0])
    axis = jnp.where(enters, near[1], far[1])
    out = jnp.where(enters, -1, 1).astype(t.dtype)
    met = (near[0] <= far[0]) & (far[0] >= 0)
    # The normal points against the ray on entry, along it on exit.
    normal = Vec(*(jnp.where(axis == k, out * jnp.sign(u), 0) for k, u in enumerate(ray.way.parts)))
    return Hit(jnp.where(met, t, NO_HIT), normal)


def box_crossings(p: Vec, u: Vec, half: Vec) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Intersect lines p + t u with a box about the origin (slab method).

    Returns:
      Entry and exit, each as t and the axis normal to the face; a line that misses the box exits
      before it enters.
    """
    near, far = None, None
    for k, (x, v, h) in enumerate(zip(p.parts, u.parts, half.parts, strict=True)):
        # Parameters at both faces of the slab; a parallel line is inside always or never.
        moves = jnp.abs(v) > MINVAL
        per = 1 / jnp.where(moves, v, 1)
        one, other = (-h - x) * per, (h - x) * per
        always = jnp.abs(x) <= h  # parallel to the slab and inside of it
        low = jnp.where(moves, jnp.minimum(one, other), jnp.where(always, -NO_HIT, NO_HIT))
        high = jnp.where(moves, jnp.maximum(one, other), jnp.where(always, NO_HIT, -NO_HIT))
        axis = jnp.full_like(low, k, jnp.int32)
        if near is None or far is None:
            near, far = (low, axis), (high, axis)
            continue
        # Intersect the slabs: latest entry, earliest exit.
        near = _select_vec(low > near[0], (low, axis), near)
        far = _select_vec(high < far[0], (high, axis), far)
    assert near is not None
    assert far is not None
    return near, far


def _select_vec(
    which: Array, yes: tuple[Array, Array], no: tuple[Array, Array]
) -> tuple[Array, Array]:
    return jnp.where(which, yes[0], no[0]), jnp.where(which, yes[1], no[1])
