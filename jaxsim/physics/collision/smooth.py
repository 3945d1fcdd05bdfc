"""Smooth contact: contacts that are felt from a distance, so that gradients see them coming.

The force of a contact at the distance r from where it begins to push has no derivative before it
touches, and another one behind. With a length h (`m.smooth`) its rows are those of a contact at

    s(r) = -h log(1 + exp(-r / h))          always inside: r far within, 0 far away

whose impedance is multiplied by the weight

    w(r) = -ds/dr = 1 / (1 + exp(r / h))    1 far within, 1/2 in touch, 0 far away

The first makes the position part of the reference smooth; the second the rest of it, damping and
the share of what the bodies would do otherwise: the force of a lone contact is proportional to its
impedance. A point of contact that goes away fades out, and so several points of a pair share its
force softly. Only the rows change; distances, points and margins are those of the geometry.

Contacts from a distance for the sake of gradients: Paulus, Geist et al., Differentiable Simulation
of Hard Contacts with Soft Gradients for Learning and Control, ICLR 2026 (arXiv:2506.14186). There
they are in the derivative only; here they are in the motion too, and the derivative is exact. The
function s is a softplus (Dugas et al., Incorporating second-order functional knowledge for better
option pricing, NIPS 2000).
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import MINVAL
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import column

REACH = 10.0  # lengths: what is farther is not felt; its weight would be below 5e-5


def lengths(
    m: Model, like: Array, adhesion: Array | None, alone: Array | np.ndarray
) -> Array | None:
    """The length h of contacts or pairs, 0 where they are not smooth; None: off in this model.

    Contacts with adhesion pull as well as push: they begin and end where they did. A flex does not
    feel itself before it touches itself: neighboring elements always would.

    Args:
      m: model.
      like: an array with one item for each, `[n, *W]`.
      adhesion: see ContactParams.
      alone: which are of a flex with itself, `[n]` or `[n, *W]` bool.
    """
    if m.smooth is None:
        return None
    h = jnp.maximum(m.smooth, 0)
    h = jnp.broadcast_to(h, jnp.broadcast_shapes(h.shape, like.shape))
    h = h if adhesion is None else jnp.where(adhesion == 0, h, 0)
    if isinstance(alone, np.ndarray):
        return jnp.where(column(alone, h), 0, h) if alone.any() else h
    return jnp.where(alone, 0, h)


def beyond(distance: Array, smooth: Array | None) -> Array:
    """A distance, and as much farther as contacts with the lengths `smooth` are felt."""
    return distance if smooth is None else distance + REACH * smooth


def felt(distance: Array, smooth: Array, active: Array) -> tuple[Array, Array]:
    """The distance s(r) and the weight w(r) with which contacts enter their rows, see above.

    Args:
      distance: r, distance of the surfaces minus margin, `[n, *W]` [m].
      smooth: h `[n, *W]`; where it is 0, or too small to divide by, s(r) = r and w(r) = 1.
      active: contacts that have rows; of the others nothing is asked, nor differentiated.
    """
    soft = active & (smooth > MINVAL)
    h = jnp.where(soft, smooth, 1.0)
    x = jnp.where(soft, distance, 0.0) / h
    inside = -h * jnp.logaddexp(-x, jnp.zeros_like(x))
    return jnp.where(soft, inside, distance), jnp.where(soft, jax.nn.sigmoid(-x), 1.0)
