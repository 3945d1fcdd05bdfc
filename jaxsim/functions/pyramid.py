"""A contact force as forces of the edges of its friction pyramid, and back.

With edges e[2k], e[2k+1] along normal +- mu[k] tangent[k], k = 0, 1, ... (MuJoCo's documentation,
Computation: Friction cones).
"""

import jax.numpy as jnp

from jaxsim.physics.arrays.array import Array


def encode_pyramid(force: Array, mu: Array) -> Array:
    """Return the forces of the edges that give a force, as many of the infinitely many as are
    equal.

    The normal force is shared equally by the pairs of edges. A tangential force that a pair cannot
    hold with its share is cut.

    Args:
      force: in the contact's frame, (dim,): normal, then tangential.
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
    """Return the force of the edges of a pyramid; the inverse of `encode_pyramid`.

    Args:
      pyramid: (2 (dim - 1),), or (1,) without friction.
      mu: friction coefficients, (dim - 1,) or longer.

    Returns:
      (dim,).
    """
    pyramid, mu = jnp.asarray(pyramid), jnp.asarray(mu)
    if len(pyramid) == 1:
        return pyramid
    up, down = pyramid[0::2], pyramid[1::2]
    return jnp.concatenate([jnp.sum(pyramid)[None], mu[: len(up)] * (up - down)])
