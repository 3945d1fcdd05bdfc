"""Decisions that are computed once.

XLA:CPU recomputes a cheap value in each loop that uses it, and contracts products with sums in one loop and
not in the next: two copies of a value differ in the last digit. For a number that is harmless. For a
decision it is not: near a tie, and at rest things do lie exactly flat, the x coordinate of a point could follow
one branch and its y coordinate the other. What is decided here comes out of a branch of its own, which
XLA does not look into, so that all users see the same decision.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax


def decide(choose: Callable, *operands):
    """`choose(*operands)`, integers and booleans without derivative, evaluated exactly once."""
    operands = lax.stop_gradient(operands)
    return lax.platform_dependent(*operands, cpu=_in_a_branch(choose), default=choose)


def _in_a_branch(choose: Callable) -> Callable:
    def never(*operands):
        shapes = jax.eval_shape(choose, *operands)
        return jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)

    def once(*operands):
        always = lax.optimization_barrier(jnp.ones((), bool))  # true, but XLA cannot tell
        return lax.cond(always, choose, never, *operands)

    return once
