"""Corotational elasticity of interpolated flexes: forces of cells and walls on their nodes.

An element rotates with its material at its midpoint. In the rest axes, with R the rotation of the
element, it is a linear spring and damper,

    f = R K (R' x - X - P X),   damper: R K R' v

where -K is stored in `flex_stiffness` (compile/flex/elastic) and P is the plastic strain
(plastic.py). R is the polar rotation of the deformation gradient dx/dX at the midpoint; for a wall
the normal is the cross product of its tangents (MuJoCo's documentation, Modeling: Deformable
objects). As in MuJoCo the force omits the derivative of R. Corresponds to `mj_flexPassiveInterp` in
MuJoCo.
"""

from functools import reduce
from operator import add
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.math import Quat, Rot, Vec, concat
from jaxsim.math.polar import nearest_rotation
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.model.switch.clashes import STRAIN_EQUALITY
from jaxsim.physics.flex.lattice import LatticeElements, lattice_elements, midpoint_derivatives
from jaxsim.physics.flex.point_forces import (
    YIELDS_STRETCHED,
    FlexPointState,
    PointForces,
    StiffnessBlock,
    element_forces,
    gather_by_flex,
    gather_element_points,
    plastic_values,
)


class Springs(NamedTuple):
    """Elements that resist stretching.

    Attributes:
      element: the elements.
      element_index: index among all elements, `[n]`.
      plastic: address in the plastic state; -1: the element does not yield, `[n]`.
    """

    element: LatticeElements
    element_index: np.ndarray
    plastic: np.ndarray

    def some(self, which: np.ndarray) -> "Springs":
        """Return a subset."""
        return Springs(self.element.some(which), self.element_index[which], self.plastic[which])


@cache_by_structure
def cell_springs(s: Structure) -> list[Springs]:
    """Return the elements of the model that resist stretching."""
    live = (s.flex_stiffnessadr >= 0) & (s.flex_edgeequality != STRAIN_EQUALITY) & (s.flex_dim > 1)
    out, first = [], 0
    for group in lattice_elements(s):
        # Elements with a stiffness that is not held by a strain constraint.
        (which,) = np.nonzero(live[group.flex])
        if len(which):
            some = group.some(which)
            numbers = 6 if group.solid else 3
            adr = s.flex_plasticadr[some.flex] + numbers * some.number
            adr = np.where(s.flex_plasticmode[some.flex] & YIELDS_STRETCHED, adr, -1)
            out.append(Springs(some, first + which, adr))
        first += len(group.flex)
    return out


def cell_forces(m: Model, state: FlexPointState) -> list[PointForces]:
    """Compute spring and damper forces of cells and walls on their nodes."""
    return [_forces(m, group, state) for group in cell_springs(m)]


def element_rotations(m: Model, groups: list[LatticeElements], xpos: Vec) -> Quat | None:
    """Return the rotation of each element's midpoint, from the rest axes to the world.

    Args:
      m: model.
      groups: elements; the result is in the order of the groups.
      xpos: points in the world, vertices and nodes `[npoint, *W]`.
    """
    if not groups:
        return None
    # Polar decomposition of the deformation gradients.
    columns = [
        _gradient(m, group, gather_element_points(xpos, group.node + m.nflexvert))
        for group in groups
    ]
    return nearest_rotation(Rot.from_cols(*(concat(c) for c in zip(*columns, strict=True))))


def node_displacements(m: Model, group: LatticeElements, xpos: Vec, rotation: Quat) -> Vec:
    """Compute node displacements R' x - X in the rest axes, `[n, k, *W]`; rotation `[n, 1, *W]`."""
    x = gather_element_points(xpos, group.node + m.nflexvert)
    return rotation.conj.rotate(x) - gather_element_points(m.flex_node0, group.node)


