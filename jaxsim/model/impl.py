"""The engines of MJX, by which programs written for it choose."""

from enum import Enum


class Impl(Enum):
    """The one engine of MJX's that has a counterpart here: that which is of JAX alone."""

    JAX = "jax"
