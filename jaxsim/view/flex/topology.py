"""Topology of the drawn triangles of flexes and skins, which is constant.

As in MuJoCo's scene (`mjv_updateScene`, compared by a test): a two-dimensional flex has an upper
and a lower side, offset by its radius, and triangles between these around its rim; a
three-dimensional one its shell, offset outward by the radius; a skin its faces. One-dimensional
flexes have no triangles: their edges are capsules (strands.py).
"""

from dataclasses import dataclass

import numpy as np

from jaxsim.arrays.linear import group_table
from jaxsim.enums import ObjType
from jaxsim.model.structure import Structure, cache_by_structure

_NO_ID = -1


@dataclass(frozen=True, eq=False)
class SurfaceTopology:
    """Constants of the surfaces of a model: objects, their points and triangles.

    Points of flexes come first, then all vertices of skins.

    Attributes:
      type, id: `ObjType` and id of each object, `[nobject]`.
      group, material: of each object.
      vert, side: vertex of each flex point, and the side it is offset to, 1 or -1.
      flex: flex of each flex point.
      around: triangles of `tangent` at each vertex of flexes, a table of `group_table`.
      tangent: vertices of the triangles that define the normals of flexes, `[3, n]`.
      corner: points of all triangles, counterclockwise from outside, `[3, nface]`.
      owner: the object of each triangle.
      flat: whether it is shaded by its own normal instead of point normals.
      texcoord_index: texture coordinate indices of its corners, of flexes first, then of skins;
        NONE: without.
      first: index of the first point of skins.
      points: number of points.
    """

    type: np.ndarray
    id: np.ndarray
    group: np.ndarray
    material: np.ndarray
    vert: np.ndarray
    side: np.ndarray
    flex: np.ndarray
    around: np.ndarray
    tangent: np.ndarray
    corner: np.ndarray
    owner: np.ndarray
    flat: np.ndarray
    texcoord_index: np.ndarray
    first: int
    points: int


@dataclass(frozen=True, eq=False)
class _Piece:
    """Triangles of one object: points, flat shading, texture coordinate indices, `[n, 3]`,
    `[n]`."""

    type: int
    id: int
    group: int
    material: int
    corner: np.ndarray
    flat: np.ndarray
    texcoord_index: np.ndarray


@cache_by_structure
def surface_topology(s: Structure) -> SurfaceTopology:
    """Return the constants."""
    drawn = [f for f in range(s.nflex) if s.flex_dim[f] > 1]
    sides, start = {}, 0  # first point of the upper and the lower side of each flex
    for f in drawn:
        number = int(s.flex_vertnum[f])
        sides[f] = start, start + number
        start += number * (2 if s.flex_dim[f] == 2 else 1)
    pieces = [_flex(s, f, *sides[f]) for f in drawn]
    pieces += [_skin(s, k, start) for k in range(s.nskin)]

    vert, side, flex = [], [], []
    for f in drawn:
        own = s.flex_vertadr[f] + np.arange(s.flex_vertnum[f])
        for sign in (1, -1)[: 2 if s.flex_dim[f] == 2 else 1]:
            vert.append(own)
            side.append(np.full(len(own), sign))
            flex.append(np.full(len(own), f))
    tangent = _rows([_triangles(s, f) + s.flex_vertadr[f] for f in drawn])
    meets = group_table(tangent.ravel(), s.nflexvert)
    around = np.where(meets == tangent.size, len(tangent), meets // 3)

    def each(name: str) -> np.ndarray:
        return np.array([getattr(p, name) for p in pieces], np.int32)

    return SurfaceTopology(
        **{name: each(name) for name in ("type", "id", "group", "material")},
        vert=_concatenate(vert),
        side=_concatenate(side),
        flex=_concatenate(flex),
        around=around,
        tangent=tangent.T,
        corner=_rows([p.corner for p in pieces]).T,
        owner=np.repeat(np.arange(len(pieces)), [len(p.corner) for p in pieces]).astype(np.int32),
        flat=_concatenate([p.flat for p in pieces]).astype(bool),
        texcoord_index=_rows([p.texcoord_index for p in pieces]).T,
        first=start,
        points=start + s.nskinvert,
    )


def _triangles(s: Structure, f: int) -> np.ndarray:
    """Return the elements of a two-dimensional flex, the shell of a three-dimensional one, `[n,
    3]`."""
    if s.flex_dim[f] == 2:
        start, number, table = s.flex_elemdataadr[f], s.flex_elemnum[f], s.flex_elem
    else:
        start, number, table = s.flex_shelldataadr[f], s.flex_shellnum[f], s.flex_shell
    return table[start : start + 3 * number].reshape(-1, 3)


def _flex(s: Structure, f: int, upper: int, lower: int) -> _Piece:
    face = _triangles(s, f)
    first, smooth = int(s.flex_texcoordadr[f]), np.full(len(face), bool(s.flex_flatskin[f]))
    at = first + face
    rim = np.zeros((0, 2), np.int32)
    if s.flex_dim[f] == 2:
        start = s.flex_elemdataadr[f]
        at = first + s.flex_elemtexcoord[start : start + face.size].reshape(-1, 3)
        start = s.flex_shelldataadr[f]
        rim = s.flex_shell[start : start + 2 * s.flex_shellnum[f]].reshape(-1, 2)
    corner, texcoord_index, flat = [upper + face], [at], [smooth]
    if s.flex_dim[f] == 2:
        a, b = rim.T
        corner += [lower + face[:, [0, 2, 1]]]
        corner += [np.stack([upper + a, lower + b, upper + b], 1)]
        corner += [np.stack([lower + b, upper + a, lower + a], 1)]
        texcoord_index += [at[:, [0, 2, 1]], first + rim[:, [0, 1, 1]], first + rim[:, [1, 0, 0]]]
        flat += [smooth, np.ones(2 * len(rim), bool)]
    texcoord_indices = _rows(texcoord_index)
    return _Piece(
        type=ObjType.FLEX,
        id=f,
        group=int(s.flex_group[f]),
        material=int(s.flex_matid[s.flex_elemadr[f]]),
        corner=_rows(corner),
        flat=_concatenate(flat),
        texcoord_index=texcoord_indices if first >= 0 else np.full_like(texcoord_indices, _NO_ID),
    )


def _skin(s: Structure, k: int, start: int) -> _Piece:
    faces = slice(s.skin_faceadr[k], s.skin_faceadr[k] + s.skin_facenum[k])
    face = np.asarray(s.skin_face).reshape(-1, 3)[faces]
    first = int(s.skin_texcoordadr[k])
    texcoord_index = s.nflextexcoord + first + face if first >= 0 else np.full_like(face, _NO_ID)
    return _Piece(
        type=ObjType.SKIN,
        id=k,
        group=int(s.skin_group[k]),
        material=int(s.skin_matid[k]),
        corner=start + s.skin_vertadr[k] + face,
        flat=np.zeros(len(face), bool),
        texcoord_index=texcoord_index,
    )


def _rows(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros((0, 3)), *parts]).astype(np.int32)


def _concatenate(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0), *parts]).astype(np.int32)
