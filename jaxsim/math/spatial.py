"""Spatial (6D) vectors and inertias by components, rotation first, in MuJoCo's com-based frame.

Motion and force vectors are expressed in world axes about a common point (the center of mass of
the kinematic tree), so that sums over bodies need no transforms (Featherstone, Rigid Body Dynamics
Algorithms, ch. 2; MuJoCo's documentation, Computation: General framework).
"""

import jax

from jaxsim.math.components import Components
from jaxsim.math.rotation import Rot
from jaxsim.math.vector import Vec


class Spatial(Components):
    """Spatial vector: (angular, linear) velocity, or (torque, force)."""

    names = ("rx", "ry", "rz", "lx", "ly", "lz")
    __slots__ = ()
    rx: jax.Array
    ry: jax.Array
    rz: jax.Array
    lx: jax.Array
    ly: jax.Array
    lz: jax.Array

    @classmethod
    def of(cls, rot: Vec, lin: Vec) -> "Spatial":
        """Build a spatial vector from its angular and linear part."""
        return cls(*rot.parts, *lin.parts)

    @property
    def rot(self) -> Vec:
        """Return the angular velocity, or torque."""
        return Vec(*self.parts[:3])

    @property
    def lin(self) -> Vec:
        """Return the linear velocity, or force."""
        return Vec(*self.parts[3:])

    def cross_motion(self, other: "Spatial") -> "Spatial":
        """Compute v x other: rate of a motion vector fixed in a frame that moves with v = self."""
        w, v = self.rot, self.lin
        return Spatial.of(w.cross(other.rot), w.cross(other.lin) + v.cross(other.rot))

    def cross_force(self, f: "Spatial") -> "Spatial":
        """Compute v x* f: rate of a force vector fixed in a frame that moves with v = self."""
        w, v = self.rot, self.lin
        return Spatial.of(w.cross(f.rot) + v.cross(f.lin), w.cross(f.lin))

    def at(self, offset: Vec) -> Vec:
        """Return the linear velocity of the point at `offset` from the reference point."""
        return self.lin + self.rot.cross(offset)


class Inertia(Components):
    """Rigid-body inertia about a point: rotational part, first moment (mass * offset), mass."""

    names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz", "hx", "hy", "hz", "mass")
    __slots__ = ()
    ixx: jax.Array
    iyy: jax.Array
    izz: jax.Array
    ixy: jax.Array
    ixz: jax.Array
    iyz: jax.Array
    hx: jax.Array
    hy: jax.Array
    hz: jax.Array
    mass: jax.Array

    def __matmul__(self, v: Spatial) -> Spatial:
        """Compute the momentum of the motion `v`."""
        ixx, iyy, izz, ixy, ixz, iyz, hx, hy, hz, mass = self.parts
        w, u = v.rot, v.lin
        h = Vec(hx, hy, hz)
        angular = Vec(
            ixx * w.x + ixy * w.y + ixz * w.z,
            ixy * w.x + iyy * w.y + iyz * w.z,
            ixz * w.x + iyz * w.y + izz * w.z,
        )
        return Spatial.of(angular + h.cross(u), u.scale(mass) - h.cross(w))

    @classmethod
    def about(cls, principal: Vec, R: Rot, mass, offset: Vec) -> "Inertia":
        """Compute the inertia of a body about a point, in world axes.

        Args:
          principal: moments about the body's center of mass, in its inertial frame [kg m^2].
          R: orientation of the inertial frame.
          mass: [kg].
          offset: center of mass minus the point [m].
        """
        # Rotate the principal moments to world axes.
        a, b, c = R.cols
        sx, sy, sz = a.scale(principal.x), b.scale(principal.y), c.scale(principal.z)
        x, y, z = offset.parts
        h = offset.scale(mass)

        # Entry of R diag(principal) R'; the parallel-axis terms follow below.
        def rotated_entry(i: int, j: int):
            return sx.parts[i] * a.parts[j] + sy.parts[i] * b.parts[j] + sz.parts[i] * c.parts[j]

        return cls(
            rotated_entry(0, 0) + h.y * y + h.z * z,
            rotated_entry(1, 1) + h.x * x + h.z * z,
            rotated_entry(2, 2) + h.x * x + h.y * y,
            rotated_entry(0, 1) - h.x * y,
            rotated_entry(0, 2) - h.x * z,
            rotated_entry(1, 2) - h.y * z,
            *h.parts,
            mass,
        )
