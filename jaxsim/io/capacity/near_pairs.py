"""Count the geom pairs that are near each other in the initial configuration.

In assemblies of parts a geom has many neighbors, which follow from the poses (initial_poses.py) and
not from the kinematic tree. Two geoms are near if a small motion brings them into contact.
"""

import numpy as np

from jaxsim.enums import GeomType
from jaxsim.io.capacity.initial_poses import GeomBoxes, gap_between_boxes, may_touch
from jaxsim.model.model import Model
from jaxsim.model.option import NO_CONTACTS
from jaxsim.physics.collision.candidates.default_capacity import DEFAULT_REST_POINTS, REST_POINTS
from jaxsim.physics.collision.candidates.pairs import known_pairs

_TOUCHING_SHARE = 0.5  # fraction of the initially near pairs that touch at once in dense packings
_SPARE_FACTOR = 1.25  # safety factor for pairs that come near later
_CAPACITY_MULTIPLE = 8  # rounding, so that small displacements of a part give the same program
_NEAR_GAP = 0.05  # gap below which geoms are near, relative to the radius of the smaller box


def near_at_start(m: Model, boxes: GeomBoxes) -> dict[str, np.ndarray | int]:
    """Return the numbers of near pairs and of contacts in `qpos0`, with a safety margin.

    Args:
      m: a model whose leaves are on the host.
      boxes: bounding boxes of its geoms (boxes_at_start).

    Returns:
      Tables of the structure. `kind_near`: number of near pairs, int32 `[types, types]`, by the
        types of the first and second geom. `nstart`: number of contacts if every touching pair, or
        half of the near ones, touches at as many points as one of its geoms rests on.
    """
    s = m.structure
    pairs = known_pairs(s, int(m.opt.disableflags) & ~int(NO_CONTACTS))
    near = np.stack([pairs.geom1, pairs.geom2])
    # the first test is inexpensive and rejects most pairs
    for between in (_gap_between_spheres, gap_between_boxes):
        near = near[:, between(boxes, *near) <= _NEAR_GAP * boxes.radius[near].min(axis=0)]
    touching = near[:, gap_between_boxes(boxes, *near) <= 0]
    touching = touching[:, may_touch(m, boxes, *touching)]

    number = np.zeros((len(GeomType), len(GeomType)))
    np.add.at(number, tuple(s.geom_type[near]), 1)
    points = np.array([REST_POINTS.get(g, DEFAULT_REST_POINTS) for g in GeomType])
    at_start, later = (points[s.geom_type[x]].min(axis=0).sum() for x in (touching, near))
    contacts = max(_SPARE_FACTOR * at_start, _TOUCHING_SHARE * later)
    return {
        "kind_near": _round_up(_SPARE_FACTOR * number).astype(np.int32),
        "nstart": int(_round_up(contacts)),
    }


def _round_up(number: np.ndarray | float) -> np.ndarray:
    return np.ceil(np.asarray(number) / _CAPACITY_MULTIPLE) * _CAPACITY_MULTIPLE


def _gap_between_spheres(boxes: GeomBoxes, geom1: np.ndarray, geom2: np.ndarray) -> np.ndarray:
    """Return the distance between bounding spheres minus the contact reach, `[n]`."""
    around = boxes.radius + boxes.reach
    distance = sum((x[geom2] - x[geom1]) ** 2 for x in boxes.center.T) ** 0.5
    return distance - around[geom1] - around[geom2]
