"""Smooth contact: contact forces that act from a distance, so that gradients exist before touch.

The force of a contact as a function of r = distance - margin has a kink at r = 0. With a smoothing
length h (`m.smooth`) its rows are those of a contact at the softplus

    s(r) = -h log(1 + exp(-r / h))          always inside: r deep inside, 0 far away

whose impedance is multiplied by the weight

    w(r) = -ds/dr = 1 / (1 + exp(r / h))    1 deep inside, 1/2 in touch, 0 far away

The first smooths the position term of the reference acceleration; the second smooths the rest,
damping and unconstrained acceleration, since the force of a single contact is proportional to its
impedance. A contact point that separates fades out, so several points of a pair share the force
continuously. Only the constraint rows change; distances, points and margins are geometric.

Contact forces from a distance for the sake of gradients: Paulus, Geist et al., Differentiable
Simulation of Hard Contacts with Soft Gradients for Learning and Control, ICLR 2026
(arXiv:2506.14186). There they exist in the derivative only; here also in the motion, and the
derivative is exact. Softplus: Dugas et al., Incorporating second-order functional knowledge for
better option pricing, NIPS 2000.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column
from jaxsim.enums import MINVAL
from jaxsim.model.model import Model

SMOOTHING_CUTOFF = 10.0  # cutoff in smoothing lengths; the weight beyond is below 5e-5


def smoothing_lengths(
    m: Model, like: Array, adhesion: Array | None, alone: Array | np.ndarray
) -> Array | None:
    """Return the smoothing length h of contacts or pairs, 0 if they are not smooth; None: off.

    Contacts with adhesion pull as well as push and stay as they are. Self-collision of a flex is
    not smoothed: neighboring elements would always repel each other.

    Args:
      m: model.
      like: an array with one item for each, `[n, *W]`.
      adhesion: see ContactParams.
      alone: which are self-collisions of a flex, `[n]` or `[n, *W]` bool.
    """
    if m.smooth is None:
        return None
    h = jnp.maximum(m.smooth, 0)
    h = jnp.broadcast_to(h, jnp.broadcast_shapes(h.shape, like.shape))
    h = h if adhesion is None else jnp.where(adhesion == 0, h, 0)
    if isinstance(alone, np.ndarray):
        return jnp.where(column(alone, h), 0, h) if alone.any() else h
    return jnp.where(alone, 0, h)


def extend_distance(distance: Array, smooth: Array | None) -> Array:
    """Return a distance extended by the cutoff of contacts with the lengths `smooth`."""
    return distance if smooth is None else distance + SMOOTHING_CUTOFF * smooth


def smooth_distance(distance: Array, smooth: Array, active: Array) -> tuple[Array, Array]:
    """Return the distance s(r) and the weight w(r) of contacts in their rows, see the module.

    Args:
      distance: r, distance of the surfaces minus margin, `[n, *W]` [m].
      smooth: h `[n, *W]`; where it is 0, or too small to divide by, s(r) = r and w(r) = 1.
      active: contacts that have rows; the values of others are not used or differentiated.
    """
    # Contacts that are not smooth divide by 1 and are replaced afterwards.
    soft = active & (smooth > MINVAL)
    h = jnp.where(soft, smooth, 1.0)
    x = jnp.where(soft, distance, 0.0) / h
    inside = -h * jnp.logaddexp(-x, jnp.zeros_like(x))
    return jnp.where(soft, inside, distance), jnp.where(soft, jax.nn.sigmoid(-x), 1.0)
