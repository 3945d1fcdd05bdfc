"""Poses of geoms in `qpos0` and separation tests between them, in numpy.

In `qpos0` joints contribute no motion, so body poses follow from the tree alone. Two shapes are
disjoint if a plane separates them. For bounding boxes the face normals and the line of centers are
tried, as in the physics (physics/collision/candidates/broadphase.py); for meshes, Gilbert's
algorithm on the convex hulls (E. Gilbert, An iterative procedure for computing the minimum of a
quadratic form on a convex set, 1966).
"""

import itertools
from typing import NamedTuple

import numpy as np

from jaxsim.compile.geometry.pose import chain_poses
from jaxsim.enums import GeomType
from jaxsim.math.quaternion import (
    quat_multiply,
    quat_normalize,
    quat_rotate,
    quat_to_matrix,
)
from jaxsim.model.model import Model

MESH_TYPES = (GeomType.MESH, GeomType.SDF)
MAX_DIRECTIONS = 30  # iterations of Gilbert's algorithm
UNIT_BOX_CORNERS = np.array(list(itertools.product((-1, 1), repeat=3)))


class GeomBoxes(NamedTuple):
    """Bounding boxes of geoms in the world.

    Origin of the geom, center of the box, rotation, half sizes, radius; and the contact reach of
    each.
    """

    pos: np.ndarray
    center: np.ndarray
    rot: np.ndarray
    half: np.ndarray
    radius: np.ndarray
    reach: np.ndarray


def boxes_at_start(m: Model) -> GeomBoxes:
    """Return the bounding boxes of all geoms in `qpos0`."""
    pos, quat = _geoms(m)
    aabb = np.asarray(m.geom_aabb, np.float64)
    reach = np.asarray(m.geom_margin) + np.asarray(m.geom_gap)
    radius = np.linalg.norm(aabb[:, 3:], axis=1)
    center = pos + quat_rotate(quat, aabb[:, :3])
    return GeomBoxes(pos, center, quat_to_matrix(quat), aabb[:, 3:], radius, reach)


def _geoms(m: Model) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions and orientations of all geoms in `qpos0`."""
    s = m.structure
    body_pos, body_quat, geom_pos, geom_quat = (
        np.asarray(a, np.float64) for a in (m.body_pos, m.body_quat, m.geom_pos, m.geom_quat)
    )
    pos, quat = chain_poses(s.body_parentid, body_pos, quat_normalize(body_quat))
    of = s.geom_bodyid
    return pos[of] + quat_rotate(quat[of], geom_pos), quat_multiply(
        quat[of], quat_normalize(geom_quat)
    )


def gap_between_boxes(boxes: GeomBoxes, geom1: np.ndarray, geom2: np.ndarray) -> np.ndarray:
    """Return the largest gap between two boxes along the tried directions, minus the reach,
    `[n]`."""
    a, b = (GeomBoxes(*(field[geom] for field in boxes)) for geom in (geom1, geom2))
    offset = b.center - a.center
    in_a, in_b = (np.einsum("nji,nj->ni", g.rot, offset) for g in (a, b))
    axis_products = np.abs(np.einsum("nji,njk->nik", a.rot, b.rot))  # axes of a in the frame of b
    gap_a = np.abs(in_a) - a.half - np.einsum("nij,nj->ni", axis_products, b.half)
    gap_b = np.abs(in_b) - b.half - np.einsum("nij,ni->nj", axis_products, a.half)
    extent = np.sum(np.abs(in_a) * a.half + np.abs(in_b) * b.half, axis=1)
    distance = np.linalg.norm(offset, axis=1)
    # boxes with equal centers have no line of centers
    with np.errstate(invalid="ignore", divide="ignore"):
        along = np.where(distance > 0, distance - extent / distance, -np.inf)
    return np.maximum(np.maximum(gap_a, gap_b).max(axis=1), along) - a.reach - b.reach


def may_touch(m: Model, boxes: GeomBoxes, geom1: np.ndarray, geom2: np.ndarray) -> np.ndarray:
    """Return whether no separating plane was computed for two shapes, bool `[n]`; shapes other than
    meshes are replaced by their boxes."""
    kind, reach = m.structure.geom_type, boxes.reach
    points = {}
    for geom in np.union1d(geom1, geom2):
        here = hull_corners(m, boxes, geom) if kind[geom] in MESH_TYPES else None
        points[geom] = _corners(boxes, geom) if here is None else here

    def touch(a: int, b: int) -> bool:
        limit = reach[a] + reach[b]
        if kind[a] == GeomType.PLANE:
            return bool(np.min((points[b] - boxes.center[a]) @ boxes.rot[a][:, 2]) <= limit)
        return not _is_separated(points[a], points[b], limit)

    return np.array([touch(a, b) for a, b in zip(geom1, geom2, strict=True)], bool)


def _corners(boxes: GeomBoxes, geom: int) -> np.ndarray:
    return boxes.center[geom] + (UNIT_BOX_CORNERS * boxes.half[geom]) @ boxes.rot[geom].T


def hull_corners(m: Model, boxes: GeomBoxes, geom: int) -> np.ndarray | None:
    """Return the vertices of the hull of a mesh in the world; None if it has no hull."""
    s = m.structure
    mesh = s.geom_dataid[geom]
    graph = s.mesh_graphadr[mesh]
    if graph < 0:
        return None
    number = s.mesh_graph[graph]
    ids = s.mesh_graph[graph + 2 + number : graph + 2 + 2 * number]
    corners = np.asarray(m.mesh_vert)[s.mesh_vertadr[mesh] + ids].astype(np.float64)
    return boxes.pos[geom] + corners @ boxes.rot[geom].T


def _is_separated(a: np.ndarray, b: np.ndarray, limit: float) -> bool:
    """Return whether some plane leaves more than a distance between two point sets."""
    between = a.mean(axis=0) - b.mean(axis=0)
    for _ in range(MAX_DIRECTIONS):
        length = np.linalg.norm(between)
        if length <= limit:
            return False
        nearest = a[np.argmin(a @ between)] - b[np.argmax(b @ between)]
        if nearest @ between > limit * length:
            return True
        step = between - nearest
        share = np.clip(between @ step / max(step @ step, np.finfo(float).tiny), 0, 1)
        between = between - share * step
    return False
