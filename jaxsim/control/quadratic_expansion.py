"""Second-order expansion of a motion: the model that iLQR and multiple shooting solve in each
iteration.

Steps are linearized exactly, all at once, with the worlds as last axis as in the physics. Costs
have the curvature of their norms; that of the residuals is dropped (Gauss-Newton).
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.control.motion import world_with_results
from jaxsim.control.problem import Problem
from jaxsim.control.solve.backward import QuadraticModel
from jaxsim.derivative.step_derivative import derivative_of_step
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.pipeline.forward import forward
from jaxsim.transforms.layout import call_as_one_world, unpack_record


def expand(m: Model, worlds: Data, problem: Problem, gap: jax.Array) -> QuadraticModel:
    """Expand steps to first and costs to second order about a motion.

    Args:
      m: the model.
      worlds: the worlds of the motion with their controls, (steps + 1, ...); the last is the end.
      problem: the costs.
      gap: defect of each step, f(x_t, u_t) - x_t+1, (steps, nx).
    """
    ends = np.cumsum([r.size for r in _shapes(m, worlds, problem)])[:-1]

    def outputs(before: Data, after: Data) -> Array:
        seen = world_with_results(native, before, after, forward)
        return call_as_one_world(
            lambda m, d: jnp.concatenate(problem.residuals(m, d)), native, seen
        )

    def cost(r: jax.Array, terminal: bool) -> jax.Array:
        return problem.cost_of(jnp.split(r, ends), terminal)

    # all steps at once
    native = unpack_record(jax.tree.map(lambda a: jnp.asarray(a)[..., None], m), 1)
    last = unpack_record(jax.tree.map(lambda a: jnp.moveaxis(a, 0, -1), worlds), 1)
    found = derivative_of_step(native, last, last.ctrl, outputs)
    r, F, J = (jnp.moveaxis(a, -1, 0) for a in found)

    # the norms of the steps and of the end
    def slopes(r: jax.Array, terminal: bool) -> tuple[jax.Array, jax.Array]:
        each = jax.vmap(lambda r: (jax.grad(cost)(r, terminal), jax.hessian(cost)(r, terminal)))
        return each(r)

    running, end = slopes(r[:-1], False), slopes(r[-1:], True)
    g, H = (jnp.concatenate(parts) for parts in zip(running, end, strict=True))
    return QuadraticModel(
        F[:-1], gap, jnp.einsum("tkz,tk->tz", J, g), jnp.einsum("tky,tkl,tlz->tyz", J, H, J)
    )


def _shapes(m: Model, worlds: Data, problem: Problem) -> tuple:
    one = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), worlds)
    shapes: tuple = jax.eval_shape(problem.residuals, m, one)
    return shapes
