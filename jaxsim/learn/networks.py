"""Networks of first-order learners, and the normalization of their inputs.

Layers of a smooth activation, each followed by layer normalization, as in SHAC: the physics
multiplies the derivative of the policy, which normalization bounds.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from flax import struct

_SMALL_OUTPUT = 0.01  # gain of the last layer of a policy: M. Andrychowicz et al., 2021, 3.2
_MIN_VARIANCE = 1e-5  # least variance of an input that is scaled to 1


class _Layers(nn.Module):
    """Hidden layers with normalization."""

    widths: tuple[int, ...]
    activation: str
    dtype: Any

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        activation: Callable = getattr(nn, self.activation)
        for width in self.widths:
            start = nn.initializers.orthogonal(math.sqrt(2.0))
            x = activation(nn.Dense(width, kernel_init=start, param_dtype=self.dtype)(x))
            x = nn.LayerNorm(param_dtype=self.dtype)(x)
        return x


class PolicyNetwork(nn.Module):
    """Mean and logarithm of the standard deviation of a normal distribution.

    Attributes:
      action_size: length of an action.
      widths: widths of the hidden layers.
      activation: name of their activation.
      initial_std: initial standard deviation.
      dtype: precision of the parameters.
    """

    action_size: int
    widths: tuple[int, ...]
    activation: str
    initial_std: float
    dtype: Any

    @nn.compact
    def __call__(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return mean, (..., action_size), and logarithm of the deviation, (action_size,)."""
        x = _Layers(self.widths, self.activation, self.dtype)(x)
        start = nn.initializers.orthogonal(_SMALL_OUTPUT)
        output = nn.Dense(
            self.action_size, kernel_init=start, param_dtype=self.dtype, name="action_mean"
        )
        level = nn.initializers.constant(math.log(self.initial_std))
        return output(x), self.param("action_log_std", level, (self.action_size,), self.dtype)


class ValueNetwork(nn.Module):
    """Value of a state; the attributes are those of `PolicyNetwork`."""

    widths: tuple[int, ...]
    activation: str
    dtype: Any

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Return the values, (...)."""
        x = _Layers(self.widths, self.activation, self.dtype)(x)
        start = nn.initializers.orthogonal(1.0)
        output = nn.Dense(1, kernel_init=start, param_dtype=self.dtype, name="value")
        return output(x)[..., 0]


class RunningStatistics(struct.PyTreeNode):
    """Mean and variance of all observations so far, for each of their entries.

    Attributes:
      count: their number, ().
      mean, variance: of each entry.
    """

    count: jax.Array
    mean: jax.Array
    variance: jax.Array

    @classmethod
    def begin(cls, shape: tuple[int, ...], dtype: Any) -> "RunningStatistics":
        """Return the statistics of no observations: mean 0, variance 1."""
        return cls(jnp.zeros((), dtype), jnp.zeros(shape, dtype), jnp.ones(shape, dtype))

    def normalize(self, x: jax.Array) -> jax.Array:
        """Return observations with mean 0 and standard deviation 1."""
        return (x - self.mean) / jnp.sqrt(self.variance + _MIN_VARIANCE)

    def update(self, x: jax.Array, weight: jax.Array) -> "RunningStatistics":
        """Return the statistics with further observations.

        T. F. Chan et al., Algorithms for Computing the Sample Variance, 1983, (2.1).

        Args:
          x: observations, (n, ...).
          weight: 1 for those that count, else 0, (n,).
        """
        weight = weight.reshape(weight.shape + (1,) * (x.ndim - 1))
        added = jnp.sum(weight)
        divisor = jnp.maximum(added, 1)
        mean = jnp.sum(weight * x, axis=0) / divisor
        variance = jnp.sum(weight * (x - mean) ** 2, axis=0) / divisor
        total = self.count + added
        share = added / jnp.maximum(total, 1)
        shift = mean - self.mean
        spread = share * variance + (1 - share) * self.variance + share * (1 - share) * shift**2
        return RunningStatistics(total, self.mean + share * shift, spread)
