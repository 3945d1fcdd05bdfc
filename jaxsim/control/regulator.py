"""Feedback about an equilibrium: the linear-quadratic regulator."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.control.linearization import linearize
from jaxsim.control.solve.riccati import riccati
from jaxsim.derivative.tangent import difference, tangent_size
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.record.check import brief_value


# eq=False: `jax.jit(regulator)` caches its program by identity, as for a function
@partial(jax.tree_util.register_dataclass, data_fields=["d", "ctrl", "K", "P"], meta_fields=[])
@dataclass(frozen=True, eq=False)
class Regulator:
    """Feedback about a state: u = ctrl + K difference(m, d, now).

    Attributes:
      d: the equilibrium state.
      ctrl: the equilibrium control, (nu,).
      K: gain matrix, (nu, 2 nv + na).
      P: cost to go, x'Px, (2 nv + na, 2 nv + na).
    """

    d: Data
    ctrl: jax.Array
    K: jax.Array
    P: jax.Array

    def __call__(self, m: Model, d: Data) -> jax.Array:
        """Return the control of a state, (nu,)."""
        return self.ctrl + self.K @ difference(m, self.d, d)


def lqr(m: Model, d: Data, Q: Any, R: Any, ctrl: jax.Array | None = None) -> Regulator:
    """Return the feedback that minimizes sum x'Qx + u'Ru over an infinite horizon near an
    equilibrium.

    Args:
      m: the model.
      d: the equilibrium, a fixed point of the step under the control; `equilibrium` finds it.
      Q: weight of the state in tangent coordinates: a number, a diagonal (2 nv + na,) or a matrix.
      R: weight of the controls: a number, a diagonal (nu,) or a matrix.
      ctrl: the equilibrium control, (nu,); None: that of `d`.

    Returns:
      A Regulator, a function (m, d) -> control.

    Raises:
      ValueError: a shape or precision is wrong.
    """
    A, B, _, _ = linearize(m, d, ctrl)
    Q, R = _matrix("Q", Q, tangent_size(m), A.dtype), _matrix("R", R, m.nu, A.dtype)
    P = riccati(A, B, Q, R)
    K = -jnp.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    return Regulator(d, d.ctrl if ctrl is None else jnp.asarray(ctrl), K, P)


def _matrix(name: str, value: Any, n: int, dtype: Any) -> jax.Array:
    """Return a weight as a matrix, (n, n)."""
    value = jnp.asarray(value).astype(dtype)
    if value.shape == (n, n):
        return value
    if value.shape not in ((), (n,)):
        raise ValueError(
            f"lqr: {name}: expected a number, shape ({n},) or ({n}, {n}), got {brief_value(value)}"
        )
    return jnp.diag(jnp.broadcast_to(value, (n,)))
