"""Check the type of new values of a Model, and values that its structure has decided.

`Model.replace` calls these checks. Declarations check shapes (record/check.py), and switches check
numbers of fields that were compiled out (switches.py).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxsim.enums import WrapType
from jaxsim.model.record.check import brief_value
from jaxsim.model.record.record import Record
from jaxsim.model.structure import Structure


def check_side_sites(s: Structure, wrap_prm: Any) -> None:
    """Raise ValueError if the side site of a tendon path around a geom changes: it decides the
    program."""
    if not isinstance(wrap_prm, jax.Array | np.ndarray) or isinstance(wrap_prm, jax.core.Tracer):
        return
    around = np.isin(s.wrap_type, (WrapType.SPHERE, WrapType.CYLINDER))
    site = np.maximum(np.rint(np.asarray(wrap_prm)), -1)
    lost = np.flatnonzero((around & (site != s.wrap_sideid)).reshape(-1, s.nwrap).any(axis=0))
    if len(lost):
        raise ValueError(
            f"wrap_prm: item {lost[0]} is the side site of a geom, which decides the program; "
            "write another one in the model (sidesite) before it is loaded"
        )


def check_structure(value: Any, needed: bool) -> None:
    """Raise ValueError if a value is no structure; None is one where it is not needed."""
    if not isinstance(value, Structure) and (needed or value is not None):
        got = f"a {type(value).__name__}" if isinstance(value, Record) else brief_value(value)
        raise ValueError(
            f"structure: expected a Structure, got {got}; m.structure.replace(...) returns one "
            "with other tables"
        )


def check_callbacks(value: Any) -> None:
    """Raise ValueError if functions are given other than as jaxsim.Callbacks."""
    if callable(value) or isinstance(value, Mapping | Sequence):  # an axis of vmap is an int
        got = "a function" if callable(value) else brief_value(value)
        raise ValueError(f"callbacks: expected jaxsim.Callbacks(control=...), got {got}")


def check_not_smoothed(value: Any) -> None:
    """Raise ValueError for a smoothing length, which is given to a model made without one."""
    # an axis of vmap is an int
    if hasattr(value, "dtype") or isinstance(value, float):
        raise ValueError(
            "smooth: was None when the model was made, so it has neither the points nor "
            "the capacity of smooth contacts; use jaxsim.smooth_contacts, or load it with smooth=h"
        )
