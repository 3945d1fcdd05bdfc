"""How many pairs of geoms are near each other, and may touch, where the model starts.

Parts that are put together are near many others: how many neighbors a geom has is not known from
the tree, but from where the parts are (io/room/start.py). Near are two geoms that a small motion
brings together.
"""

import numpy as np

from jaxsim.enums import GeomType
from jaxsim.io.room.start import Boxes, between_boxes, may_touch
from jaxsim.model.model import NO_CONTACTS, Model
from jaxsim.physics.collision.candidates.capacity import MANY, REST_POINTS
from jaxsim.physics.collision.candidates.pairs import known_pairs

SHARE = 0.5  # of what is near at the start, that touches at once in what is packed densely
SPARE = 1.25  # on what is near at the start, for what comes near later
ROUND_TO = 8  # so that a program is the same where a part is moved a little
GAP = 0.05  # across which geoms are near, in parts of the smaller box's radius


def near_at_start(m: Model, boxes: Boxes) -> dict[str, np.ndarray | int]:
    """How much is near or touches in `qpos0`, with some to spare.

    Args:
      m: a model whose leaves are on the host.
      boxes: of its geoms (boxes_at_start).

    Returns:
      Tables of the structure. `kind_near`: pairs that are near, int32 `[types, types]` by the types
      of the first and of the second geom; `nstart`: contacts, if each pair that may touch, or every
      second one that is near, does so on as many points as one of its geoms rests on.
    """
    s = m.structure
    pairs = known_pairs(s, int(m.opt.disableflags) & ~int(NO_CONTACTS))
    near = np.stack([pairs.geom1, pairs.geom2])
    for between in (_between_spheres, between_boxes):  # the first is cheap, and leaves few
        near = near[:, between(boxes, *near) <= GAP * boxes.radius[near].min(axis=0)]
    touching = near[:, between_boxes(boxes, *near) <= 0]
    touching = touching[:, may_touch(m, boxes, *touching)]

    number = np.zeros((len(GeomType), len(GeomType)))
    np.add.at(number, tuple(s.geom_type[near]), 1)
    points = np.array([REST_POINTS.get(g, MANY) for g in GeomType])
    at_start, later = (points[s.geom_type[x]].min(axis=0).sum() for x in (touching, near))
    contacts = max(SPARE * at_start, SHARE * later)
    return {"kind_near": _eights(SPARE * number).astype(np.int32), "nstart": int(_eights(contacts))}


def _eights(number: np.ndarray | float) -> np.ndarray:
    return np.ceil(np.asarray(number) / ROUND_TO) * ROUND_TO


def _between_spheres(boxes: Boxes, geom1: np.ndarray, geom2: np.ndarray) -> np.ndarray:
    """Return the gap between the spheres around two boxes, less how far contacts reach; `[n]`."""
    around = boxes.radius + boxes.reach
    distance = sum((x[geom2] - x[geom1]) ** 2 for x in boxes.center.T) ** 0.5
    return distance - around[geom1] - around[geom2]
