"""A physics function as one JAX primitive that keeps worlds last under any transformation.

A physics function is written once for one world and for many, whose axis is the last of its arrays.
JAX's own `vmap` would batch operation by operation with the batch axis first, several times slower,
and so would the derivatives. The primitive `physics` (`PHYSICS_P`) binds a `PhysicsCall`, which
holds the function, and has its own rules:

    transformation          what the rule binds                               file
    ----------------------  ------------------------------------------------  ------------------
    vmap                    the same call, worlds last; nested `vmap`s merge  batching.py
    jvp, linearize          the call, and the call of its tangents            primitive_rules.py,
    transpose (grad)        the call of its cotangents                        derived_calls.py
    dead-code elimination   the call of the used results                      derived_calls.py
    lowering                the traced function, on a CPU in fused kernels    cpu_fusion.py

What a rule binds is a `PhysicsCall` again, so the same rules batch and differentiate it to any
order. The backward pass rematerializes a call from its inputs: a rollout saves states, not the
intermediate values of a step. Exceptions are the solutions of iterative solvers, which are small
and expensive (residuals.py). docs/developer/transforms.md follows one `vmap(grad(step))` through
all of this.
"""

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, JaxprEqn, Primitive, jaxpr_as_fun
from jax.interpreters import mlir, partial_eval

from jaxsim.arrays.array import Array
from jaxsim.trace_context import enter_trace_context, trace_context
from jaxsim.transforms import residuals
from jaxsim.transforms.cpu_fusion import fuse_calls
from jaxsim.transforms.derivative_context import is_differentiated
from jaxsim.transforms.platform import platform

MAX_TRACES = 64  # cached traces of a call: shapes, numbers of worlds

Leaves = Sequence[Array]


class ArgumentSpec(NamedTuple):
    """Shape and dtype of an argument without its worlds; `shared`: by all worlds, last axis 1."""

    shape: tuple[int, ...]
    dtype: np.dtype
    shared: bool

    @classmethod
    def of(cls, aval: Any, worlds: int | None) -> "ArgumentSpec":
        """Return the description of a call's argument."""
        if worlds is None:
            return cls(aval.shape, aval.dtype, False)
        return cls(aval.shape[:-1], aval.dtype, aval.shape[-1] != worlds)

    def struct(self, worlds: int | None) -> jax.ShapeDtypeStruct:
        """Return the abstract argument for a number of worlds."""
        last = () if worlds is None else (1 if self.shared else worlds,)
        return jax.ShapeDtypeStruct((*self.shape, *last), self.dtype)


class FastPath(NamedTuple):
    """A less expensive call for tiles of worlds that all allow it.

    Attributes:
      valid_in_state: call with the same arguments that returns a bool: whether `call` is valid.
      call: the less expensive call; equal results wherever `valid_in_state` is true.
    """

    valid_in_state: "PhysicsCall"
    call: "PhysicsCall"


