"""Calls derived from a call: its JVP, its transpose, a subset of its results, several columns.

Each function here takes a `PhysicsCall` and returns a `PhysicsCall`, so that the same rules batch
and differentiate the result. Arguments and results, for y = call(x) with solver solutions s:

    call                      arguments          results
    ------------------------  -----------------  --------------------------
    return_solver_solutions   x                  y, s
    jvp_call                  x, s, x_dot        y_dot; linear in x_dot
    transpose_call            x, s, y_bar        x_bar; linear in y_bar
    batch_linear_arguments    x, s, [k, x_dot]   [k, y_dot]
    select_results            some of x          some of y

x_dot has the tangents of those arguments that have one (`active`), y_dot and y_bar those of the
floating-point results; the transpose is that of `jvp_call`.
"""

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr
from jax.interpreters import partial_eval

from jaxsim.arrays.array import Array
from jaxsim.transforms import residuals
from jaxsim.transforms.derivative_context import is_real, trace_for_derivative
from jaxsim.transforms.primitive import ArgumentSpec, PhysicsCall, evaluate_program, used_inputs


def return_solver_solutions(call: PhysicsCall) -> PhysicsCall:
    """Return the call that also returns its solver solutions, after its results."""

    def run(worlds: int | None, staged: bool, *leaves: Array) -> list[Array]:
        program, _ = residuals.save_solutions(call.program([jax.typeof(a) for a in leaves], worlds))
        return evaluate_program(program, staged, leaves)

    name = f"{call.name} with solutions"
    return PhysicsCall(run, call.shared, call.linear, call.tile, name=name)


def jvp_call(call: PhysicsCall, active: tuple[bool, ...], num_solutions: int) -> PhysicsCall:
    """Return the JVP of a call with respect to some arguments.

    The results are the tangents of the floating-point results.

    Args:
      call: the function to differentiate.
      active: which arguments have a tangent. The tangents follow the arguments and the solutions.
      num_solutions: number of saved solver solutions that follow the arguments.
    """
    number = len(active)

    def run(worlds: int | None, staged: bool, *leaves: Array) -> list[Array]:
        given, x_dot = leaves[:number], leaves[number + num_solutions :]
        function = call.from_solutions(worlds, staged, leaves[number : number + num_solutions])

        def of_active(*chosen: Array) -> list[Array]:
            rest = iter(chosen)
            every = (next(rest) if a else x for a, x in zip(active, given, strict=True))
            return [x for x in function(*every) if is_real(x)]

        # JVP of the function of the arguments that have tangents.
        chosen = tuple(x for a, x in zip(active, given, strict=True) if a)
        with trace_for_derivative():
            y_dot: list[Array] = jax.jvp(of_active, chosen, x_dot)[1]
        return y_dot

    shared = [s and not a for s, a in zip(call.shared, active, strict=True)]
    new = [False] * sum(active)

    def results(avals: Sequence, worlds: int | None) -> list:
        return [a for a in call.results(avals[:number], worlds) if is_real(a)]

    def used_arguments(avals: Sequence, worlds: int | None, used: Sequence[bool]) -> list[bool]:
        # A tangent depends on no input that its result does not depend on. A scan determines by
        # fixed-point iteration which arguments have tangents, and asks most tangent calls for this
        # alone.
        given, some = avals[:number], iter(used)
        every = [next(some) if is_real(a) else False for a in call.results(given, worlds)]
        with trace_for_derivative():
            program = (call.program_from_solutions if num_solutions else call.program)(
                given, worlds
            )
        inputs = used_inputs(program, every)
        return inputs + [i for i, a in zip(inputs[:number], active, strict=True) if a]

    return PhysicsCall(
        run,
        (*shared, *[False] * num_solutions, *new),
        len(new),
        call.tile,
        results,
        used_arguments,
        name=f"jvp of {call.name}",
    )


