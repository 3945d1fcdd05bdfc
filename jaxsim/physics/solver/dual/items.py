"""Items of the dual problem: an item is one row, or all rows of an elliptic contact.

MuJoCo's documentation, Computation: Constraint model, dual problem:

    minimize 1/2 f' (A + R) f + f' (J a0 - aref),   A = J M^-1 J',   M a0 = smooth,

subject to bounds: none for equalities, +-floss for dry friction, f >= 0 for limits and pyramid
edges, the friction cone for an elliptic contact. A is never formed. Instead the acceleration x = a0
+ M^-1 J' f is updated with every force, and the gradient of the dual cost is J x - aref + R f.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply, apply_transpose
from jaxsim.enums import MINVAL, ConstraintState
from jaxsim.physics.solver.trust_region import least_in_ball, scale_by_bounds

_MAX_COST_RISE = 1e-10  # increase of the cost above which MuJoCo rejects a new force


class Items(NamedTuple):
    """Items, padded to `size` rows each; entries of missing rows are zero.

    Attributes:
      J, push: Jacobian, and M^-1 J', `[n, size, nv, *W]`.
      aref, R: reference acceleration and regularization, `[n, size, *W]`.
      A: diagonal blocks J M^-1 J' + R, `[n, size, size, *W]`; identity for missing rows.
      low, high: bounds of the force of an item that is one row, `[n, *W]`.
      mu: friction coefficients along the rows, `[n, size, *W]`; zero for missing rows.
      cone: contacts with several rows, `[n, *W]` bool.
      solved: contacts whose friction block MuJoCo can invert.
      active: items that take part.
      island: island of each item, int `[n, *W]`.
    """

    J: jax.Array
    push: jax.Array
    aref: jax.Array
    R: jax.Array
    A: jax.Array
    low: jax.Array
    high: jax.Array
    mu: jax.Array
    cone: jax.Array
    solved: jax.Array
    active: jax.Array
    island: jax.Array

    @property
    def rows(self) -> Array:
        """Return the number of rows of each item, `[n, *W]`."""
        return jnp.sum(self.R > 0, axis=1, dtype=jnp.int32)

    def states(self, f: Array) -> Array:
        """Return the ConstraintState of each item from its force, as in MuJoCo's PGS, `[n, *W]`."""
        # Inside of the friction cone: |f_k / mu_k| <= f_0.
        state = jnp.full(self.low.shape, ConstraintState.QUADRATIC, jnp.int32)
        friction, mu = f[:, 1:], self.mu[:, 1:]
        length = jnp.sum((friction / jnp.where(mu > 0, mu, 1.0)) ** 2, axis=1)
        inside = (f[:, 0] >= 0) & (f[:, 0] ** 2 >= length)
        # A later condition overrides an earlier one.
        one_way = (self.low == 0) & (self.high > 0)
        for where, named in (
            (one_way & (f[:, 0] <= 0), ConstraintState.SATISFIED),
            (~one_way & (f[:, 0] <= self.low), ConstraintState.LINEARPOS),
            (~one_way & (f[:, 0] >= self.high), ConstraintState.LINEARNEG),
            (self.cone, ConstraintState.CONE),
            (self.cone & inside, ConstraintState.SATISFIED),
        ):
            state = jnp.where(where, np.int32(named), state)
        return state

    def active_rows(self, state: Array) -> Array:
        """Return which items count as active, `[n, *W]`; equalities and dry friction always do."""
        one_way = (self.low == 0) & (self.high > 0)
        return ~one_way | (state != np.int32(ConstraintState.SATISFIED))

    def acceleration_of(self, f: Array) -> Array:
        """Compute M^-1 J' f, `[n, size, *W]` -> `[nv, *W]`."""
        return apply_transpose(flatten_items(self.push), flatten_items(f))

    def residual(self, x: Array) -> Array:
        """Compute J x - aref, `[n, size, *W]`."""
        return apply(flatten_items(self.J), x).reshape(self.aref.shape) - self.aref

    def within(self, f: Array) -> Array:
        """Project forces `[n, size, *W]` onto their bounds, as MuJoCo does after extrapolation."""
        normal, friction = f[:, 0], f[:, 1:]
        alone = jnp.clip(normal, self.low, self.high)[:, None]
        if not friction.shape[1]:
            return alone
        # Contacts: scale the friction back to the cone; no force where the normal force is
        # negative.
        mu = self.mu[:, 1:]
        square = jnp.sum((friction / jnp.where(mu > 0, mu, 1.0)) ** 2, axis=1)
        large = square > normal**2
        shrink = jnp.where(large, jnp.abs(normal) / jnp.sqrt(jnp.maximum(square, MINVAL)), 1.0)
        held = jnp.where((normal < 0)[:, None], 0, f.at[:, 1:].multiply(shrink[:, None]))
        single = jnp.concatenate([alone, jnp.zeros_like(friction)], axis=1)
        return jnp.where(self.cone[:, None], held, single)

    def visit(self, x: Array, f: Array, here: Array) -> tuple[Array, Array, Array]:
        """Minimize the dual cost over the force of one item; arrays have no first axis.

        Args:
          x: acceleration `[nv, *W]`.
          f: force of the item `[size, *W]`.
          here: `[*W]` bool, where the item is visited.

        Returns:
          The updated acceleration and force, and the decrease of the cost `[*W]`.
        """
        size = len(f)
        # Gradient of the dual cost; a single row takes the clipped minimizer.
        r = jnp.sum(self.J * x[None], axis=1) - self.aref + self.R * f
        alone = jnp.clip(f[0] - r[0] / self.A[0, 0], self.low, self.high)
        new = [alone, *[jnp.zeros_like(alone)] * (size - 1)]
        if size > 1:
            pairs = zip(self._in_cone(f, r), new, strict=True)
            new = [jnp.where(self.cone, a, b) for a, b in pairs]
        # Reject the new force where it raises the cost.
        step = jnp.stack(new) - f
        change = jnp.sum(step * (r + 0.5 * apply(self.A, step)), axis=0)
        moves = here & (change <= _MAX_COST_RISE)
        step, change = jnp.where(moves[None], step, 0), jnp.where(moves, change, 0)
        return x + jnp.sum(self.push * step[:, None], axis=0), f + step, -change

    def _in_cone(self, f: Array, r: Array) -> list:
        """Optimize along the ray through the force, then the friction at the new normal force."""
        A, size = self.A, len(f)
        # Exact minimum along the ray f + t f; at a zero normal force a step of the normal row
        # instead.
        along = jnp.sum(f * apply(A, f), axis=0)
        curved = along >= MINVAL
        ray = jnp.where(curved, -jnp.sum(f * r, axis=0) / jnp.where(curved, along, 1.0), 0)
        pushed = f[0] * (1 + jnp.maximum(ray, -1))
        normal = jnp.where(f[0] < MINVAL, jnp.maximum(f[0] - r[0] / A[0, 0], 0), pushed)
        # Quadratic subproblem of the friction with the normal force given (trust_region.py).
        rows = range(1, size)
        slope = [
            self.mu[j] * (r[j] - sum(A[j, k] * f[k] for k in rows) + A[j, 0] * (normal - f[0]))
            for j in rows
        ]
        y = least_in_ball(friction(A, self.mu), slope, normal, self.solved)
        return [normal, *(self.mu[k] * a for k, a in zip(rows, y, strict=True))]


def friction(A: Array, mu: Array) -> list:
    """Scale the friction block `[size, size, ...]` of A by its bounds; nested lists."""
    rows = range(1, len(mu))
    return scale_by_bounds([[A[j, k] for k in rows] for j in rows], [mu[j] for j in rows])


def flatten_items(a: Array) -> Array:
    """Reshape `[n, size, ...]` to `[n size, ...]`."""
    return a.reshape(-1, *a.shape[2:])
