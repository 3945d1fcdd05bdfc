"""JVP, transpose and dead-code-elimination rules of the primitive `physics`.

Each rule binds another call (derived_calls.py), so the derivative keeps the worlds last and can
itself be batched and differentiated.
"""

from collections.abc import Sequence
from typing import Any

import jax
from jax.extend.core import JaxprEqn
from jax.interpreters import ad, partial_eval

from jaxsim.transforms.derivative_context import is_real
from jaxsim.transforms.derived_calls import (
    jvp_call,
    return_solver_solutions,
    select_results,
    transpose_call,
)
from jaxsim.transforms.primitive import PHYSICS_P, ArgumentSpec, Leaves, PhysicsCall


def _jvp_rule(
    primals: Leaves, tangents: Sequence, *, call: PhysicsCall, worlds: int | None
) -> tuple:
    """Apply the JVP rule: run the call, save its solver solutions, bind the tangent call.

    physics[call](x)   ->   y, s = physics[return_solver_solutions(call)](x)
                            y_dot = physics[jvp_call(call)](x, s, x_dot)
    """
    # Primal results y and saved solutions s of iterative solvers.
    num_solutions = call.num_solutions([jax.typeof(a) for a in primals], worlds)
    primal_call = call.derived(return_solver_solutions) if num_solutions else call
    found = primal_call(*primals, worlds=worlds)
    results, solutions = found[: len(found) - num_solutions], found[len(found) - num_solutions :]
    # Tangents of the floating-point results from the nonzero tangents.
    active = tuple(not isinstance(t, ad.Zero) for t in tangents)
    nonzero = [t for t in tangents if not isinstance(t, ad.Zero)]
    tangent_call = call.derived(jvp_call, active, num_solutions)
    results_dot = iter(tangent_call(*primals, *solutions, *nonzero, worlds=worlds))
    zeros = [ad.Zero(jax.typeof(r).to_tangent_aval()) for r in results]
    return results, [
        next(results_dot) if is_real(r) else zero for r, zero in zip(results, zeros, strict=True)
    ]


ad.primitive_jvps[PHYSICS_P] = _jvp_rule


def _transpose_rule(
    cotangents: Sequence, *leaves: Any, call: PhysicsCall, worlds: int | None
) -> list:
    """Apply the transpose rule: bind the call of the cotangents of the linear arguments.

    y = physics[call](x, x_dot)   ->   x_bar = physics[transpose_call(call)](x, y_bar)
    """
    rest, linear = leaves[: -call.linear], leaves[-call.linear :]
    given = tuple(not isinstance(w, ad.Zero) for w in cotangents)
    if not any(given):
        return [None] * len(leaves)
    nonzero = [w for w in cotangents if not isinstance(w, ad.Zero)]
    like = tuple(
        ArgumentSpec.of(x.aval if ad.is_undefined_primal(x) else jax.typeof(x), worlds)
        for x in linear
    )
    found = call.derived(transpose_call, like, given)(*rest, *nonzero, worlds=worlds)
    linear_bar = [
        w if ad.is_undefined_primal(x) else None for x, w in zip(linear, found, strict=True)
    ]
    return [None] * len(rest) + linear_bar


ad.primitive_transposes[PHYSICS_P] = _transpose_rule


def _drop_unused(used: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """Drop the unused results of a call, and the arguments that only these need."""
    if not any(used):
        return [False] * len(eqn.invars), None
    call, worlds = eqn.params["call"], eqn.params["worlds"]
    inputs = call.used_arguments([v.aval for v in eqn.invars], worlds, used)
    if all(used) and all(inputs):
        return inputs, eqn
    like = tuple(ArgumentSpec.of(v.aval, worlds) for v in eqn.invars)
    rest = eqn.replace(
        invars=[v for v, i in zip(eqn.invars, inputs, strict=True) if i],
        outvars=[v for v, u in zip(eqn.outvars, used, strict=True) if u],
        params={
            "call": call.derived(select_results, like, tuple(inputs), tuple(used)),
            "worlds": worlds,
        },
    )
    return inputs, rest


def _drop_unused_with_effects(used: list[bool], live: list[bool], eqn: JaxprEqn) -> tuple:
    """Apply `_drop_unused` in the signature that JAX uses from version 0.12 on."""
    del live  # marks mutable references that are read later; a call has none
    return _drop_unused(used, eqn)


_rule: Any = (
    _drop_unused if jax.__version_info__ < (0, 12) else _drop_unused_with_effects
)  # JAX's annotation admits one signature
partial_eval.dce_rules[PHYSICS_P] = _rule
