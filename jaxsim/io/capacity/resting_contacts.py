"""Count the points on which a free body of several geoms rests on flat ground.

A ring of boxes, for example, rests on all of them. A body lies on a face of its convex hull, so the
faces of that hull, and of the bounding boxes of its geoms, are tried as the supporting one.
"""

from contextlib import suppress

import numpy as np

from jaxsim.enums import GeomType
from jaxsim.io.capacity.initial_poses import MESH_TYPES, UNIT_BOX_CORNERS, GeomBoxes, hull_corners
from jaxsim.model.model import Model
from jaxsim.physics.collision.candidates.default_capacity import (
    DEFAULT_REST_POINTS,
    REST_POINTS,
    is_free,
)

_GROUND_TOLERANCE = (
    0.01  # height below which a point touches the ground, relative to the size of the body
)
_RIM_POINTS = 8  # points on each cap of a cylinder
_MAX_SIDES = 4096  # largest number of faces that are tried
_MIN_NORMAL_DIFFERENCE = 0.02  # faces whose normals differ by less count as one

_NEIGHBOR_DIRECTIONS = np.array([v for v in np.ndindex(3, 3, 3) if v != (1, 1, 1)]) - 1.0
_RIM_ANGLES = 2 * np.pi * np.arange(_RIM_POINTS) / _RIM_POINTS


def points_at_rest(m: Model, boxes: GeomBoxes) -> np.ndarray:
    """Return the largest number of contacts of each body resting on a plane; 0: not computed, int32
    (nbody,).

    Args:
      m: a model whose leaves are on the host.
      boxes: bounding boxes of its geoms (boxes_at_start).
    """
    s = m.structure
    most = np.zeros(s.nbody, np.int32)
    collides = (s.geom_contype != 0) | (s.geom_conaffinity != 0)
    welded = s.body_weldid[s.geom_bodyid]
    several = [b for b in np.unique(welded) if b and np.sum(collides & (welded == b)) > 1]
    for body in several:
        if is_free(s, body):
            most[body] = _max_resting_contacts(
                m, boxes, np.flatnonzero(collides & (welded == body))
            )
    return most


def _max_resting_contacts(m: Model, boxes: GeomBoxes, geoms: np.ndarray) -> int:
    """Return the largest number of contacts of the geoms of one body, over its supporting faces."""
    shapes = [_points(m, boxes, g) for g in geoms]
    point = np.concatenate([p for p, _ in shapes])
    radius = np.concatenate([np.full(len(p), r) for p, r in shapes])
    geom = np.repeat(np.arange(len(geoms)), [len(p) for p, _ in shapes])
    limit = np.array(
        [REST_POINTS.get(GeomType(m.structure.geom_type[g]), DEFAULT_REST_POINTS) for g in geoms]
    )
    level = _GROUND_TOLERANCE * np.ptp(point, axis=0).max()
    depth = point @ _resting_face_normals(point, boxes.rot[geoms]).T + radius[:, None]
    touching = depth >= depth.max(axis=0) - level
    first = np.searchsorted(geom, np.arange(len(geoms)))
    number = np.add.reduceat(touching, first, axis=0, dtype=int)
    return int(np.minimum(number, limit[:, None]).sum(axis=0).max())


def _points(m: Model, boxes: GeomBoxes, geom: int) -> tuple[np.ndarray, float]:
    """Return points in the world and the radius of spheres around them that cover a geom."""
    kind = GeomType(m.structure.geom_type[geom])
    half, center, geom_rot = boxes.half[geom], boxes.center[geom], boxes.rot[geom].T
    if kind in MESH_TYPES and (corners := hull_corners(m, boxes, geom)) is not None:
        return corners[np.unique(np.argmax(corners @ _NEIGHBOR_DIRECTIONS.T, axis=0))], 0.0
    if kind in (GeomType.SPHERE, GeomType.CAPSULE):
        radius = half[0]
        ends = np.array([[0, 0, z] for z in {half[2] - radius, radius - half[2]}])
        return center + ends @ geom_rot, float(radius)
    if kind == GeomType.ELLIPSOID:
        return center + (np.concatenate([np.eye(3), -np.eye(3)]) * half) @ geom_rot, 0.0
    if kind == GeomType.CYLINDER:
        ring = np.stack([np.cos(_RIM_ANGLES), np.sin(_RIM_ANGLES), np.ones(_RIM_POINTS)], axis=1)
        return center + (np.concatenate([ring, ring * [1, 1, -1]]) * half) @ geom_rot, 0.0
    return center + (UNIT_BOX_CORNERS * half) @ geom_rot, 0.0


def _resting_face_normals(point: np.ndarray, rot: np.ndarray) -> np.ndarray:
    """Return the outward unit normals of the faces on which a body may lie, (n, 3)."""
    from scipy.spatial import ConvexHull, QhullError  # late: slow to import, and few models need it

    axes = rot.transpose(0, 2, 1).reshape(-1, 3)
    sides = [axes, -axes]
    if len(point) > 3:
        with suppress(QhullError):  # flat: it lies on a face of a box
            sides.append(ConvexHull(point).equations[:, :3])
    normal = np.concatenate(sides)
    _, first = np.unique(np.round(normal / _MIN_NORMAL_DIFFERENCE), axis=0, return_index=True)
    return normal[np.sort(first)][:_MAX_SIDES]
