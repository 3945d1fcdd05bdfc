"""Allocate Data for one world."""

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import EnableBit, SleepPolicy
from jaxsim.errors import LocatedProblem, SourceLocation, UnsupportedError
from jaxsim.model.contact import NO_CONTACT, OPTIONAL_CONTACT_FIELDS, Contact
from jaxsim.model.data import (
    ALWAYS_KEPT,
    JUST_AWAKE,
    SLEEP_FIELDS,
    SLEEP_STATE,
    WAITING_FIELDS,
    Data,
    absent_field_message,
)
from jaxsim.model.initial import start_state
from jaxsim.model.model import Model
from jaxsim.model.record.check import brief_value
from jaxsim.model.record.fields import Field

Keep = Literal["default", "all"] | Iterable[str | Callable]


def allocate(m: Model, keep: Keep = "default") -> Data:
    """Return Data of one world at the reference configuration, with all trees awake.

    Arguments and errors are those of `make_data` (physics/public/make_data.py).
    """
    kept = _adjust_for_sleep(m, _kept_names(keep))
    declared = ((n, f) for n, f in Data.fields.items() if n in kept and not f.static)
    values = {n: _empty(m, f, inner=_nested_fields(n, f, kept)) for n, f in declared}
    for name in SLEEP_STATE & values.keys():
        values[name] = np.full(m.ntree, JUST_AWAKE, np.int32)
    # Build on the host, then transfer everything at once.
    d = jax.device_put(Data(**values))
    # Copy: two arguments of a program must not share a buffer if one of them is donated.
    return d.replace(**{n: jnp.array(value, copy=True) for n, value in start_state(m).items()})


def add_fields(m: Model, d: Data, names: Iterable[str]) -> Data:
    """Return Data of one world with additional fields; the ones it did not have are zero."""
    lacking = (n for n in names if getattr(d, n) is None)
    fields = [(n, Data.fields[n]) for n in lacking]
    made = {n: _empty(m, f, inner=_nested_fields(n, f, frozenset())) for n, f in fields}
    return d.replace_unchecked(made, False)


def kept_names(d: Data) -> list[str]:
    """Return the fields that a Data carries, as `keep` names them: "qpos", "contact.H"."""
    fields = [n for n, f in Data.fields.items() if not f.static and getattr(d, n) is not None]
    return fields + [
        n for n in OPTIONAL_CONTACT_FIELDS if d.contact is not None and attrgetter(n)(d) is not None
    ]


def check_supported(m: Model) -> None:
    """Raise UnsupportedError if the physics cannot simulate a model with its present flags.

    Flags may change after Data was made: what they enable is checked here again.
    """
    if m.unsupported:
        raise UnsupportedError(
            LocatedProblem(SourceLocation(f, line), what) for f, line, what in m.unsupported
        )


def _kept_names(keep: Keep) -> frozenset[str]:
    if keep == "default":
        return frozenset(n for n, f in Data.fields.items() if f.keep)
    if keep == "all":
        return frozenset(Data.fields) | OPTIONAL_CONTACT_FIELDS
    if isinstance(keep, str):
        raise ValueError(f"keep: expected 'default', 'all' or names of fields, got {keep!r}")
    if not isinstance(keep, Iterable):
        raise ValueError(
            "keep: expected 'default', 'all', or a list of names of fields and of stages, "
            f"[jaxsim.stages.crb], got {brief_value(keep)}"
        )
    names = frozenset(
        name
        for item in keep
        for name in ([item] if isinstance(item, str) else getattr(item, "carries", [repr(item)]))
    )
    unknown = sorted(names - Data.fields.keys() - OPTIONAL_CONTACT_FIELDS)
    if unknown:
        raise ValueError(f"keep: {absent_field_message(unknown[0])}")
    return ALWAYS_KEPT | names | {n.partition(".")[0] for n in names & OPTIONAL_CONTACT_FIELDS}


def _nested_fields(name: str, field: Field, kept: frozenset[str]) -> frozenset[str]:
    """Return the fields of a nested record that are kept with it."""
    inner: Mapping[str, Field] = getattr(field.nested, "fields", {})
    return frozenset(n for n, f in inner.items() if f.keep or f"{name}.{n}" in kept)


def _adjust_for_sleep(m: Model, kept: frozenset[str]) -> frozenset[str]:
    """Return the fields to keep, adjusted for the sleep flag.

    Without the flag the fields of sleeping trees are dropped; with it, results that stay unchanged
    while a tree sleeps are added.
    """
    if not m.opt.enableflags & EnableBit.SLEEP:
        return kept - SLEEP_FIELDS
    begin_asleep = np.any(m.tree_sleep_policy == SleepPolicy.INIT)
    return (kept | WAITING_FIELDS) - (frozenset() if begin_asleep else {"tree_start"})


def _empty(m: Model, field: Field, value: float = 0, inner: frozenset[str] = frozenset()) -> Any:
    """Return one constant field, or a record of fields if it is nested; None without such objects.

    Args:
      m: model.
      field: declaration.
      value: of all entries.
      inner: fields of a nested record; the others are None.
    """
    if field.only and not any(np.any(attrgetter(name)(m)) for name in field.only):
        return None
    if field.nested is not None:
        record: Any = field.nested
        least = NO_CONTACT if record is Contact else {}
        fields = {n: _empty(m, f, least.get(n, 0)) for n, f in record.fields.items() if n in inner}
        return record(**fields)
    dtype = {"float": m.qpos0.dtype, "int": jnp.int32, "bool": bool}[field.dtype]
    # numpy, because JAX would compile a program for each shape
    return np.full(field.dims(m.structure.sizes), value, dtype)
