"""Positions of flex vertices in the world, and lengths of edges.

MuJoCo's documentation, Modeling: Deformable objects. A vertex is fixed to a body, or interpolated
from the nodes of its cell, which are fixed to bodies.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.enums import JointType
from jaxsim.math import Quat, Vec, concat, safe_divide, safe_sqrt
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.flex.item import element_vertices
from jaxsim.physics.flex.edges import edge_jacobian, edge_vectors, edge_velocity
from jaxsim.physics.flex.lattice import (
    Vertices,
    inner_nodes,
    interpolated_vertices,
    shape_functions,
)
from jaxsim.physics.unsupported import Refusal, describe_object, make_refusal


def flex(m: Model, d: Data) -> Data:
    """Compute vertices in the world, element bounding boxes, edge lengths and their Jacobian.

    Corresponds to `mj_flex` in MuJoCo.
    """
    if not m.nflex:
        return d
    xpos = spread_to_vertices(
        m, _body_fixed_points(d, m.flex_vertbodyid, m.flex_vert), node_positions(m, d)
    )
    d = d.replace(flexvert_xpos=xpos)
    length, along = edge_vectors(m, xpos)
    return d.replace(
        flexelem_aabb=_boxes(m, xpos),
        flexedge_length=length,
        flexedge_J=edge_jacobian(m, d, along),
    )


def flex_velocity(m: Model, d: Data) -> Data:
    """Compute edge velocities; zero where MuJoCo's Jacobian has no entries."""
    if not m.nflex:
        return d
    # Project vertex velocities on the edges.
    _, along = edge_vectors(m, d.flexvert_xpos)
    speed = edge_velocity(m, vertex_velocity(m, d), along)
    measured = column(m.flexedge_J_rownnz > 0, speed)
    return d.replace(flexedge_velocity=jnp.where(measured, speed, 0))


def node_positions(m: Model, d: Data) -> Vec:
    """Return the positions of the nodes of interpolated flexes, `[nflexnode, *W]`."""
    return _interpolate_inner_nodes(m, _body_fixed_points(d, m.flex_nodebodyid, m.flex_node))


def node_velocity(m: Model, d: Data, xpos: Vec) -> Vec:
    """Return the velocities of the nodes at `xpos`, `[nflexnode, *W]` [m/s]."""
    return _interpolate_inner_nodes(m, _speed(m, d, m.flex_nodebodyid, xpos))


def vertex_velocity(m: Model, d: Data) -> Vec:
    """Return the velocities of the vertices that are fixed to bodies, `[nflexvert, *W]` [m/s]."""
    return _speed(m, d, m.flex_vertbodyid, d.flexvert_xpos)


def spread_to_vertices(m: Model, fixed: Vec, node: Vec) -> Vec:
    """Combine values of fixed vertices `[nflexvert, *W]` with those interpolated from nodes."""
    parts = [fixed, *(_interpolated(m, group, node) for group in interpolated_vertices(m))]
    return fixed if len(parts) == 1 else gather_static(concat(parts), _vertex_order(m))


@cache_by_structure
def _vertex_order(s: Structure) -> np.ndarray:
    """Return the index of each vertex in the concatenated parts of `spread_to_vertices`,
    [nflexvert]."""
    order, first = np.arange(s.nflexvert), s.nflexvert
    for group in interpolated_vertices(s):
        order[group.vert] = first + np.arange(len(group.vert))
        first += len(group.vert)
    return order


def _body_fixed_points(d: Data, body: np.ndarray, place: Vec) -> Vec:
    """Return points fixed to bodies; for those without a body the value is arbitrary."""
    body = np.maximum(body, 0)
    pos, quat = gather_static((d.xpos, d.xquat), body)
    return pos + Quat(*quat.parts).rotate(place)


def _speed(m: Model, d: Data, body: np.ndarray, point: Vec) -> Vec:
    body = np.maximum(body, 0)
    return gather_static(d.cvel, body).at(point - gather_static(d.subtree_com, m.body_rootid[body]))


def _interpolate_inner_nodes(m: Model, node: Vec) -> Vec:
    """Replace nodes inside shells by their interpolation from the walls."""
    # Shells have nodes inside, which no body carries.
    table = inner_nodes(m)
    if not len(table.node):
        return node

    # Weighted sum of the wall nodes, replacing the inside nodes.
    def follow(a: Array) -> Array:
        wall = gather_static(a, table.wall.ravel()).reshape(*table.wall.shape, *a.shape[1:])
        moved = jnp.sum(column(table.share, a) * wall, axis=1)
        order = np.arange(len(a))
        order[table.node] = len(a) + np.arange(len(table.node))
        return gather_static(jnp.concatenate([a, moved]), order)

    return node.map(follow)


