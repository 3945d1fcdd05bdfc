"""Count warnings in a step; `model/warning.py` documents the counters."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column
from jaxsim.enums import MAXVAL, WarningType
from jaxsim.model.data import Data


class Trouble(NamedTuple):
    """Occurrence of a warning.

    Attributes:
      where: worlds in which it occurs, `[1, *W]` bool.
      info: value for `Data.warning_lastinfo`, `[1, *W]` int.
    """

    where: Array
    info: Array


def find_bad_worlds(x: Array) -> Trouble:
    """Find worlds with an item that is not finite or too large, and the index of the first one.

    A single min-reduction finds both: it returns the number of items if none is bad.
    """
    n = np.int32(len(x))
    # MuJoCo's criterion: not finite, or beyond MAXVAL.
    wrong = ~(jnp.abs(x) <= MAXVAL)
    number = jnp.where(wrong, column(np.arange(n, dtype=np.int32), x), n)
    first = jnp.min(number, axis=0, keepdims=True, initial=n)
    return Trouble(first < n, first)


def count_warning(d: Data, kind: WarningType, what: Trouble) -> Data:
    """Count a warning in the worlds where it occurs, and store its last info."""
    it = np.arange(len(WarningType)) == kind
    counts = d.warning + column(it.astype(np.int32), d.warning) * what.where.astype(jnp.int32)
    info = jnp.where(column(it, d.warning) & what.where, what.info, d.warning_lastinfo)
    return d.replace(warning=counts, warning_lastinfo=info)
