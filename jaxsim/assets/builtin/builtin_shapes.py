"""Generators of built-in meshes that are one surface: balls, cones, rings, and sensor patches.

Points and triangles are in MuJoCo's order. Parameters and their ranges are in `builtin.py`.
"""

from __future__ import annotations

import numpy as np

from jaxsim.assets.surface import Surface


def sphere(subdivision: float) -> Surface:
    """Return an icosphere: an icosahedron, repeatedly subdivided and projected to the sphere.

    All in single precision: rounding of subdivided points affects the next subdivision.
    """
    vertex, face = _icosahedron()
    for _ in range(int(subdivision)):
        a, b, c = face.T
        edges = np.sort(np.stack([a, b, b, c, c, a], axis=1).reshape(-1, 2), axis=1)
        # Midpoints of edges are numbered in the order of the faces.
        unique, first, inverse = np.unique(edges, axis=0, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))
        ab, bc, ca = (len(vertex) + rank[inverse.reshape(-1, 3)]).T
        x, y, z = middle = vertex[unique[np.argsort(first)]].sum(axis=1).T
        middle = middle / np.sqrt(x * x + y * y + z * z)
        vertex = np.concatenate([vertex, middle.T])
        parts = [[a, ab, ca], [b, bc, ab], [c, ca, bc], [ab, bc, ca]]
        face = np.array(parts).transpose(2, 0, 1).reshape(-1, 3)
    return single_precision_surface(vertex, face)


def _icosahedron() -> tuple[np.ndarray, np.ndarray]:
    """Return three perpendicular golden rectangles, (12, 3), and the triangles over them, (20,
    3)."""
    g = np.float32((1 + np.sqrt(5)) / 2)
    signs = ((-1, 1), (1, 1), (-1, -1), (1, -1))
    corners = [np.roll([x, y * g, 0], shift) for shift in range(3) for x, y in signs]
    words = (
        "0b5 051 017 07a 0ab 159 5b4 ba2 a76 718"  # digits of base 12, three to a face
        " 394 342 326 368 389 495 24b 62a 867 981"
    )
    face = [[int(digit, 12) for digit in word] for word in words.split()]
    vertex = np.array(corners) / np.sqrt(1 + np.float64(g * g))
    return vertex.astype(np.float32), np.array(face)


def hemisphere(resolution: float) -> Surface:
    """Return rings of squares on a pyramid, projected to the sphere; the bottom is a fan."""
    rings = int(resolution) + 1
    side = [_square_ring(ring, rings - ring) for ring in range(1, rings + 1)]
    top, center = np.array([[0.0, 0, 1]]), np.zeros((1, 3))
    vertex = np.concatenate([top, *side, center])
    # Ring k has 4 k points, and begins after the top and the inner rings.
    start = [0, *(1 + 2 * ring * (ring - 1) for ring in range(1, rings + 1))]
    face: list[tuple[int, int, int]] = []
    for ring in range(1, rings + 1):
        inner = [start[ring - 1] + i % max(1, 4 * (ring - 1)) for i in range(4 * ring)]
        outer = [start[ring] + i % (4 * ring) for i in range(4 * ring + 1)]
        for quarter in range(4):
            i, o = quarter * (ring - 1), quarter * ring
            for step in range(ring - 1):
                face += [(inner[i + step], outer[o + step], outer[o + step + 1])]
                face += [(inner[i + step], outer[o + step + 1], inner[i + step + 1])]
            face += [(inner[i + ring - 1], outer[o + ring - 1], outer[o + ring])]
    last = len(vertex) - 1
    face += [(outer[i], last, outer[i + 1]) for i in range(4 * rings)]
    return single_precision_surface(vertex, np.array(face))


def _square_ring(n: int, height: int) -> np.ndarray:
    """Return the points |x| + |y| = n at a height, on the unit sphere, (4 n, 3)."""
    step = np.arange(n)
    quarter = np.stack([n - step, step], axis=1)
    quarter_turn = np.array([[0, 1], [-1, 0]])
    plane = np.concatenate([quarter @ np.linalg.matrix_power(quarter_turn, k) for k in range(4)])
    return _unit(np.concatenate([plane, np.full((4 * n, 1), height)], axis=1).astype(float))


def cone(nvert: float, radius: float) -> Surface:
    """Return a cone: a regular polygon at z = -1, and another, or a point, at z = 1."""
    angle = 2 * np.pi * np.arange(int(nvert)) / int(nvert)
    ring = np.stack([np.cos(angle), np.sin(angle), -np.ones_like(angle)], axis=1)
    top = ring * [radius, radius, -1] if radius > 0 else np.array([[0.0, 0, 1]])
    return single_precision_surface(np.concatenate([ring, top]))


