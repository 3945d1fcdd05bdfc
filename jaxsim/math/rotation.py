"""Quaternions (w, x, y, z) and rotation matrices by components.

The formulas are those of `quaternion.py`, which the compiler uses too; here they have guarded
derivatives and the layout of the physics.
"""

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.enums import MINVAL
from jaxsim.math.components import Components
from jaxsim.math.guard import safe_atan2, safe_divide, safe_sqrt
from jaxsim.math.quaternion import about_axis, matrix_entries, multiply
from jaxsim.math.vector import Vec


class Quat(Components):
    """Quaternion w + xi + yj + zk; with unit norm it is a frame's orientation in its parent."""

    names = ("w", "x", "y", "z")
    __slots__ = ()
    w: jax.Array
    x: jax.Array
    y: jax.Array
    z: jax.Array

    @property
    def vec(self) -> Vec:
        """Return the imaginary part (x, y, z)."""
        return Vec(*self.parts[1:])

    def __mul__(self, other: "Quat") -> "Quat":
        """Compose: first `other`, then `self` (Hamilton product)."""
        return Quat(*multiply(self.parts, other.parts))

    @property
    def conj(self) -> "Quat":
        """Return the conjugate; for unit norm it is the inverse."""
        w, x, y, z = self.parts
        return Quat(w, -x, -y, -z)

    def rotate(self, v: Vec) -> Vec:
        """Compute q v q*, for a unit quaternion."""
        # Two cross products instead of two quaternion products.
        t = self.vec.cross(v)
        t = t + t
        return v + t.scale(self.w) + self.vec.cross(t)

    def normalize(self) -> "Quat":
        """Return the unit quaternion; one shorter than MINVAL becomes the identity, as in MuJoCo.

        A quaternion of norm 1 up to MINVAL keeps its value, so that aligned bodies stay exactly
        aligned.
        """
        # Normalize; a quaternion of nearly unit length remains unchanged in value.
        length = safe_sqrt(self.dot(self))
        good = ~(length < MINVAL)  # NaN stays NaN, so that it is noticed
        scale = 1 / jnp.where(good, length, 1.0)
        unit = jnp.abs(length - 1) <= MINVAL
        # keep the derivative of the normalization
        scale = scale + lax.stop_gradient(jnp.where(unit, 1 - scale, 0))
        w, x, y, z = self.scale(scale).parts
        zero = jnp.zeros_like(w)
        return Quat(
            jnp.where(good, w, zero + 1),
            jnp.where(good, x, zero),
            jnp.where(good, y, zero),
            jnp.where(good, z, zero),
        )

    def matrix(self) -> "Rot":
        """Return the rotation matrix of a unit quaternion."""
        return Rot(*matrix_entries(self.parts))

    @classmethod
    def from_axis_angle(cls, axis: Vec, angle) -> "Quat":
        """Return the rotation by `angle` [rad] about the unit vector `axis`."""
        return cls(*about_axis(jnp, axis.parts, angle))

    @classmethod
    def from_rotation_vector(cls, v: Vec) -> "Quat":
        """Return exp(v/2): the rotation by |v| about v; exact and smooth at v = 0."""
        square = v.dot(v)
        small = square < 1e-8
        angle = jnp.sqrt(jnp.where(small, 1.0, square))
        # sin(a/2)/a and cos(a/2); near zero by series, so that the gradient stays finite.
        s = jnp.where(small, 0.5 - square / 48, jnp.sin(0.5 * angle) / angle)
        c = jnp.where(small, 1 - square / 8, jnp.cos(0.5 * angle))
        return cls(c, v.x * s, v.y * s, v.z * s)

    def rotation_vector(self) -> Vec:
        """Return the rotation vector, of norm at most pi; the inverse of `from_rotation_vector`."""
        # Angle from the vector and scalar parts, in (-pi, pi].
        s = self.vec.norm()
        angle = 2 * safe_atan2(s, self.w)
        angle = jnp.where(angle > jnp.pi, angle - 2 * jnp.pi, angle)
        # At the identity angle/s tends to 2/w.
        factor = jnp.where(s > MINVAL, safe_divide(angle, s), 2.0)
        return self.vec.scale(factor)


class Rot(Components):
    """3x3 matrix by rows: the columns are the axes of a frame, in its parent."""

    names = ("xx", "xy", "xz", "yx", "yy", "yz", "zx", "zy", "zz")
    __slots__ = ()
    xx: jax.Array
    xy: jax.Array
    xz: jax.Array
    yx: jax.Array
    yy: jax.Array
    yz: jax.Array
    zx: jax.Array
    zy: jax.Array
    zz: jax.Array

    @property
    def rows(self) -> tuple[Vec, Vec, Vec]:
        """Return the rows: the axes of the parent, in the frame."""
        p = self.parts
        return Vec(*p[0:3]), Vec(*p[3:6]), Vec(*p[6:9])

    @property
    def cols(self) -> tuple[Vec, Vec, Vec]:
        """Return the columns: the axes of the frame, in its parent."""
        p = self.parts
        return Vec(*p[0::3]), Vec(*p[1::3]), Vec(*p[2::3])

    @property
    def T(self) -> "Rot":
        """Return the transpose; for a rotation it is the inverse."""
        p = self.parts
        return Rot(p[0], p[3], p[6], p[1], p[4], p[7], p[2], p[5], p[8])

    def __matmul__(self, other):
        """Multiply by a Vec or another Rot."""
        if isinstance(other, Vec):
            return Vec(*(row.dot(other) for row in self.rows))
        cols = other.cols
        return Rot(*(row.dot(col) for row in self.rows for col in cols))

    @classmethod
    def from_cols(cls, x: Vec, y: Vec, z: Vec) -> "Rot":
        """Build the matrix with these columns."""
        return cls(x.x, y.x, z.x, x.y, y.y, z.y, x.z, y.z, z.z)

    @classmethod
    def from_rows(cls, x: Vec, y: Vec, z: Vec) -> "Rot":
        """Build the matrix with these rows."""
        return cls(*x.parts, *y.parts, *z.parts)
