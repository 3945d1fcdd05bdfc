"""Save the solutions of iterative solvers for implicit differentiation.

The derivative of a solution follows from the equation that it solves (implicit function theorem),
so it needs the solution, not the iterates. `solution` marks a solver's result with the primitive
`SOLVER_SOLUTION`. If a derivative follows, `save_solutions` rewrites the call's jaxpr to return the
marked arrays after its results, and `restore_solutions` rewrites it to take them after its
arguments, so that dead-code elimination removes the iteration from the derivative:

    the call                   save_solutions             restore_solutions
    -------------------------  -------------------------  -------------------------
    lambda q:                  lambda q:                  lambda q, s:
      p = problem(q)             p = problem(q)             p = problem(q)
      x = while(p)               x = while(p)
      s = solver_solution(x)     s = solver_solution(x)
      a = solution(p, s)         a = solution(p, s)         a = solution(p, s)
      return integrate(q, a)     return integrate(q, a), s  return integrate(q, a)

The primitive `solution` is the identity in s; its JVP rule is the implicit derivative, a linear
solve with the matrix of p at s.

A marked solution is recognized in the jaxpr itself, in branches of `cond`, and in the body of
`scan` (the stages of RK4), which stacks those of its iterations. In any other loop it is an
ordinary value, and a derivative recomputes it.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Primitive, Var, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir, partial_eval

from jaxsim.arrays.array import Array

_Leaves = Sequence[Array]
_Problem = TypeVar("_Problem")
_Solution = TypeVar("_Solution")

SOLVER_SOLUTION = Primitive("solver_solution")
SOLVER_SOLUTION.multiple_results = True
SOLVER_SOLUTION.def_impl(lambda *leaves: list(leaves))
SOLVER_SOLUTION.def_abstract_eval(lambda *avals: list(avals))
mlir.register_lowering(SOLVER_SOLUTION, lambda _, *leaves: leaves)
batching.primitive_batchers[SOLVER_SOLUTION] = lambda leaves, axes: (
    SOLVER_SOLUTION.bind(*leaves),
    axes,
)


_SOLUTION_P = Primitive("solution")
_SOLUTION_P.multiple_results = True


def solution(
    problem: _Problem,
    found: _Solution,
    jvp_rule: Callable[[_Problem, _Problem, _Solution], _Solution],
) -> _Solution:
    """Return a solver's solution as a differentiable function of the problem.

    It acts like `jax.custom_jvp`, whose rule JAX loses in a scan that has been differentiated: the
    second derivative would be zero there.

    Args:
      problem: pytree on which the solution depends.
      found: the solution; each array has worlds last, `[items, *W]`.
      jvp_rule: `(problem, tangent of the problem, found)` to the tangent of `found`.

    Returns:
      `found`, with `jvp_rule` as its JVP rule.
    """
    given, of_problem = jax.tree.flatten(problem)
    leaves, of_found = jax.tree.flatten(lax.stop_gradient(found))

    def of_leaves(given: _Leaves, tangents: _Leaves, leaves: _Leaves) -> list[Array]:
        """Evaluate `jvp_rule` on flat arguments."""
        p, dp = jax.tree.unflatten(of_problem, given), jax.tree.unflatten(of_problem, tangents)
        return jax.tree.leaves(jvp_rule(p, dp, jax.tree.unflatten(of_found, leaves)))

    # Mark the solution, then attach its derivative rule.
    known = SOLVER_SOLUTION.bind(*leaves)
    results = _SOLUTION_P.bind(*given, *known, jvp_rule=of_leaves, number=len(leaves))
    as_function: _Solution = jax.tree.unflatten(of_found, results)
    return as_function


def _solution_rule(*leaves: Array, jvp_rule: Callable, number: int) -> list[Array]:
    """Return the solution itself, the last `number` arguments."""
    del jvp_rule
    return list(leaves[-number:])


_SOLUTION_P.def_impl(_solution_rule)
_SOLUTION_P.def_abstract_eval(_solution_rule)
mlir.register_lowering(_SOLUTION_P, lambda _, *leaves, jvp_rule, number: leaves[-number:])


def _solution_jvp(
    leaves: _Leaves, tangents: Sequence, *, jvp_rule: Callable, number: int
) -> tuple[list[Array], list[Array]]:
    """Return the solution and its tangent."""
    found = _SOLUTION_P.bind(*leaves, jvp_rule=jvp_rule, number=number)  # again differentiable
    tangents = [ad.instantiate_zeros(c) for c in tangents[:-number]]
    return found, jvp_rule(leaves[:-number], tangents, found)


ad.primitive_jvps[_SOLUTION_P] = _solution_jvp


def _batch_solution(
    leaves: _Leaves, axes: Sequence, *, jvp_rule: Callable, number: int
) -> tuple[list[Array], Sequence]:
    """Batch solutions along the first axis."""
    size = next(a.shape[axis] for a, axis in zip(leaves, axes, strict=True) if axis is not None)

    def first(a: Array, axis: int | None) -> Array:
        if axis is None:
            return jnp.broadcast_to(a, (size, *a.shape))
        return jnp.moveaxis(a, axis, 0)

    every = [first(*pair) for pair in zip(leaves, axes, strict=True)]
    return _SOLUTION_P.bind(*every, jvp_rule=jax.vmap(jvp_rule), number=number), [0] * number


batching.primitive_batchers[_SOLUTION_P] = _batch_solution


def save_solutions(program: ClosedJaxpr) -> tuple[ClosedJaxpr, int]:
    """Return the program that returns its solver solutions after its results, and their number."""
    found = _save_in_jaxpr(program.jaxpr)
    more = len(found.outvars) - len(program.jaxpr.outvars)
    return program.replace(jaxpr=found), more


def restore_solutions(program: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program that takes its solver solutions after its arguments."""
    found = _restore_in_jaxpr(program.jaxpr)
    needed, _ = partial_eval.dce_jaxpr(found, [True] * len(found.outvars), True)
    return program.replace(jaxpr=needed)


