"""Input and output of the narrow phase: geoms in the world, and candidate contacts.

A collider is a function `(a, b) -> ContactPoints` of two `PlacedGeoms` with `[n, *W]` items, one
per pair. Its result has `[k, n, *W]` items, where k is the static maximum of contact points of such
a pair; a point that does not exist in a state has `dist = NO_CONTACT_DISTANCE`. The driver selects
by distance which points become contacts.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.gather import column, gather
from jaxsim.math import Rot, Vec, concat, select_where
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.collision.contact_ids import IdArray
from jaxsim.transforms.platform import platform


class PlacedGeoms(NamedTuple):
    """Geoms in the world frame.

    Attributes:
      pos: center [m].
      rot: orientation; its columns are the axes of the geom.
      size: MuJoCo's `geom_size`: radius and half lengths, half extents or semi-axes [m].
      id: geom id, the index into tables of meshes and height fields.
      box: center in the world and half sizes of the bounding box along the geom's axes [m]; None if
        the broad phase of the model uses no boxes.
    """

    pos: Vec
    rot: Rot
    size: Vec
    id: Array
    box: tuple[Vec, Vec] | None = None

    @property
    def axis(self) -> Vec:
        """Return the geom's z axis: normal of a plane, axis of a capsule or cylinder."""
        return self.rot.cols[2]


def place_geoms(m: Model, d: Data) -> PlacedGeoms:
    """Return all geoms in the world frame, `[ngeom, *W]`."""
    size = Vec(*(m.geom_size[:, k] for k in range(3)))
    ids = jnp.asarray(column(np.arange(m.ngeom, dtype=np.int32), d.geom_xpos))
    return PlacedGeoms(d.geom_xpos, d.geom_xmat, size, ids)


class ContactPoints(NamedTuple):
    """Contact points that a collider returns.

    Attributes:
      dist: signed distance of the surfaces, negative in penetration [m].
      pos: the point midway between the surfaces [m].
      normal: unit vector from the first geom to the second.
      tangent: direction of the first tangent, or None if the contact frame chooses it.
      dropped: 1 where a pair had more points than its maximum, `[n, *W]`; None: never.
      speculative: speculative contact, which acts at any distance; None if there is none.
    """

    dist: jax.Array
    pos: Vec
    normal: Vec
    tangent: Vec | None = None
    dropped: jax.Array | None = None
    speculative: jax.Array | None = None


class PointTable(NamedTuple):
    """Geometry of the contact points of several groups, one after the other.

    Attributes:
      parts: those of each group, `[points, *W]`, all with the same fields.
    """

    parts: tuple[ContactPoints, ...]

    @classmethod
    def of(cls, tables: Sequence["PointTable"]) -> "PointTable":
        """Return the table of several groups; fields that only some of them have are filled."""
        parts = [part for table in tables for part in table.parts]
        if any(p.tangent is not None for p in parts):  # a zero tangent leaves it to the frame
            parts = [
                p if p.tangent is not None else p._replace(tangent=p.normal.map(jnp.zeros_like))
                for p in parts
            ]
        if any(p.speculative is not None for p in parts):
            parts = [
                p
                if p.speculative is not None
                else p._replace(speculative=jnp.zeros(p.dist.shape, bool))
                for p in parts
            ]
        return cls(tuple(parts))

    @property
    def dist(self) -> Array:
        """Return the distances of all points."""
        return jnp.concatenate([part.dist for part in self.parts])

    def joined(self) -> ContactPoints:
        """Return all points."""
        return concat(self.parts)

    def take(self, index: Array) -> ContactPoints:
        """Return the points at an index `[k, *W]` that differs between worlds."""
        if not platform().fuses_calls:
            return gather(self.joined(), index)
        # Select among the groups: in a kernel this is cheaper than to join them.
        start = len(self.parts[0].dist)
        chosen = gather(self.parts[0], jnp.minimum(index, start - 1))
        for part in self.parts[1:]:
            last = len(part.dist) - 1
            some = gather(part, jnp.clip(index - start, 0, last))
            chosen = select_where(index >= start, some, chosen)
            start += len(part.dist)
        return chosen


class CandidatePoints(NamedTuple):
    """Candidate contacts, `[points, *W]`: those of all groups, of which some become contacts.

    Attributes:
      touch: geometry of the contact points.
      pair: candidate pair of each.
      found: the distance is within reach of the pair.
      item: flex items on both sides, `no_item` for a geom (flex/item.py); None if no flex can
        collide.
      rank: sort key of MuJoCo's order; None if no flex can collide.
    """

    touch: PointTable
    pair: IdArray
    found: jax.Array
    item: tuple[IdArray, IdArray] | None = None
    rank: IdArray | None = None


def add_slot_axis(x: PyTree) -> PyTree:
    """Add a leading axis of one contact point to an array, value or geoms `[n, *W]`."""
    return jax.tree.map(lambda a: a[None], x)


def per_slot(numbers: list[int] | np.ndarray | tuple, like: Array) -> np.ndarray:
    """Return constants, one per contact point, as `[k, 1, 1...]` for `like` `[n, *W]`."""
    return np.asarray(numbers, like.dtype).reshape((-1,) + (1,) * len(like.shape))


def touch_if(exists: Array, touch: ContactPoints) -> ContactPoints:
    """Return `touch` where `exists`, else with a distance of NO_CONTACT_DISTANCE."""
    return touch._replace(dist=jnp.where(exists, touch.dist, NO_CONTACT_DISTANCE))


def choose_static(index: Array, choices: Sequence[PyTree]) -> PyTree:
    """Return `choices[index]` by comparison, for a traced index and a few values of equal shape."""
    chosen = choices[0]
    for k in range(1, len(choices)):
        chosen = select_where(index == k, choices[k], chosen)
    return chosen


# Each axis followed by the other two in cyclic order.
CYCLIC_AXES = ((0, 1, 2), (1, 2, 0), (2, 0, 1))


def permute_parts(parts: tuple, axis: Array | int) -> tuple:
    """Permute three values, one per axis, cyclically; `axis` (static or traced) comes first."""
    if isinstance(axis, int):
        return tuple(parts[k] for k in CYCLIC_AXES[axis])
    return tuple(
        choose_static(axis, [parts[CYCLIC_AXES[a][k]] for a in range(3)]) for k in range(3)
    )
