"""Result of a solver, and its implicit derivative.

The solution x(theta) is a root of the gradient of the cost, F(x, theta) = 0. It is differentiated
by the implicit function theorem (Blondel et al., *Efficient and modular implicit differentiation*,
NeurIPS 2022), not through the iterations: dx = -H^-1 (dF/dtheta) dtheta with H the Hessian at x.
The tangent is one linear solve, and reverse mode follows by transposition, at the cost of one
system for any number of iterations and any method.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.model.data import SolverStat
from jaxsim.physics.solver.islands import Islands
from jaxsim.physics.solver.problem import ConstraintProblem, RowForces
from jaxsim.transforms.derivative_context import not_differentiated
from jaxsim.transforms.materialize import materialize
from jaxsim.transforms.residuals import solution


class SolverSettings(NamedTuple):
    """Inputs of a solver method besides the problem.

    Attributes:
      warm: warm start `[nv, *W]`, or None.
      tolerance, ls_tolerance: `[1, *W]`, see Option.
      scale: `[1, *W]`, 1 / trace of M, makes improvements comparable between models.
      islands: islands, for methods that converge island by island; else None.
    """

    warm: jax.Array | None
    tolerance: jax.Array
    ls_tolerance: jax.Array
    scale: jax.Array
    islands: Islands | None = None


class ConstraintSolution(NamedTuple):
    """Result of a solver.

    Attributes:
      qacc, qacc_smooth: accelerations with and without constraints `[nv, *W]`.
      force: constraint force J' f `[nv, *W]`.
      niter: iterations used `[1, *W]`.
      rows: forces of the rows, where the method has its own; else None.
      stat: statistics of the iterations, if requested; else None.
    """

    qacc: jax.Array
    qacc_smooth: jax.Array
    force: jax.Array
    niter: jax.Array | np.ndarray
    rows: RowForces | None = None
    stat: SolverStat | None = None


def solve_constrained(
    p: ConstraintProblem, settings: SolverSettings, method: Callable
) -> ConstraintSolution:
    """Return the acceleration that minimizes the constrained problem, with an implicit derivative.

    Args:
      p: the problem.
      settings: warm start and tolerances.
      method: `(p, settings) -> ConstraintSolution`; its iterations are not differentiated.
    """

    with not_differentiated():
        found: ConstraintSolution = method(*lax.stop_gradient((p, settings)))
    return solution(p, found, _solution_tangent)


def _solution_tangent(
    p: ConstraintProblem, dp: ConstraintProblem, found: ConstraintSolution
) -> ConstraintSolution:
    """Compute the tangent of the solution by the implicit function theorem."""

    # Residuals of the optimality conditions with and without constraints, and their tangents.
    def gradients(p: ConstraintProblem) -> tuple[Array, Array]:
        at_x = p.inertia_times(found.qacc) - p.smooth - p.force_at(found.qacc)
        return at_x, p.inertia_times(found.qacc_smooth) - p.smooth

    _, (dF, dG) = jax.jvp(gradients, (p,), (dp,))
    # One system with the Hessian at the solution; the forces follow by the chain rule.
    terms = materialize(p.evaluate(p.residual(found.qacc)), found.qacc)
    H = p.hessian(terms, p.accumulator(p.choose_hessian(differentiated=True).form))
    dx, dsmooth = H.solve(-dF), p.solve_inertia(-dG)
    # Tangents of forces at the moved solution.
    _, dforce = jax.jvp(ConstraintProblem.force_at, (p, found.qacc), (dp, dx))
    drows = None
    if found.rows is not None:
        _, drows = jax.jvp(ConstraintProblem.row_forces, (p, found.qacc), (dp, dx))
    dstat = jax.tree.map(_zero_tangent, found.stat)
    return ConstraintSolution(dx, dsmooth, dforce, _zero_tangent(found.niter), drows, dstat)


def _zero_tangent(a: Array | np.ndarray) -> Any:
    """Return the zero tangent of a value that has no derivative."""
    if jnp.issubdtype(a.dtype, jnp.integer):
        return np.zeros(a.shape, jax.dtypes.float0)
    return jnp.zeros_like(a)
