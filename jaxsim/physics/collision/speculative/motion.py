"""Free motion of geoms within a step, and the broad phase of speculative contacts.

MuJoCo's documentation, Computation: Speculative contacts (Broadphase and sphere filtering).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.enums import GeomType
from jaxsim.math import Quat, Vec
from jaxsim.math.guard import safe_divide
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.tree_sums import moving_sums
from jaxsim.physics.collision.shape import PlacedGeoms


class Moving(NamedTuple):
    """Geoms and their displacements in a step, `[n, *W]`.

    Attributes:
      start: present poses.
      shift: displacement of the center [m].
      rotation: rotation vector of the step about the center; zero for spheres [rad].
      bound: radius of the bounding sphere [m].
      thickness: smallest half size of the bounding box [m].
    """

    start: PlacedGeoms
    shift: Vec
    rotation: Vec
    bound: jax.Array
    thickness: jax.Array

    def at(self, t: Array) -> PlacedGeoms:
        """Return the geoms after a fraction of the step."""
        turned = Quat.from_rotation_vector(self.rotation.scale(t)).matrix()
        pos, rot = self.start.pos + self.shift.scale(t), turned @ self.start.rot
        return self.start._replace(pos=pos, rot=rot)

    def displacement(self, t: Array, point: Vec) -> Vec:
        """Return the velocity, per step, of the material point that is at `point` at time `t`."""
        return self.shift + self.rotation.cross(point - self.start.pos - self.shift.scale(t))

    def brought_back(self, t: Array, point: Vec) -> Vec:
        """Return the initial position of the material point that is at `point` at time `t`."""
        back = Quat.from_rotation_vector(self.rotation.scale(-t)).matrix()
        return self.start.pos + back @ (point - self.start.pos - self.shift.scale(t))

    @property
    def spin(self) -> Array:
        """Return a bound on the displacement of a point of the geom due to rotation [m]."""
        return self.rotation.norm() * self.bound

    @property
    def travel(self) -> Array:
        """Return a bound on the displacement of any point of the geom [m]."""
        return self.shift.norm() + self.spin


def geom_motions(m: Model, d: Data, geoms: PlacedGeoms) -> Moving:
    """Return all geoms and their displacements by the velocities before the step, `[ngeom, *W]`."""
    # Velocity of each body, evaluated at the center of its geom.
    twist = gather_static(moving_sums(m, d.cdof.scale(d.qvel)), m.geom_bodyid)
    arm = geoms.pos - gather_static(d.subtree_com, m.body_rootid[m.geom_bodyid])
    h = m.opt.timestep
    rotates = column(m.geom_type != GeomType.SPHERE, geoms.pos)
    half = m.geom_aabb[:, 3:]
    return Moving(
        start=geoms._replace(box=None),
        shift=twist.at(arm).scale(h),
        rotation=twist.rot.map(lambda x: jnp.where(rotates, h * x, 0)),
        bound=m.geom_rbound,
        thickness=jnp.min(half, axis=1),
    )


def is_fast(a: Moving, b: Moving, plane: bool) -> Array:
    """Return whether one of two geoms travels at least the thickness of the thinner one.

    The first may be a plane. MuJoCo's documentation names the thickness of the moving geom instead.
    """
    if plane:
        return b.travel >= b.thickness
    return jnp.maximum(a.travel, b.travel) >= jnp.minimum(a.thickness, b.thickness)


def spheres_can_touch(a: Moving, b: Moving, reach: Array, plane: bool) -> Array:
    """Return whether two bounding spheres, or one and a plane, ever come within reach."""
    offset, way = b.start.pos - a.start.pos, b.shift - a.shift
    # Height over the plane at both ends of the step.
    if plane:
        normal = a.start.axis
        gap = normal.dot(offset)
        return jnp.minimum(gap, gap + normal.dot(way)) <= b.bound + reach
    # Closest approach of two spheres on straight lines.
    nearest = jnp.clip(safe_divide(-offset.dot(way), way.dot(way)), 0, 1)
    closest = offset + way.scale(nearest)
    most = a.bound + b.bound + reach
    return closest.dot(closest) <= most * most
