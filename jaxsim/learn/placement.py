"""Placement of a training on several devices, of one process or of several.

The worlds are divided among the devices. Networks, optimizers, statistics and stored data are
copied to each of them; XLA collects what an update needs from all worlds, so that every device
computes the same update. Random numbers belong to the seed or to a world, not to a device. Results
therefore differ from those of one device by rounding alone: sums over worlds have another order.
"""

from typing import Any, NamedTuple

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from jaxsim.batch.devices import Devices, Division, divide_worlds
from jaxsim.batch.processes import place


class Placement(NamedTuple):
    """Devices of a training.

    Attributes:
      division: the worlds of a seed, divided among the devices.
    """

    division: Division

    @classmethod
    def of(cls, worlds: int, devices: Devices) -> "Placement":
        """Return the placement of the worlds of a seed on some devices."""
        return cls(divide_worlds(worlds, devices))

    @property
    def everywhere(self) -> NamedSharding:
        """Return the sharding of arrays that each device has a copy of."""
        return self.division.everywhere

    def shardings(self, form: Any) -> Any:
        """Return the sharding of each leaf of the state of all seeds, given its shapes.

        Worlds, (seeds, worlds, ...), are divided if the devices divide their number.
        """
        everywhere = jax.tree.map(lambda _: self.everywhere, form)
        if self.division.padded != self.division.worlds:
            return everywhere
        by_world = NamedSharding(self.division.mesh, P(None, self.division.axes))
        return everywhere.replace(env_state=jax.tree.map(lambda _: by_world, form.env_state))

    def jit_options(self, form: Any) -> dict[str, dict[str, Any]]:
        """Return the options of `jax.jit` for the functions of a training, by their name.

        Args:
          form: shapes of the state of all seeds.
        """
        own = self.shardings(form)
        return {
            "begin": {"in_shardings": self.everywhere, "out_shardings": own},
            "learn": {"in_shardings": (own,), "out_shardings": own},
            "score": {"in_shardings": (own, self.everywhere), "out_shardings": self.everywhere},
        }

    def place_state(self, state: Any) -> Any:
        """Return a state that this process has restored, on the devices."""
        return jax.tree.map(place, state, self.shardings(state))

    def place_keys(self, keys: jax.Array) -> jax.Array:
        """Return random keys on all devices."""
        copies: jax.Array = place(keys, self.everywhere)
        return copies
