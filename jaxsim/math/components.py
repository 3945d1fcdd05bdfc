"""Structure-of-arrays value types: base of vectors, quaternions, rotations, spatial vectors.

A batch of 3-vectors is three arrays x, y, z, not one array with a last axis of three: XLA fuses
component arithmetic into straight vector loops, while stacking and slicing a short axis breaks
fusion (figures in docs/numerics.md). All components of a value have the same shape, items first and
batch axis last: `[n]` for one world, `[n, worlds]` for many.
"""

import functools
import operator
from collections.abc import Callable
from typing import Self

import jax
import jax.numpy as jnp
from jax import lax


class Components:
    """Value with a fixed, named set of component arrays of equal shape; a pytree."""

    names: tuple[str, ...] = ()
    __slots__ = ("parts",)

    def __init__(self, *parts):
        self.parts = parts

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        jax.tree_util.register_pytree_node(cls, _component_arrays, lambda _, parts: cls(*parts))
        for k, name in enumerate(cls.names):
            setattr(cls, name, property(_component(k)))

    # Arithmetic common to all value types: sum, difference, scaling.
    def map(self, f: Callable) -> Self:
        """Apply `f` to every component."""
        return type(self)(*(f(a) for a in self.parts))

    def __add__(self, other: Self) -> Self:
        return type(self)(*map(plus, self.parts, other.parts))

    def __sub__(self, other: Self) -> Self:
        return type(self)(*map(minus, self.parts, other.parts))

    def __neg__(self) -> Self:
        return type(self)(*(-a for a in self.parts))

    def scale(self, s) -> Self:
        """Multiply every component by the scalar array `s`."""
        return type(self)(*(times(a, s) for a in self.parts))

    def dot(self, other: Self):
        """Return the sum of the products of equal components."""
        first, *rest = map(times, self.parts, other.parts)
        return functools.reduce(plus, rest, first)

    # Items.
    def __getitem__(self, index) -> Self:
        return type(self)(*(a[index] for a in self.parts))

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of one component."""
        return jnp.shape(self.parts[0])

    def __repr__(self) -> str:
        inner = ", ".join(f"{n}={p!r}" for n, p in zip(self.names, self.parts, strict=False))
        return f"{type(self).__name__}({inner})"

    @classmethod
    def from_array(cls, a, axis: int = 1) -> Self:
        """Build a value from an array with the components along `axis`, in the order of `names`."""
        return cls(
            *(jax.lax.index_in_dim(a, k, axis, keepdims=False) for k in range(len(cls.names)))
        )

    def to_array(self, axis: int = 1):
        """Stack the components along `axis`, the inverse of `from_array`."""
        first = self.parts[0]
        # one array for all components: broadcast, do not copy
        if all(part is first for part in self.parts):
            shape = list(jnp.shape(first))
            shape.insert(axis, len(self.parts))
            return jnp.broadcast_to(jnp.expand_dims(first, axis), shape)
        # Components that depend on the model alone have no batch where others do.
        return jnp.stack(jnp.broadcast_arrays(*self.parts), axis=axis)


def _with_fast_path(same: Callable, any_: Callable) -> Callable:
    """Return an operation with a fast path for operands of equal type, which trace faster."""

    def of(a, b):
        arrays = isinstance(a, jax.Array) and isinstance(b, jax.Array)
        quick = arrays and a.shape == b.shape and a.dtype == b.dtype
        return same(a, b) if quick else any_(a, b)

    return of


plus = _with_fast_path(lax.add, operator.add)
minus = _with_fast_path(lax.sub, operator.sub)
times = _with_fast_path(lax.mul, operator.mul)


def _component(k: int) -> Callable:
    return lambda value: value.parts[k]


def _component_arrays(value: Components) -> tuple[tuple, None]:
    return value.parts, None


def concat(values):
    """Concatenate several values (or arrays) along the item axis."""
    values = list(values)
    if len(values) == 1:
        return values[0]
    return jax.tree.map(lambda *a: jnp.concatenate(a, axis=0), *values)


def select_where(mask, yes, no):
    """Return `yes` where `mask`, else `no`, for arrays or values; `mask` is one array."""
    return jax.tree.map(functools.partial(_where, mask), yes, no)


def _where(mask, a, b):
    alike = all(isinstance(x, jax.Array) for x in (mask, a, b)) and mask.shape == a.shape == b.shape
    quick = alike and mask.dtype == bool and a.dtype == b.dtype
    return lax.select(mask, a, b) if quick else jnp.where(mask, a, b)
