"""Line-of-sight test of speculative contacts: whether another geom is between the two.

MuJoCo's documentation, Computation: Speculative contacts (Line-of-sight raycasting). It mentions
one ray from one contact point to the other; by experiment there are three: one along the path of
each point up to the impact, against everything its geom can collide with, and one across the
remaining gap, for the geom that travels farther. A geom that is already in contact is no obstacle.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column
from jaxsim.enums import GeomType
from jaxsim.math import Vec, select_where
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.collision.candidates.plan import CollisionLayout
from jaxsim.physics.collision.convex.solid import CONVEX_TYPES
from jaxsim.physics.ray.cast import Rays, cast_rays


class Way(NamedTuple):
    """The paths of contact points, `[slots, n, *W]`.

    Attributes:
      start: present position.
      end: position at the time of impact.
    """

    start: Vec
    end: Vec


def obstacles(
    m: Model, plan: CollisionLayout, geom: np.ndarray, other: np.ndarray, acts: Array
) -> Array:
    """Return which geoms can hide the contact points of each geom, `[n, ngeom, *W]` bool.

    A geom is an obstacle if the two can collide and have no active contact.

    Args:
      m: model.
      plan: the plan of the collisions.
      geom: the geoms, `[n]`.
      other: the geom that each would hit, which is no obstacle, `[n]`.
      acts: which candidate pairs have an active contact, `[npairs, *W]`.
    """
    first, second = plan.pairs.geom1, plan.pairs.geom2
    # Candidate pair of any two geoms, -1 for none.
    pair = np.full((m.ngeom, m.ngeom), -1)
    geoms = np.flatnonzero(second < m.ngeom)  # flexes are no obstacles
    first, second = first[geoms], second[geoms]
    pair[first, second] = pair[second, first] = geoms
    # Only planes and convex geoms are obstacles, except the geom that would be hit.
    followed = np.isin(m.geom_type, (GeomType.PLANE, *CONVEX_TYPES))
    known = np.where(followed, pair[geom], -1)
    known[np.arange(len(geom)), other] = -1
    return jnp.asarray(column(known >= 0, acts)) & ~acts[np.maximum(known, 0)]


def has_line_of_sight(
    m: Model, d: Data, ways: tuple[Way, Way], hides: tuple[Array, Array], second_leads: Array
) -> Array:
    """Return whether the paths of contact points are free of obstacles, `[slots, n, *W]` bool.

    Args:
      m: model.
      d: data with the poses of the geoms.
      ways: path of the point of the first geom, and of that of the second.
      hides: which geoms are obstacles to each, `[n, ngeom, *W]`.
      second_leads: the second geom travels farther than the first, `[n, *W]`.
    """
    one, other = ways
    shape = jnp.broadcast_shapes(*(x.shape for x in jax.tree.leaves(ways)))
    slots = shape[0]

    def flat(x: Array) -> Array:
        return jnp.broadcast_to(x, shape).reshape(-1, *shape[2:])

    def of_slots(hides: Array) -> Array:
        hides = jnp.broadcast_to(hides, (*hides.shape[:2], *shape[2:]))
        return jnp.tile(hides, (slots, *(1,) * (hides.ndim - 1)))

    # Three rays per point: both paths, and the gap at impact.
    gap = Way(
        select_where(second_leads, other.end, one.end),
        select_where(second_leads, one.end, other.end),
    )
    across = jnp.where(second_leads[:, None], hides[1], hides[0])
    rays = [
        (jax.tree.map(flat, way), of_slots(of_way))
        for way, of_way in ((one, hides[0]), (other, hides[1]), (gap, across))
    ]
    way, sees = jax.tree.map(lambda *x: jnp.concatenate(x), *rays)
    start, end = lax.stop_gradient(way)
    geoms = np.arange(m.ngeom, dtype=np.int32)
    # A hit within the length of a ray hides the point.
    hits = cast_rays(m, d, Rays(start, end - start, (), sees=sees), geoms)
    hidden = ((hits.dist >= 0) & (hits.dist <= 1)).reshape(3, *shape)
    return ~jnp.any(hidden, axis=0)
