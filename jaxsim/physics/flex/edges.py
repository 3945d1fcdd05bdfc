"""Edges of flexes: lengths, velocities and Jacobian.

    length = |x2 - x1|,   velocity = u . (v2 - v1),   u = (x2 - x1) / length

Edges of rigid and interpolated flexes are not used; their values are zero.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.math import Vec
from jaxsim.model.data import Data
from jaxsim.model.derived import SLIDERS_ONLY
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.topology import ancestors


class FlexEdges(NamedTuple):
    """Tables of all edges.

    Attributes:
      flex: flex of each edge, `[n]`.
      vert: vertex ids of the ends, `[n, 2]`.
      body: bodies of the ends, `[n, 2]`; the world for interpolated flexes.
      used: the flex is not interpolated, `[n]`.
      moving: the flex is neither interpolated nor rigid, `[n]`.
      simple: the bodies of both ends have slides only, `[n]`.
    """

    flex: np.ndarray
    vert: np.ndarray
    body: np.ndarray
    used: np.ndarray
    moving: np.ndarray
    simple: np.ndarray


@cache_by_structure
def flex_edges(s: Structure) -> FlexEdges:
    """Return the edges of all flexes."""
    flex = np.repeat(np.arange(s.nflex), s.flex_edgenum)
    # Vertices of all flexes are numbered consecutively.
    vert = np.reshape(s.flex_edge, (-1, 2)) + s.flex_vertadr[flex][:, None]
    body = np.maximum(s.flex_vertbodyid[vert], 0)  # vertices of interpolated flexes have none
    simple = (s.body_simple[body] == SLIDERS_ONLY).all(axis=1)
    used = s.flex_interp[flex] == 0
    return FlexEdges(flex, vert, body, used, used & ~np.asarray(s.flex_rigid, bool)[flex], simple)


class EdgeJacobianEntries(NamedTuple):
    """Nonzeros of `flexedge_J`: edge and dof of each, `[n]`."""

    edge: np.ndarray
    dof: np.ndarray


@cache_by_structure
def edge_jacobian_entries(s: Structure) -> EdgeJacobianEntries:
    """Return the sparsity pattern of the Jacobian by edges; unmeasured ones have no entries."""
    # Row by row, as MuJoCo stores the nonzeros.
    number = s.flexedge_J_rownnz
    edge = np.repeat(np.arange(s.nflexedge), number)
    before = np.repeat(np.cumsum(number) - number, number)
    place = s.flexedge_J_rowadr[edge] + np.arange(len(edge)) - before
    return EdgeJacobianEntries(edge, s.flexedge_J_colind[place])


def edge_vectors(m: Model, xpos: Vec) -> tuple[Array, Vec]:
    """Compute length and direction of each edge; the length is zero for unused edges.

    Args:
      m: model.
      xpos: vertices in the world `[nflexvert, *W]`.
    """
    table = flex_edges(m)
    first, last = (gather_static(xpos, table.vert[:, k]) for k in range(2))
    along = last - first
    length = along.norm()
    return jnp.where(column(table.moving, length), length, 0), along.normalize()


def edge_jacobian(m: Model, d: Data, along: Vec) -> Array:
    """Compute the nonzeros of `flexedge_J`, `[nJfe, *W]`.

    J[e, i] = u . (velocity of x2 - velocity of x1 per unit velocity of dof i)
    """
    table, place = flex_edges(m), edge_jacobian_entries(m)
    # Velocity of both ends along the edge, per dof.
    axis = gather_static(d.cdof, place.dof)
    origin = gather_static(d.subtree_com, m.body_rootid[m.dof_bodyid[place.dof]])
    u = gather_static(along, place.edge)
    moves = ancestors(m)

    def speed(k: int) -> Array:
        point = gather_static(d.flexvert_xpos, table.vert[place.edge, k])
        here = moves[table.body[place.edge, k], place.dof]
        return axis.at(point - origin).dot(u) * column(here, u)

    # Difference of the ends, padded to the stored size.
    numbers = speed(1) - speed(0)
    rest = m.nJfe - len(place.edge)
    return jnp.pad(numbers, [(0, rest)] + [(0, 0)] * (numbers.ndim - 1))


def edge_velocity(m: Model, velocity: Vec, along: Vec) -> Array:
    """Compute the rate of each edge's length `[nflexedge, *W]` [m/s], from vertex velocities."""
    table = flex_edges(m)
    first, last = (gather_static(velocity, table.vert[:, k]) for k in range(2))
    speed = (last - first).dot(along)
    return jnp.where(column(table.moving, speed), speed, 0)
