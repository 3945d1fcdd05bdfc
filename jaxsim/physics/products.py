"""Products of traced matrices with the worlds last: J x, J' f and J' G.

With the worlds last XLA has no fast contraction of its own: written out as a sum of products of
rows it makes one loop over memory, vectorised over worlds. One world, and sums too long to write
out, go through dots.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.physics.pin import pin
from jaxsim.physics.tree import HIGHEST

WRITE_OUT = 128  # longest sum that is written out


def apply(J, x):
    """J x: `[n, nv, *W]`, `[nv, *W]` -> `[n, *W]`."""
    n = J.shape[1]
    if J.ndim == 2:
        return jnp.matmul(J, x, precision=HIGHEST)
    if n > WRITE_OUT:
        return _worlds_dot(J, x, ((1,), (0,)))
    return _sum(lambda i: J[:, i] * x[i][None], n)


def apply_transpose(J, f):
    """J' f: `[n, nv, *W]`, `[n, *W]` -> `[nv, *W]`."""
    n = J.shape[0]
    if J.ndim == 2:
        return jnp.matmul(f, J, precision=HIGHEST)
    if n > WRITE_OUT:
        return _worlds_dot(J, f, ((0,), (0,)))
    return _sum(lambda r: J[r] * f[r][None], n)


def gram(J, G):
    """J' G: two `[n, nv, *W]` -> `[nv, nv, *W]`."""
    n = J.shape[0]
    if J.ndim == 2:
        return jnp.matmul(J.T, G, precision=HIGHEST)
    if n > WRITE_OUT:
        return _worlds_dot(J, G, ((0,), (0,)))
    return _sum(lambda r: J[r][:, None] * G[r][None], n)


def apply_basis(J, x):
    """J x of contacts: `[basis, ncon, nv, *W]`, `[nv, *W]` -> `[basis, ncon, *W]`."""
    return apply(_rows(J), x).reshape(*J.shape[:2], *x.shape[1:])


def apply_basis_transpose(J, f: list):
    """J' f of contacts, f a list over the basis of `[ncon, *W]` -> `[nv, *W]`."""
    if J.ndim == 3:
        return apply_transpose(_rows(J), jnp.concatenate(f))
    start = jnp.zeros(J.shape[2:], J.dtype)

    def add(out, J, f):
        return out + apply_transpose(_rows(J), jnp.concatenate(f))

    return _over_chunks(add, start, J, f)


def gram_basis(H, J, weight: list):
    """H + J' W J of contacts.

    Args:
      H: `[nv, nv, *W]`.
      J: `[basis, ncon, nv, *W]`.
      weight: W of each contact, nested lists over the basis of `[ncon, *W]`.
    """

    def add(H, J, weight):
        size = J.shape[0]
        rows = [sum(weight[j][k][:, None] * J[k] for k in range(size)) for j in range(size)]
        return H + gram(_rows(J), jnp.concatenate(pin(rows, H)))

    if J.ndim == 3:
        return add(H, J, weight)
    return _over_chunks(add, H, J, weight)


CHUNK = 8  # contacts that are taken together


def _over_chunks(add: Callable, start, J, per_contact):
    """Adds contacts to a sum, eight at a time, as far as some world has a force or weight there.

    So the program is that of eight contacts, and the time follows the contacts that are there, not
    the room for them. Only the worlds-last form, which is never differentiated, may loop so.
    """
    count = J.shape[1]
    if count <= CHUNK:
        return add(start, J, per_contact)
    pad = -count % CHUNK
    if pad:
        J = jnp.pad(J, [(0, 0), (0, pad)] + [(0, 0)] * (J.ndim - 2))
        per_contact = jax.tree.map(lambda a: jnp.pad(a, [(0, pad), (0, 0)]), per_contact)
    parts = ((a != 0).any(axis=-1) for a in jax.tree.leaves(per_contact))
    used = functools.reduce(jnp.logical_or, parts)
    place = np.arange(1, count + pad + 1, dtype=np.int32)
    last = jnp.max(jnp.where(used, place, 0))

    def chunk(k, out):
        first = k * CHUNK
        own = jax.tree.map(lambda a: lax.dynamic_slice_in_dim(a, first, CHUNK), per_contact)
        return add(out, lax.dynamic_slice_in_dim(J, first, CHUNK, axis=1), own)

    return lax.fori_loop(0, (last + CHUNK - 1) // CHUNK, chunk, start)


def _rows(J):
    """`[basis, ncon, nv, *W]` as `[basis ncon, nv, *W]`."""
    return J.reshape(-1, *J.shape[2:])


def _sum(term, n: int):
    out = term(0)
    for k in range(1, n):
        out = out + term(k)
    return out


def _worlds_dot(a, b, contract):
    """Contraction with the last axis of both as batch."""
    batch = ((a.ndim - 1,), (b.ndim - 1,))
    dtype = jnp.result_type(a, b)
    size = max(a.shape[-1], b.shape[-1])
    a = jnp.broadcast_to(a, (*a.shape[:-1], size)).astype(dtype)
    b = jnp.broadcast_to(b, (*b.shape[:-1], size)).astype(dtype)
    out = lax.dot_general(a, b, (contract, batch), precision=HIGHEST)
    return jnp.moveaxis(out, 0, -1)
