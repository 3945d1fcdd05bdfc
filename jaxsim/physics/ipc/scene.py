"""Points of the mode ipc, and their motion as a function of the velocity at the end of a step.

Bodies that carry vertices move by slides only (model/switch/clashes.py), so that points move on
straight lines and depend linearly on the velocity w: x = x0 + h J w.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, diagonal, gather_static, weighted_sum
from jaxsim.enums import GeomType, JointType
from jaxsim.math import Vec, concat
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.collision.contacts import place_bounding_boxes
from jaxsim.physics.collision.shape import PlacedGeoms, place_geoms
from jaxsim.physics.ipc.hull import TriangleHulls, triangle_hulls
from jaxsim.physics.ipc.plan import FixedFeatures, IpcPlan, ipc_plan

_ROUNDED_TYPES = (GeomType.SPHERE, GeomType.CAPSULE)  # geom types whose corners have a radius


class IpcScene(NamedTuple):
    """Quantities that are constant during a step.

    Attributes:
      plan: static plan of the model.
      start: points at the start of the step, `[npoint, *W]` [m].
      axis: translation axis of each dof, zero for other than slides, `[nv, *W]`.
      radius: radius of each point, `[npoint, *W]` [m]: half the thickness of a shell; for corners
        of spheres and capsules that of the geom, for other corners 0.
      mass: mass of each point, `[npoint, *W]` [kg]; 0: none of its own.
      geoms: all geoms, with their boxes.
      hulls: hulls of meshes that shells can meet; None: there are none.
      h: time step, `[1, *W]` [s].
    """

    plan: IpcPlan
    start: Vec
    axis: Vec
    radius: jax.Array
    mass: jax.Array
    geoms: PlacedGeoms
    hulls: TriangleHulls | None
    h: jax.Array

    def displacement(self, w: Array) -> Vec:
        """Compute the displacement of the points in a step with end velocity w `[nv, *W]`."""
        return weighted_sum(self.plan.moves, self.axis.scale(self.h * w))

    def fixed(self) -> "IpcScene":
        """Return the scene without derivatives."""
        numbers = lax.stop_gradient({n: getattr(self, n) for n in self._fields[1:]})
        return self._replace(**numbers)

    def at(self, w: Array) -> Vec:
        """Return the points at the end of a step with velocity w."""
        return self.start + self.displacement(w)

    def gap_jacobian(
        self, points: tuple[Array, ...], weights: tuple[Array, ...], normal: Vec
    ) -> Array:
        """Compute the Jacobian of gaps: normal speed per unit speed of the dofs, `[n, nv, *W]`.

        Args:
          points: int `[n, *W]` each.
          weights: weight of each point, `[n, *W]`.
          normal: unit vectors, `[n, *W]`.
        """
        # Weight of each dof: weighted sum over the points that it moves.
        moves = column(self.plan.moves, self.axis)
        share = sum(
            w[:, None] * _gather_rows(jnp.asarray(moves), p)
            for w, p in zip(weights, points, strict=True)
        )
        axes = zip(normal.parts, self.axis.parts, strict=True)
        return share * sum(n[:, None] * a[None] for n, a in axes)


def make_scene(m: Model, d: Data) -> IpcScene:
    """Build the scene of a state that has poses, vertices of flexes and the mass matrix."""
    of = ipc_plan(m)
    start = concat([d.flexvert_xpos, _corners(m, d, of.fixed)])
    # Only slides move points.
    slides = column(np.asarray(m.jnt_type)[m.dof_jntid] == JointType.SLIDE, d.qvel)
    axis = d.cdof.lin.map(lambda a: jnp.where(slides, a, 0))
    # Radii: half thickness of shells; corners of spheres and capsules.
    own = gather_static(m.flex_radius, np.repeat(np.arange(m.nflex), m.flex_vertnum))
    is_round = column(np.isin(np.asarray(m.geom_type)[of.fixed.geom], _ROUNDED_TYPES), own)
    corner = jnp.where(is_round, gather_static(m.geom_size[:, 0], of.fixed.geom), 0)
    return IpcScene(
        of,
        start,
        axis,
        jnp.concatenate(_broadcast_worlds([own, corner])),
        jnp.concatenate(
            _broadcast_worlds([_mass(m, d, of), jnp.zeros_like(start.x[m.nflexvert :])])
        ),
        place_geoms(m, d)._replace(box=place_bounding_boxes(m, d)),
        triangle_hulls(m),
        m.opt.timestep,
    )


def _corners(m: Model, d: Data, fixed: FixedFeatures) -> Vec:
    """Return the corners of fixed geoms in the world."""
    # Local positions of the corners, in units of half sizes.
    size = Vec(*(m.geom_size[:, k] for k in range(3)))
    capsule = column(np.asarray(m.geom_type) == GeomType.CAPSULE, size)
    # half length of the axis, along z
    size = Vec(size.x, size.y, jnp.where(capsule, size.y, size.z))
    pos, rot, size = gather_static((d.geom_xpos, d.geom_xmat, size), fixed.geom)
    sign = Vec(*(column(s, pos) for s in fixed.sign.T))
    place = Vec(*(a * s for a, s in zip(size.parts, sign.parts, strict=True)))
    # Corners of meshes are vertices.
    if (fixed.vertex >= 0).any():
        of_mesh = column(fixed.vertex >= 0, pos)
        vertex = gather_static(m.mesh_vert, np.maximum(fixed.vertex, 0))
        parts = zip(vertex.parts, place.parts, strict=True)
        place = Vec(*(jnp.where(of_mesh, v, p) for v, p in parts))
    return pos + rot @ place


def _mass(m: Model, d: Data, of: IpcPlan) -> Array:
    """Return the masses of the vertices, `[nflexvert, *W]`.

    A carried vertex has an equal share of the subtree mass of its carrier.
    """
    # Free vertices: the inertia of their slide.
    inertia = diagonal(d.M)
    free = column(of.free >= 0, inertia)
    own = jnp.where(free, gather_static(inertia, np.maximum(of.free, 0)), 0)
    if not of.carrier.any():
        return own
    # Carried vertices: an equal share of the carrier's subtree mass.
    number = np.bincount(of.carrier, minlength=m.nbody)[of.carrier]
    share = gather_static(m.body_subtreemass, of.carrier) / column(1.0 * number, inertia)
    return own + jnp.where(column(of.carrier > 0, inertia), share, 0)


def _broadcast_worlds(arrays: list[Array]) -> list[Array]:
    """Broadcast arrays to common worlds."""
    worlds = jnp.broadcast_shapes(*(a.shape[1:] for a in arrays))
    return [jnp.broadcast_to(a, (a.shape[0], *worlds)) for a in arrays]


def _gather_rows(table: Array, index: Array) -> Array:
    """Gather rows of a table `[n, k, 1]` at indices `[j, *W]`: `[j, k, *W]`."""
    flat = table.reshape(table.shape[0], table.shape[1])
    return jnp.moveaxis(flat[index], -1, 1)
