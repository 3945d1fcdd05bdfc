"""How found contacts move with the geoms: the derivative of the search, without the search.

The search stops somewhere in the part that both geoms share, near the points where their normals
are opposite; where exactly depends on the way that led there, a chain of halved steps that jumps.
That way is not differentiated. A found point is taken to go along

  * with both geoms, half of the way with each, as starting points do that lie in the boxes of both;
  * and along the surfaces, as the place does where their normals are opposite: when a geom turns or
    slides, to where the normals make the same angle again.

Distance and normal are differentiated at that point. Distance and depth are not the same here: the
search's last step is a power of two, and leaves a distance from an eleventh to a half of the depth.
"""

import jax.numpy as jnp
from jax import jvp, lax

from jaxsim.math import Vec
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.collision.field.fields import Fields
from jaxsim.physics.collision.field.found import Found
from jaxsim.physics.collision.field.pair import Pair, normals, pair_of, unit
from jaxsim.physics.collision.frame import contact_frame
from jaxsim.physics.collision.shape import Placed, slots

FLAT = (
    0.3  # where surfaces turn by less than this angle over the size of a geom, points hardly move
)


def followed(found: Found, a: Placed, b: Placed, fields: Fields) -> Found:
    """The same contacts, as differentiable functions of the geoms.

    Args:
      found: what the search has found, taken as constants.
      a, b: the geoms.
      fields: of the model.
    """
    found = lax.stop_gradient(found)
    pair = pair_of(a, b, fields)
    fixed: Pair = lax.stop_gradient(pair)

    x = (found.x + pair.to_second(fixed.to_first(found.x))).scale(0.5)
    first, second = pair.distances(x)
    first0, second0 = fixed.distances(found.x)
    change = jnp.where(second0 > first0, second - second0, first - first0)

    turned = _angle(pair, x) - _angle(fixed, found.x)
    size = slots(lax.stop_gradient(fields.box(a)[1].norm()))
    x = x + _way_back(fixed, found, turned, FLAT / size)
    return Found(x, found.dist + change, normals(pair, x))


def _angle(pair: Pair, x: Vec) -> Vec:
    """Sum of both outward unit normals: zero where they are opposite."""
    s = pair.slopes(x)
    return unit(s.slope1) + unit(s.slope2)


def _way_back(pair: Pair, found: Found, turned: Vec, least: Array) -> Vec:
    """The way along the surfaces that undoes a change of the angle between them.

    The least squares (K' K + least^2) way = -K' turned in the plane of contact, with K the sum of
    the curvatures of both surfaces and `least` what counts as flat [1/m].
    """
    t1, t2 = contact_frame(found.normal).rows[1:]
    k1, k2 = (jvp(lambda x: _angle(pair, x), (found.x,), (t,))[1] for t in (t1, t2))
    k11, k12, k21, k22 = t1.dot(k1), t1.dot(k2), t2.dot(k1), t2.dot(k2)
    r1, r2 = t1.dot(turned), t2.dot(turned)
    a = k11 * k11 + k21 * k21 + least * least
    b = k11 * k12 + k21 * k22
    c = k12 * k12 + k22 * k22 + least * least
    g1, g2 = k11 * r1 + k21 * r2, k12 * r1 + k22 * r2
    det = a * c - b * b
    return t1.scale((b * g2 - c * g1) / det) + t2.scale((b * g1 - a * g2) / det)
