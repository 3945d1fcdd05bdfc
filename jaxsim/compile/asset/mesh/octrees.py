"""The fields `oct_*`: octrees of signed distances around meshes whose geoms collide by them.

A mesh made by a plugin has none, because the plugin computes the distance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxsim.assets.mesh.distance import SurfaceDistance
from jaxsim.assets.octree.build import Octree, octree
from jaxsim.compile.asset.mesh.mesh import Mesh
from jaxsim.compile.asset.mesh.sdf import is_made_by_plugin
from jaxsim.compile.context import Compilation
from jaxsim.compile.step import declare_pass

NO_TREE = -1  # address of a mesh without octree


@declare_pass(needs="assets bodies meshes", gives="mesh oct")
def octrees(c: Compilation) -> None:
    """Add all fields of octrees."""
    geoms = [geom for body in c.bodies for geom in body.geoms if geom.get("type") == "sdf"]
    named = {geom.get("mesh") for geom in geoms}
    trees = [
        _tree(mesh) if element.asset_name in named and not is_made_by_plugin(element) else None
        for element, mesh in zip(c.elements["mesh"], c.meshes, strict=True)
    ]
    c.fields.update(octree_fields(trees))


def octree_fields(trees: list[Octree | None]) -> dict[str, Any]:
    """Return the concatenated octrees of all meshes; children are relative to the first cell of
    their tree."""
    num = np.array([0 if tree is None else len(tree.value) for tree in trees], np.int32)
    start = np.where(num > 0, np.cumsum(num) - num, NO_TREE)
    made = [tree for tree in trees if tree is not None]
    return {
        "noct": int(num.sum()),
        "mesh_octadr": start.astype(np.int32),
        "mesh_octnum": num,
        "oct_depth": _concatenate([tree.cells.level for tree in made], np.int32),
        "oct_child": _concatenate([tree.cells.child for tree in made], np.int32, 8),
        "oct_aabb": _concatenate([tree.cells.aabb for tree in made], np.float64, 6),
        "oct_coeff": _concatenate([tree.value for tree in made], np.float64, 8),
    }


def _tree(mesh: Mesh) -> Octree:
    face = mesh.placement.orient_faces(mesh.surface.face)
    return octree(mesh.vertex[face], *mesh.bounds, SurfaceDistance(mesh.vertex, face))


def _concatenate(parts: list[np.ndarray], dtype: type, width: int = 0) -> np.ndarray:
    """Return the concatenated arrays, (n,) or (n, width); also of no arrays."""
    empty: np.ndarray = np.zeros((0, width) if width else 0, dtype)
    return np.concatenate([empty, *parts]).astype(dtype)
