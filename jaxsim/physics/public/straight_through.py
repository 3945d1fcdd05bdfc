"""Straight-through derivatives: hard contacts in the motion, smooth ones in its derivative.

A hard contact has no derivative before it exists, so an optimizer cannot find it. Smooth contacts
(collision/smooth.py) have one, at the price of forces at a distance in the motion. A model loaded
with `straight_through=True` has neither fault: with the function f_h of smoothing length h, a stage
y = f(x) and its tangent are

    y = f_0(x)        dy = df_h(x) dx

at the state x of the hard motion. Reverse mode follows by transposition. The tangent of a whole
rollout is a product of such Jacobians; it is not the derivative of any function, so do not compare
it with finite differences of the motion.

Source: Paulus, Geist et al., Differentiable Simulation of Hard Contacts with Soft Gradients for
Learning and Control, ICLR 2026 (arXiv:2506.14186).
"""

from collections.abc import Callable
from typing import Any

import jax

from jaxsim.arrays.array import PyTree
from jaxsim.model.data import Data
from jaxsim.model.model import Model


def straight_through(stage: Callable) -> Callable:
    """Return a stage `(m, d, *arrays) -> Data` with straight-through derivatives.

    Lists of contacts and rows differ between the hard and the smooth stage: an item of one is not
    the same contact in the other. Their tangents are those of the hard stage.
    """

    def hard(m: Model, *rest: PyTree) -> PyTree:
        return stage(m.replace_unchecked({"smooth": None}, False), *rest)

    @jax.custom_jvp
    def run(m: Model, *rest: PyTree) -> PyTree:
        return hard(m, *rest)

    @run.defjvp
    def jvp(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
        y, along = jax.jvp(hard, primals, tangents)
        if not isinstance(y, Data):
            return y, along
        smooth = jax.jvp(stage, primals, tangents)[1]
        lists = {n: getattr(along, n) for n, f in Data.fields.items() if _is_list(n, f.shape)}
        return y, smooth.replace_unchecked(lists, False)

    return run


def _is_list(name: str, shape: tuple) -> bool:
    """Return whether a field of Data lists contacts or rows, or logs their solution."""
    return name in ("contact", "solver") or "nrow" in shape
