"""How many pairs of geoms are near each other where the model starts.

Parts that are put together are near many others: how many neighbors a geom has is not known from
the tree, but from where the parts are. In `qpos0` no joint moves anything, so that the bodies
stand in each other as they were written. Near are two geoms whose bounding boxes are not separated
by a face of theirs or along the line of their centers, as in the physics
(physics/collision/candidates/broadphase.py), or by a gap that a small motion closes.
"""

from typing import NamedTuple

import numpy as np

from jaxsim.compile.geometry.quaternion import multiply, normalize, rotate, to_matrix
from jaxsim.enums import GeomType
from jaxsim.model.model import NO_CONTACTS, Model
from jaxsim.physics.collision.candidates.pairs import known_pairs

SPARE = 1.25  # on what is near at the start, for what comes near later
GAP = 0.05  # that counts as none, in parts of the smaller box's radius
ROUND_TO = 8  # so that a program is the same where a part is moved a little


class _Boxes(NamedTuple):
    """Boxes in the world: centers, rotations, half sizes, radii; and how far contacts reach."""

    center: np.ndarray
    rot: np.ndarray
    half: np.ndarray
    radius: np.ndarray
    reach: np.ndarray


def near_at_start(m: Model) -> np.ndarray:
    """How many pairs of each kind are near each other in `qpos0`, with some to spare.

    Args:
      m: a model whose leaves are on the host.

    Returns:
      int32 `[types, types]`, by the types of the first and of the second geom.
    """
    kind = m.structure.geom_type
    pairs = known_pairs(m.structure, int(m.opt.disableflags) & ~int(NO_CONTACTS))
    boxes, geoms = _boxes(m), (pairs.geom1, pairs.geom2)
    for touch in (_in_spheres, _in_boxes):  # the first is cheap, and few are left for the second
        near = touch(boxes, *geoms)
        geoms = tuple(geom[near] for geom in geoms)
    number = np.zeros((len(GeomType), len(GeomType)))
    np.add.at(number, tuple(kind[geom] for geom in geoms), 1)
    return (np.ceil(SPARE * number / ROUND_TO) * ROUND_TO).astype(np.int32)


def _boxes(m: Model) -> _Boxes:
    """The boxes of all geoms in `qpos0`."""
    s = m.structure
    body_pos, body_quat, geom_pos, geom_quat, aabb = (
        np.asarray(a, np.float64)
        for a in (m.body_pos, m.body_quat, m.geom_pos, m.geom_quat, m.geom_aabb)
    )
    pos, quat = np.zeros((s.nbody, 3)), normalize(body_quat)
    for body, parent in enumerate(s.body_parentid):
        if body:
            pos[body] = pos[parent] + rotate(quat[parent], body_pos[body])
            quat[body] = multiply(quat[parent], quat[body])
    of = s.geom_bodyid
    geom_quat = multiply(quat[of], normalize(geom_quat))
    center = pos[of] + rotate(quat[of], geom_pos) + rotate(geom_quat, aabb[:, :3])
    reach = np.asarray(m.geom_margin) + np.asarray(m.geom_gap)
    radius = np.linalg.norm(aabb[:, 3:], axis=1)
    return _Boxes(center, to_matrix(geom_quat), aabb[:, 3:], radius, reach)


def _gap(boxes: _Boxes, geom1: np.ndarray, geom2: np.ndarray) -> np.ndarray:
    """Largest gap between two boxes that are near; `[n]`."""
    reach, radius = boxes.reach, boxes.radius
    return reach[geom1] + reach[geom2] + GAP * np.minimum(radius[geom1], radius[geom2])


def _in_spheres(boxes: _Boxes, geom1: np.ndarray, geom2: np.ndarray) -> np.ndarray:
    """Whether the spheres around two boxes are near; bool `[n]`."""
    center, radius = boxes.center, boxes.radius
    distance = sum((x[geom2] - x[geom1]) ** 2 for x in center.T) ** 0.5
    return distance <= radius[geom1] + radius[geom2] + _gap(boxes, geom1, geom2)


def _in_boxes(boxes: _Boxes, geom1: np.ndarray, geom2: np.ndarray) -> np.ndarray:
    """Whether no tried direction separates two boxes; bool `[n]`."""
    a, b = (_Boxes(*(field[geom] for field in boxes)) for geom in (geom1, geom2))
    gap, offset = _gap(boxes, geom1, geom2), b.center - a.center
    in_a, in_b = (np.einsum("nji,nj->ni", g.rot, offset) for g in (a, b))
    turn = np.abs(np.einsum("nji,njk->nik", a.rot, b.rot))  # axes of a along those of b
    gap_a = np.abs(in_a) - a.half - np.einsum("nij,nj->ni", turn, b.half)
    gap_b = np.abs(in_b) - b.half - np.einsum("nij,ni->nj", turn, a.half)
    extent = np.sum(np.abs(in_a) * a.half + np.abs(in_b) * b.half, axis=1)
    distance = np.linalg.norm(offset, axis=1)
    along = distance**2 - extent <= gap * distance
    return (np.maximum(gap_a, gap_b).max(axis=1) <= gap) & along
