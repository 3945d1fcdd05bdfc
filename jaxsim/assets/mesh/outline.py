"""Indices of hull vertices in the polygon outlines, and spanning quads of polygons.

Polygons are given as in a compiled model: `polyvert` lists their corners, polygon by polygon, and
`polymap` the polygons at each vertex, vertex by vertex.
"""

from __future__ import annotations

import numpy as np

from jaxsim.assets.mesh.triangles import row_norms
from jaxsim.math.quaternion import cross_arrays

_AREA_TOLERANCE = 1e-12  # relative tolerance of areas: in a regular polygon many are equal


def outline_positions(
    polyvert: np.ndarray, polynum: np.ndarray, polymap: np.ndarray, mapnum: np.ndarray
) -> np.ndarray:
    """Return for each entry of `polymap` the index in `polyvert` of that vertex in that polygon.

    Args:
      polyvert: ids of the corners, (n,).
      polynum: number of corners of each polygon, (npoly,).
      polymap: polygons at the vertices, (n,).
      mapnum: number of polygons at each vertex, (nvert,).
    """
    vertex = np.repeat(np.arange(len(mapnum)), mapnum)
    polygon = np.repeat(np.arange(len(polynum)), polynum)
    corner = np.lexsort((polyvert, polygon))
    entry = np.lexsort((vertex, polymap))
    places = np.empty(len(polymap), np.int32)
    places[entry] = corner
    return places


def quads(vertex: np.ndarray, polyvert: np.ndarray, polynum: np.ndarray) -> np.ndarray:
    """Return three more corners for each corner of a polygon, so that the four span much of its
    area.

    MuJoCo's choice, determined by experiment. From four consecutive corners (a, b, c, d), d
    advances along the outline while the area grows; after each of its steps c does, and then b.

    Args:
      vertex: vertices of the mesh, (nvert, 3).
      polyvert: ids of the corners, polygon by polygon, (n,).
      polynum: number of corners of each polygon, (npoly,).

    Returns:
      (n, 3): b, c, d for each corner a, as indices into `polyvert`. In a triangle d equals c.
    """
    num = np.repeat(polynum, polynum)
    start = np.repeat(np.cumsum(polynum) - polynum, polynum)
    first = np.arange(len(polyvert)) - start
    step = np.minimum(np.arange(1, 4), num[:, None] - 1)  # of b, c, d from a

    many = np.flatnonzero(num > 4)
    if len(many):
        step[many] = _offset_steps(vertex[polyvert].astype(np.float64), start, first, num, many)
    return (start[:, None] + (first[:, None] + step) % num[:, None]).astype(np.int32)


def _offset_steps(
    point: np.ndarray, start: np.ndarray, first: np.ndarray, num: np.ndarray, many: np.ndarray
) -> np.ndarray:
    """Return the steps from a to b, c, d after advancing while the area grows, (len(many), 3)."""
    step = np.tile([1, 2, 3], (len(many), 1))

    def area(lane: np.ndarray, step: np.ndarray) -> np.ndarray:
        k = many[lane]
        b, c, d = (point[start[k] + (first[k] + s) % num[k]] for s in step.T)
        return row_norms(cross_arrays(c - point[k], d - b))

    lane = np.arange(len(many))
    best = area(lane, step)
    moving = np.full(len(many), 2)  # which of b, c, d advances
    # each advances around the outline at most once, and fails after each step
    for _ in range(9 * int(num.max())):
        if not len(lane):
            break
        now = moving[lane]
        tried = step[lane]
        tried[np.arange(len(lane)), now] += 1
        value = area(lane, tried)
        grows = value > (1 + _AREA_TOLERANCE) * best[lane]
        step[lane[grows]], best[lane[grows]] = tried[grows], value[grows]
        # after a step of d, c advances; when c fails, b; when b fails, d
        moving[lane] = np.where(grows, np.where(now == 2, 1, now), now - 1)
        moving[lane[~grows & (now == 0)]] = 2
        lane = lane[grows | (now < 2)]
    return step
