"""Surfaces that move while their geoms are at rest: conveyor belts, turntables.

MuJoCo's documentation, XML reference: geom/surfacevel. The relative surface velocity is the
reference velocity of the friction rows (constraint/contact/rows.py).
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.math import Spatial, Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.collision.candidates.pairs import GeomPairs
from jaxsim.physics.collision.contact_ids import IdArray
from jaxsim.physics.collision.driver import Contacts


def surface_velocity(
    m: Model, d: Data, pairs: GeomPairs, c: Contacts
) -> tuple[jax.Array, jax.Array, jax.Array] | None:
    """Return the velocity of the second surface relative to the first at contacts, in their frames.

        sigma(x) = v + w x (x - p),   v and w fixed in the geom, p its center

    It has no component along the normal and no rolling.

    Args:
      m: model.
      d: data with the poses of the geoms.
      pairs: all candidate pairs.
      c: contacts, `[ncontact, *W]`.

    Returns:
      Along the first and the second tangent [m/s], and spin about the normal [rad/s], `[ncontact,
      *W]` each. None if no geom that can collide has a moving surface.
    """
    has = np.append(m.geom_hassurfacevel, np.zeros(m.nflex, bool))
    if not (has[pairs.geom1] | has[pairs.geom2]).any():
        return None
    v = m.geom_surfacevel
    linear, angular = (d.geom_xmat @ Vec(*(v[:, first + k] for k in range(3))) for first in (0, 3))

    def at(geom: IdArray) -> Spatial:
        """Return the surface motion of a geom at the contact points."""
        some = geom.look_up(np.append(np.arange(m.ngeom), 0)) if c.item is not None else geom
        center, lin, ang = some.take((d.geom_xpos, linear, angular))
        motion = Spatial.of(ang, lin + ang.cross(c.pos - center))
        if c.item is None:
            return motion
        return motion.map(lambda a: jnp.where(c.each(geom) < 0, 0, a))  # flexes have none

    # Relative surface motion, in the contact frame.
    apart = at(c.geom[1]) - at(c.geom[0])
    normal, tangent1, tangent2 = c.frame.rows
    return tangent1.dot(apart.lin), tangent2.dot(apart.lin), normal.dot(apart.rot)
