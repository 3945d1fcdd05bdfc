"""Stretching of interpolated flexes: forces of cells, or walls, on their nodes.

An element turns with its material at its middle. In the axes of the rest pose, turned by R, it is a
linear spring,

    f = R K (R' x - X),   damper: R K R' v

with K minus the stiffness, in `flex_stiffness` (compile/flex/elastic). R is the rotation of the
deformation gradient dx/dX at the middle, where a wall's normal is the cross product of its tangents
(MuJoCo's documentation, Modeling: Deformable objects; "corotational" in any text on finite
elements).
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.math import Quat, Rot, Vec
from jaxsim.math.polar import nearest_rotation
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import column, take
from jaxsim.physics.flex.lattice import Elements, cells, joined, middle, walls
from jaxsim.physics.flex.push import Place, Push, by_flex, of_elements, on_elements

STRAIN = 3  # flex_edgeequality of a flex whose strain a constraint keeps


@derived
def springs(s: Structure) -> list[Elements]:
    """The elements of the model that resist stretching."""
    live = (s.flex_interp != 0) & (s.flex_stiffnessadr >= 0) & (s.flex_edgeequality != STRAIN)
    live &= ~np.asarray(s.flex_rigid, bool) & (s.flex_dim > 1)
    return joined([e for f in np.flatnonzero(live) for e in elements(s, f)])


def elements(s: Structure, f: int | np.integer) -> list[Elements]:
    """Cells of a solid, walls of a shell."""
    return walls(s, f) if s.flex_interp[f] < 0 else cells(s, f)


def cell_forces(m: Model, place: Place) -> list[Push]:
    """Forces of cells and walls on their nodes, and of their damping."""
    return [_forces(m, group, place) for group in springs(m)]


class Turned(NamedTuple):
    """Elements in the axes of their rest pose.

    Attributes:
      quat: from these axes to the world, `[n, 1, *W]`.
      shift: displacement of each node `[n, k, *W]`.
    """

    quat: Quat
    shift: Vec


def turned(m: Model, group: Elements, xpos: Vec) -> Turned:
    """Elements of points `[npoint, *W]`, vertices and nodes, in the axes of their rest pose."""
    x = of_elements(xpos, group.node + m.nflexvert)
    quat = rotation(m, group, x).map(lambda a: a[:, None])
    return Turned(quat, quat.conj.rotate(x) - of_elements(m.flex_node0, group.node))


def rotation(m: Model, group: Elements, x: Vec) -> Quat:
    """How far the middle of each element has turned, `[n, *W]`; x: its nodes `[n, k, *W]`."""
    solid = group.axis < 0
    tangent = [combined(row, x) for row in middle(group.order, solid)]
    rest = take(m.flex_node0, group.node[:, -1]) - take(m.flex_node0, group.node[:, 0])
    size = rest.parts
    if solid:
        return nearest_rotation(Rot.from_cols(*_scaled(tangent, size)))
    slow, fast = (group.axis + 1) % 3, (group.axis + 2) % 3
    tangent = _scaled(tangent, (size[slow], size[fast]))
    columns = {slow: tangent[0], fast: tangent[1], group.axis: tangent[0].cross(tangent[1])}
    return nearest_rotation(Rot.from_cols(*(columns[k] for k in range(3))))


def combined(weights: np.ndarray, x: Vec) -> Vec:
    """sum_k weights[n, k] x[n, k], or weights[k] for all: `[n, k, *W]` -> `[n, *W]`."""
    rows = np.broadcast_to(weights, x.shape[:2])
    return x.map(lambda a: jnp.sum(column(rows, a[0]) * a, axis=1))


def stiffness(m: Model, group: Elements) -> Array:
    """The numbers of each element in `flex_stiffness`, `[n, 3 k, 3 k, *W]`."""
    size = 3 * group.node.shape[1]
    first = m.flex_stiffnessadr[group.flex] + group.number * size * size
    place = first[:, None] + np.arange(size * size)
    numbers = take(m.flex_stiffness, place.ravel())
    return numbers.reshape(len(first), size, size, *numbers.shape[1:])


def _scaled(vectors: list[Vec], sizes: tuple) -> list[Vec]:
    return [v.scale(1 / s) for v, s in zip(vectors, sizes, strict=True)]


def _forces(m: Model, group: Elements, place: Place) -> Push:
    node = group.node + m.nflexvert
    now = turned(m, group, place.xpos)
    speed = now.quat.conj.rotate(of_elements(place.velocity, node))
    K = stiffness(m, group)
    damping = by_flex(m.flex_damping, group.flex, place.xpos.x)[:, None]
    spring, damper = (now.quat.rotate(_times(K, x)) for x in (now.shift, speed))
    return on_elements(node, spring, damper.scale(damping))


def _times(K: Array, x: Vec) -> Vec:
    """K x for each element, x `[n, k, *W]`."""
    n, k = x.shape[:2]
    whole = jnp.stack(x.parts, axis=2).reshape(n, 3 * k, *x.shape[2:])
    out = jnp.sum(K * whole[:, None], axis=2).reshape(n, k, 3, *x.shape[2:])
    return Vec(*(out[:, :, i] for i in range(3)))