def _interpolated(m: Model, group: Vertices, node: Vec) -> Vec:
    """Interpolate vertices from the nodes of their cells."""
    # Local coordinates in the cell, and tensor-product shape functions.
    place = gather_static(m.flex_vert0, group.vert)
    local = [
        jnp.clip(x * column(n, x) - column(c, x), 0, 1)
        for x, n, c in zip(place.parts, 1.0 * group.cells.T, 1.0 * group.cell.T, strict=True)
    ]
    along = [shape_functions(x, group.order) for x in local]
    share = jnp.stack([a * b * c for a in along[0] for b in along[1] for c in along[2]], axis=1)

    def mean(a: Array) -> Array:
        of_cell = gather_static(a, group.node.ravel()).reshape(*group.node.shape, *a.shape[1:])
        return jnp.sum(share * of_cell, axis=1)

    return node.map(mean)


@cache_by_structure
def _sections(s: Structure) -> np.ndarray:
    """Return the address of the first record of rods with twist, [nflex]; -1: none."""
    twisted = np.flatnonzero((s.flex_plasticadr >= 0) & (s.flex_dim == 1))
    place = np.full(s.nflex, -1)
    place[twisted] = s.flex_bendingadr[twisted] + 1
    return place


def _radius(m: Model, of_flex: np.ndarray) -> Array:
    """Return the distance by which elements extend from the line between their vertices.

    For a rod with a box section it is half the diagonal. The half sides are in proportion to the
    square roots of the bending stiffnesses.
    """
    radius = gather_static(m.flex_radius, of_flex)
    record = _sections(m)[of_flex]
    if (record < 0).all():
        return radius
    # Half diagonal of the section from the ratio of its bending stiffnesses.
    weak, more, side = (gather_static(m.flex_bending, np.maximum(record, 0) + k) for k in (4, 5, 9))
    box = column(record >= 0, side) & (side != 0)
    square = side * side * (2 + safe_divide(more, weak))
    return jnp.where(box, safe_sqrt(square), radius)


def _boxes(m: Model, xpos: Vec) -> Array:
    """Compute centers and half sizes of boxes around the elements `[nflexelem, 6, *W]`."""
    corner, of_flex = element_vertices(m)
    ends = [gather_static(xpos, corner[:, k]) for k in range(4)]
    radius = _radius(m, of_flex)
    # Minimum and maximum over the vertices of each element, enlarged by the radius.
    center, half = [], []
    for parts in zip(*(end.parts for end in ends), strict=True):
        low, high = parts[0], parts[0]
        for x in parts[1:]:
            low, high = jnp.minimum(low, x), jnp.maximum(high, x)
        center.append(0.5 * (high + low))
        half.append(0.5 * (high - low) + radius)
    return jnp.stack([*center, *half], axis=1)


def unsupported_flexes(m: Model) -> list[Refusal]:
    """Return the flexes whose motion cannot be simulated."""
    return [
        make_refusal(m, "flex", f, what)
        for f in range(m.nflex)
        if (what := _origin_node_error(m, f))
    ]


def _origin_node_error(m: Model, f: int) -> str:
    """Return an error message if a node at the origin of a jointed body lacks three slides.

    MuJoCo takes the joints of such a body for three slides.
    """
    if m.flex_rigid[f] or not m.flex_interp[f]:
        return ""
    # Nodes on bodies with joints.
    node = m.flex_nodeadr[f] + np.arange(m.flex_nodenum[f])
    body = m.flex_nodebodyid[node]
    place = np.asarray(m.flex_node).reshape(-1, 3)[node]
    odd = (m.body_dofnum[body] > 0) & ~np.isin(body, m.jnt_bodyid[_three_slide_joints(m)])
    odd &= (place == 0).all(axis=1)
    if not odd.any():
        return ""
    where = describe_object(m, "body", int(body[odd][0]))
    return f"a node at the origin of {where} needs that body to have three slide joints; move it"


def _three_slide_joints(m: Model) -> np.ndarray:
    """Return the joints of bodies that have three slides and no other joint."""
    slides = np.bincount(m.jnt_bodyid[m.jnt_type == JointType.SLIDE], minlength=m.nbody)
    good = (slides == 3) & (m.body_dofnum == 3)
    return np.flatnonzero(good[m.jnt_bodyid])
