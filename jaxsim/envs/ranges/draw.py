"""Ranges of a parameter, and random draws from them: uniform, log-uniform, normal, log-normal."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.envs.ranges.parameter import Numbers, RangedParameter
from jaxsim.identify.forms import Form, ends
from jaxsim.identify.targets.select import current_value
from jaxsim.math.rotation import Quat
from jaxsim.math.vector import Vec
from jaxsim.model.model import Model


@dataclass(frozen=True)
class Range:
    """A uniform range; returned by `factor` and `shift`.

    Attributes:
      kind: "factor" or "shift".
      low, high: its bounds.
      share: one draw for all objects that the name selects; else one for each.
    """

    kind: str
    low: float
    high: float
    share: bool = False


def factor(low: float, high: float, *, share: bool = False) -> Range:
    """Return a factor, uniform in [low, high]; a pair (low, high) means the same."""
    return Range("factor", low, high, share)


def shift(low: float, high: float, *, share: bool = False) -> Range:
    """Return an offset, uniform in [low, high], in the units of the parameter."""
    return Range("shift", low, high, share)


def read_form(name: str, form: Any) -> Form | Range:
    """Return a range as given, as a Form or Range."""
    if isinstance(form, tuple | list) and len(form) == 2:
        form = factor(*form)
    if isinstance(form, Form):
        if form.frozen:
            raise ValueError(f"{name}: frozen: nothing would be drawn; leave the name out")
        if form.sd is None and form.low is None:
            raise ValueError(f"{name}: {form.kind}: expected bounds, or sd, or both")
        return form
    if not isinstance(form, Range):
        raise ValueError(
            f"{name}: expected [lowest, highest] factor, shift(low, high), or linear, log, scale "
            f"or pseudo_inertia of jaxsim.identify, got {form!r}"
        )
    ends_are = [form.low, form.high]
    try:
        right = bool(np.isfinite(np.asarray(ends_are, float)).all()) and form.low <= form.high
    except (TypeError, ValueError):
        right = False
    if not right or (form.kind == "factor" and form.low < 0):
        raise ValueError(f"{name}: expected [lowest, highest] {form.kind}, got {ends_are}")
    return form


def _sample(form: Form | Range, key: jax.Array, old: jax.Array) -> jax.Array:
    """Draw from a range, in the shape of `old`; normal draws are centered on `old`."""
    shape, dtype = (1,) if form.share else old.shape, old.dtype
    if isinstance(form, Range):
        u = jax.random.uniform(key, shape, dtype, form.low, form.high)
        return jnp.broadcast_to(u, old.shape)
    mean = form.nominal if form.mean is None else form.mean
    if form.kind == "scale":
        middle = jnp.full(shape, 1.0 if mean is None else mean, dtype)
    else:
        middle = old if mean is None else jnp.full(shape, mean, dtype)
    middle = jnp.log(middle) if form.logarithmic else middle
    sd = 0.0 if form.sd is None else form.sd
    if form.low is None:
        v = middle + sd * jax.random.normal(key, shape, dtype)
    elif form.sd is None:
        v = jax.random.uniform(key, shape, dtype, *ends(form))
    else:
        low, high = ((e - middle) / sd for e in ends(form))
        v = middle + sd * jax.random.truncated_normal(key, low, high, shape, dtype)
    v = jnp.exp(v) if form.logarithmic else v
    return jnp.broadcast_to(v, old.shape)


def current_values(m: Model, changed: Mapping[str, Any], field: str) -> jax.Array:
    """Return the numbers of a field after the changes so far."""
    return changed[field] if field in changed else jnp.asarray(current_value(m, field))


def sample_leaves(
    m: Model, changed: Mapping[str, Any], key: jax.Array, p: RangedParameter, form: Form | Range
) -> dict[str, Any]:
    """Return the new leaves of a parameter."""
    found = dict(changed)
    dtype = m.qpos0.dtype
    if form.kind in ("factor", "scale"):
        ratio = _sample(form, key, jnp.ones(p.objects, dtype))
        return _multiply_leaves(m, found, (*p.own, *p.followers), ratio)
    # one draw for each object, shared by several fields; or one for each number of a field
    alone = p.width == 1
    old = jnp.zeros(p.objects if alone else len(p.own[0].adr), dtype)
    for n in p.own:
        value = current_values(m, found, n.field).reshape(-1)[n.adr] * jnp.asarray(n.sign, dtype)
        old = old.at[n.owner].set(value) if alone else value
    drawn = _sample(form, key, old)
    new = old + drawn if form.kind == "shift" else drawn
    for n in p.own:
        array = current_values(m, found, n.field)
        value = jnp.asarray(n.sign, dtype) * (new[n.owner] if alone else new)
        found[n.field] = array.reshape(-1).at[n.adr].set(value).reshape(array.shape)
    return _multiply_leaves(m, found, p.followers, new / old) if p.followers else found


def _multiply_leaves(
    m: Model, found: dict[str, Any], numbers: tuple[Numbers, ...], ratio: jax.Array
) -> dict[str, Any]:
    """Return leaves with some numbers multiplied by the ratio of their objects, (objects,)."""
    for n in numbers:
        array = current_values(m, found, n.field)
        flat = array.reshape(-1).at[n.adr].multiply(ratio[n.owner].astype(array.dtype))
        found[n.field] = flat.reshape(array.shape)
    return found


def rotate_orientations(
    m: Model, changed: Mapping[str, Any], key: jax.Array, p: RangedParameter, form: Form | Range
) -> dict[str, Any]:
    """Return orientations rotated by random rotation vectors, each component in the range."""
    field, ids = p.own[0].field, p.own[0].adr
    quats = current_values(m, changed, field)
    rotation_vectors = _sample(form, key, jnp.zeros((len(ids), 3), quats.dtype))
    old = Quat(*quats[ids].T)
    new = jnp.stack((old * Quat.from_rotation_vector(Vec(*rotation_vectors.T))).parts, axis=1)
    return {**changed, field: quats.at[ids].set(new)}
