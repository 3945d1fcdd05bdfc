"""What the narrow phase reads and writes: placed geoms, and the points where two of them touch.

A collider is a function `(a, b) -> Touch` of two `Placed` values with `[n, *W]` items, one for each
pair. Its result has `[k, n, *W]` items: k is the number of points such a pair can have, whatever
the state, and a point that does not exist in this state has `dist = FAR`. Which points become
contacts is decided later, by their distance.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.math import Rot, Vec, select
from jaxsim.model.data import FAR, Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array, Tree
from jaxsim.physics.arrays.select import column


class Placed(NamedTuple):
    """Geoms in the world.

    Attributes:
      pos: center [m].
      rot: orientation; its columns are the axes of the geom.
      size: MuJoCo's `geom_size`: radius and half lengths, half extents or semi-axes [m].
      id: number of each geom, by which tables of meshes and fields are asked.
      box: center in the world and half sizes of the bounding box along the geom's axes [m]; None in
        a model in which no pair is tested by it.
    """

    pos: Vec
    rot: Rot
    size: Vec
    id: Array
    box: tuple[Vec, Vec] | None = None

    @property
    def axis(self) -> Vec:
        """The geom's z axis: normal of a plane, axis of a capsule or cylinder."""
        return self.rot.cols[2]


def placed(m: Model, d: Data) -> Placed:
    """All geoms where they are, `[ngeom, *W]`."""
    size = Vec(*(m.geom_size[:, k] for k in range(3)))
    ids = jnp.asarray(column(np.arange(m.ngeom, dtype=np.int32), d.geom_xpos))
    return Placed(d.geom_xpos, d.geom_xmat, size, ids)


class Touch(NamedTuple):
    """Candidate contact points.

    Attributes:
      dist: distance between the surfaces, negative in penetration [m].
      pos: the point midway between the surfaces [m].
      normal: unit vector from the first geom to the second.
      tangent: direction of the first tangent, or None where the frame is free to choose it.
      lost: 1 where a pair had more points than it can have, `[n, *W]`; None: that cannot be.
      ahead: the contact is of what would meet in this step, and acts from any distance; None: none
        is.
    """

    dist: jax.Array
    pos: Vec
    normal: Vec
    tangent: Vec | None = None
    lost: jax.Array | None = None
    ahead: jax.Array | None = None


def slots(x: Tree) -> Tree:
    """Array, value or geoms `[n, *W]` with an axis of one contact point in front."""
    return jax.tree.map(lambda a: a[None], x)


def per_slot(numbers: list[int] | np.ndarray | tuple, like: Array) -> np.ndarray:
    """Constants, one for each contact point, to meet `like` `[n, *W]`: shape `[k, 1, 1...]`."""
    return np.asarray(numbers, like.dtype).reshape((-1,) + (1,) * len(like.shape))


def touch_if(exists: Array, touch: Touch) -> Touch:
    """`touch` where `exists`, else a point that is FAR away."""
    return touch._replace(dist=jnp.where(exists, touch.dist, FAR))


def choose(index: Array, choices: Sequence[Tree]) -> Tree:
    """`choices[index]` by comparison, for a traced index and a few values of equal shape."""
    chosen = choices[0]
    for k in range(1, len(choices)):
        chosen = select(index == k, choices[k], chosen)
    return chosen


# an axis and the other two, in cyclic order
CYCLIC = ((0, 1, 2), (1, 2, 0), (2, 0, 1))


def turned(parts: tuple, axis: Array | int) -> tuple:
    """Three things, one for each axis, in cyclic order from that of `axis` (static or traced)."""
    if isinstance(axis, int):
        return tuple(parts[k] for k in CYCLIC[axis])
    return tuple(choose(axis, [parts[CYCLIC[a][k]] for a in range(3)]) for k in range(3))
