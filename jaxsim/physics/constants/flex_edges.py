"""Edges of flexes at the reference pose: lengths and inverse weights.

The same constants as those of the compiler (`compile/flex/flexes.py`, `compile/flex/weights.py`).
Edges of interpolated flexes are not used; their values are zero.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.math import Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.point_motion import point_jacobian
from jaxsim.physics.flex.edges import flex_edges


def edge_length(m: Model, d: Data) -> Array:
    """Compute `flexedge_length0`, `[nflexedge, *W]`."""
    # Distance of both ends at the reference pose; zero for edges not in use.
    table = flex_edges(m)
    first, last = _edge_ends(m, d, np.arange(len(table.vert)))
    length = (last - first).norm()
    return jnp.where(column(table.used, length), length, 0)


def edge_invweight(m: Model, d: Data, body_invweight: Array, inverse: Array) -> Array:
    """Compute `flexedge_invweight0`, `[nflexedge, *W]`.

    For an edge between two bodies with slides only it is the mean of theirs; for others J M^-1 J',
    with J the Jacobian of the length, if the length is used.

    Args:
      m: model.
      d: data in the reference pose.
      body_invweight: inverse weights of the bodies `[nbody, 2, *W]`.
      inverse: inverse of M `[nv, nv, *W]`.
    """
    table = flex_edges(m)
    # Edges between sliding bodies: mean of the bodies' weights.
    first, last = (gather_static(body_invweight[:, 0], table.body[:, k]) for k in range(2))
    weight = 0.5 * (first + last)
    weight = jnp.where(column(table.used & table.simple, weight), weight, 0)
    # Others: J M^-1 J' with the Jacobian of the edge's length.
    apart = table.body[:, 0] != table.body[:, 1]
    ids = np.flatnonzero(table.used & ~table.simple & apart & (m.flexedge_J_rownnz > 0))
    if not len(ids):
        return weight
    points = _edge_ends(m, d, ids)
    along = (points[1] - points[0]).normalize().map(lambda a: a[:, None])
    bodies = (table.body[ids, k] for k in range(2))
    speeds = [
        point_jacobian(m, d, body, point)[0].dot(along)
        for body, point in zip(bodies, points, strict=True)
    ]
    J = speeds[1] - speeds[0]
    found = jnp.sum(jnp.einsum("bi...,ij...->bj...", J, inverse) * J, axis=1)
    return weight.at[ids].set(found)


def _edge_ends(m: Model, d: Data, ids: np.ndarray) -> tuple[Vec, Vec]:
    """Return both ends of some edges in the world."""

    def end_position(k: int) -> Vec:
        vert, body = flex_edges(m).vert[ids, k], flex_edges(m).body[ids, k]
        return gather_static(d.xpos, body) + gather_static(d.xquat, body).rotate(
            gather_static(m.flex_vert, vert)
        )

    return end_position(0), end_position(1)
