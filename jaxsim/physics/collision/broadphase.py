"""A cheap test that no touching pair fails: bounding spheres, and of a plane the half space below it."""

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import GeomType
from jaxsim.physics.collision.shape import Placed
from jaxsim.physics.tree import take


def near(kind: tuple[int, int], geoms: Placed, rbound, geom1: np.ndarray, geom2: np.ndarray, reach):
    """Whether pairs may have a contact.

    Args:
      kind: types of the geoms.
      geoms: all geoms, `[ngeom, *W]`.
      rbound: radii of their bounding spheres.
      geom1, geom2: constant ids, `[n]`.
      reach: distance up to which contacts are found, `[n, *W]`.

    Returns:
      bool `[n, *W]`.
    """
    offset = take(geoms.pos, geom2) - take(geoms.pos, geom1)
    reach = reach + take(rbound, geom2)
    if kind[0] == GeomType.PLANE:
        return take(geoms.axis, geom1).dot(offset) <= reach
    reach = jnp.maximum(reach + take(rbound, geom1), 0)
    return offset.dot(offset) <= reach * reach
