"""Contact Jacobian of flexes: barycentric and nodal interpolation of the motion of bodies.

A vertex is fixed to a body. A point on an element moves with the bodies of its vertices, weighted
by the barycentric coordinates w_i of the point of the element that is nearest to the contact. Where
vertices are interpolated, the barycentric coordinates give a point xi in the reference box; the
shape functions N_k at this point are the weights of the nodes, which are fixed to bodies:

    vertices on bodies    v = sum_i w_i v(body of vertex i)          corner_shares
    interpolated          xi = sum_i w_i xi_i,
                          v = sum_k N_k(xi) v(body of node k)        node_shares

A row of the Jacobian is the motion of the second side less that of the first, dof by dof. Edges of
rods that rotate by a hinge are in rod_jacobian.py.

MuJoCo's documentation, Changelog 4.0 (contacts with flex elements); flex/lattice.py has the shape
functions.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column
from jaxsim.math import Vec, safe_divide, select_where
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.contact_ids import IdArray
from jaxsim.physics.collision.driver import Contacts
from jaxsim.physics.collision.flex.item import MAX_ELEMENT_VERTICES, item_corners, item_flex
from jaxsim.physics.collision.flex.rod_jacobian import item_edge
from jaxsim.physics.collision.flex.triangle import nearest_shares, share_on_segment, weighted_point
from jaxsim.physics.flex.lattice import inner_nodes, lattice_shape, shape_functions
from jaxsim.physics.topology import ancestors

_VERTEX_DIM = 0  # dimension of an item that is a vertex
_TETRAHEDRON_FACES = ((0, 1, 2), (0, 2, 3), (0, 3, 1), (1, 3, 2))


def flex_jacobian_shares(m: Model, d: Data, c: Contacts) -> tuple[Array, Array]:
    """Return the contribution of flexes to the contact Jacobian and the approximate inertia.

    Returns:
      Weights of each dof in the motion of the second surface relative to the first, `[n, nv, *W]`;
      sums over both sides of the mean `body_invweight0` of their bodies, `[n, *W]`.
    """
    assert c.item is not None
    share, weight = zip(*(_side_weights(m, d, c, item) for item in c.item), strict=True)
    return share[1] - share[0], weight[0] + weight[1]


def _side_weights(m: Model, d: Data, c: Contacts, item: IdArray) -> tuple[Array, Array]:
    """Return the weights of the dofs and the mean `body_invweight0` of one side; zero for geoms."""
    # Edges with a hinge move by rod_jacobian.py, so they have no weights here.
    corner, share = corner_shares(m, d, c, item)
    turns = item.values(item_edge(m.structure) >= 0, c.dist)
    weight = jnp.zeros_like(c.dist)
    dofs = jnp.zeros((len(c.dist), m.nv, *c.dist.shape[1:]), c.dist.dtype)
    # Flexes whose vertices are fixed to bodies.
    if (np.asarray(m.flex_interp) == 0).any():
        body = _vertex_bodies(m.structure)
        for vertex, part in zip(corner, share, strict=True):
            of_body = vertex.look_up(body)
            own = jnp.where(turns, 0, part)
            dofs = dofs + own[:, None] * of_body.bits(ancestors(m), c.dist)
            weight = weight + part * of_body.take(m.body_invweight0[:, 0])
    # Flexes whose vertices are interpolated between nodes.
    if (np.asarray(m.flex_interp) != 0).any():
        node = node_shares(m, item, corner, share)
        moves = jnp.asarray(column(ancestors(m)[m.flex_nodebodyid], c.dist))
        dofs = dofs + jnp.einsum("nk...,kv...->nv...", node, moves)
        of_node = m.body_invweight0[:, 0][np.asarray(m.flex_nodebodyid)]
        weight = weight + jnp.sum(node * of_node[None], axis=1)
    return dofs, weight


@cache_by_structure
def _vertex_bodies(s: Structure) -> np.ndarray:
    """Return the body of each vertex, `[nflexvert + 1]`; the world for vertices without one."""
    return np.append(np.maximum(s.flex_vertbodyid, 0), 0)


def corner_shares(
    m: Model, d: Data, c: Contacts, item: IdArray
) -> tuple[list[IdArray], list[Array]]:
    """Return the vertices of items and the barycentric coordinates of contacts, zero for geoms."""
    # Positions of the vertices of each item.
    table, dim = _corner_table(m.structure), _item_dim(m.structure)
    corner = [item.look_up(table[:, k]) for k in range(MAX_ELEMENT_VERTICES)]
    xpos = d.flexvert_xpos.map(lambda a: jnp.concatenate([a, a[:1]]))
    place = [ids.take(xpos) for ids in corner]
    of_item = item.values(dim, c.dist)
    # Barycentric coordinates by the dimension of the item.
    zero = jnp.zeros_like(c.dist)
    shares = [zero] * MAX_ELEMENT_VERTICES
    for kind in sorted(set(dim[:-1].tolist())):
        found = _SHARE_FUNCTIONS[kind](c.pos, place[: kind + 1])
        for k, part in enumerate(found):
            shares[k] = jnp.where(of_item == kind, part, shares[k])
    return corner, shares


@cache_by_structure
def _corner_table(s: Structure) -> np.ndarray:
    """Return the vertices of each item; for no item `nflexvert`, the index after the last one."""
    return np.concatenate([item_corners(s), np.full((1, MAX_ELEMENT_VERTICES), s.nflexvert)])


@cache_by_structure
def _item_dim(s: Structure) -> np.ndarray:
    """Return the dimension of each item, 0 for vertices and -1 for no item."""
    dim = np.asarray(s.flex_dim)[item_flex(s)].astype(np.int32)
    dim[s.nflexelem :] = _VERTEX_DIM
    return np.append(dim, np.int32(-1))


def _vertex_weights(point: Vec, corner: Sequence[Vec]) -> tuple[Array, ...]:
    return (jnp.ones_like(point.x),)


def _segment_weights(point: Vec, corner: Sequence[Vec]) -> tuple[Array, ...]:
    share = share_on_segment(point, *corner)
    return 1 - share, share


def _triangle_weights(point: Vec, corner: Sequence[Vec]) -> tuple[Array, ...]:
    return nearest_shares(point, tuple(corner))


def _tetrahedron_weights(point: Vec, corner: Sequence[Vec]) -> tuple[Array, ...]:
    """Return barycentric coordinates of a point, or of the nearest face point if it is outside."""
    # Coordinates of the point by ratios of volumes.
    origin, a, b, e = corner
    a, b, e, p = a - origin, b - origin, e - origin, point - origin
    volume = a.dot(b.cross(e))
    parts = [safe_divide(side.dot(p), volume) for side in (b.cross(e), e.cross(a), a.cross(b))]
    found = (1 - sum(parts), *parts)
    within = volume != 0
    for part in found:
        within = within & (part >= 0)
    # Outside, project on all four faces and keep the nearest one.
    least = jnp.where(within, -1.0, jnp.inf).astype(point.x.dtype)
    zero = jnp.zeros_like(point.x)
    for face in _TETRAHEDRON_FACES:
        some = tuple(corner[k] for k in face)
        share = nearest_shares(point, some)
        offset = weighted_point(share, some) - point
        square = lax.stop_gradient(offset.dot(offset))
        nearer = square < least
        spread = [zero] * MAX_ELEMENT_VERTICES
        for k, part in zip(face, share, strict=True):
            spread[k] = part
        found = select_where(nearer, tuple(spread), found)
        least = jnp.where(nearer, square, least)
    return found


_SHARE_FUNCTIONS = {
    _VERTEX_DIM: _vertex_weights,
    1: _segment_weights,
    2: _triangle_weights,
    3: _tetrahedron_weights,
}


def node_shares(m: Model, item: IdArray, corner: list[IdArray], share: list[Array]) -> Array:
    """Return the weights of all nodes, `[n, nflexnode, *W]`; zero for geoms and other flexes."""
    # Position of the contact in the reference box of the flex.
    vert0 = m.flex_vert0.map(lambda a: jnp.concatenate([a, a[:1]]))
    place = weighted_point(tuple(share), tuple(ids.take(vert0) for ids in corner))
    flex = item.values(np.append(item_flex(m), -1).astype(np.int32), place.x)
    parts = []
    for f in range(m.nflex):
        order, size = lattice_shape(m.structure, f)
        if not order:
            continue
        # Tensor product of the shape functions along the three axes of the lattice.
        along = [
            _axis_weights(x, order, int(cells), int(nodes))
            for x, cells, nodes in zip(place.parts, m.flex_cellnum[f], size, strict=True)
        ]
        here = jnp.where(flex == f, 1, 0).astype(place.x.dtype)
        x, y, z = along[0] * here[:, None], along[1], along[2]
        product = x[:, :, None, None] * y[:, None, :, None] * z[:, None, None]
        parts.append(product.reshape(len(x), int(np.prod(size)), *x.shape[2:]))
    # In shells, inner nodes pass their weights to wall nodes.
    shares = jnp.concatenate(parts, axis=1)
    walls = _walls(m.structure)
    if walls is None:
        return shares
    return jnp.einsum("nk...,kj->nj...", shares, jnp.asarray(walls, shares.dtype))


def _axis_weights(x: Array, order: int, cells: int, nodes: int) -> Array:
    """Return the weights of the nodes along one axis at `x` in [0, 1], `[n, nodes, *W]`."""
    # Cell of the point, and the local coordinate in it.
    cell = jnp.clip(jnp.floor(x * cells), 0, cells - 1)
    local = jnp.clip(x * cells - cell, 0, 1)
    # Scatter the shape functions of the cell to its nodes.
    number = column(np.arange(nodes, dtype=np.int32), x)[None]
    first = (order * cell).astype(jnp.int32)[:, None]
    parts = [
        jnp.where(number == first + k, part[:, None], 0)
        for k, part in enumerate(shape_functions(local, order))
    ]
    return sum(parts[1:], parts[0])


@cache_by_structure
def _walls(s: Structure) -> np.ndarray | None:
    """Return the matrix that distributes inner nodes of shells to wall nodes; None: no such nodes.

    The shape is `[nflexnode, nflexnode]`.
    """
    table = inner_nodes(s)
    if not len(table.node):
        return None
    spread = np.eye(s.nflexnode)
    spread[table.node, table.node] = 0
    np.add.at(spread, (table.node[:, None], table.wall), table.share)
    return spread
