"""Contacts of a plane with the convex hull of a mesh.

MuJoCo's rule, determined by experiment (`mjc_PlaneConvex`): the lowest vertex, and those corners of
the best aligned polygon at it that are lower than the center of the geom. Polygons with more than
four corners are represented by four that span much of the area (assets/mesh/outline.py). A mesh
without hull touches with its lowest vertex only. An `sdf` geom touches a plane with the hull of its
mesh.
"""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.dynamic import take
from jaxsim.math import Vec
from jaxsim.physics.collision.convex.hull.faces import hull_corner
from jaxsim.physics.collision.convex.hull.hulls import Hulls, hull_of, hull_vertex, row_ids, row_of
from jaxsim.physics.collision.convex.hull.support import hull_support
from jaxsim.physics.collision.shape import ContactPoints, PlacedGeoms, add_slot_axis, touch_if
from jaxsim.transforms.materialize import materialize_decision

PLANE_MESH_SLOTS = 4


def plane_mesh(plane: PlacedGeoms, mesh: PlacedGeoms, h: Hulls, reach: Array) -> ContactPoints:
    """Compute the contacts: the lowest vertex, then the others in the order of the outline."""
    # Choose the vertices once, then compute their heights over the plane.
    down = mesh.rot.T @ -plane.axis
    vertex, is_corner = materialize_decision(_corners, h, mesh.id, down)
    plane, mesh = add_slot_axis((plane, mesh))
    point = mesh.pos + mesh.rot @ hull_vertex(h, vertex)
    normal = plane.axis
    dist = normal.dot(point - plane.pos)
    low = normal.dot(point - mesh.pos) <= 0
    lowest = jnp.arange(PLANE_MESH_SLOTS).reshape(PLANE_MESH_SLOTS, *(1,) * (low.ndim - 1)) == 0
    touch = ContactPoints(dist, point - normal.scale(0.5 * dist), normal)
    return touch_if(lowest | low & is_corner, touch)


def _corners(h: Hulls, geom: Array, down: Vec) -> tuple[Array, Array]:
    """Return four vertices that may touch, and whether each is a separate one, `[4, n, *W]`."""
    hull = hull_of(h, jnp.broadcast_to(geom, down.shape))
    t = h.tables
    lowest = hull_support(h, hull, down)
    if not h.nhull:
        none = jnp.zeros(lowest.shape, bool)
        return jnp.stack([lowest] * PLANE_MESH_SLOTS), jnp.stack([~none, none, none, none])
    # The best aligned polygon at the lowest vertex, and three more of its corners.
    corner = hull_corner(h, lowest, down)
    others = [take(b, corner) for b in t.spanning_triple]
    touching = [take(t.outline_vertex, k) for k in others]
    vertex = [lowest] + [row_ids(h, corner, lowest) for corner in touching]
    own = row_of(h, hull) < h.nhull
    return jnp.stack(vertex), jnp.stack([own, own, own, others[2] != others[1]])
