"""The fields `mesh_*`: all meshes concatenated, with the address and the length of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxsim.assets.mesh.polygons import Polygons
from jaxsim.compile.asset.mesh.mesh import Mesh

# Indices within a mesh are relative to its first vertex, normal, texture coordinate or polygon.
_DATA: dict[str, tuple[Callable[[Mesh], np.ndarray], type]] = {
    "vert": (lambda mesh: mesh.vertex, np.float32),
    "normal": (lambda mesh: mesh.normal, np.float32),
    "texcoord": (lambda mesh: mesh.surface.texcoord, np.float32),
    "face": (lambda mesh: mesh.placement.orient_faces(mesh.surface.face), np.int32),
    "facenormal": (lambda mesh: mesh.placement.orient_faces(mesh.surface.face_normal), np.int32),
    "facetexcoord": (
        lambda mesh: mesh.placement.orient_faces(mesh.surface.face_texcoord),
        np.int32,
    ),
}
_WIDTHS = {"texcoord": 2}


def mesh_fields(meshes: list[Mesh]) -> dict[str, Any]:
    """Return all fields of the meshes of a model, by name."""
    found: dict[str, Any] = {
        "mesh_scale": _rows([mesh.placement.scale for mesh in meshes], 3),
        "mesh_pos": _rows([mesh.pose.pos for mesh in meshes], 3),
        "mesh_quat": _rows([mesh.pose.quat for mesh in meshes], 4),
    }
    for name, (of, dtype) in _DATA.items():
        parts: list[np.ndarray] = [of(mesh).astype(dtype) for mesh in meshes]
        found[f"mesh_{name}"] = _concatenate(parts, dtype, _WIDTHS.get(name, 3))
        if name not in ("facenormal", "facetexcoord"):
            found |= _part_addresses(name, [len(part) for part in parts])
    # a mesh without texture coordinates has no address for them
    found["mesh_texcoordadr"][found["mesh_texcoordnum"] == 0] = -1
    return found | _hull_fields(meshes)


def _hull_fields(meshes: list[Mesh]) -> dict[str, Any]:
    """Return the convex hulls and their polygons; a mesh that cannot collide has none."""
    sides = [_no_polygons(mesh) if mesh.hull is None else mesh.surface.polygons for mesh in meshes]
    pairs = list(zip(meshes, sides, strict=True))
    graphs = [_hull_graph(mesh) for mesh in meshes]
    kept = np.array([mesh.hull is not None for mesh in meshes], bool)
    polyvertnum = _concatenate([p.num for p in sides], np.int32)
    mapnum = _concatenate([p.mapnum for p in sides], np.int32)
    return {
        "nmeshgraph": sum(len(graph) for graph in graphs),
        "nmeshpoly": len(polyvertnum),
        "nmeshpolyvert": int(polyvertnum.sum()),
        "nmeshpolymap": int(mapnum.sum()),
        "npolygonmax": int(polyvertnum.max(initial=0)),
        "nmeshdegmax": int(mapnum.max(initial=0)),
        "mesh_graphadr": np.where(kept, _starts([len(g) for g in graphs]), -1).astype(np.int32),
        "mesh_graph": _concatenate(graphs, np.int32),
        "mesh_extrema": _rows([_extrema(mesh) for mesh in meshes], 27, np.int32),
        "mesh_polynum": np.array([len(p.num) for p in sides], np.int32),
        "mesh_polyadr": _starts([len(p.num) for p in sides]),
        "mesh_polynormal": _concatenate([m.normals(p.normal) for m, p in pairs], np.float64, 3),
        "mesh_polyvertadr": _starts(polyvertnum),
        "mesh_polyvertnum": polyvertnum,
        "mesh_polyvert": _concatenate(
            [p.outlines(m.placement.mirrors) for m, p in pairs], np.int32
        ),
        "mesh_polymapadr": _starts(mapnum),
        "mesh_polymapnum": mapnum,
        "mesh_polymap": _concatenate([p.map for p in sides], np.int32),
    }


def _no_polygons(mesh: Mesh) -> Polygons:
    """Return the polygons of a mesh without hull."""
    empty = np.zeros(0, np.int32)
    return Polygons(np.zeros((0, 3)), empty, empty, np.zeros(len(mesh.vertex), np.int32), empty)


def _hull_graph(mesh: Mesh) -> np.ndarray:
    if mesh.hull is None:
        return np.zeros(0, np.int32)
    return mesh.hull.graph(mesh.placement.orient_faces(mesh.hull.face))


def _extrema(mesh: Mesh) -> np.ndarray:
    return np.zeros(27, np.int32) if mesh.hull is None else mesh.hull.extrema(mesh.vertex)


def _part_addresses(name: str, num: list[int]) -> dict[str, Any]:
    """Return `nmesh<name>`, and the address and length of the part of each mesh."""
    return {
        f"nmesh{name}": sum(num),
        f"mesh_{name}adr": _starts(num),
        f"mesh_{name}num": np.array(num, np.int32),
    }


def _starts(num: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the addresses of concatenated parts."""
    num = np.array(num, np.int32)
    return (np.cumsum(num) - num).astype(np.int32)


def _rows(rows: list[np.ndarray], width: int, dtype: type = np.float64) -> np.ndarray:
    return np.array(rows, dtype).reshape(-1, width)


def _concatenate(parts: list[np.ndarray], dtype: type, width: int = 0) -> np.ndarray:
    """Return the concatenated arrays, (n,) or (n, width); also of no arrays."""
    empty: np.ndarray = np.zeros((0, width) if width else 0, dtype)
    return np.concatenate([empty, *parts]).astype(dtype)
