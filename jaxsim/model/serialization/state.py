"""State vectors selected by the bits of `State`, MuJoCo's `mjtState`.

MuJoCo's documentation, Programming: Simulation, State and control.
"""

import operator
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import State
from jaxsim.model.data import LOW_PARTS, Data
from jaxsim.model.fields import brief_value
from jaxsim.model.model import Model
from jaxsim.model.shaped import Float

# Fields in the order of their bits, starting with bit 0.
_STATE_BIT_FIELDS = (
    *("time", "qpos", "qvel", "act", "history", "qacc_warmstart", "ctrl", "qfrc_applied"),
    *("xfrc_applied", "eq_active", "mocap_pos", "mocap_quat", "userdata", "plugin_state"),
    "plastic",
)


def state_size(m: Model, spec: int) -> int:
    """Return the number of values of parts of a state. Corresponds to `mj_stateSize` in MuJoCo."""
    return sum(int(np.prod(shape)) for _, shape in _parts(m, spec))


def get_state(m: Model, d: Data, spec: int) -> Float[jax.Array, "size"]:
    """Return parts of a state as one vector, in the order of their bits.

    Corresponds to `mj_getState` in MuJoCo.

    Args:
      m: the model.
      d: one world.
      spec: bits of `State`, such as `State.PHYSICS`.

    Returns:
      (state_size(m, spec),), in the precision of the model. The low-order parts of `time` and of
      the times in `history` in single precision are not included (`copy_state` copies them).

    Example:
      >>> from jaxsim.enums import State
      >>> jaxsim.get_state(m, d, State.TIME | State.QPOS).shape
      (2,)
    """
    _check_one("get_state", d)
    none = [jnp.zeros(0, m.qpos0.dtype)]
    parts = [jnp.ravel(getattr(d, name)).astype(m.qpos0.dtype) for name, _ in _parts(m, spec)]
    return jnp.concatenate(none + parts)


def set_state(m: Model, d: Data, state: Float[jax.Array, "size"], spec: int) -> Data:
    """Return a world with parts of its state set from a vector in the layout of `get_state`.

    Corresponds to `mj_setState` in MuJoCo.

    Raises:
      ValueError: the vector does not have `state_size(m, spec)` entries.
    """
    _check_one("set_state", d)
    if np.shape(state) != (state_size(m, spec),):
        raise ValueError(
            f"set_state: state: expected shape ({state_size(m, spec)},), got {np.shape(state)}"
        )
    parts = list(_parts(m, spec))
    ends = np.cumsum([int(np.prod(shape)) for _, shape in parts])
    pieces = jnp.split(jnp.asarray(state), ends[:-1]) if parts else []
    old = (getattr(d, name) for name, _ in parts)
    return d.replace(
        **{
            name: piece.reshape(shape).astype(before.dtype)
            for (name, shape), piece, before in zip(parts, pieces, old, strict=True)
        }
    )


def extract_state(
    m: Model, src: Float[jax.Array, "size"], srcspec: int, dstspec: int
) -> Float[jax.Array, "part"]:
    """Return some parts of a state vector. Corresponds to `mj_extractState` in MuJoCo.

    Args:
      m: the model.
      src: a vector made by `get_state(m, d, srcspec)`.
      srcspec: bits of the parts in `src`.
      dstspec: bits of the parts to return, a subset of `srcspec`.

    Raises:
      ValueError: the vector has another size, or `dstspec` is no subset of `srcspec`.
    """
    if dstspec & ~srcspec:
        raise ValueError(
            f"extract_state: dstspec: {State(dstspec & ~srcspec)!r} is not in the vector; take it "
            "into srcspec, and into the bits of get_state"
        )
    if np.shape(src) != (state_size(m, srcspec),):
        raise ValueError(
            f"extract_state: src: expected shape ({state_size(m, srcspec)},), got {np.shape(src)}"
        )
    wanted = {name for name, _ in _parts(m, dstspec)}
    parts = list(_parts(m, srcspec))
    numbers = [np.full(int(np.prod(shape)), name in wanted) for name, shape in parts]
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


def _check_one(name: str, d: Data) -> None:
    if np.ndim(d.time):
        raise ValueError(f"{name}: d: expected one world, got {np.shape(d.time)}; use jax.vmap")
