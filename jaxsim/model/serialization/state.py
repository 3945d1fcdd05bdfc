"""State vectors selected by the bits of `State`, MuJoCo's `mjtState`.

MuJoCo's documentation, Programming: Simulation, State and control. In single precision a clock is
two numbers (physics/history/clock.py). A vector has MuJoCo's numbers in its layout; with `low=True`
the low-order parts of time and of the times in `history` follow, so that a state that is restored
goes on with exactly the same clock. `set_state` takes both.
"""

import operator
from collections.abc import Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import State
from jaxsim.model.data import LOW_PARTS, Data
from jaxsim.model.indices import time_indices
from jaxsim.model.model import Model
from jaxsim.model.record.check import brief_value
from jaxsim.model.shaped import Float

_Shapes = list[tuple[str, tuple[int, ...]]]

# Fields in the order of their bits, starting with bit 0.
_STATE_BIT_FIELDS = (
    *("time", "qpos", "qvel", "act", "history", "qacc_warmstart", "ctrl", "qfrc_applied"),
    *("xfrc_applied", "eq_active", "mocap_pos", "mocap_quat", "userdata", "plugin_state"),
    "plastic",
)


def state_size(m: Model, spec: int, *, low: bool = False) -> int:
    """Return the number of values of parts of a state. Corresponds to `mj_stateSize` in MuJoCo.

    Args:
      m: the model.
      spec: bits of `State`.
      low: whether low-order parts of times count, which there are in single precision; without
        them the size is MuJoCo's.
    """
    return _count(_parts(m, spec)) + (_count(_low_parts(m, spec)) if low else 0)


def get_state(m: Model, d: Data, spec: int, *, low: bool = False) -> Float[jax.Array, "size"]:
    """Return parts of a state as one vector, in the order of their bits.

    Corresponds to `mj_getState` in MuJoCo.

    Args:
      m: the model.
      d: one world.
      spec: bits of `State`, such as `State.PHYSICS`.
      low: whether the vector ends with the low-order parts of `time` and of the times in `history`,
        which a state in single precision has; without them it has MuJoCo's size, and a clock that
        is restored from it is off by up to half a unit of `time` in single precision.

    Returns:
      (state_size(m, spec),), in the precision of the model.

    Example:
      >>> from jaxsim.enums import State
      >>> jaxsim.get_state(m, d, State.QPOS | State.QVEL).shape
      (2,)
    """
    _check_one("get_state", d)
    found = [jnp.zeros(0, m.qpos0.dtype)]
    for name, shape in [*_parts(m, spec), *(_low_parts(m, spec) if low else ())]:
        value = getattr(d, name)
        value = jnp.zeros(shape) if value is None else value  # a Data without low parts
        found.append(jnp.ravel(value).astype(m.qpos0.dtype))
    return jnp.concatenate(found)


def set_state(m: Model, d: Data, state: Float[jax.Array, "size"], spec: int) -> Data:
    """Return a world with parts of its state set from a vector in the layout of `get_state`.

    Corresponds to `mj_setState` in MuJoCo.

    Args:
      m: the model.
      d: one world.
      state: the vector, with low-order parts of times or without. Without them they are zero; those
        of a numpy array in double precision, as MuJoCo's are, follow from its numbers.
      spec: bits of `State`.

    Raises:
      ValueError: the vector does not have `state_size(m, spec)` entries.
    """
    _check_one("set_state", d)
    parts, low = _check_vector("set_state: state", m, state, spec)
    values = _split(jnp.asarray(state), [*parts, *low])
    new = {n: v.astype(getattr(d, n).dtype) for n, v in values.items() if n not in dict(low)}
    lows: dict[str, Any] = {n: values[n] for n, _ in low} or _low_of_double(m, state, parts)
    kept = {n: v for n, v in lows.items() if getattr(d, n) is not None}
    return d.replace(**new, **{n: jnp.asarray(v, getattr(d, n).dtype) for n, v in kept.items()})


def extract_state(
    m: Model, src: Float[jax.Array, "size"], srcspec: int, dstspec: int
) -> Float[jax.Array, "part"]:
    """Return some parts of a state vector. Corresponds to `mj_extractState` in MuJoCo.

    Args:
      m: the model.
      src: a vector made by `get_state(m, d, srcspec)`.
      srcspec: bits of the parts in `src`.
      dstspec: bits of the parts to return, a subset of `srcspec`.

    Returns:
      The vector of `get_state(m, d, dstspec)`; without low-order parts if `src` has none.

    Raises:
      ValueError: the vector has another size, or `dstspec` is no subset of `srcspec`.
    """
    if dstspec & ~srcspec:
        raise ValueError(
            f"extract_state: dstspec: {State(dstspec & ~srcspec)!r} is not in the vector; take it "
            "into srcspec, and into the bits of get_state"
        )
    parts, low = _check_vector("extract_state: src", m, src, srcspec)
    wanted = {name for name, _ in [*_parts(m, dstspec), *_low_parts(m, dstspec)]}
    numbers = [np.full(_count([part]), part[0] in wanted) for part in (*parts, *low)]
    return jnp.asarray(src)[np.flatnonzero(np.concatenate([np.zeros(0, bool), *numbers]))]


