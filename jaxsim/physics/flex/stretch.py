"""Membrane elasticity of flexes that are not interpolated: forces along their edges.

Edges may have springs and dampers of their own. Triangles and tetrahedra are Saint Venant-Kirchhoff
elements (MuJoCo's XML reference, flex/elasticity), whose energy is a quadratic form of the squared
edge lengths,

    E = 1/4 s' K s,   s_i = l_i^2 - L_i^2        K: compile/flex/elastic/elastic.py

with plastic changes added to L_i^2 (plastic.py), so that an edge has the tension l_i (K s)_i.
Damping in proportion to the stiffness replaces s by the change of l^2 over the last step divided by
its length (Kharevych et al., *Geometric, variational integrators for computer animation*, 2006,
section 5.2). Corresponds to `mj_flexPassiveStretch` in MuJoCo.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static, sum_groups, sum_items
from jaxsim.arrays.linear import group_table
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.flex.edges import edge_vectors, edge_velocity, flex_edges
from jaxsim.physics.flex.point_forces import (
    YIELDS_STRETCHED,
    FlexPointState,
    PointForces,
    StiffnessBlock,
    plastic_values,
    spring_force,
)


class StretchSimplices(NamedTuple):
    """Triangles, or tetrahedra, that resist stretching.

    Attributes:
      flex: flex of each element, `[n]`.
      vert: vertex ids, `[n, dim + 1]`.
      edge: edge ids, `[n, k]`.
      coef: addresses of K in `flex_stiffness`, `[n, k, k]`.
      plastic: address of its k numbers in the plastic state; -1: it does not yield, `[n]`.
    """

    flex: np.ndarray
    vert: np.ndarray
    edge: np.ndarray
    coef: np.ndarray
    plastic: np.ndarray

    def some(self, which: np.ndarray) -> "StretchSimplices":
        """Return a subset."""
        return StretchSimplices(*(a[which] for a in self))


_STIFFNESS_SIZE = {2: 21, 3: 24}  # numbers per element in flex_stiffness, by dimension
# Edges of an element, by its own vertices.
_ELEMENT_EDGES = {2: ((1, 2), (2, 0), (0, 1)), 3: ((0, 1), (1, 2), (2, 0), (2, 3), (0, 3), (1, 3))}


@cache_by_structure
def stretch_simplices(s: Structure) -> list[StretchSimplices]:
    """Return the elements of the model by dimension."""
    out = []
    for dim, stiffness_size in _STIFFNESS_SIZE.items():
        parts = [
            _flex_elements(s, f, dim, stiffness_size)
            for f in np.flatnonzero((s.flex_dim == dim) & (s.flex_interp == 0))
            if s.flex_stiffnessadr[f] >= 0 and not s.flex_rigid[f]
        ]
        if parts:
            out.append(StretchSimplices(*map(np.concatenate, zip(*parts, strict=True))))
    return out


def _flex_elements(
    s: Structure, f: int | np.integer, dim: int, stiffness_size: int
) -> tuple[np.ndarray, ...]:
    # Vertices and edges of each element.
    n, k = s.flex_elemnum[f], len(_ELEMENT_EDGES[dim])
    corner = s.flex_elem[s.flex_elemdataadr[f] :][: (dim + 1) * n].reshape(n, dim + 1)
    vert = corner + s.flex_vertadr[f]
    first = s.flex_elemedgeadr[f]
    edge = s.flex_elemedge[first : first + k * n].reshape(n, k) + s.flex_edgeadr[f]
    # K is symmetric: the upper triangle is stored.
    upper = np.zeros((k, k), int)
    upper[np.triu_indices(k)] = np.arange(k * (k + 1) // 2)
    index = np.maximum(upper, upper.T)
    coef = s.flex_stiffnessadr[f] + stiffness_size * np.arange(n)[:, None, None] + index
    yields = s.flex_plasticmode[f] & YIELDS_STRETCHED
    plastic = s.flex_plasticadr[f] + k * np.arange(n) if yields else np.full(n, -1)
    return np.full(n, f), vert, edge, coef, plastic


def stretch_forces(m: Model, state: FlexPointState) -> list[PointForces]:
    """Compute the forces of edges and elements on the ends of the edges."""
    table = flex_edges(m)
    if not table.moving.any():
        return []
    # Length and velocity of each edge, with its spring and damper.
    length, along = edge_vectors(m, state.xpos)
    speed = edge_velocity(m, state.velocity, along)
    spring, damper = _edge_tension(m, length, speed)
    # Tension of triangles and tetrahedra.
    for group in stretch_simplices(m):
        more = _edge_tensions(m, group, length, speed, state.plastic)
        spring, damper = spring + more[0], damper + more[1]
    # Tension along the edges, equal and opposite at the ends.
    pull, drag = along.scale(spring), along.scale(damper)
    return [spring_force(table.vert, [pull, -pull], [drag, -drag])]


def stretch_stiffness(m: Model, state: FlexPointState) -> list[StiffnessBlock]:
    """Return 2 D' K D of each element, with D half the derivative of s, and tension stiffness.

    Compressed edges are omitted from the tension (geometric) stiffness, where they would be
    negative.
    """
    return [_block(m, group, state) for group in stretch_simplices(m)]


def _block(m: Model, group: StretchSimplices, state: FlexPointState) -> StiffnessBlock:
    n, k = group.edge.shape
    corner = group.vert.shape[1]
    # Incidence of edges and vertices, and edge vectors.
    ends = np.array(_ELEMENT_EDGES[corner - 1])
    sign = np.zeros((k, corner))
    sign[np.arange(k), ends[:, 0]], sign[np.arange(k), ends[:, 1]] = 1, -1
    first, last = (gather_static(state.xpos, group.vert[:, ends[:, i]].ravel()) for i in range(2))
    along = first - last
    worlds = along.x.shape[1:]
    K = _coefficients(m, group)
    # Change of the squared lengths, without the plastic part.
    rest = gather_static(m.flexedge_length0, group.edge.ravel())
    s = (along.dot(along) - rest * rest).reshape(n, k, *worlds)
    if (group.plastic >= 0).any():
        s = s - jnp.stack(plastic_values(state.plastic, group.plastic, k), axis=1)
    # Geometric stiffness of edges under tension.
    tension = jnp.maximum(jnp.sum(K * s[:, None], axis=2), 0)
    # Material stiffness D' K D.
    d = jnp.stack([a.reshape(n, k, *worlds) for a in along.parts], axis=2)
    D = (column(sign[None, :, :, None], d[:, 0, 0]) * d[:, :, None]).reshape(
        n, k, 3 * corner, *worlds
    )
    KD = jnp.sum(K[:, :, :, None] * D[:, None], axis=2)
    drawn = np.einsum("ai,aj,xy->aixjy", sign, sign, np.eye(3)).reshape(k, (3 * corner) ** 2)
    geometric = jnp.sum(column(drawn[None], s[:, 0]) * tension[:, :, None], axis=1)
    matrix = 2 * jnp.sum(D[:, :, :, None] * KD[:, :, None], axis=1)
    return StiffnessBlock(group.flex, group.vert, matrix + geometric.reshape(matrix.shape))


def _coefficients(m: Model, group: StretchSimplices) -> Array:
    """Gather K of each element, `[n, k, k, *W]`."""
    n, k = group.edge.shape
    return gather_static(m.flex_stiffness, group.coef.ravel()).reshape(
        n, k, k, *m.flex_stiffness.shape[1:]
    )


def edge_energy(m: Model, d: Data) -> Array:
    """Compute the energy in edge springs of rods, `[1, *W]` [J]; MuJoCo counts no other flex."""
    table = flex_edges(m)
    rod = table.moving & (m.flex_dim[table.flex] == 1)
    stiffness = gather_static(m.flex_edgestiffness, table.flex)
    x = d.flexedge_length - m.flexedge_length0
    return sum_items(jnp.where(column(rod, x), 0.5 * stiffness * x * x, 0))


def _edge_tension(m: Model, length: Array, speed: Array) -> tuple[Array, Array]:
    """Compute the tension of springs, and of dampers, of edges."""
    table = flex_edges(m)
    live = column(table.moving & ~np.asarray(m.flexedge_rigid, bool), length)
    k, b = (gather_static(a, table.flex) for a in (m.flex_edgestiffness, m.flex_edgedamping))
    spring = k * (length - m.flexedge_length0)
    return jnp.where(live, spring, 0), jnp.where(live, b * speed, 0)


def _edge_tensions(
    m: Model, group: StretchSimplices, length: Array, speed: Array, plastic: Array
) -> tuple[Array, Array]:
    """Compute the force of elements, with their damping, that pulls the ends of edges together."""
    n, k = group.edge.shape
    flat = group.edge.ravel()
    K = _coefficients(m, group)
    h = m.opt.timestep
    stretch = length * length - m.flexedge_length0 * m.flexedge_length0
    # Change of l^2 in the last step.
    change = gather_static(m.flex_damping, flex_edges(m).flex) * speed * (2 * length - h * speed)
    on_edge = group_table(flat, m.nflexedge)

    def tension(a: Array, yielded: Array | float = 0.0) -> Array:
        # Stress of each element, scattered to its edges.
        of_element = gather_static(a, flat).reshape(n, k, *a.shape[1:]) - yielded
        stress = jnp.sum(K * of_element[:, None], axis=2)
        return length * sum_groups(stress.reshape(n * k, *stress.shape[2:]), on_edge)

    if (group.plastic < 0).all():
        return tension(stretch), tension(change)
    yielded = jnp.stack(plastic_values(plastic, group.plastic, k), axis=1)
    return tension(stretch, yielded), tension(change)