def element_strains(
    m: Model, group: LatticeElements, xpos: Vec, rotation: Quat
) -> list[list[Array]]:
    """Compute the strain at each midpoint, sym(R' dx/dX) - 1; for walls within their plane."""
    # Tangents dx/dX at the midpoint, in the rest axes.
    tangent = _tangents(m, group, gather_element_points(xpos, group.node + m.nflexvert))
    tangent = [rotation.conj.rotate(t) for t in tangent]
    axes = _axes(group)
    F = [[_axis_component(t, axis) for t in tangent] for axis in axes]
    span = range(len(axes))
    # Symmetrized gradient minus the identity.
    return [[0.5 * (F[i][j] + F[j][i]) - float(i == j) for j in span] for i in span]


def strain_matrix(numbers: list[Array]) -> list[list[Array]]:
    """Return a strain as a matrix, from its diagonal followed by twice the upper entries."""
    if len(numbers) == 3:
        x, y, xy = numbers
        return [[x, 0.5 * xy], [0.5 * xy, y]]
    x, y, z, xy, xz, yz = numbers
    return [[x, 0.5 * xy, 0.5 * xz], [0.5 * xy, y, 0.5 * yz], [0.5 * xz, 0.5 * yz, z]]


def _strain_displacements(group: LatticeElements, P: list[list[Array]], x: Vec) -> Vec:
    """Compute P X for the nodes of each element, `[n, k, *W]`, from its strain `[n, *W]`."""
    # Components along the element's axes, multiplied by P, then back in the rest frame.
    axes = _axes(group)
    x_along = [_axis_component(x, axis) for axis in axes]
    moved = []
    for row in P:
        terms = [p[:, None] * a for p, a in zip(row, x_along, strict=True)]
        moved.append(reduce(add, terms))
    parts = []
    for c in range(3):
        turned = [a * _is_axis(axis, c, a) for axis, a in zip(axes, moved, strict=True)]
        parts.append(reduce(add, turned))
    return Vec(*parts)


def _axes(group: LatticeElements) -> list[np.ndarray]:
    """Return the rest axes along which elements stretch, `[n]` each."""
    if group.solid:
        return [np.full(len(group.flex), c) for c in range(3)]
    return [(group.axis + 1) % 3, (group.axis + 2) % 3]


def _axis_component(v: Vec, axis: np.ndarray) -> Array:
    """Return the component of each vector along an axis of its own."""
    x, y, z = (_is_axis(axis, c, a) * a for c, a in enumerate(v.parts))
    return x + y + z


def _tangents(m: Model, group: LatticeElements, x: Vec) -> list[Vec]:
    """Compute dx/dX at the midpoint along each axis; x are the nodes `[n, k, *W]`."""
    # Derivatives by local coordinates, scaled to rest coordinates.
    tangent = [combine_nodes(row, x) for row in midpoint_derivatives(group.order, group.solid)]
    rest = gather_static(m.flex_node0, group.node[:, -1]) - gather_static(
        m.flex_node0, group.node[:, 0]
    )
    axes = _axes(group)
    return [t.scale(1 / _axis_component(rest, axis)) for t, axis in zip(tangent, axes, strict=True)]


def _gradient(m: Model, group: LatticeElements, x: Vec) -> list[Vec]:
    """Compute the columns of dx/dX at the midpoint; x are the nodes `[n, k, *W]`."""
    tangent = _tangents(m, group, x)
    if group.solid:
        return tangent
    # Walls: complete the tangents by their cross product, then sort the columns by rest axis.
    first, second = tangent
    slow, fast = _axes(group)
    parts = ((first, slow), (second, fast), (first.cross(second), group.axis))
    columns = []
    for c in range(3):
        x, y, z = (v.scale(_is_axis(axis, c, v.x)) for v, axis in parts)
        columns.append(x + y + z)
    return columns


def _is_axis(axis: np.ndarray, c: int, like: Array) -> np.ndarray:
    """Return 1 where an axis has the number `c`, else 0."""
    return column(1.0 * (axis == c), like)


