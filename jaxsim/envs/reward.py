"""Reward terms that are 1 where a quantity is in its bounds, and decrease outside of them.

Y. Tassa et al., DeepMind Control Suite, 2018, section 2: rewards between 0 and 1, whose terms are
multiplied.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.spelling import remedy


class Falloff(NamedTuple):
    """Decrease of a term with the distance x, in units in which it is v at distance 1.

    Attributes:
      scale: function of v such that `value(scale(v)) == v`.
      value: function of the scaled distance.
      zero: whether v may be 0.
    """

    scale: Callable[[float], float]
    value: Callable[[jax.Array], jax.Array]
    zero: bool = False


def _within_unit_distance(x: jax.Array, value: jax.Array) -> jax.Array:
    return jnp.where(jnp.abs(x) < 1, value, jnp.zeros((), value.dtype))


FALLOFFS = {
    "gaussian": Falloff(lambda v: math.sqrt(-2 * math.log(v)), lambda x: jnp.exp(-0.5 * x * x)),
    "hyperbolic": Falloff(lambda v: math.acosh(1 / v), lambda x: 1 / jnp.cosh(x)),
    "long_tail": Falloff(lambda v: math.sqrt(1 / v - 1), lambda x: 1 / (x * x + 1)),
    "reciprocal": Falloff(lambda v: 1 / v - 1, lambda x: 1 / (jnp.abs(x) + 1)),
    "cosine": Falloff(
        lambda v: math.acos(2 * v - 1) / math.pi,
        lambda x: _within_unit_distance(x, 0.5 * (1 + jnp.cos(math.pi * x))),
        zero=True,
    ),
    "linear": Falloff(
        lambda v: 1 - v, lambda x: _within_unit_distance(x, 1 - jnp.abs(x)), zero=True
    ),
    "quadratic": Falloff(
        lambda v: math.sqrt(1 - v), lambda x: _within_unit_distance(x, 1 - x * x), zero=True
    ),
    "tanh_squared": Falloff(lambda v: math.atanh(math.sqrt(1 - v)), lambda x: 1 - jnp.tanh(x) ** 2),
}


def tolerance(
    x: jax.Array,
    bounds: tuple[float, float] = (0.0, 0.0),
    *,
    margin: float = 0.0,
    fall: str = "gaussian",
    at_margin: float = 0.1,
) -> jax.Array:
    """Return 1 where `x` is in the bounds, and less outside of them.

    Args:
      x: the quantity, any shape.
      bounds: least and largest value wanted; `math.inf` for none.
      margin: distance from the bounds at which the result is `at_margin`; 0: the result is 0
        outside.
      fall: "gaussian", "hyperbolic", "long_tail", "reciprocal", "cosine", "linear", "quadratic" or
        "tanh_squared".
      at_margin: see `margin`; between 0 and 1, and 0 itself for "cosine", "linear", "quadratic".

    Returns:
      In [0, 1], the shape of `x`.

    Raises:
      ValueError: an argument is out of its range.

    Example:
      >>> x = jnp.array([0.5, 1.0, 2.0])
      >>> tolerance(x, (0.0, 1.0), margin=2.0, fall="linear", at_margin=0.0)
      Array([1. , 1. , 0.5], dtype=float64)
    """
    low, high = bounds
    if not low <= high:
        raise ValueError(f"bounds: expected the lower first, got {bounds}")
    if not margin >= 0:
        raise ValueError(f"margin: expected at least 0, got {margin}")
    if fall not in FALLOFFS:
        raise ValueError(f"fall: {fall!r} is not known{remedy(fall, FALLOFFS, '')}")
    if not (0 < at_margin < 1 or (FALLOFFS[fall].zero and at_margin == 0)):
        raise ValueError(f"at_margin: expected a number between 0 and 1, got {at_margin}")
    inside = (low <= x) & (x <= high)
    if margin == 0:
        return inside.astype(x.dtype)
    beside = jnp.where(x < low, low - x, x - high) / margin
    # inside the bounds the value is not used: a distance of 0 keeps its derivative finite
    beside = jnp.where(inside, jnp.zeros((), x.dtype), beside)
    value = FALLOFFS[fall].value(beside * FALLOFFS[fall].scale(at_margin))
    return jnp.where(inside, jnp.ones((), x.dtype), value)