def _save_in_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """Rewrite a jaxpr to return its solutions after its results."""
    eqns, saved = [], []
    for eqn in jaxpr.eqns:
        # Solutions are marked here, or inside of scans and branches.
        if eqn.primitive is SOLVER_SOLUTION:
            saved += eqn.outvars
        elif eqn.primitive is lax.scan_p:
            eqn, more = _save_in_scan(eqn)
            saved += more
        elif eqn.primitive is lax.cond_p:
            eqn, more = _save_in_branches(eqn)
            saved += more
        eqns.append(eqn)
    return _rebuild_jaxpr(jaxpr, eqns, jaxpr.invars, [*jaxpr.outvars, *saved])


def _restore_in_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """Rewrite a jaxpr to take its solutions after its arguments."""
    eqns, saved = [], []
    for eqn in jaxpr.eqns:
        # Drop the marked equations: their results become arguments.
        if eqn.primitive is SOLVER_SOLUTION:
            saved += eqn.outvars
            continue
        if eqn.primitive is lax.scan_p:
            eqn, more = _restore_in_scan(eqn)
            saved += more
        elif eqn.primitive is lax.cond_p:
            eqn, more = _restore_in_branches(eqn)
            saved += more
        eqns.append(eqn)
    return _rebuild_jaxpr(jaxpr, eqns, [*jaxpr.invars, *saved], jaxpr.outvars)


def _save_in_scan(eqn: JaxprEqn) -> tuple[JaxprEqn, list[Var]]:
    """Rewrite a scan to stack the solutions of its iterations."""
    body, number = save_solutions(eqn.params["jaxpr"])
    if not number:
        return eqn, []
    saved = _stacked_variables(body.out_avals[-number:], eqn.params["length"])
    params = eqn.params | {"jaxpr": body}
    return eqn.replace(params=params, outvars=[*eqn.outvars, *saved]), saved