def supersphere(resolution: float, e: float, n: float) -> Surface:
    """Return circles of latitude between two poles, with powers of their cosines and sines."""
    r = int(resolution)
    latitude = -np.pi / 2 + np.pi * np.arange(1, r)[:, None] / r
    longitude = -np.pi + 2 * np.pi * np.arange(r) / r
    radius = _signed_power(np.cos(latitude), n)
    x, y = (
        radius * _signed_power(np.cos(longitude), e),
        radius * _signed_power(np.sin(longitude), e),
    )
    z = np.broadcast_to(_signed_power(np.sin(latitude), n), x.shape)
    side = np.stack([x, y, z], axis=-1).reshape(-1, 3)
    vertex = np.concatenate([[[0, 0, -1]], side, [[0, 0, 1]]])
    here = 1 + np.arange(r)
    beyond = 1 + (np.arange(r) + 1) % r
    bottom = np.stack([np.zeros(r, int), beyond, here], axis=1)
    up = r * np.arange(r - 2)[:, None]
    quads = [here + up, beyond + up, here + up + r, beyond + up + r]
    last = r * (r - 2)
    top = np.stack([here + last, beyond + last, np.full(r, len(vertex) - 1)], axis=1)
    return single_precision_surface(vertex, np.concatenate([bottom, _two_triangles(*quads), top]))


def supertorus(resolution: float, radius: float, s: float, t: float) -> Surface:
    """Return a tube around the circle of radius 1, with powers of the cosines and sines of both
    angles."""
    r = int(resolution)
    angle = 2 * np.pi * np.arange(r) / r
    u, v = angle[:, None], angle
    out = 1 + radius * _signed_power(np.cos(v), s)
    x, y = _signed_power(np.cos(u), t) * out, _signed_power(np.sin(u), t) * out
    z = np.broadcast_to(radius * _signed_power(np.sin(v), s), x.shape)
    i, j = np.arange(r)[:, None], np.arange(r)
    ahead, round_ = (i + 1) % r, (j + 1) % r
    quads = [r * i + j, r * ahead + j, r * i + round_, r * ahead + round_]
    return single_precision_surface(
        np.stack([x, y, z], axis=-1).reshape(-1, 3), _two_triangles(*quads)
    )


def wedge(res_phi: float, res_theta: float, *rest: float) -> Surface:
    """Return the centers of the cells of a sector of a sphere about -z, with a frame at each."""
    fov_phi, fov_theta, gamma = rest
    phi, theta = np.meshgrid(
        np.radians(fov_phi) * _centers(int(res_phi), gamma),
        np.radians(fov_theta) * _centers(int(res_theta), gamma),
        indexing="ij",
    )
    zero = np.zeros_like(phi)
    out = (np.sin(phi) * np.cos(theta), np.sin(theta), -np.cos(phi) * np.cos(theta))
    along_phi = (np.cos(phi), zero, np.sin(phi))
    along_theta = (-np.sin(phi) * np.sin(theta), np.cos(theta), np.cos(phi) * np.sin(theta))
    frame = np.array([out, along_phi, along_theta]).transpose(2, 3, 0, 1)
    return single_precision_surface(
        np.stack(out, axis=-1).reshape(-1, 3), normal=frame.reshape(-1, 3)
    )


def plate(res_x: float, res_y: float) -> Surface:
    """Return the centers of the cells of a square at z = -1, with the frame of the mesh at each."""
    nx, ny = int(res_x), int(res_y)
    x, y = np.meshgrid(_centers(nx, 0), _centers(ny, 0), indexing="ij")
    vertex = np.stack([x, y, -np.ones_like(x)], axis=-1).reshape(-1, 3)
    a = ny * np.arange(nx - 1)[:, None] + np.arange(ny - 1)
    b, d = a + ny, a + 1
    face = np.stack([a, b, d, b + 1, d, b], axis=-1).reshape(-1, 3)
    return single_precision_surface(vertex, face, np.tile(np.eye(3), (len(vertex), 1)))


def _centers(n: int, gamma: float) -> np.ndarray:
    """Return the centers of n cells of [-1, 1], whose edges `gamma` shifts to the center, (n,)."""
    edge = np.linspace(-1, 1, n + 1)
    edge = (1 - gamma) * edge + gamma * edge**5
    return (edge[:-1] + edge[1:]) / 2


def _signed_power(x: np.ndarray, exponent: float) -> np.ndarray:
    """Return a sign-preserving power; zero counts as positive, which matters for the exponent 0."""
    return np.where(x < 0, -1.0, 1.0) * np.abs(x) ** exponent


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def _two_triangles(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Return quadrilaterals a-b-d-c, each split between b and c, (2 n, 3)."""
    return np.stack([a, b, c, b, d, c], axis=-1).reshape(-1, 3)


def single_precision_surface(
    vertex: np.ndarray, face: np.ndarray | None = None, normal: np.ndarray | None = None
) -> Surface:
    """Return a surface in MuJoCo's precision."""
    face = np.zeros((0, 3)) if face is None else face
    single = vertex.astype(np.float32).astype(np.float64)
    framed = None if normal is None or not len(face) else (3 * face).astype(np.int32)
    return Surface(vertex=single, face=face.astype(np.int32), normal=normal, face_normal=framed)
