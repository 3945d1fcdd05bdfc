"""Warnings while a program runs: which world, which warning, at which time.

Counters in `Data.warning` say after the fact what went wrong. `log_warnings` makes a function that
tells a handler on the host as it happens, by `jax.debug.callback`: under jit, scan and vmap, where
all worlds of a batch are told of together, with their indices. Functions that are not wrapped are
the same programs as before.
"""

import functools
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap

from jaxsim.enums import WarningType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.warning import MEANINGS, about

LOGGER = logging.getLogger("jaxsim")


class WarningEvent(NamedTuple):
    """A warning in one world and call.

    Attributes:
      world: index of the world, over all axes of vmap counted as one, the outermost first.
      type: what went wrong.
      time: of the world before the call [s].
      times: how often it occurred in the call.
      info: what it was about, `Data.warning_lastinfo`.
    """

    world: int
    type: WarningType
    time: float
    times: int
    info: int

    def __str__(self) -> str:
        what, often = (
            about(self.type, self.info),
            "" if self.times == 1 else f", {self.times} times",
        )
        end = f" ({what})" if what else ""
        meaning = MEANINGS[self.type]
        return (
            f"world {self.world}, {self.time:g} s: {self.type.name}{often}: {meaning.what}{end}; "
            f"{meaning.remedy}"
        )


def log(event: WarningEvent) -> None:
    """Write a warning to the logger "jaxsim"."""
    LOGGER.warning("%s", event)


def log_warnings(
    function: Callable[..., Data], handler: Callable[[WarningEvent], None] = log
) -> Callable[..., Data]:
    """Make a function that tells a handler of the warnings that occur in it.

    Args:
      function: `(m, d, ...) -> d`, such as `jaxsim.step`. Of one that makes several steps it is
        told once, with the number of times.
      handler: called on the host with each `WarningEvent`, worlds in their order; the steps of a
        scan in theirs. By default a line for each goes to the logger "jaxsim". What it raises ends
        the program.

    Returns:
      The function, with the same results; jit, vmap and scan may stand around it.

    Example:
      >>> told = []
      >>> step = jax.jit(jaxsim.log_warnings(jaxsim.step, told.append))
      >>> d = jax.block_until_ready(step(m, d.replace(qvel=d.qvel + 1e11)))
      >>> jax.effects_barrier()
      >>> told[0].type.name, told[0].world
      ('BADQVEL', 0)
    """
    tell = _teller(handler)

    @functools.wraps(function)
    def logged(m: Model, d: Data, *rest: Any, **named: Any) -> Data:
        new = function(m, d, *rest, **named)
        times = new.warning - d.warning
        # one world as a batch of one; custom_vmap makes batches of batches one
        tell(*(a[None] for a in (times, new.warning_lastinfo, lax.stop_gradient(d.time))))
        return new

    return logged


def _teller(handler: Callable[[WarningEvent], None]) -> Callable:
    """What tells of worlds `(n, ...)`, if something happened in one."""

    def on_host(times: Any, info: Any, time: Any) -> None:
        times, info, time = (np.asarray(a) for a in (times, info, time))
        for world, kind in np.argwhere(times > 0):
            handler(
                WarningEvent(
                    int(world),
                    WarningType(int(kind)),
                    float(time[world]),
                    int(times[world, kind]),
                    int(info[world, kind]),
                )
            )

    @custom_vmap
    def tell(times: jax.Array, info: jax.Array, time: jax.Array) -> None:
        def some() -> None:
            jax.debug.callback(on_host, times, info, time, ordered=False)

        lax.cond(jnp.any(times > 0), some, lambda: None)

    @tell.def_vmap
    def _(size: int, in_batched: list[bool], *given: jax.Array) -> tuple[None, None]:
        many = (
            a if batched else jnp.broadcast_to(a, (size, *a.shape))
            for a, batched in zip(given, in_batched, strict=True)
        )
        tell(*(a.reshape(-1, *a.shape[2:]) for a in many))
        return None, None

    return tell