def combine_nodes(weights: np.ndarray, x: Vec) -> Vec:
    """Compute sum_k weights[n, k] x[n, k], or weights[k] for all: `[n, k, *W]` -> `[n, *W]`."""
    rows = np.broadcast_to(weights, x.shape[:2])
    return x.map(lambda a: jnp.sum(column(rows, a[0]) * a, axis=1))


def stiffness(m: Model, group: LatticeElements) -> Array:
    """Gather each element's matrix from `flex_stiffness`, `[n, 3 k, 3 k, *W]`."""
    # Matrices are stored row by row, element by element.
    size = 3 * group.node.shape[1]
    first = m.flex_stiffnessadr[group.flex] + group.number * size * size
    place = first[:, None] + np.arange(size * size)
    numbers = gather_static(m.flex_stiffness, place.ravel())
    return numbers.reshape(len(first), size, size, *numbers.shape[1:])


def _forces(m: Model, group: Springs, state: FlexPointState) -> PointForces:
    element, node = group.element, group.element.node + m.nflexvert
    # Displacement in the rest axes, less the plastic strain.
    rotation = gather_rotations(state.rotation, group.element_index)
    shift = node_displacements(m, element, state.xpos, rotation)
    if (group.plastic >= 0).any():
        numbers = plastic_values(state.plastic, group.plastic, 6 if element.solid else 3)
        rest = gather_element_points(m.flex_node0, element.node)
        shift = shift - _strain_displacements(element, strain_matrix(numbers), rest)
    # Linear spring and damper, rotated to the world.
    speed = rotation.conj.rotate(gather_element_points(state.velocity, node))
    K = stiffness(m, element)
    damping = gather_by_flex(m.flex_damping, element.flex, state.xpos.x)[:, None]
    # Spring and damper forces in the world.
    spring, damper = (rotation.rotate(_stiffness_times(K, x)) for x in (shift, speed))
    return element_forces(node, spring, damper.scale(damping))


def cell_stiffness(m: Model, state: FlexPointState) -> list[StiffnessBlock]:
    """Return R K R' of each element; the derivative of R is omitted."""
    return [_block(m, group, state) for group in cell_springs(m)]


def _block(m: Model, group: Springs, state: FlexPointState) -> StiffnessBlock:
    assert state.rotation is not None  # there are elements
    element = group.element
    n, k = element.node.shape
    K = -stiffness(m, element)
    worlds = K.shape[3:]
    rotation = gather_static(state.rotation, group.element_index).map(
        lambda a: a[:, None, None, None]
    )
    for _ in range(2):  # rotate both sides; the matrix is symmetric
        rows = K.reshape(n, k, 3, k, 3, *worlds)
        turned = rotation.rotate(Vec(*(rows[:, :, i] for i in range(3))))
        whole = jnp.stack(turned.parts, axis=2)
        worlds = whole.shape[5:]
        K = whole.reshape(n, 3 * k, 3 * k, *worlds).swapaxes(1, 2)
    return StiffnessBlock(element.flex, element.node + m.nflexvert, K)


def gather_rotations(rotation: Quat | None, element_index: np.ndarray) -> Quat:
    """Gather rotations of elements as `[n, 1, *W]`, to broadcast over their nodes."""
    assert rotation is not None  # there are elements
    return gather_static(rotation, element_index).map(lambda a: a[:, None])


def _stiffness_times(K: Array, x: Vec) -> Vec:
    """Compute K x for each element, x `[n, k, *W]`."""
    # Batched matrix-vector products over the nodes' coordinates.
    n, k = x.shape[:2]
    whole = jnp.stack(x.parts, axis=2).reshape(n, 3 * k, *x.shape[2:])
    out = jnp.sum(K * whole[:, None], axis=2).reshape(n, k, 3, *x.shape[2:])
    return Vec(*(out[:, :, i] for i in range(3)))
