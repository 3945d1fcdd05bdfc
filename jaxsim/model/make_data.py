"""Allocates the state of a world, and puts it back to the start."""

from collections.abc import Callable, Iterable
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
from jaxsim.model.names import name2id
from jaxsim.model.start import start_state

Keep = Literal["default", "all"] | Iterable[str | Callable]


def make_data(m: Model, keep: Keep = "default") -> Data:
    """The state of one world at the reference configuration, at rest.

    Args:
      m: the model.
      keep: which results a step carries besides the state and the inputs: "default", what people
        commonly read; "all"; or a list of fields by name and of stages, `keep=["xpos", crb]`: what
        `jaxsim.crb` reads and writes. What is not kept costs no memory.

    Returns:
      Data with `qpos = qpos0`, mocap bodies at their poses in the model and everything else zero.
      Use `jax.vmap` over a batch of qpos, or `jax.tree.map`, to make many worlds.

    Raises:
      UnsupportedError: the model has what the physics cannot simulate; every such thing is listed
        with its place.
      ValueError: `keep` names a field that Data does not have.

    Example:
      >>> d = make_data(m, keep=("qacc", "xpos"))
      >>> d.qpos.shape, d.qacc.shape, d.sensordata is None
      ((1,), (1,), True)
    """
    check_supported(m)
    kept = _of_sleep(m, _kept_names(keep))
    values = {n: _zeros(m, f) for n, f in Data.fields.items() if n in kept and not f.static}
    return _start(m, Data(**values))


def check_supported(m: Model) -> None:
    """Raises UnsupportedError if the physics cannot simulate a model with the flags that it has.

    Flags may change after a world was made: what they switch on is refused then.
    """
    if m.unsupported:
        raise UnsupportedError(Problem(Place(f, line), what) for f, line, what in m.unsupported)


def reset_data(m: Model, d: Data) -> Data:
    """The start of the same world: as `make_data`, with the fields that `d` keeps."""
    return make_data(
        m, [n for n, f in Data.fields.items() if not f.static and getattr(d, n) is not None]
    )


def reset_data_keyframe(m: Model, d: Data, key: int | str | jax.Array) -> Data:
    """The state of a key frame.

    Args:
      m: the model.
      d: a world, whose kept fields the result has.
      key: name or number of the key frame; the number may be traced.
    """
    if isinstance(key, str):
        key = name2id(m, "key", key)
    elif isinstance(key, int | np.integer) and not 0 <= key < m.nkey:
        raise ValueError(f"key: the model has {m.nkey} key frames, there is no number {key}")
    return reset_data(m, d).replace(
        time=m.key_time[key],
        qpos=m.key_qpos[key],
        qvel=m.key_qvel[key],
        act=m.key_act[key],
        ctrl=m.key_ctrl[key],
        mocap_pos=m.key_mpos[key],
        mocap_quat=m.key_mquat[key],
    )


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
    if field.only and not any(getattr(m.structure, table).any() for table in field.only):
        return None
    if field.nested is not None:
        record: Any = field.nested
        return record(**{name: _zeros(m, f) for name, f in record.fields.items()})
    dtype = {"float": m.qpos0.dtype, "int": jnp.int32, "bool": bool}[field.dtype]
    sizes = {symbol: getattr(m, symbol) for symbol in field.shape if isinstance(symbol, str)}
    # made by numpy: JAX would compile a program for each shape
    return jax.device_put(np.zeros(field.dims(sizes), dtype))