def transpose_call(
    call: PhysicsCall, like: tuple[ArgumentSpec, ...], given: tuple[bool, ...]
) -> PhysicsCall:
    """Return the transpose of a call: cotangents of its linear arguments.

    Args:
      call: linear in its last `linear` arguments.
      like: the linear arguments.
      given: which results have cotangents, which take the position of the linear arguments.
    """

    def run(worlds: int | None, staged: bool, *leaves: Array) -> list[Array]:
        rest, cotangents = leaves[: -sum(given)], iter(leaves[-sum(given) :])
        function = partial(call.function(worlds, staged), *rest)
        x_dot = [a.struct(worlds) for a in like]
        results = jax.eval_shape(function, *x_dot)
        # Cotangents that are not given are zero.
        every = [
            next(cotangents) if g else jnp.zeros(r.shape, r.dtype)
            for g, r in zip(given, results, strict=True)
        ]
        return list(jax.linear_transpose(function, *x_dot)(every))

    new = [False] * sum(given)

    def results(avals: Sequence, worlds: int | None) -> list:
        del avals
        structs = [a.struct(worlds) for a in like]
        return [jax.core.ShapedArray(s.shape, s.dtype) for s in structs]

    return PhysicsCall(
        run,
        (*call.shared[: -call.linear], *new),
        len(new),
        call.tile,
        results,
        name=f"transpose of {call.name}",
    )


def batch_linear_arguments(call: PhysicsCall) -> PhysicsCall:
    """Return the call for several values of its linear arguments, a batch along axis 0.

    `jax.jacobian` asks for it, with one unit tangent or cotangent per column or row. JAX's own
    `vmap` batches the linear function; everything else is computed once.
    """
    axes = (None,) * (len(call.shared) - call.linear) + (0,) * call.linear

    def run(worlds: int | None, staged: bool, *leaves: Array) -> list[Array]:
        columns: list[Array] = jax.vmap(call.function(worlds, staged), axes)(*leaves)
        return columns

    return PhysicsCall(run, call.shared, call.linear, call.tile, name=f"{call.name} for columns")


def select_results(
    call: PhysicsCall,
    like: tuple[ArgumentSpec, ...],
    inputs: tuple[bool, ...],
    outputs: tuple[bool, ...],
) -> PhysicsCall:
    """Return the call that computes some results only, from the arguments that these need.

    Args:
      call: the full call.
      like: all of its arguments.
      inputs, outputs: which arguments are needed, and which results are wanted.
    """

    def run(worlds: int | None, staged: bool, *leaves: Array) -> list[Array]:
        some = iter(leaves)
        structs = (a.struct(worlds) for a in like)
        every = [
            next(some) if i else jnp.zeros(s.shape, s.dtype)
            for i, s in zip(inputs, structs, strict=True)
        ]
        # The compiler removes the unused results and their computation.
        results = call.function(worlds, staged)(*every)
        return [r for r, o in zip(results, outputs, strict=True) if o]

    def full_avals(avals: Sequence, worlds: int | None) -> list:
        """Return the avals of all arguments of the full call."""
        some, structs = iter(avals), (a.struct(worlds) for a in like)
        return [
            next(some) if i else jax.core.ShapedArray(s.shape, s.dtype)
            for i, s in zip(inputs, structs, strict=True)
        ]

    def results(avals: Sequence, worlds: int | None) -> list:
        every = call.results(full_avals(avals, worlds), worlds)
        return [r for r, o in zip(every, outputs, strict=True) if o]

    def used_arguments(avals: Sequence, worlds: int | None, used: Sequence[bool]) -> list[bool]:
        some = iter(used)
        every = call.used_arguments(
            full_avals(avals, worlds), worlds, [o and next(some) for o in outputs]
        )
        return [n for n, i in zip(every, inputs, strict=True) if i]

    def trace_results(avals: Sequence, worlds: int | None) -> ClosedJaxpr:
        program = call.program(full_avals(avals, worlds), worlds)
        jaxpr, used = partial_eval.dce_jaxpr(program.jaxpr, list(outputs), list(inputs))
        if list(used) != list(inputs):
            # Dead-code elimination found fewer inputs than `used_arguments` reported to the rule:
            # trace instead, with zeros for the missing arguments.
            return some_results._trace(avals, worlds)
        return program.replace(jaxpr=jaxpr)

    shared = [s for s, i in zip(call.shared, inputs, strict=True) if i]
    linear = sum(inputs[len(inputs) - call.linear :])
    name = f"part of {call.name}"
    some_results = PhysicsCall(
        run, shared, linear, call.tile, results, used_arguments, trace_results, name=name
    )
    return some_results
