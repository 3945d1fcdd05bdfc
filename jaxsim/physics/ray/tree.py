"""Bounding volume hierarchies (boxes) over the faces of meshes, for ray traversal.

MuJoCo's order of the faces (`mesh_faceorder`) results from repeated bisection of a mesh; the same
bisections define a binary tree whose leaves are the faces. The topology follows from the number of
faces and is constant; the boxes are computed from the vertices, which may change.

Traversal is stackless: each node stores the node that follows if its box is hit (`into`), and the
one that follows if it is missed (`past`).
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.dynamic import take
from jaxsim.arrays.node import node
from jaxsim.enums import GeomType
from jaxsim.math import Vec, concat
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure

END_OF_TREE = -1  # successor of the last node of a tree
_CORNERS_PER_FACE = 3


@dataclass(frozen=True, eq=False)
class RayPlan:
    """Trees of the meshes that geoms use. Nodes of equal height are consecutive, leaves first.

    Attributes:
      pairs: number of nodes at each height above the leaves; each has two consecutive children
        among the first nodes of the height below.
      root: root node of each mesh, END_OF_TREE for a mesh without a tree, `[nmesh]`.
      into, past: successors where a box is hit and where it is missed, `[nodes]`.
      face: face of each leaf, among those of all meshes, `[leaves]`. The number of leaves is a
        power of two per tree: some repeat the face before.
      corner: vertices of the faces among those of all meshes, `[_CORNERS_PER_FACE, leaves]`.
    """

    pairs: tuple[int, ...]
    root: np.ndarray
    into: np.ndarray
    past: np.ndarray
    face: np.ndarray
    corner: np.ndarray


@node()
class Trees:
    """Trees with bounding boxes.

    Attributes:
      root, into, past: as in Plan, `[nmesh]` and `[nodes]`.
      low, high: corners of the boxes in the frames of the meshes, `[nodes, *W]`.
      face, corner: as in Plan; one array per corner.
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


def mesh_trees(m: Model) -> Trees:
    """Build the trees of the meshes of a model, which is in the layout of the physics."""
    return refit_trees(tree_plan(m.structure), m.mesh_vert)


def refit_trees(plan: RayPlan, vertex: Vec) -> Trees:
    """Build trees with boxes around the faces for given vertices, `[nvert, *W]`."""

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
    """Compute the corners of the boxes of all nodes, bottom up."""
    # Corners of all leaf triangles.
    a, b, c = (vertex.map(lambda x: take(x, k)) for k in corner)  # noqa: B023

    def extremes(choose: Callable) -> Vec:
        here = jax.tree.map(choose, jax.tree.map(choose, a, b), c)
        # Combine pairs of boxes, height by height.
        heights = [here]
        for number in pairs:
            below = here[: 2 * number]
            here = jax.tree.map(choose, below[::2], below[1::2])
            heights.append(here)
        return concat(heights)

    return extremes(jnp.minimum), extremes(jnp.maximum)


@cache_by_structure
def tree_plan(s: Structure) -> RayPlan:
    """Build the topology of the trees of the meshes of a model."""
    # Meshes in use, with faces.
    meshes = np.unique(s.geom_dataid[s.geom_type == GeomType.MESH])
    meshes = meshes[s.mesh_facenum[meshes] > 0]
    orders = []
    for mesh in meshes:
        own = slice(s.mesh_faceadr[mesh], s.mesh_faceadr[mesh] + s.mesh_facenum[mesh])
        orders.append(s.mesh_faceadr[mesh] + np.asarray(s.mesh_faceorder)[own])
    # Vertex numbers among those of all meshes.
    owner = np.repeat(np.arange(s.nmesh), s.mesh_facenum)
    corner = np.asarray(s.mesh_face).reshape(-1, _CORNERS_PER_FACE) + s.mesh_vertadr[owner][:, None]
    return build_trees(s.nmesh, meshes, orders, corner)


def build_trees(
    number: int, meshes: np.ndarray, orders: list[np.ndarray], corner: np.ndarray
) -> RayPlan:
    """Build trees by repeated bisection of face lists.

    Args:
      number: number of all meshes.
      meshes: meshes that have a tree.
      orders: faces of each of these, neighbors consecutive.
      corner: vertices of all faces, `[nface, _CORNERS_PER_FACE]`.
    """
    count = np.array([len(order) for order in orders], int)
    # Height of each binary tree: leaves are a power of two.
    height = np.ceil(np.log2(count)).astype(int)
    high = np.argsort(-height, kind="stable")  # tallest trees first
    meshes, count, height = meshes[high], count[high], height[high]
    orders = [orders[k] for k in high]

    # Number the nodes by height, leaves first.
    first: list[np.ndarray] = []  # first node of each mesh at each height
    pairs, nodes = [], 0
    for h in range(int(height.max(initial=0)) + 1):
        here = np.where(height >= h, 1 << np.maximum(height - h, 0), 0)
        first.append(nodes + np.cumsum(here) - here)
        pairs.append(int(here.sum()))
        nodes += pairs[-1]

    # Successors: a node's children, then the sibling, then the parent's successor.
    into, past = np.full(nodes, END_OF_TREE), np.full(nodes, END_OF_TREE)
    faces = []
    for k in range(len(meshes)):
        for h in reversed(range(height[k])):
            above = first[h + 1][k] + np.arange(1 << (height[k] - h - 1))
            left = first[h][k] + 2 * np.arange(len(above))
            into[above], past[left], past[left + 1] = left, left + 1, past[above]
        # A leaf has the same successor either way.
        leaf = first[0][k] + np.arange(1 << height[k])
        into[leaf] = past[leaf]
        faces.append(orders[k][_places(int(count[k]), int(height[k]))])
    face = np.concatenate([*faces, np.zeros(0, int)])
    root = np.full(number, END_OF_TREE)
    root[meshes] = [first[h][k] for k, h in enumerate(height)]
    return RayPlan(tuple(pairs[1:]), root, into, past, face, corner[face].T)


def _places(count: int, height: int) -> np.ndarray:
    """Return the faces of the leaves, as indices in the order of a mesh, `[2^height]`.

    The first half of an odd number has one more, as in MuJoCo's order.
    """
    # Halve the list as often as the tree is high.
    number = np.array([count])
    for _ in range(height):
        number = np.stack([number - number // 2, number // 2], axis=1).ravel()
    return np.cumsum(number) - 1
