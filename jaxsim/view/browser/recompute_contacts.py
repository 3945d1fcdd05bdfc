"""Recompute the contacts of a recorded motion from its states."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.errors import UnsupportedError
from jaxsim.model.allocate import check_supported
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.public.api import forward
from jaxsim.physics.public.make_data import make_data
from jaxsim.view.browser.simulation import kept_fields


class Recall:
    """Program that evaluates worlds at recorded states.

    Args:
      m: the model.

    Attributes:
      possible: whether the model can be simulated.
    """

    def __init__(self, m: Model):
        self._m = m
        self._program = jax.jit(jax.vmap(forward, (None, 0)))
        try:
            check_supported(m)
        except UnsupportedError:
            self.possible = False
        else:
            self.possible = True

    @functools.cached_property
    def _start(self) -> Data:
        return make_data(self._m, keep=kept_fields())

    def of(self, state: dict[str, np.ndarray]) -> Data:
        """Return the worlds at a state with their contacts, and the forces that follow from it.

        Args:
          state: fields of Data by name, (worlds, ...); missing ones have their initial values.
        """
        number = len(state["qpos"])
        start = jax.tree.map(lambda x: jnp.broadcast_to(x, (number, *x.shape)), self._start)
        given = {name: jnp.asarray(x, getattr(start, name).dtype) for name, x in state.items()}
        found: Data = self._program(self._m, start.replace(**given))
        return found
