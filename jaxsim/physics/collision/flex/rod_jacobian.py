"""Contact Jacobian of rods with twist hinges: the rotation of their edges.

An edge from x0 to x1 is a rigid body: it rotates with its two ends, and about its axis with its
hinge, angle theta. With e = x1 - x0, t = e / |e|, the point of the edge at the fraction w, and the
arm r from there to the contact,

    omega = t x (v1 - v0) / |e| + t theta'
    v = (1 - w) v0 + w v1 + omega x r

so rods roll on surfaces. The contact of a vertex with a plane belongs to the edge that begins at
the vertex, that of the last vertex to the last edge. An edge whose two vertices are on one body
moves with this body (flex_jacobian.py).

MuJoCo's documentation, XML reference: flex/elasticity (per-edge twist joints).
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import outer_sum
from jaxsim.arrays.gather import gather_static
from jaxsim.math import Vec, safe_divide, safe_sqrt, select_where
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.contact_ids import IdArray
from jaxsim.physics.collision.driver import Contacts
from jaxsim.physics.collision.flex.item import any_edge, item_flex, no_item
from jaxsim.physics.collision.flex.triangle import share_on_segment
from jaxsim.physics.flex.frames import rod_chains
from jaxsim.physics.topology import ancestors


@cache_by_structure
def item_edge(s: Structure) -> np.ndarray:
    """Return the edge with a hinge (flex/frames.py) that an item moves with; -1: none.

    The shape is `[nflexelem + nflexvert + 1]`; the last entry is for no item.
    """
    return (
        np.where(rod_chains(s).dof[any_edge(s)] >= 0, any_edge(s), -1)
        if _has_twist_rods(s)
        else any_edge(s)
    )


def _has_twist_rods(s: Structure) -> bool:
    return len(rod_chains(s).flex) > 0


@cache_by_structure
def _vertex_fraction(s: Structure) -> np.ndarray:
    """Return the fraction of a vertex along its edge, 0 or 1; -1: the item is no vertex.

    The shape is `[nflexelem + nflexvert + 1]`.
    """
    out, edge = np.full(no_item(s) + 1, -1.0), any_edge(s)
    vertex = s.nflexelem + np.flatnonzero(edge[s.nflexelem : -1] >= 0)
    out[vertex] = rod_chains(s).vert[edge[vertex], 1] == vertex - s.nflexelem
    return out


def turning_rows(m: Model, d: Data, c: Contacts, size: int) -> list[Array]:
    """Return the contribution of rods with twist to the first `size` rows of the contact basis.

    Each row is the motion of the second side relative to the first, `[ncon, nv, *W]`.
    """
    assert c.item is not None
    sides = [_side_rows(m, d, c, item, size) for item in c.item]
    return [second - first for first, second in zip(*sides, strict=True)]


def _side_rows(m: Model, d: Data, c: Contacts, item: IdArray, size: int) -> list[Array]:
    """Return the motion of one side; zero where it is no edge with a hinge."""
    # Ends of the edge, the fraction of the contact point along it, and the arm to the contact.
    s, table = m.structure, rod_chains(m)
    number = np.maximum(item_edge(s), 0)
    end = [item.look_up(table.vert[number, k]) for k in range(2)]
    first, second = (ids.take(d.flexvert_xpos) for ids in end)
    edge = second - first
    square = edge.dot(edge)
    place = item.values(_vertex_fraction(s), c.dist).astype(c.dist.dtype)
    share = jnp.where(place < 0, share_on_segment(c.pos, first, second), place)
    arm = _arm(m, c, item, first + edge.scale(share), place >= 0)
    # Dofs that move each end, and the hinge of the edge.
    bits = [ids.look_up(np.maximum(s.flex_vertbodyid, 0)).bits(ancestors(m), c.dist) for ids in end]
    hinge = item.bits(_hinges(s), c.dist)
    # Mask of sides with a hinge, and motion of both ends per dof.
    here = item.values(item_edge(s) >= 0, c.dist)
    point = [_point_motion(m, d, x) for x in (first, second)]
    rows = []
    for k in range(size):
        axis = c.frame.rows[k % 3]
        if k < 3:
            # axis . (omega x arm) = (arm x axis) . omega
            along, keep = arm.cross(axis), (1 - share, share)
        else:
            along, keep = axis, (0 * share, 0 * share)
        # Split the rotation: bending by the two ends, twist by the hinge.
        bend = along.cross(edge).scale(safe_divide(jnp.ones_like(square), square))
        spin = along.dot(edge.scale(safe_divide(jnp.ones_like(square), safe_sqrt(square))))
        ends = axis.scale(keep[0]) - bend, axis.scale(keep[1]) + bend
        row = spin[:, None] * hinge
        for of_end, moves, motion in zip(ends, bits, point, strict=True):
            row = row + moves * motion(of_end)
        rows.append(jnp.where(here[:, None], row, 0))
    return rows


def _arm(m: Model, c: Contacts, item: IdArray, start: Vec, vertex: Array) -> Vec:
    """Return the vector from the axis of the edge to the contact.

    At a plane it ends on the surface of the edge: below the axis for a round section, at the corner
    for a box section.
    """
    # Vector to the contact, which is half a distance off the surface.
    to = c.pos - start
    of_flex = item.look_up(np.append(item_flex(m), 0))
    # At a plane, return to the surface of the edge.
    normal, radius = c.frame.rows[0], of_flex.take(m.flex_radius)
    boxed = of_flex.values(np.asarray(m.flex_boxed), c.dist)
    down = select_where(boxed, to + normal.scale(0.5 * c.dist), normal.scale(-radius))
    return select_where(vertex, down, to)


def _point_motion(m: Model, d: Data, point: Vec) -> Callable[[Vec], Array]:
    """Return a function of an axis: speeds of points along it per unit dof, `[n, nv, *W]`."""
    # Velocity of a point per dof: cdof is about the center of mass of the tree.
    origin = gather_static(d.subtree_com, m.body_rootid[m.dof_bodyid])
    turn, shift = d.cdof.rot, d.cdof.lin - d.cdof.rot.cross(origin)

    def axis_speed(axis: Vec) -> Array:
        pairs = list(zip(point.cross(axis).parts, turn.parts, strict=True))
        return outer_sum(pairs + list(zip(axis.parts, shift.parts, strict=True)))

    return axis_speed


@cache_by_structure
def _hinges(s: Structure) -> np.ndarray:
    """Return a matrix that is 1 at the hinge of an item, `[nflexelem + nflexvert + 1, nv]`."""
    # One-hot rows by the dof of the hinge.
    out, edge = np.zeros((no_item(s) + 1, s.nv)), item_edge(s)
    there = np.flatnonzero(edge >= 0)
    out[there, rod_chains(s).dof[edge[there]]] = 1
    return out
