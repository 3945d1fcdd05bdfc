"""Trees of boxes around the faces of meshes, for the walk of rays through them.

MuJoCo's order of the faces (`mesh_faceorder`) comes of halving a mesh again and again, so that the
same halves are a binary tree, whose leaves are the faces. What belongs to what follows from the
number of faces alone and is constant; the boxes are made of the vertices, which may change.

A ray goes through a tree without a stack: each node knows the node that follows where the ray meets
its box, and the one that follows where it does not.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import GeomType
from jaxsim.math import Vec, concat
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.node import node

END = -1  # after the last node of a tree
CORNERS = 3


@dataclass(frozen=True, eq=False)
class Plan:
    """The trees of the meshes that geoms have. Nodes of equal height stand together, leaves first.

    Attributes:
      pairs: of each height above, how many nodes it has: each holds two that follow each other
        among the first of the height below.
      root: first node of the tree of each mesh, END for a mesh that has none, `[nmesh]`.
      into, past: nodes that follow where a box is met and where it is not, `[nodes]`.
      face: of each leaf, among those of all meshes, `[leaves]`. There are as many leaves as a power
        of two: some have the face of the one before.
      corner: vertices of the faces among those of all meshes, `[CORNERS, leaves]`.
    """

    pairs: tuple[int, ...]
    root: np.ndarray
    into: np.ndarray
    past: np.ndarray
    face: np.ndarray
    corner: np.ndarray


@node()
class Trees:
    """The same with boxes.

    Attributes:
      root, into, past: as in Plan, `[nmesh]` and `[nodes]`.
      low, high: corners of the boxes in the frames of the meshes, `[nodes, *W]`.
      face, corner: as in Plan; of corners one array for each.
      vertex: positions of all vertices, `[nmeshvert, *W]`.
    """

    root: jax.Array
    into: jax.Array
    past: jax.Array
    low: Vec
    high: Vec
    face: jax.Array
    corner: tuple[jax.Array, ...]
    vertex: Vec


def trees(m: Model) -> Trees:
    """The trees of the meshes of a model, which is in the form of the physics."""
    return grown(tree_plan(m.structure), m.mesh_vert)


def grown(plan: Plan, vertex: Vec) -> Trees:
    """Trees with boxes around the faces as they are with some vertices, `[nvert, *W]`."""

    def table(x: np.ndarray) -> jax.Array:
        return jnp.asarray(x, jnp.int32)

    corner = tuple(map(table, plan.corner))
    low, high = _boxes(vertex, corner, plan.pairs)
    return Trees(
        root=table(plan.root),
        into=table(plan.into),
        past=table(plan.past),
        low=low,
        high=high,
        face=table(plan.face),
        corner=corner,
        vertex=vertex,
    )


def _boxes(vertex: Vec, corner: tuple[Array, ...], pairs: tuple[int, ...]) -> tuple[Vec, Vec]:
    """Corners of the boxes of all nodes."""
    a, b, c = (vertex.map(lambda x: x.at[k].get(mode="promise_in_bounds")) for k in corner)  # noqa: B023

    def extremes(choose: Callable) -> Vec:
        here = jax.tree.map(choose, jax.tree.map(choose, a, b), c)
        heights = [here]
        for number in pairs:
            below = here[: 2 * number]
            here = jax.tree.map(choose, below[::2], below[1::2])
            heights.append(here)
        return concat(heights)

    return extremes(jnp.minimum), extremes(jnp.maximum)


@derived
def tree_plan(s: Structure) -> Plan:
    """The trees of the meshes of a model."""
    meshes = np.unique(s.geom_dataid[s.geom_type == GeomType.MESH])
    meshes = meshes[s.mesh_facenum[meshes] > 0]
    orders = []
    for mesh in meshes:
        own = slice(s.mesh_faceadr[mesh], s.mesh_faceadr[mesh] + s.mesh_facenum[mesh])
        orders.append(s.mesh_faceadr[mesh] + np.asarray(s.mesh_faceorder)[own])
    owner = np.repeat(np.arange(s.nmesh), s.mesh_facenum)
    corner = np.asarray(s.mesh_face).reshape(-1, CORNERS) + s.mesh_vertadr[owner][:, None]
    return forest(s.nmesh, meshes, orders, corner)


def forest(number: int, meshes: np.ndarray, orders: list[np.ndarray], corner: np.ndarray) -> Plan:
    """Trees that halve lists of faces again and again.

    Args:
      number: of all meshes.
      meshes: those that have a tree.
      orders: faces of each of these, neighbours beside each other.
      corner: vertices of all faces, `[nface, CORNERS]`.
    """
    count = np.array([len(order) for order in orders], int)
    height = np.ceil(np.log2(count)).astype(int)
    high = np.argsort(-height, kind="stable")  # those that go on above stand first
    meshes, count, height = meshes[high], count[high], height[high]
    orders = [orders[k] for k in high]

    first: list[np.ndarray] = []  # node of each mesh at each height
    pairs, nodes = [], 0
    for h in range(int(height.max(initial=0)) + 1):
        here = np.where(height >= h, 1 << np.maximum(height - h, 0), 0)
        first.append(nodes + np.cumsum(here) - here)
        pairs.append(int(here.sum()))
        nodes += pairs[-1]

    into, past = np.full(nodes, END), np.full(nodes, END)
    faces = []
    for k in range(len(meshes)):
        for h in reversed(range(height[k])):
            above = first[h + 1][k] + np.arange(1 << (height[k] - h - 1))
            left = first[h][k] + 2 * np.arange(len(above))
            into[above], past[left], past[left + 1] = left, left + 1, past[above]
        leaf = first[0][k] + np.arange(1 << height[k])
        into[leaf] = past[leaf]
        faces.append(orders[k][_places(int(count[k]), int(height[k]))])
    face = np.concatenate([*faces, np.zeros(0, int)])
    root = np.full(number, END)
    root[meshes] = [first[h][k] for k, h in enumerate(height)]
    return Plan(tuple(pairs[1:]), root, into, past, face, corner[face].T)


def _places(count: int, height: int) -> np.ndarray:
    """Places in the order of a mesh of the faces that leaves have, `[2^height]`.

    Of an odd number the first half has one more, as in the order.
    """
    number = np.array([count])
    for _ in range(height):
        number = np.stack([number - number // 2, number // 2], axis=1).ravel()
    return np.cumsum(number) - 1
