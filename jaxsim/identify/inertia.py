"""Log-Cholesky coordinates of mass, center of mass and inertia: ten unknowns, always physical.

The mass distribution of a body has a pseudo-inertia, about the origin of the body's frame:

    J = [[S, h], [h', mass]],   S = integral of x x' dm,   h = mass com

A body of positive mass is physical if and only if J is positive definite (Traversaro, Brossette,
Escande, Nori 2016; Wensing, Kim, Slotine 2018), so J = U U' with an upper triangle U, and every U
with a positive diagonal is a physical body (Rucker, Wensing 2022):

    U = exp(alpha) [[exp(d1), s12, s13, t1], [0, exp(d2), s23, t2], [0, 0, exp(d3), t3],
                    [0, 0, 0, 1]]

From it mass = exp(2 alpha), com = t, and the second moments C about the center of mass are
mass L L', with the upper triangle L of the d and s. The rotational inertia is trace(C) 1 - C.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.functions.principal import principal
from jaxsim.math.quaternion import quat_to_matrix

INERTIA_COORDINATES = ("alpha", "d1", "d2", "d3", "s12", "s23", "s13", "t1", "t2", "t3")
PHYSICAL_NAMES = ("mass", "com_x", "com_y", "com_z", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
OFF_DIAGONAL_PAIRS = ((0, 1), (0, 2), (1, 2))


def from_body(mass, ipos, iquat, inertia) -> np.ndarray:
    """Return the ten coordinates of a body of a model.

    Args:
      mass: mass [kg].
      ipos: center of mass in the body frame, (3,) [m].
      iquat: principal axes in the body frame, (4,).
      inertia: principal moments, (3,) [kg m^2].

    Returns:
      The coordinates in the order of `INERTIA_COORDINATES`, (10,), in float64.

    Raises:
      ValueError: the body is not physical: its mass is not positive, or its moments violate the
        triangle inequality or meet it with equality.
    """
    mass, ipos, iquat, inertia = (np.asarray(a, np.float64) for a in (mass, ipos, iquat, inertia))
    principal_moments = inertia.sum() / 2 - inertia
    if not (mass > 0 and (principal_moments > 0).all()):
        raise ValueError(
            f"inertia: expected a positive mass and moments of which no two sum to the third or "
            f"less, got mass {mass:g} and moments {inertia}; give the body a volume"
        )
    axes = quat_to_matrix(iquat)
    second_moments = (axes * (principal_moments / mass)) @ axes.T
    # Upper triangular factor L of L L': Cholesky of the matrix with rows and columns reversed,
    # reversed back.
    upper = np.linalg.cholesky(second_moments[::-1, ::-1])[::-1, ::-1]
    diagonal = np.log(np.diag(upper))
    return np.array(
        [np.log(mass) / 2, *diagonal, upper[0, 1], upper[1, 2], upper[0, 2], *ipos], np.float64
    )


def to_body(theta: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Return mass, center of mass and inertia of coordinates, in the form of a model.

    Equal second moments are separated by the square root of the precision, so that the derivative
    of the inertia is defined where principal axes of equal moments are arbitrary.

    Args:
      theta: the coordinates, (10,).

    Returns:
      mass () [kg], ipos (3,) [m], iquat (4,), principal moments (3,) [kg m^2].
    """
    mass = jnp.exp(2 * theta[0])
    upper = _upper(theta)
    quat, principal_moments = principal(mass * (upper @ upper.T))
    return mass, theta[7:], quat, jnp.sum(principal_moments) - principal_moments


def physical_values(theta: jax.Array) -> jax.Array:
    """Return mass, center of mass and inertia about it in the body frame, as in
    `PHYSICAL_NAMES`."""
    mass = jnp.exp(2 * theta[0])
    upper = _upper(theta)
    second_moments = mass * (upper @ upper.T)
    inertia = jnp.trace(second_moments) * jnp.eye(3, dtype=theta.dtype) - second_moments
    off = [inertia[i, j] for i, j in OFF_DIAGONAL_PAIRS]
    return jnp.concatenate([mass[None], theta[7:], jnp.diag(inertia), jnp.stack(off)])


def _upper(theta: jax.Array) -> jax.Array:
    """Return the upper triangle L of the second moments per mass, L L', (3, 3)."""
    d, (s12, s23, s13) = jnp.exp(theta[1:4]), theta[4:7]
    zero = jnp.zeros_like(s12)
    rows = ((d[0], s12, s13), (zero, d[1], s23), (zero, zero, d[2]))
    return jnp.stack([jnp.stack(row) for row in rows])
