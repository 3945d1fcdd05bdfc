"""Deforming surfaces on a page: triangles of one color, textured triangles, lines.

Each has viser `handles` that can be clicked, and is moved, hidden and removed as a whole. Textured
triangles need glTF files, which the page must load before it can draw them. They are therefore
double-buffered: while one file is visible the other is loaded, and they are swapped at the next
pose; `settle` swaps them if no pose follows.
"""

import json
import struct
from typing import Any, Protocol

import numpy as np

from jaxsim.optional import require

_MAX_IMAGE_SIDE = 256  # limit on the sides of an image in pixels, because it is sent with each pose


class DrawnObject(Protocol):
    """An object on a page."""

    @property
    def handles(self) -> list[Any]:
        """Return the viser handles that can be clicked."""

    def move(self, point: np.ndarray) -> None:
        """Move its vertices to (worlds, n, 3) [m]."""

    def show(self, visible: bool) -> None:
        """Show or hide it."""

    def remove(self) -> None:
        """Remove it."""

    def settle(self) -> bool:
        """Show the last pose if an earlier one is visible; return whether it was."""


class _Single:
    """Object drawn by a single viser handle, without buffering."""

    _handle: Any

    def show(self, visible: bool) -> None:
        """Show or hide it."""
        self._handle.visible = visible

    def remove(self) -> None:
        """Remove it."""
        self._handle.remove()

    def settle(self) -> bool:
        """Return False: the last pose is always visible."""
        return False


class PlainTriangles(_Single):
    """Triangles of one color."""

    def __init__(self, server: Any, path: str, point: np.ndarray, face: np.ndarray, **look: Any):
        self._handle = server.scene.add_mesh_simple(
            path, vertices_of(point), faces_of(face, point), side="double", **look
        )
        self.handles = [self._handle]

    def move(self, point: np.ndarray) -> None:
        """Move its vertices to (worlds, n, 3) [m]."""
        self._handle.vertices = vertices_of(point)


class RodLines(_Single):
    """The edges of a rod; viser's lines cannot be clicked."""

    def __init__(self, server: Any, path: str, point: np.ndarray, edge: np.ndarray, **look: Any):
        self._edge = edge
        self._handle = server.scene.add_line_segments(path, self._ends(point), **look)
        self.handles: list[Any] = []

    def _ends(self, point: np.ndarray) -> np.ndarray:
        return point[:, self._edge].reshape(-1, 2, 3).astype(np.float32)

    def move(self, point: np.ndarray) -> None:
        """Move its vertices to (worlds, n, 3) [m]."""
        self._handle.points = self._ends(point)


class TexturedTriangles:
    """Textured triangles.

    Args:
      server: viser server.
      path: its name in the scene.
      point: vertices in each world, (worlds, n, 3) [m].
      face: three vertices each, (k, 3).
      texcoord: texture coordinates, from the left and from the top, (n, 2).
      material: trimesh material with the image.
    """

    def __init__(
        self,
        server: Any,
        path: str,
        point: np.ndarray,
        face: np.ndarray,
        texcoord: np.ndarray,
        material: Any,
    ):
        trimesh, visual = require("trimesh", "view"), require("trimesh.visual", "view")
        vertex = vertices_of(point)
        mesh = trimesh.Trimesh(
            vertex,
            faces_of(face, point),
            process=False,
            visual=visual.TextureVisuals(
                uv=np.tile(texcoord * [1, -1] + [0, 1], (len(point), 1)), material=material
            ),
        )
        # viser's page recomputes normals, but without any it would draw flat triangles
        made = bytes(mesh.export(file_type="glb", include_normals=True))
        # later files differ in the vertices and their bounds: the image is not encoded again
        length = int.from_bytes(made[12:16], "little")
        self._told = json.loads(made[20 : 20 + length])
        self._before, _, self._after = made[20 + length :].partition(vertex.tobytes())
        self.handles = [
            server.scene.add_glb(path + end, made, visible=not end) for end in ("", " (2)")
        ]
        self._seen, self._waits, self._visible = 0, False, True

    def move(self, point: np.ndarray) -> None:
        """Move its vertices to (worlds, n, 3) [m], in the buffer that is not visible."""
        self.settle()
        back = self.handles[1 - self._seen]
        back.glb_data = self._file(vertices_of(point))
        self._waits = True

    def _file(self, vertex: np.ndarray) -> bytes:
        """Return the file with other vertices (glTF 2.0, 4.4); clicks outside of their bounds are
        ignored."""
        place = self._told["meshes"][0]["primitives"][0]["attributes"]["POSITION"]
        bounds = {"min": vertex.min(axis=0).tolist(), "max": vertex.max(axis=0).tolist()}
        self._told["accessors"][place].update(bounds)
        text = json.dumps(self._told, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 4)
        rest = self._before + vertex.tobytes() + self._after
        size = 20 + len(text) + len(rest)
        return struct.pack("<4sIII4s", b"glTF", 2, size, len(text), b"JSON") + text + rest

    def show(self, visible: bool) -> None:
        """Show or hide it."""
        self._visible = visible
        for k, handle in enumerate(self.handles):
            handle.visible = visible and k == self._seen

    def remove(self) -> None:
        """Remove it."""
        for handle in self.handles:
            handle.remove()

    def settle(self) -> bool:
        """Swap the buffers if the hidden one has a newer pose; return whether it had."""
        waited, self._waits = self._waits, False
        if waited:
            self._seen = 1 - self._seen
            self.show(self._visible)
        return waited


def shrink_image(image: np.ndarray) -> np.ndarray:
    """Return an image reduced to at most _MAX_IMAGE_SIDE pixels per side."""
    height, width = image.shape[:2]
    part = _MAX_IMAGE_SIDE / max(height, width)
    if part >= 1:
        return image
    size = max(1, round(width * part)), max(1, round(height * part))
    return np.asarray(require("PIL.Image", "view").fromarray(image).resize(size))


def vertices_of(point: np.ndarray) -> np.ndarray:
    """Return the vertices of all worlds, (worlds * n, 3)."""
    return point.reshape(-1, 3).astype(np.float32)


def faces_of(face: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Return the triangles of all worlds, from those of one."""
    worlds, number = point.shape[:2]
    return np.concatenate([face + number * k for k in range(worlds)]).astype(np.uint32)
