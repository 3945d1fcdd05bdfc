"""Norms of residuals, by the names of MuJoCo MPC.

A norm maps a residual x (n,) to a cost; a sum is over its components. The parameter p is the size
of x, in the unit of x, at which a norm passes from one form to the other; q, and the p of `power`,
are exponents of at least 1. All are convex.

    quadratic       x'x / 2
    l2              sqrt(x'x + p^2) - p
    l22             ((x'x)^(q/2) + p^q)^(1/q) - p
    cosh            sum p^2 (cosh(x / p) - 1)
    power           sum |x|^p
    smooth_abs      sum (sqrt(x^2 + p^2) - p)
    smooth_abs2     sum ((|x|^q + p^q)^(1/q) - p)
    rectify         sum p log(1 + exp(x / p))
    huber           sum (x^2 / 2 where |x| <= p, else p (|x| - p / 2))

`huber` is not in MuJoCo MPC; `rectify` is p times that of MuJoCo MPC, so that its slope tends to 1.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.spelling import remedy


class Norm(NamedTuple):
    """A norm: (x, p, q) -> cost, and the defaults of its parameters."""

    function: Callable[..., jax.Array]
    defaults: tuple[float, ...]


def _power(x: jax.Array, p: jax.Array) -> jax.Array:
    """Return |x|^p for p >= 1, with derivatives of zero at zero."""
    zero = x == 0
    return jnp.where(zero, 0, jnp.where(zero, 1, jnp.abs(x)) ** p)


def _quadratic(x):
    return jnp.sum(x * x) / 2


def _l2(x, p):
    return jnp.sqrt(jnp.sum(x * x) + p * p) - p


def _l22(x, p, q):
    return (_power(jnp.sum(x * x), q / 2) + p**q) ** (1 / q) - p


def _cosh(x, p):
    return jnp.sum(p * p * (jnp.cosh(x / p) - 1))


def _power_sum(x, p):
    return jnp.sum(_power(x, p))


def _smooth_abs(x, p):
    return jnp.sum(jnp.sqrt(x * x + p * p) - p)


def _smooth_abs2(x, p, q):
    return jnp.sum((_power(x, q) + p**q) ** (1 / q) - p)


def _rectify_norm(x, p):
    return jnp.sum(p * jax.nn.softplus(x / p))


def _huber(x, p):
    near = jnp.abs(x) <= p
    return jnp.sum(jnp.where(near, x * x / 2, p * (jnp.abs(x) - p / 2)))


NORMS = {
    "quadratic": Norm(_quadratic, ()),
    "l2": Norm(_l2, (0.1,)),
    "l22": Norm(_l22, (0.1, 2.0)),
    "cosh": Norm(_cosh, (1.0,)),
    "power": Norm(_power_sum, (2.0,)),
    "smooth_abs": Norm(_smooth_abs, (0.1,)),
    "smooth_abs2": Norm(_smooth_abs2, (0.1, 2.0)),
    "rectify": Norm(_rectify_norm, (0.1,)),
    "huber": Norm(_huber, (1.0,)),
}


def norm_named(name: str) -> Norm:
    """Return the norm of a name.

    Raises:
      ValueError: there is no such norm; suggests the nearest name.
    """
    if name not in NORMS:
        known = "; there are: " + ", ".join(NORMS)
        raise ValueError(f"norm: no norm is called {name!r}{remedy(str(name), NORMS, known)}")
    return NORMS[name]