class PhysicsCall:
    """A function of arrays, for one world or for many in the last axis, bound to the primitive.

    It is traced in the trace context in which it was made (trace_context.py): it is one program,
    wherever it is used.

    Attributes:
      run: `(worlds, staged, *arrays) -> list of arrays`. `worlds` is None for one world, whose
        arrays have no world axis. `staged` is true while a program is traced; a derivative then
        calls the function that it differentiates as one nested `jit` (`function`).
      shared: for each argument, whether all worlds may share it (last axis 1).
      linear: number of trailing arguments in which the function is linear: tangents, cotangents.
      tile: `(number of worlds, is derivative)` to the number of worlds to evaluate at a time.
      results: `(avals, worlds)` of the arguments to the avals of the results.
      used_arguments: `(avals, worlds, used)` to the arguments on which the used results depend.
      trace: `(avals, worlds)` to the traced function.
      fast_path: less expensive call that is tried first for a tile of many worlds, or None.
      name: what the call computes, shown in the jaxpr of a caller.

    `results`, `used_arguments` and `trace` follow from tracing `run`. A derived call passes them
    where it knows them without tracing: a scan or a nested derivative asks for many calls' shapes
    and dependencies, and evaluates few of them.
    """

    def __init__(
        self,
        run: Callable,
        shared: Sequence[bool],
        linear: int,
        tile: Callable[[int, bool], int],
        results: Callable[[Sequence, int | None], list] | None = None,
        used_arguments: Callable[[Sequence, int | None, Sequence[bool]], list[bool]] | None = None,
        trace: Callable[[Sequence, int | None], ClosedJaxpr] | None = None,
        fast_path: FastPath | None = None,
        name: str = "call",
    ) -> None:
        """Store the function; `results`, `used_arguments` and `trace` default to tracing `run`."""
        self.run, self.shared, self.linear, self.tile = run, tuple(shared), linear, tile
        self.results = results or self._traced_results
        self.used_arguments = used_arguments or self._traced_used_arguments
        self.trace = trace or self._trace
        self.fast_path, self.name = fast_path, name
        self._context = trace_context()
        self._derived: dict[tuple, PhysicsCall] = {}
        self._programs: dict[tuple, ClosedJaxpr] = {}
        # The program itself is stored too: while it lives, no other has its id.
        self._restored_programs: dict[int, tuple[ClosedJaxpr, ClosedJaxpr]] = {}

    def __call__(self, *leaves: Array, worlds: int | None = None) -> list[Array]:
        """Bind the call as one operation."""
        results: list[Array] = PHYSICS_P.bind(*leaves, call=self, worlds=worlds)
        return results

    def derived(self, make: Callable[..., "PhysicsCall"], *how: Hashable) -> "PhysicsCall":
        """Return the call `make(self, *how)` (derived_calls.py), which is constructed once.

        JAX asks for the same derivative repeatedly; its traced programs are cached in the call.
        """
        if (make, *how) not in self._derived:
            with self.in_own_context():
                self._derived[make, *how] = make(self, *how)
        return self._derived[make, *how]

    def in_own_context(self) -> AbstractContextManager:
        """Return the context of the call; whether a derivative is taken is that of the caller."""
        return enter_trace_context(self._context._replace(differentiated=is_differentiated()))

    def function(self, worlds: int | None, staged: bool) -> Callable[..., list[Array]]:
        """Return the function for a number of worlds, or its cached trace within a program."""
        if not staged:
            return partial(self.run, worlds, False)

        def of_program(*leaves: Array) -> list[Array]:
            return evaluate_program(
                self.program([jax.typeof(a) for a in leaves], worlds), True, leaves
            )

        return of_program

    def program(self, avals: Sequence, worlds: int | None) -> ClosedJaxpr:
        """Return the traced function for arguments of these shapes and dtypes, from a cache."""
        given = [jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]
        # One trace per shapes, number of worlds, and whether a derivative is taken.
        key = worlds, is_differentiated(), tuple(given)
        program = self._programs.get(key)
        if program is None:
            with self.in_own_context():
                program = self.trace(given, worlds)
            if len(self._programs) >= MAX_TRACES:
                self._programs.clear()
            self._programs[key] = program
        return program

    def _trace(self, given: Sequence, worlds: int | None) -> ClosedJaxpr:
        """Trace the function and remove dead code."""
        traced = jax.make_jaxpr(partial(self.run, worlds, True))(*given)
        # Dead-code elimination; all arguments are kept.
        needed, _ = partial_eval.dce_jaxpr(traced.jaxpr, [True] * len(traced.out_avals), True)
        return traced.replace(jaxpr=needed)

    def _traced_results(self, avals: Sequence, worlds: int | None) -> list:
        """Return the avals of the results from the traced function."""
        return [a.strip_weak_type() for a in self.program(avals, worlds).out_avals]

    def _traced_used_arguments(
        self, avals: Sequence, worlds: int | None, used: Sequence[bool]
    ) -> list[bool]:
        """Return which arguments the used results depend on, from the traced function."""
        return used_inputs(self.program(avals, worlds), used)

    def __repr__(self) -> str:
        """Return the name; `program_of` returns the program of an equation."""
        return self.name

    def num_solutions(self, avals: Sequence, worlds: int | None) -> int:
        """Return the number of saved solver solutions, which a derivative need not recompute."""
        return residuals.save_solutions(self.program(avals, worlds))[1]

    def from_solutions(self, worlds: int | None, staged: bool, solutions: Leaves) -> Callable:
        """Return the function that takes solver solutions instead of iterating."""
        if not solutions:
            return self.function(worlds, staged)

        def of_program(*leaves: Array) -> list[Array]:
            program = self.program_from_solutions([jax.typeof(a) for a in leaves], worlds)
            return evaluate_program(program, staged, (*leaves, *solutions))

        return of_program

    def program_from_solutions(self, avals: Sequence, worlds: int | None) -> ClosedJaxpr:
        """Return the traced function that takes its solver solutions after its arguments."""
        program = self.program(avals, worlds)
        _, restored = self._restored_programs.get(id(program), (program, None))
        if restored is None:
            restored = residuals.restore_solutions(program)
            if len(self._restored_programs) >= MAX_TRACES:
                self._restored_programs.clear()
            self._restored_programs[id(program)] = program, restored
        return restored


def used_inputs(program: ClosedJaxpr, used: Sequence[bool]) -> list[bool]:
    """Return which inputs of a program its used results depend on."""
    inputs: list[bool] = partial_eval.dce_jaxpr(program.jaxpr, list(used))[1]
    return inputs


def evaluate_program(program: ClosedJaxpr, staged: bool, leaves: Leaves) -> list[Array]:
    """Evaluate a program; while another program is traced it stays one nested `jit`."""
    function = jaxpr_as_fun(program)
    found: list[Array] = (jax.jit(function) if staged else function)(*leaves)
    return found


PHYSICS_P = Primitive("physics")
PHYSICS_P.multiple_results = True


def program_of(eqn: JaxprEqn) -> ClosedJaxpr:
    """Return the program that a `physics` equation of a jaxpr runs."""
    avals = [v.aval for v in eqn.invars]
    return eqn.params["call"].program(avals, eqn.params["worlds"])


@PHYSICS_P.def_impl
def _run_call(*leaves: Array, call: PhysicsCall, worlds: int | None) -> list[Array]:
    return call.run(worlds, False, *leaves)


@PHYSICS_P.def_abstract_eval
def _results(*avals: Any, call: PhysicsCall, worlds: int | None) -> list:
    return call.results(avals, worlds)


def _evaluate_lowered(*leaves: Array, call: PhysicsCall, worlds: int | None) -> list[Array]:
    """Evaluate a call while it is lowered: in fused kernels on a CPU, else as it is traced."""
    with call.in_own_context():
        if platform().fuses_calls:
            avals = [jax.typeof(a) for a in leaves]
            specs = [] if worlds in (None, 1) else [ArgumentSpec.of(a, worlds) for a in avals]
            shared = [spec.shared for spec in specs]
            return fuse_calls(call.program(avals, worlds), leaves, shared=shared)
        return call.function(worlds, True)(*leaves)


mlir.register_lowering(PHYSICS_P, mlir.lower_fun(_evaluate_lowered, multiple_results=True))
