"""Log warnings while a program runs: the world, the kind of warning, and the time.

The counters in `Data.warning` show only afterwards that a step failed. `log_warnings` wraps a
function so that a handler on the host is called during the run, by `jax.debug.callback`: under jit,
scan and vmap, where one call covers all worlds of a batch, with their indices. Functions that are
not wrapped compile to the same programs as before.
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
from jaxsim.model.warning import MEANINGS, describe_entry

LOGGER = logging.getLogger("jaxsim")


class WarningEvent(NamedTuple):
    """A warning in one world during one call.

    Attributes:
      world: index of the world in the flattened vmap axes, outermost first.
      type: kind of the warning.
      time: time of the world before the call [s].
      times: number of occurrences during the call.
      info: the entry concerned, `Data.warning_lastinfo`.
    """

    world: int
    type: WarningType
    time: float
    times: int
    info: int

    def __str__(self) -> str:
        what, often = (
            describe_entry(self.type, self.info),
            "" if self.times == 1 else f", {self.times} times",
        )
        end = f" ({what})" if what else ""
        meaning = MEANINGS[self.type]
        return (
            f"world {self.world}, {self.time:g} s: {self.type.name}{often}: {meaning.what}{end}; "
            f"{meaning.remedy}"
        )


def log_warning(event: WarningEvent) -> None:
    """Write a warning to the logger "jaxsim"."""
    LOGGER.warning("%s", event)


def log_warnings(
    function: Callable[..., Data], handler: Callable[[WarningEvent], None] = log_warning
) -> Callable[..., Data]:
    """Return a function that reports the warnings that occur in it to a handler.

    Args:
      function: `(m, d, ...) -> d`, such as `jaxsim.step`. For a function of several steps the
        handler is called once, with the number of occurrences.
      handler: called on the host with each `WarningEvent`, in the order of the worlds and of the
        steps of a scan. By default it logs a line to the logger "jaxsim". An exception in it ends
        the program.

    Returns:
      The function, with the same results; it works under jit, vmap and scan.

    Example:
      >>> told = []
      >>> step = jax.jit(jaxsim.log_warnings(jaxsim.step, told.append))
      >>> d = jax.block_until_ready(step(m, d.replace(qvel=d.qvel + 1e11)))
      >>> jax.effects_barrier()
      >>> told[0].type.name, told[0].world
      ('BADQVEL', 0)
    """
    tell = _make_reporter(handler)

    @functools.wraps(function)
    def run_and_log(m: Model, d: Data, *rest: Any, **named: Any) -> Data:
        new = function(m, d, *rest, **named)
        times = new.warning - d.warning
        # One world is a batch of one; custom_vmap merges nested batches.
        tell(*(a[None] for a in (times, new.warning_lastinfo, lax.stop_gradient(d.time))))
        return new

    return run_and_log


def _make_reporter(handler: Callable[[WarningEvent], None]) -> Callable:
    """Return a function that reports worlds `(n, ...)` to the handler if one has a warning."""

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