def copy_state(m: Model, src: Data, dst: Data, spec: int) -> Data:
    """Return `dst` with parts of the state of `src`, for one world or for equal batches.

    Corresponds to `mj_copyState` in MuJoCo.

    Args:
      m: the model.
      src: the worlds to copy from.
      dst: the worlds to copy to.
      spec: bits of `State`.

    Raises:
      ValueError: the batches differ.
    """
    if np.shape(src.time) != np.shape(dst.time):
        raise ValueError(
            f"copy_state: src has worlds {np.shape(src.time)} and dst {np.shape(dst.time)}; make "
            "them alike, as with jaxsim.replicate"
        )
    names = [name for name, _ in _parts(m, spec)]
    names += [
        LOW_PARTS[n] for n in names if n in LOW_PARTS and getattr(src, LOW_PARTS[n]) is not None
    ]
    return dst.replace(**{name: getattr(src, name) for name in names})


def _parts(m: Model, spec: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the names and shapes of the fields that bits select.

    Raises:
      ValueError: a bit that MuJoCo does not have.
    """
    if not hasattr(spec, "__index__"):
        raise ValueError(f"spec: expected bits of jaxsim.enums.State, got {brief_value(spec)}")
    spec = operator.index(spec)
    if not 0 <= spec < 1 << len(_STATE_BIT_FIELDS):
        raise ValueError(
            f"spec: expected bits of jaxsim.enums.State, below {1 << len(_STATE_BIT_FIELDS)}, "
            f"got {spec}"
        )
    for bit, name in enumerate(_STATE_BIT_FIELDS):
        if spec >> bit & 1:
            yield name, Data.fields[name].dims(m.structure.sizes)


def _low_parts(m: Model, spec: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the names and shapes of the low-order parts of the fields that bits select; none in
    double precision."""
    if m.is_single_precision:
        for name, _ in _parts(m, spec):
            if name in LOW_PARTS:
                yield LOW_PARTS[name], Data.fields[LOW_PARTS[name]].dims(m.structure.sizes)


def _count(parts: Iterable[tuple[str, tuple[int, ...]]]) -> int:
    """Return the number of values of parts with their shapes."""
    return sum(int(np.prod(shape)) for _, shape in parts)


def _check_vector(what: str, m: Model, state: Any, spec: int) -> tuple[_Shapes, _Shapes]:
    """Return the parts in a vector, and the low-order parts in it, which may be absent.

    Raises:
      ValueError: the vector has another size.
    """
    parts, low = list(_parts(m, spec)), list(_low_parts(m, spec))
    sizes = [_count(parts) + _count(low), _count(parts)]
    if np.shape(state) not in [(size,) for size in sizes]:
        end = f" (({sizes[1]},) without low parts)" if sizes[0] != sizes[1] else ""
        raise ValueError(f"{what}: expected shape ({sizes[0]},){end}, got {np.shape(state)}")
    return parts, low if np.shape(state) == (sizes[0],) else []


def _split(state: jax.Array, parts: _Shapes) -> dict[str, jax.Array]:
    """Return the parts of a vector by name."""
    ends = np.cumsum([_count([part]) for part in parts])
    pieces = jnp.split(state, ends[:-1]) if parts else []
    return {name: piece.reshape(shape) for (name, shape), piece in zip(parts, pieces, strict=True)}


def _low_of_double(m: Model, state: Any, parts: _Shapes) -> dict[str, np.ndarray]:
    """Return the low-order parts of times in a vector in double precision, which a state in single
    precision would lose."""
    if not isinstance(state, np.ndarray) or state.dtype != np.float64:
        return {}
    ends = np.cumsum([0, *(_count([part]) for part in parts)])
    whole = {name: state[i:j] for (name, _), i, j in zip(parts, ends[:-1], ends[1:], strict=True)}
    times = {"time": whole["time"].reshape(())} if "time" in whole else {}
    if "history" in whole:
        times["history"] = whole["history"][time_indices(m.structure)]
    return {LOW_PARTS[name]: x - np.float64(np.float32(x)) for name, x in times.items()}


def _check_one(name: str, d: Data) -> None:
    if np.ndim(d.time):
        raise ValueError(f"{name}: d: expected one world, got {np.shape(d.time)}; use jax.vmap")
