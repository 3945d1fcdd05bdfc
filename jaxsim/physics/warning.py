"""Counting what goes wrong in a step; `model/warning.py` says what the counters mean."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import MAXVAL, WarningType
from jaxsim.model.data import Data
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import column


class Trouble(NamedTuple):
    """What went wrong.

    Attributes:
      where: in which worlds, `[1, *W]` bool.
      info: what `Data.warning_lastinfo` says of it, `[1, *W]` int.
    """

    where: Array
    info: Array


def first_bad(x: Array) -> Trouble:
    """Worlds with an item that is not finite or too large, and the number of their first.

    One reduction finds both: the least number, or how many items there are if none is bad.
    """
    n = np.int32(len(x))
    wrong = ~(jnp.abs(x) <= MAXVAL)
    number = jnp.where(wrong, column(np.arange(n, dtype=np.int32), x), n)
    first = jnp.min(number, axis=0, keepdims=True, initial=n)
    return Trouble(first < n, first)


def count(d: Data, kind: WarningType, what: Trouble) -> Data:
    """Counts a warning in the worlds where it occurs, and notes what the last was about."""
    it = np.arange(len(WarningType)) == kind
    counts = d.warning + column(it.astype(np.int32), d.warning) * what.where.astype(jnp.int32)
    info = jnp.where(column(it, d.warning) & what.where, what.info, d.warning_lastinfo)
    return d.replace(warning=counts, warning_lastinfo=info)
