"""3-vectors by components."""

import jax
import jax.numpy as jnp

from jaxsim.enums import MINVAL
from jaxsim.math.components import Components, minus, times
from jaxsim.math.guard import safe_sqrt


class Vec(Components):
    """A 3-vector (x, y, z)."""

    names = ("x", "y", "z")
    __slots__ = ()
    x: jax.Array
    y: jax.Array
    z: jax.Array

    def cross(self, other: "Vec") -> "Vec":
        """Compute self x other."""
        ax, ay, az = self.parts
        bx, by, bz = other.parts
        return Vec(
            minus(times(ay, bz), times(az, by)),
            minus(times(az, bx), times(ax, bz)),
            minus(times(ax, by), times(ay, bx)),
        )

    def norm(self):
        """Return the norm; its gradient at the zero vector is zero."""
        return safe_sqrt(self.dot(self))

    def normalize(self, fallback: "Vec | None" = None) -> "Vec":
        """Normalize; a vector shorter than MINVAL becomes `fallback` (default: the x axis)."""
        length = self.norm()
        good = ~(length < MINVAL)  # NaN stays NaN, so that it is noticed
        unit = self.scale(1 / jnp.where(good, length, 1.0))
        other = fallback or Vec(
            jnp.ones_like(length), jnp.zeros_like(length), jnp.zeros_like(length)
        )
        return Vec(*(jnp.where(good, u, o) for u, o in zip(unit.parts, other.parts, strict=True)))
