"""Plasticity of flexes: update of the plastic state by a return mapping.

MuJoCo's documentation, XML reference: flex/elasticity/yield. Elements and cells flow by von Mises'
criterion (return_mapping.py), hinges by a bound on the fold. `d.plastic` stores the change of the
rest shape:

    triangles, tetrahedra   added to the squared rest length of each edge
    cells, walls            a strain in the rest axes: diagonal, then twice the other entries
    hinges of shells        added to the coefficient c of the quadratic form (bending.py)

As in MuJoCo the strain is evaluated at the configuration at the end of the step to first order, x +
h J qvel.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.math import Quat, Vec, concat, safe_atan2, safe_divide, safe_sqrt
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.body.tree_sums import moving_sums
from jaxsim.physics.flex.bending import ACROSS, CURVED, Hinges, shell_hinges
from jaxsim.physics.flex.cell import (
    Springs,
    cell_springs,
    element_rotations,
    element_strains,
    strain_matrix,
)
from jaxsim.physics.flex.flex import node_positions, node_velocity, vertex_velocity
from jaxsim.physics.flex.lattice import lattice_elements
from jaxsim.physics.flex.point_forces import element_points, plastic_values
from jaxsim.physics.flex.return_mapping import (
    Matrix,
    isochoric_shift,
    matrix_inverse,
    matrix_product,
    plastic_flow,
    trace,
)
from jaxsim.physics.flex.stretch import StretchSimplices, stretch_simplices

_THICKNESS_COLUMN = 6  # offset in flex_stiffness of the thickness of a shell that yields in bending
_MAX_FOLD_ANGLE = 1.3  # largest rest angle of a hinge [rad]
_MAX_PLASTIC_STRAIN = 0.35  # largest norm of the plastic strain of a cell or wall

# Coefficient c of return_mapping.py.
THIN_ELEMENT, THIN_WALL = 1.0, 0.25
# Edge of an element between its vertices i + 1 and j + 1; on the diagonal from the first to i + 1.
_EDGE_VERTICES = {3: ((2, 0), (0, 1)), 6: ((0, 1, 5), (1, 2, 3), (5, 3, 4))}

_Strains = tuple[np.ndarray, list[Array]]


def yielded_elements(m: Model, d: Data, qvel: Array) -> list[_Strains]:
    """Return addresses in the plastic state, and the values there after a step along `qvel`."""
    # Rotations are needed for cells only.
    table = _yield_groups(m)
    if not table:
        return []
    xpos = _end_positions(m, d, qvel)
    turn = element_rotations(m, lattice_elements(m), xpos)
    out = []
    for group in table:
        if isinstance(group, StretchSimplices):
            out.append(_elements(m, d, group, xpos))
        elif isinstance(group, Springs):
            out.append(_cells(m, d, group, xpos, turn))
        else:
            out.append(_hinges(m, d, group, xpos))
    return out


@cache_by_structure
def _yield_groups(s: Structure) -> list:
    """Return the groups of elements, cells and hinges that can yield."""
    groups = [*stretch_simplices(s), *cell_springs(s), shell_hinges(s)]
    some = [group.some(np.flatnonzero(group.plastic >= 0)) for group in groups]
    return [group for group in some if len(group.plastic)]


def _end_positions(m: Model, d: Data, qvel: Array) -> Vec:
    """Return vertices and nodes at the end of a step, `[npoint, *W]`."""
    # Velocities at the end of the step from the new qvel.
    h = m.opt.timestep
    d = d.replace(cvel=moving_sums(m, d.cdof.scale(qvel)))
    node = node_positions(m, d)
    xpos = concat([d.flexvert_xpos, node])
    return xpos + concat([vertex_velocity(m, d), node_velocity(m, d, node)]).scale(h)


def _yield_threshold(m: Model, flex: np.ndarray, kind: int) -> Array:
    return jnp.maximum(gather_static(m.flex_yield[:, kind], flex), 0)


def _elements(m: Model, d: Data, group: StretchSimplices, xpos: Vec) -> _Strains:
    """Update triangles and tetrahedra, whose strain is that of their squared edge lengths.

    In the basis of the edges from the first vertex, the metric is given by the squared rest
    lengths, and the Green strain by half their change. Tetrahedra flow at constant volume.
    """
    k = group.edge.shape[1]
    # Current and rest lengths of each element's edges.
    vert = np.reshape(m.flex_edge, (-1, 2)) + m.flex_vertadr[_flex_of_edges(m)][:, None]
    # Change of the squared edge lengths relative to the plastic rest lengths.
    rest = [_sum_of_squares(gather_static(m.flexedge_length0, group.edge[:, i])) for i in range(k)]
    ends = [element_points(xpos, vert[group.edge[:, i]]) for i in range(k)]
    old = plastic_values(d.plastic, group.plastic, k)
    s = [(b - a).dot(b - a) - square - p for (a, b), square, p in zip(ends, rest, old, strict=True)]
    # Strain tensor with one index raised by the inverse metric.
    back = matrix_inverse(_metric(rest))
    strain = [[0.5 * a for a in row] for row in matrix_product(back, _metric(s))]
    # Radial return, then rescaling to constant volume for tetrahedra.
    share, mean = plastic_flow(strain, _yield_threshold(m, group.flex, 0), THIN_ELEMENT)
    new = [p + share * (a - 2 * mean * square) for p, a, square in zip(old, s, rest, strict=True)]
    if k == 6:
        change = matrix_product(back, _metric(new))
        stretched = [[a + float(i == j) for j, a in enumerate(row)] for i, row in enumerate(change)]
        x = jnp.where(share > 0, isochoric_shift(stretched), 0)
        new = [a + x * square for a, square in zip(new, rest, strict=True)]
    return np.concatenate([group.plastic + i for i in range(k)]), new


def _metric(x: list[Array]) -> Matrix:
    """Compute dot products of the edges from the first vertex, from all squared edge lengths."""
    # Law of cosines from squared lengths.
    between = _EDGE_VERTICES[len(x)]
    own = [x[between[i][i]] for i in range(len(between))]
    span = range(len(own))
    return [
        [own[i] if i == j else 0.5 * (own[i] + own[j] - x[between[i][j]]) for j in span]
        for i in span
    ]


def _sum_of_squares(a: Array) -> Array:
    return a * a


@cache_by_structure
def _flex_of_edges(s: Structure) -> np.ndarray:
    return np.repeat(np.arange(s.nflex), s.flex_edgenum)


def _cells(m: Model, d: Data, group: Springs, xpos: Vec, turn: Quat | None) -> _Strains:
    """Update cells and walls, by the strain at their midpoint."""
    count = 6 if group.element.solid else 3
    # Elastic strain: total minus plastic.
    old = plastic_values(d.plastic, group.plastic, count)
    assert turn is not None  # there are elements
    now = element_strains(m, group.element, xpos, gather_static(turn, group.element_index))
    P = strain_matrix(old)
    span = range(len(P))
    # Elastic strain, radial return, then a bound on the norm of the plastic strain.
    E = [[now[i][j] - P[i][j] for j in span] for i in span]
    share, mean = plastic_flow(E, _yield_threshold(m, group.element.flex, 0), THIN_WALL)
    P = [[P[i][j] + share * (E[i][j] - mean * float(i == j)) for j in span] for i in span]
    size = safe_sqrt(trace(matrix_product(P, P)))
    scale = jnp.where(
        (share > 0) & (size > _MAX_PLASTIC_STRAIN), safe_divide(_MAX_PLASTIC_STRAIN, size), 1
    )
    # Back to engineering strain.
    above = [(i, j) for i in span for j in span if i < j]
    new = [P[i][i] * scale for i in span] + [2 * P[i][j] * scale for i, j in above]
    return np.concatenate([group.plastic + i for i in range(count)]), new


def _hinges(m: Model, d: Data, group: Hinges, xpos: Vec) -> _Strains:
    """Update hinges of shells, by the fold angle a and its rest value a0.

        tan(a) = (L / l) tan(fold),   tan(a0) = -(c + b) L / B,   |a - a0| <= 2 y / t (A1 + A2) / L

    l is the length of the edge and L its rest length, A are the areas of the triangles, t is the
    thickness, B the coefficient between the vertices across the edge, c that of the volume, and b
    the plastic state.
    """
    # Current fold angle from the normals of both triangles.
    x = element_points(xpos, group.vert)
    edge = x[1] - x[0]
    first, second = edge.cross(x[2] - x[0]), (x[3] - x[0]).cross(edge)
    rest = gather_static(m.flexedge_length0, group.edge)
    fold = safe_atan2(second.cross(first).dot(edge) * rest, first.dot(second) * edge.dot(edge))
    # Rest angle from the stored coefficients.
    (old,) = plastic_values(d.plastic, group.plastic, 1)
    B, c = (gather_static(m.flex_bending, group.first + k) for k in (ACROSS, CURVED))
    slope = -safe_divide(B, rest)
    at_rest = jnp.arctan(safe_divide(c + old, slope))
    # Return the angle to the elastic range, and store it as a change of c.
    area = 0.5 * (first.norm() + second.norm())
    thickness = gather_static(m.flex_stiffness, m.flex_stiffnessadr[group.flex] + _THICKNESS_COLUMN)
    y = _yield_threshold(m, group.flex, 1)
    most = safe_divide(2 * y * area, thickness * rest)
    x = fold - at_rest
    new = jnp.clip(jnp.where(x > 0, fold - most, fold + most), -_MAX_FOLD_ANGLE, _MAX_FOLD_ANGLE)
    return group.plastic, [jnp.where(jnp.abs(x) > most, slope * jnp.tan(new) - c, old)]
