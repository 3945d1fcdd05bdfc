"""Where the points of the mode are, and how they move with the velocity at the end of a step.

What carries vertices moves by slides alone (model/switch/clashes.py), so that a point moves on a
straight line, and its place is linear in the velocity: x = x0 + h J w.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.enums import GeomType, JointType
from jaxsim.math import Vec, concat
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import column, diagonal, take, weighted_sum
from jaxsim.physics.collision.contacts import placed_boxes
from jaxsim.physics.collision.shape import Placed, placed
from jaxsim.physics.ipc.hull import Hulls, hulls
from jaxsim.physics.ipc.plan import Fixed, Plan, plan

ROUND = (GeomType.SPHERE, GeomType.CAPSULE)  # whose corners have a radius


class Scene(NamedTuple):
    """What stays the same in a step.

    Attributes:
      plan: what meets what.
      start: the points at its start, `[npoint, *W]` [m].
      axis: how the dofs move what they move, `[nv, *W]`.
      radius: of each point, `[npoint, *W]` [m]: half the thickness of a shell; of corners of
        spheres and capsules theirs, of other corners 0.
      mass: of each point, `[npoint, *W]` [kg]; 0: none of its own.
      geoms: all geoms, with their boxes.
      hulls: of meshes that shells can meet; None: there are none.
      h: the time step, `[1, *W]` [s].
    """

    plan: Plan
    start: Vec
    axis: Vec
    radius: jax.Array
    mass: jax.Array
    geoms: Placed
    hulls: Hulls | None
    h: jax.Array

    def moved(self, w: Array) -> Vec:
        """How far the points move in a step with the velocity w `[nv, *W]` at its end."""
        return weighted_sum(self.plan.moves, self.axis.scale(self.h * w))

    def fixed(self) -> "Scene":
        """The same, without a derivative."""
        numbers = lax.stop_gradient({n: getattr(self, n) for n in self._fields[1:]})
        return self._replace(**numbers)

    def at(self, w: Array) -> Vec:
        """The points at the end of a step with that velocity."""
        return self.start + self.moved(w)

    def along(self, points: tuple[Array, ...], shares: tuple[Array, ...], normal: Vec) -> Array:
        """The speed along a normal per unit speed of the dofs, `[n, nv, *W]`.

        Args:
          points: int `[n, *W]` each.
          shares: how much each of them counts, `[n, *W]`.
          normal: unit vectors, `[n, *W]`.
        """
        moves = column(self.plan.moves, self.axis)
        share = sum(
            w[:, None] * _rows(jnp.asarray(moves), p) for w, p in zip(shares, points, strict=True)
        )
        axes = zip(normal.parts, self.axis.parts, strict=True)
        return share * sum(n[:, None] * a[None] for n, a in axes)


def scene(m: Model, d: Data) -> Scene:
    """The points of a state, which has poses, vertices of flexes and the mass matrix."""
    of = plan(m)
    start = concat([d.flexvert_xpos, _corners(m, d, of.fixed)])
    slides = column(np.asarray(m.jnt_type)[m.dof_jntid] == JointType.SLIDE, d.qvel)
    axis = d.cdof.lin.map(lambda a: jnp.where(slides, a, 0))
    own = take(m.flex_radius, np.repeat(np.arange(m.nflex), m.flex_vertnum))
    is_round = column(np.isin(np.asarray(m.geom_type)[of.fixed.geom], ROUND), own)
    corner = jnp.where(is_round, take(m.geom_size[:, 0], of.fixed.geom), 0)
    return Scene(
        of,
        start,
        axis,
        jnp.concatenate(_alike([own, corner])),
        jnp.concatenate(_alike([_mass(m, d, of), jnp.zeros_like(start.x[m.nflexvert :])])),
        placed(m, d)._replace(box=placed_boxes(m, d)),
        hulls(m),
        m.opt.timestep,
    )


def _corners(m: Model, d: Data, fixed: Fixed) -> Vec:
    """Corners of fixed geoms in the world."""
    size = Vec(*(m.geom_size[:, k] for k in range(3)))
    capsule = column(np.asarray(m.geom_type) == GeomType.CAPSULE, size)
    size = Vec(size.x, size.y, jnp.where(capsule, size.y, size.z))  # half its axis, along z
    pos, rot, size = take((d.geom_xpos, d.geom_xmat, size), fixed.geom)
    sign = Vec(*(column(s, pos) for s in fixed.sign.T))
    place = Vec(*(a * s for a, s in zip(size.parts, sign.parts, strict=True)))
    if (fixed.vertex >= 0).any():
        of_mesh = column(fixed.vertex >= 0, pos)
        vertex = take(m.mesh_vert, np.maximum(fixed.vertex, 0))
        parts = zip(vertex.parts, place.parts, strict=True)
        place = Vec(*(jnp.where(of_mesh, v, p) for v, p in parts))
    return pos + rot @ place


def _mass(m: Model, d: Data, of: Plan) -> Array:
    """Masses of the vertices, `[nflexvert, *W]`.

    Of one that is carried it is that of the carrier with all on it, shared among those it carries.
    """
    inertia = diagonal(d.M)
    free = column(of.free >= 0, inertia)
    own = jnp.where(free, take(inertia, np.maximum(of.free, 0)), 0)
    if not of.carrier.any():
        return own
    number = np.bincount(of.carrier, minlength=m.nbody)[of.carrier]
    share = take(m.body_subtreemass, of.carrier) / column(1.0 * number, inertia)
    return own + jnp.where(column(of.carrier > 0, inertia), share, 0)


def _alike(arrays: list[Array]) -> list[Array]:
    """Arrays with the worlds that one of them has."""
    worlds = jnp.broadcast_shapes(*(a.shape[1:] for a in arrays))
    return [jnp.broadcast_to(a, (a.shape[0], *worlds)) for a in arrays]


def _rows(table: Array, index: Array) -> Array:
    """Rows of a table `[n, k, 1]` at an index `[j, *W]`: `[j, k, *W]`."""
    flat = table.reshape(table.shape[0], table.shape[1])
    return jnp.moveaxis(flat[index], -1, 1)
