"""The triangles of a geom or site, in its own frame.

Primitives are made by trimesh; meshes and height fields come from the model. Corners that have
another normal are other vertices, so that edges look sharp where they are.
"""

from typing import NamedTuple

import numpy as np

from jaxsim.enums import GeomType
from jaxsim.extra import needed
from jaxsim.model.model import Model

FACETS = 64  # of a full turn
FAR = 10.0  # half side of a plane without end, in extents of the model


class Shape(NamedTuple):
    """Triangles.

    Attributes:
      vertex: positions, (n, 3) [m].
      normal: of each vertex, (n, 3).
      face: three vertices each, counterclockwise from outside, (k, 3).
      texcoord: places in a texture that the model gives, (n, 2), from the left and from above; or
        None.
    """

    vertex: np.ndarray
    normal: np.ndarray
    face: np.ndarray
    texcoord: np.ndarray | None = None


def shape_of(m: Model, kind: int, size: np.ndarray, data: int) -> Shape | None:
    """Return the triangles of a shape; None where there are none to draw.

    Args:
      m: the model, for meshes and height fields.
      kind: `GeomType`.
      size: its size parameters, (3,).
      data: number of its mesh or height field, or -1.
    """
    kind = GeomType(kind)
    if kind in (GeomType.MESH, GeomType.SDF):
        return _mesh(m, data) if data >= 0 else None
    if kind == GeomType.HFIELD:
        return _hfield(m, data)
    if kind == GeomType.PLANE:
        return _plane(np.where(size[:2] > 0, size[:2], FAR * float(m.stat.extent)))
    return PRIMITIVES[kind](size)


def _sphere(size: np.ndarray) -> Shape:
    return _ellipsoid(size[[0, 0, 0]])


def _ellipsoid(size: np.ndarray) -> Shape:
    ball = needed("trimesh.creation", "view").icosphere(subdivisions=3)
    point = np.asarray(ball.vertices)
    return Shape(point * size, _unit(point / size), np.asarray(ball.faces))


def _capsule(size: np.ndarray) -> Shape:
    radius, half = size[:2]
    made = needed("trimesh.creation", "view").capsule(
        height=2 * half, radius=radius, count=[FACETS, FACETS]
    )
    point = np.asarray(made.vertices)
    axis = np.clip(point[:, 2:], -half, half) * [0, 0, 1]
    return Shape(point, _unit(point - axis), np.asarray(made.faces))


def _cylinder(size: np.ndarray) -> Shape:
    made = needed("trimesh.creation", "view").cylinder(
        radius=size[0], height=2 * size[1], sections=FACETS
    )
    corner = np.asarray(made.vertices)[made.faces].reshape(-1, 3)
    normal = np.repeat(np.asarray(made.face_normals), 3, axis=0)
    side = np.abs(normal[:, 2]) < 0.5
    normal[side] = _unit(corner[side] * [1, 1, 0])
    return _corners(corner, normal)


def _box(size: np.ndarray) -> Shape:
    made = needed("trimesh.creation", "view").box(extents=2 * size)
    corner = np.asarray(made.vertices)[made.faces].reshape(-1, 3)
    return _corners(corner, np.repeat(np.asarray(made.face_normals), 3, axis=0))


PRIMITIVES = {
    GeomType.SPHERE: _sphere,
    GeomType.CAPSULE: _capsule,
    GeomType.ELLIPSOID: _ellipsoid,
    GeomType.CYLINDER: _cylinder,
    GeomType.BOX: _box,
}


def _plane(half: np.ndarray) -> Shape:
    """Return a rectangle that faces z."""
    square = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], float)
    up = np.tile([0.0, 0.0, 1.0], (4, 1))
    return Shape(square * [*half, 0], up, np.array([[0, 1, 2], [0, 2, 3]]))


def _mesh(m: Model, mesh: int) -> Shape:
    """Return a mesh of the model, with its normals and texture coordinates."""
    faces = slice(m.mesh_faceadr[mesh], m.mesh_faceadr[mesh] + m.mesh_facenum[mesh])
    has_texture = m.mesh_texcoordadr[mesh] >= 0
    index = [m.mesh_face[faces], m.mesh_facenormal[faces]]
    if has_texture:
        index.append(m.mesh_facetexcoord[faces])
    corner = np.stack([x.reshape(-1) for x in index], axis=1)
    corner, face = np.unique(corner, axis=0, return_inverse=True)
    vertex = np.asarray(m.mesh_vert)[m.mesh_vertadr[mesh] + corner[:, 0]]
    normal = np.asarray(m.mesh_normal)[m.mesh_normaladr[mesh] + corner[:, 1]]
    place = None
    if has_texture:
        place = np.asarray(m.mesh_texcoord)[m.mesh_texcoordadr[mesh] + corner[:, 2]]
    return Shape(vertex, normal, face.reshape(-1, 3), place)


def _hfield(m: Model, field: int) -> Shape:
    """Return the surface of a height field, the walls around it and the bottom."""
    rows, columns = int(m.hfield_nrow[field]), int(m.hfield_ncol[field])
    radius_x, radius_y, height, depth = np.asarray(m.hfield_size)[field]
    start = m.hfield_adr[field]
    z = np.asarray(m.hfield_data)[start : start + rows * columns].reshape(rows, columns) * height
    x, y = np.linspace(-radius_x, radius_x, columns), np.linspace(-radius_y, radius_y, rows)
    grid = np.stack([*np.meshgrid(x, y), z], axis=-1)
    surface = _grid(grid)
    rim = np.concatenate([grid[0, :-1], grid[:-1, -1], grid[-1, :0:-1], grid[:0:-1, 0]])
    rim = np.concatenate([rim, rim[:1]])
    foot = rim * [1, 1, 0] - [0, 0, depth]
    bottom = _plane(np.array([radius_x, radius_y]))
    bottom = bottom._replace(
        vertex=bottom.vertex - [0, 0, depth], normal=-bottom.normal, face=bottom.face[:, ::-1]
    )
    return _joined([surface, _grid(np.stack([foot, rim])), bottom])


def _grid(point: np.ndarray) -> Shape:
    """Return the triangles between neighbours of a grid of points, (rows, columns, 3), with smooth
    normals."""
    rows, columns = point.shape[:2]
    number = np.arange(rows * columns).reshape(rows, columns)
    a, b, c, d = number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1]
    face = np.stack([a, b, c, a, c, d], axis=-1).reshape(-1, 3)
    vertex = point.reshape(-1, 3)
    first, second, third = (vertex[face[:, k]] for k in range(3))
    across = np.cross(second - first, third - first)
    normal = np.zeros_like(vertex)
    for k in range(3):
        np.add.at(normal, face[:, k], across)
    return Shape(vertex, _unit(normal), face)


def _corners(corner: np.ndarray, normal: np.ndarray) -> Shape:
    return Shape(corner, normal, np.arange(len(corner)).reshape(-1, 3))


def _joined(shapes: list[Shape]) -> Shape:
    first = np.cumsum([0, *(len(s.vertex) for s in shapes)])
    return Shape(
        np.concatenate([s.vertex for s in shapes]),
        np.concatenate([s.normal for s in shapes]),
        np.concatenate([s.face + k for s, k in zip(shapes, first, strict=False)]),
    )


def _unit(v: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(v, axis=1, keepdims=True)
    return v / np.where(length > 0, length, 1)
