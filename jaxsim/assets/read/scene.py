"""Read meshes of scene files by trimesh, the extra `meshes`: GLB, glTF, COLLADA, PLY, OFF.

All meshes of a scene become one surface, each posed by the nodes of the scene. Lengths are meters:
those of COLLADA are scaled by its `<unit>`. Axes are those of the file, as for OBJ: use `refquat`
of the mesh to rotate a model whose Y is up. Materials and animations are ignored.
"""

from __future__ import annotations

import io
import math
import re
from typing import Any

import numpy as np

from jaxsim.assets.read.claims import check_claims
from jaxsim.assets.source.limits import check_limit
from jaxsim.assets.surface import Surface
from jaxsim.errors import AssetError
from jaxsim.optional import MissingExtra, require

_EXTRA_PACKAGES = {"dae": "collada"}  # packages that trimesh needs in addition
_UNIT = re.compile(rb"""<unit\b[^>]*?\bmeter\s*=\s*["']([^"']*)["']""")


def read_scene(data: bytes, kind: str) -> Surface:
    """Return all meshes of a scene as one surface.

    Args:
      data: contents of the file.
      kind: "glb", "gltf", "dae", "ply" or "off".

    Raises:
      AssetError: the extra is not installed, or the file has no mesh or cannot be read.
    """
    try:
        trimesh = require("trimesh", "meshes")
        if kind in _EXTRA_PACKAGES:
            require(_EXTRA_PACKAGES[kind], "meshes")
    except MissingExtra as error:
        raise AssetError(f"{kind} files are read by an extra: {error}") from None
    check_claims(data, kind)
    try:
        scene = trimesh.load(io.BytesIO(data), file_type=kind, process=False)
    except Exception as error:  # noqa: BLE001 - whatever its readers raise for damaged files
        raise AssetError(
            f"the {kind} file cannot be read: {error or type(error).__name__}"
        ) from None
    posed = _posed_meshes(scene)
    # many nodes may show one mesh: their vertices are counted before they are made
    check_limit("mesh_vertices", sum(len(getattr(mesh, "vertices", ())) for mesh, _ in posed))
    surfaces = [s for mesh, pose in posed if (s := _surface(mesh, pose)) is not None]
    if not surfaces:
        raise AssetError(f"the {kind} file has no mesh")
    scale = _meters(data) if kind == "dae" else 1.0
    first = np.cumsum([0, *(len(s.vertex) for s in surfaces)])
    face = np.concatenate([s.face + n for s, n in zip(surfaces, first, strict=False)])
    coordinates = [s.texcoord for s in surfaces]
    textured = all(c is not None for c in coordinates) and len(face) > 0
    return Surface(
        scale * np.concatenate([s.vertex for s in surfaces]),
        face,
        texcoord=np.concatenate(coordinates) if textured else None,  # type: ignore[arg-type]
        face_texcoord=face if textured else None,
    )


def _posed_meshes(scene: Any) -> list[tuple[Any, np.ndarray]]:
    """Return the meshes of a scene with their poses (4, 4), one for each node that instantiates
    it."""
    if not hasattr(scene, "graph"):
        return [(scene, np.eye(4))]
    found = []
    for node in scene.graph.nodes_geometry:
        pose, name = scene.graph[node]
        found.append((scene.geometry[name], np.asarray(pose, float)))
    return found


def _surface(mesh: Any, pose: np.ndarray) -> Surface | None:
    """Return one mesh posed by its node; None if it has no vertices, as a curve."""
    vertex = np.asarray(getattr(mesh, "vertices", ()), float)
    if vertex.ndim != 2 or vertex.shape[1] != 3 or not len(vertex):
        return None
    face = np.asarray(getattr(mesh, "faces", np.zeros((0, 3))), int).reshape(-1, 3)
    if np.linalg.det(pose[:3, :3]) < 0:  # a reflection reverses the orientation of faces
        face = face[:, ::-1]
    texcoord = getattr(getattr(mesh, "visual", None), "uv", None)
    if texcoord is None or np.shape(texcoord) != (len(vertex), 2):
        texcoord = None
    else:
        texcoord = np.asarray(texcoord, float)
    return Surface(vertex @ pose[:3, :3].T + pose[:3, 3], face, texcoord=texcoord)


def _meters(data: bytes) -> float:
    """Return the unit of length of a COLLADA file [m]."""
    found = _UNIT.search(data)
    try:
        unit = float(found[1]) if found else 1.0
    except ValueError:
        unit = math.nan
    if not unit > 0 or not math.isfinite(unit):
        raise AssetError(f"<unit meter={found[1].decode(errors='replace')!r}> is no length")  # type: ignore[index]
    return unit
