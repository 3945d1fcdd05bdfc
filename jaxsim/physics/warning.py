"""Counting what goes wrong in a step; `model/warning.py` says what the counters mean."""

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import WarningType
from jaxsim.model.data import Data
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import column


def count(d: Data, kind: WarningType, where: Array) -> Data:
    """Counts a warning in the worlds where it occurs, `[1, *W]` bool."""
    here = (np.arange(len(WarningType)) == kind).astype(np.int32)
    return d.replace(warning=d.warning + column(here, d.warning) * where.astype(jnp.int32))
