"""Summaries of a batch of worlds: shape, ranges over the worlds, and non-finite values."""

from typing import Any

import jax
import numpy as np

from jaxsim.model.data import Data
from jaxsim.model.model import Model


def leading_axes(m: Model, d: Any) -> tuple[int, ...]:
    """Return the shape of the batch; () for one world."""
    if not isinstance(d, Data):
        raise ValueError(f"describe: d: expected a Data, got {type(d).__name__}")
    if any(isinstance(a, jax.core.Tracer) for a in jax.tree.leaves(d)):
        raise ValueError("describe: d is traced: it has no numbers; describe it outside of jit")
    shape = np.shape(d.qpos)
    if shape[-1:] != (m.nq,):
        raise ValueError(f"describe: d.qpos: expected shape (..., {m.nq}), got {shape}")
    return shape[:-1]


def describe_batch(every: Data, world: int) -> list[str]:
    """Return a line with the world shown, and the ranges of time and contacts over the batch."""
    many = len(every.qpos)
    spread = f"time {_range(every.time)} s"
    if every.ncon is not None:
        spread += f", contacts {_range(every.ncon)}"
    lost = sum(bool(not_finite(every[k])) for k in _nonfinite_worlds(every))
    bad = f", {lost} not finite" if lost else ""
    return [f"{world} of {many}; in all of them {spread}{bad}"]


def _nonfinite_worlds(every: Data) -> np.ndarray:
    """Return the indices of the worlds whose state has a non-finite value."""
    state = [x for x in (every.qpos, every.qvel, every.qacc) if x is not None]
    return np.flatnonzero(~np.all([np.isfinite(x).all(axis=1) for x in state], axis=0))


def _range(values: np.ndarray) -> str:
    low, high = np.min(values), np.max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def not_finite(d: Data) -> list[str]:
    """Return the names of fields with non-finite values."""
    found = [
        name
        for name in Data.fields
        if isinstance(a := getattr(d, name), np.ndarray | np.generic)
        and np.issubdtype(a.dtype, np.floating)
        and not np.isfinite(a).all()
    ]
    return [", ".join(found)] if found else []
