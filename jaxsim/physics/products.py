"""Products of traced matrices with the worlds last: J x, J' f and J' G.

With the worlds last XLA has no fast contraction of its own: written out as a sum of products of rows
it makes one loop over memory, vectorised over worlds. One world, and sums too long to write
out, go through dots.
"""

import jax.numpy as jnp
from jax import lax

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
