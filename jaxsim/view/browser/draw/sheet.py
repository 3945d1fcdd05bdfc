"""How the page draws what bends: triangles of one color, triangles with an image, lines.

Each has `handles`, viser's that can be clicked on, and is moved, hidden and removed as a whole. An
image lies on triangles only in files (glTF), which the page has to read before it can draw them.
So there are two: while one is seen the other is read, and they change places with the next pose;
`settle` makes them change places where no pose follows.
"""

import json
import struct
from typing import Any, Protocol

import numpy as np

from jaxsim.extra import needed

SIDE = 256  # most pixels of the sides of an image, which travels along with each pose


class Drawn(Protocol):
    """Something on a page."""

    @property
    def handles(self) -> list[Any]:
        """Viser's handles that can be clicked on."""

    def move(self, point: np.ndarray) -> None:
        """Move its vertices to (worlds, n, 3) [m]."""

    def show(self, visible: bool) -> None:
        """Show or hide it."""

    def remove(self) -> None:
        """Take it away."""

    def settle(self) -> bool:
        """Show the last pose if an earlier one is seen; whether it was."""


class _Single:
    """What one handle of viser draws, at once."""

    _handle: Any

    def show(self, visible: bool) -> None:
        """As `Drawn`."""
        self._handle.visible = visible

    def remove(self) -> None:
        """As `Drawn`."""
        self._handle.remove()

    def settle(self) -> bool:
        """As `Drawn`."""
        return False


class Plain(_Single):
    """Triangles of one color."""

    def __init__(self, server: Any, path: str, point: np.ndarray, face: np.ndarray, **look: Any):
        self._handle = server.scene.add_mesh_simple(
            path, vertices_of(point), faces_of(face, point), side="double", **look
        )
        self.handles = [self._handle]

    def move(self, point: np.ndarray) -> None:
        """As `Drawn`."""
        self._handle.vertices = vertices_of(point)


class Lines(_Single):
    """The edges of a rod; lines of viser cannot be clicked on."""

    def __init__(self, server: Any, path: str, point: np.ndarray, edge: np.ndarray, **look: Any):
        self._edge = edge
        self._handle = server.scene.add_line_segments(path, self._ends(point), **look)
        self.handles: list[Any] = []

    def _ends(self, point: np.ndarray) -> np.ndarray:
        return point[:, self._edge].reshape(-1, 2, 3).astype(np.float32)

    def move(self, point: np.ndarray) -> None:
        """As `Drawn`."""
        self._handle.points = self._ends(point)


class Pictured:
    """Triangles with an image.

    Args:
      server: of viser.
      path: its name in the scene.
      point: vertices in each world, (worlds, n, 3) [m].
      face: three vertices each, (k, 3).
      place: of each vertex in the image, from the left and from above, (n, 2).
      material: of trimesh, with the image.
    """

    def __init__(
        self,
        server: Any,
        path: str,
        point: np.ndarray,
        face: np.ndarray,
        place: np.ndarray,
        material: Any,
    ):
        trimesh, visual = needed("trimesh", "view"), needed("trimesh.visual", "view")
        vertex = vertices_of(point)
        mesh = trimesh.Trimesh(
            vertex,
            faces_of(face, point),
            process=False,
            visual=visual.TextureVisuals(
                uv=np.tile(place * [1, -1] + [0, 1], (len(point), 1)), material=material
            ),
        )
        # viser's page makes normals anew, but without any it would draw flat triangles
        made = bytes(mesh.export(file_type="glb", include_normals=True))
        # what follows differs in the vertices and their bounds: the image is not written again
        length = int.from_bytes(made[12:16], "little")
        self._told = json.loads(made[20 : 20 + length])
        self._before, _, self._after = made[20 + length :].partition(vertex.tobytes())
        self.handles = [
            server.scene.add_glb(path + end, made, visible=not end) for end in ("", " (2)")
        ]
        self._seen, self._waits, self._visible = 0, False, True

    def move(self, point: np.ndarray) -> None:
        """As `Drawn`."""
        self.settle()
        back = self.handles[1 - self._seen]
        back.glb_data = self._file(vertices_of(point))
        self._waits = True

    def _file(self, vertex: np.ndarray) -> bytes:
        """Return the file with other vertices (glTF 2.0, 4.4); outside of their bounds nothing is
        hit."""
        place = self._told["meshes"][0]["primitives"][0]["attributes"]["POSITION"]
        bounds = {"min": vertex.min(axis=0).tolist(), "max": vertex.max(axis=0).tolist()}
        self._told["accessors"][place].update(bounds)
        text = json.dumps(self._told, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 4)
        rest = self._before + vertex.tobytes() + self._after
        size = 20 + len(text) + len(rest)
        return struct.pack("<4sIII4s", b"glTF", 2, size, len(text), b"JSON") + text + rest

    def show(self, visible: bool) -> None:
        """As `Drawn`."""
        self._visible = visible
        for k, handle in enumerate(self.handles):
            handle.visible = visible and k == self._seen

    def remove(self) -> None:
        """As `Drawn`."""
        for handle in self.handles:
            handle.remove()

    def settle(self) -> bool:
        """As `Drawn`."""
        waited, self._waits = self._waits, False
        if waited:
            self._seen = 1 - self._seen
            self.show(self._visible)
        return waited


def small(image: np.ndarray) -> np.ndarray:
    """Return an image of at most SIDE pixels by side."""
    height, width = image.shape[:2]
    part = SIDE / max(height, width)
    if part >= 1:
        return image
    size = max(1, round(width * part)), max(1, round(height * part))
    return np.asarray(needed("PIL.Image", "view").fromarray(image).resize(size))


def vertices_of(point: np.ndarray) -> np.ndarray:
    """Return the vertices of all worlds, (worlds * n, 3)."""
    return point.reshape(-1, 3).astype(np.float32)


def faces_of(face: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Return the triangles of all worlds, from those of one."""
    worlds, number = point.shape[:2]
    return np.concatenate([face + number * k for k in range(worlds)]).astype(np.uint32)
