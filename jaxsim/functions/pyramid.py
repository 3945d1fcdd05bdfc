"""Convert a contact force to forces along the edges of its friction pyramid, and back.

Edges e[2k], e[2k+1] are normal +- mu[k] tangent[k], k = 0, 1, ... (MuJoCo's documentation,
Computation: Friction cones).
"""

import jax.numpy as jnp

from jaxsim.arrays.array import Array


def encode_pyramid(force: Array, mu: Array) -> Array:
    """Return edge forces that sum to a contact force. Corresponds to `mju_encodePyramid` in MuJoCo.

    Of the infinitely many solutions, the one in which the pairs of edges share the normal force
    equally. A tangential force beyond the friction limit of its pair is clipped.

    Args:
      force: in the contact frame, (dim,): normal, then tangential.
      mu: friction coefficients, (dim - 1,) or longer.

    Returns:
      (2 (dim - 1),), or (1,) without friction.
    """
    force, mu = jnp.asarray(force), jnp.asarray(mu)
    pairs = len(force) - 1
    if not pairs:
        return force
    share = force[0] / pairs
    along = jnp.minimum(share, force[1:] / mu[:pairs])
    return jnp.stack([share + along, share - along], axis=1).ravel() / 2


def decode_pyramid(pyramid: Array, mu: Array) -> Array:
    """Return the contact force of edge forces. Corresponds to `mju_decodePyramid` in MuJoCo.

    Args:
      pyramid: (2 (dim - 1),), or (1,) without friction.
      mu: friction coefficients, (dim - 1,) or longer.

    Returns:
      (dim,), in the contact frame.
    """
    pyramid, mu = jnp.asarray(pyramid), jnp.asarray(mu)
    if len(pyramid) == 1:
        return pyramid
    up, down = pyramid[0::2], pyramid[1::2]
    return jnp.concatenate([jnp.sum(pyramid)[None], mu[: len(up)] * (up - down)])
