"""Meshes made for the tests, as attributes of a `<mesh>` element and as bytes of files."""

from __future__ import annotations

import struct

import numpy as np
from scipy.spatial import ConvexHull

CUBE_VERTEX = np.array(
    [[x, y, z] for z in (-1.0, 1.0) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
)
CUBE_FACE = np.array(
    [
        *([0, 2, 1], [0, 3, 2], [4, 5, 6], [4, 6, 7], [0, 1, 5], [0, 5, 4]),
        *([1, 2, 6], [1, 6, 5], [2, 3, 7], [2, 7, 6], [3, 0, 4], [3, 4, 7]),
    ]
)


def written(**attrs) -> str:
    """Attributes in XML."""
    return " ".join(
        f'{name}="{value if isinstance(value, str) else numbers(value)}"'
        for name, value in attrs.items()
    )


def numbers(values) -> str:
    """Numbers in XML, with all their digits."""
    flat = np.ravel(values)
    return " ".join(str(int(v)) if flat.dtype.kind in "iu" else repr(float(v)) for v in flat)


def rock(n: int = 40, seed: int = 0, *, bend: float = 0.0) -> dict[str, np.ndarray]:
    """A closed surface of any shape; a bend makes it curl, so that the legacy volume differs."""
    rng = np.random.default_rng(seed)
    point = rng.normal(size=(n, 3))
    point /= np.linalg.norm(point, axis=1, keepdims=True)
    hull = ConvexHull(point)
    face = hull.simplices.copy()
    a, b, c = (point[face[:, i]] for i in range(3))
    inward = np.einsum("ni,ni->n", np.cross(b - a, c - a), hull.equations[:, :3]) < 0
    face[inward] = face[inward][:, ::-1]
    vertex = point * rng.uniform(0.7, 1.3, (n, 1)) * [1, 1.5, 2.2] + [0.3, 0.2, 0.1]
    vertex[:, 0] += bend * vertex[:, 2] ** 2
    return {"vertex": vertex.astype(np.float32).astype(float), "face": face}


def stl(vertex: np.ndarray, face: np.ndarray) -> bytes:
    """A binary STL file."""
    record = np.dtype([("normal", "<f4", 3), ("corner", "<f4", (3, 3)), ("end", "<u2")])
    triangles = np.zeros(len(face), record)
    triangles["corner"] = vertex[face]
    return bytes(80) + struct.pack("<I", len(face)) + triangles.tobytes()


def obj(vertex, face, normal, face_normal, texcoord, face_texcoord) -> bytes:
    """An OBJ file whose normals and texture coordinates have indices of their own."""
    lines = [f"v {numbers(v)}" for v in vertex]
    lines += [f"vn {numbers(v)}" for v in normal] + [f"vt {numbers(v)}" for v in texcoord]
    for corners in zip(face + 1, face_texcoord + 1, face_normal + 1, strict=True):
        lines.append("f " + " ".join(f"{v}/{t}/{n}" for v, t, n in zip(*corners, strict=True)))
    return "\n".join(lines).encode()
