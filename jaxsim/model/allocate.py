"""Allocates the state of a world."""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import EnableBit, SleepPolicy
from jaxsim.errors import Place, Problem, UnsupportedError
from jaxsim.model.data import (
    ALWAYS,
    AWAKE,
    OF_SLEEP,
    SLEEP_STATE,
    WAITING,
    Data,
    no_contacts,
)
from jaxsim.model.fields import Field
from jaxsim.model.model import Model
from jaxsim.model.start import start_state

Keep = Literal["default", "all"] | Iterable[str | Callable]


def allocate(m: Model, keep: Keep = "default") -> Data:
    """The state of one world at the reference configuration, with all trees awake.

    Args, raises: see `make_data` (physics/make_data.py).
    """
    kept = _of_sleep(m, _kept_names(keep))
    values = {n: _zeros(m, f) for n, f in Data.fields.items() if n in kept and not f.static}
    return _start(m, Data(**values))


def check_supported(m: Model) -> None:
    """Raises UnsupportedError if the physics cannot simulate a model with the flags that it has.

    Flags may change after a world was made: what they switch on is refused then.
    """
    if m.unsupported:
        raise UnsupportedError(Problem(Place(f, line), what) for f, line, what in m.unsupported)


def _kept_names(keep: Keep) -> frozenset[str]:
    if keep == "default":
        return frozenset(n for n, f in Data.fields.items() if f.keep)
    if keep == "all":
        return frozenset(Data.fields)
    if isinstance(keep, str):
        raise ValueError(f"keep: expected 'default', 'all' or names of fields, got {keep!r}")
    names = frozenset(
        name
        for item in keep
        for name in ([item] if isinstance(item, str) else getattr(item, "carries", [repr(item)]))
    )
    unknown = sorted(names - Data.fields.keys())
    if unknown:
        raise ValueError(f"keep: Data has no field {unknown[0]!r}")
    return ALWAYS | names


def _of_sleep(m: Model, kept: frozenset[str]) -> frozenset[str]:
    """What is kept of the sleep of trees: nothing if the flag is off; else also what waits."""
    if not m.opt.enableflags & EnableBit.SLEEP:
        return kept - OF_SLEEP
    begin_asleep = np.any(m.tree_sleep_policy == SleepPolicy.INIT)
    return (kept | WAITING) - (frozenset() if begin_asleep else {"tree_start"})


def _start(m: Model, d: Data) -> Data:
    """The values at the start that are not zero."""
    start = start_state(m)
    # copies: two arguments of a program may not be one buffer if one of them is donated
    d = d.replace(**{name: jnp.array(value, copy=True) for name, value in start.items()})
    if d.contact is not None:
        d = d.replace(contact=no_contacts(d.contact))
    awake = {name: np.full(m.ntree, AWAKE, np.int32) for name in SLEEP_STATE}
    return d.replace(**{n: jnp.array(a) for n, a in awake.items() if getattr(d, n) is not None})


def _zeros(m: Model, field: Field) -> Any:
    """A field of zeros; for a nested record, a record of them; None if the model has no such."""
    if field.only and not any(np.any(attrgetter(name)(m)) for name in field.only):
        return None
    if field.nested is not None:
        record: Any = field.nested
        return record(**{name: _zeros(m, f) for name, f in record.fields.items()})
    dtype = {"float": m.qpos0.dtype, "int": jnp.int32, "bool": bool}[field.dtype]
    # made by numpy: JAX would compile a program for each shape
    return jax.device_put(np.zeros(field.dims(m.structure.sizes), dtype))