def _restore_in_scan(eqn: JaxprEqn) -> tuple[JaxprEqn, list[Var]]:
    """Rewrite a scan so that its iterations take the stacked solutions."""
    inner = eqn.params["jaxpr"]
    body = inner.replace(jaxpr=_restore_in_jaxpr(inner.jaxpr))
    number = len(body.in_avals) - len(inner.in_avals)
    if not number:
        return eqn, []
    saved = _stacked_variables(body.in_avals[-number:], eqn.params["length"])
    params = eqn.params | {"jaxpr": body}
    if "linear" in params:
        params["linear"] = (*params["linear"], *[False] * number)
    return eqn.replace(params=params, invars=[*eqn.invars, *saved]), saved


def _save_in_branches(eqn: JaxprEqn) -> tuple[JaxprEqn, list[Var]]:
    """Rewrite a `cond` to return the solutions of all branches; zeros for branches not taken."""
    branches = [save_solutions(b) for b in eqn.params["branches"]]
    avals = [b.out_avals[len(b.out_avals) - number :] for b, number in branches]
    if not any(avals):
        return eqn, []

    # Each branch returns zeros for the solutions of the other branches.
    def with_all(i: int) -> Callable:
        def run(*leaves: Array) -> list[Array]:
            found = jaxpr_as_fun(branches[i][0])(*leaves)
            results = len(found) - len(avals[i])
            none = [[jnp.zeros(a.shape, a.dtype) for a in of] for of in avals]
            none[i] = found[results:]
            return found[:results] + [s for of in none for s in of]

        return run

    params = eqn.params | {"branches": _retrace_branches(eqn, with_all, [])}
    saved = _variables([a for of in avals for a in of])
    return eqn.replace(params=params, outvars=[*eqn.outvars, *saved]), saved


def _restore_in_branches(eqn: JaxprEqn) -> tuple[JaxprEqn, list[Var]]:
    """Rewrite a `cond` to take the solutions of all branches."""
    inner = eqn.params["branches"]
    branches = [b.replace(jaxpr=_restore_in_jaxpr(b.jaxpr)) for b in inner]
    given = len(inner[0].in_avals)
    avals = [b.in_avals[given:] for b in branches]
    if not any(avals):
        return eqn, []

    # Each branch takes the solutions of all branches and reads its own.
    def of_all(i: int) -> Callable:
        first = given + sum(map(len, avals[:i]))

        def run(*leaves: Array) -> list[Array]:
            own = leaves[first : first + len(avals[i])]
            return jaxpr_as_fun(branches[i])(*leaves[:given], *own)

        return run

    every = [a for of in avals for a in of]
    params = eqn.params | {"branches": _retrace_branches(eqn, of_all, every)}
    saved = _variables(every)
    return eqn.replace(params=params, invars=[*eqn.invars, *saved]), saved


def _retrace_branches(eqn: JaxprEqn, make: Callable[[int], Callable], more: Sequence) -> tuple:
    """Trace new branches of a `cond`, which take additional arguments `more`."""
    old = eqn.params["branches"]
    avals = [*old[0].in_avals, *more]
    structs = [jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]
    return tuple(jax.make_jaxpr(make(i))(*structs) for i in range(len(old)))


def _stacked_variables(avals: Sequence, length: int) -> list[Var]:
    """Return new variables for values stacked over the iterations of a scan."""
    shapes = [jax.ShapeDtypeStruct((length, *a.shape), a.dtype) for a in avals]
    return _variables(shapes)


def _variables(like: Sequence) -> list[Var]:
    """Return new jaxpr variables of these shapes."""
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in like]
    new: list[Var] = jax.make_jaxpr(lambda *leaves: leaves)(*shapes).jaxpr.invars
    return new


def _rebuild_jaxpr(
    jaxpr: Jaxpr, eqns: list[JaxprEqn], invars: Sequence[Var], outvars: Sequence
) -> Jaxpr:
    """Return a jaxpr with other equations, inputs and outputs."""
    info = jaxpr.debug_info.with_unknown_names()
    return jaxpr.replace(eqns=eqns, invars=invars, outvars=outvars, debug_info=info)
