"""A function of the physics as one operation of JAX, with its many worlds last in every order of
transformations.

A function of the physics is written for one world and for many, which stand in the last axis of its
arrays. Batched one operation after another, as `vmap` would, it has the worlds first, several times
slower; and so would its derivative. Here a whole function is one operation to JAX, with rules that
keep the form of many worlds:

  * `vmap` moves the worlds last and calls the function once for all of them; another `vmap` around
    it makes one set of worlds of both (batched.py);
  * a derivative is a call as well, of the derivative of the function in the form it has, for one
    world or for many: forwards (`tangent`) or backwards (`transposed`). Calls of derivatives are
    batched, and differentiated, by the same rules (derived.py, rules.py).

Backwards a call begins again from its arguments, so that a rollout keeps states, not what a step
computes on its way; but for the ends of iterations, which are few numbers and were dear
(remember.py).
"""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, JaxprEqn, Primitive, jaxpr_as_fun
from jax.interpreters import mlir, partial_eval

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.call import remember
from jaxsim.physics.arrays.call.differentiated import differentiated
from jaxsim.physics.arrays.cpu_kernels import in_kernels
from jaxsim.physics.arrays.platform import platform

Leaves = Sequence[Array]


class Like(NamedTuple):
    """Shape and type of an argument, without its worlds; `one` if it has a last axis of 1."""

    shape: tuple[int, ...]
    dtype: np.dtype
    one: bool

    @classmethod
    def of(cls, aval: Any, worlds: int | None) -> "Like":
        """That of an argument of a call."""
        if worlds is None:
            return cls(aval.shape, aval.dtype, False)
        return cls(aval.shape[:-1], aval.dtype, aval.shape[-1] != worlds)

    def struct(self, worlds: int | None) -> jax.ShapeDtypeStruct:
        """The argument for a number of worlds."""
        last = () if worlds is None else (1 if self.one else worlds,)
        return jax.ShapeDtypeStruct((*self.shape, *last), self.dtype)


class Shortcut(NamedTuple):
    """A shorter call that does where something holds of all worlds that are asked together.

    Attributes:
      holds: the call that says so, of the same arguments; a bool.
      call: the shorter one, with the same results there.
    """

    holds: "Call"
    call: "Call"


class Call:
    """A function of arrays, for one world or for many whose axis is the last.

    Attributes:
      run: `(worlds, staged, *arrays) -> list of arrays`. Worlds are None for one. A derivative runs
        the function it is of by `function(worlds, staged)`.
      shared: of each argument, whether one may serve all worlds, with a last axis of 1.
      linear: in how many of the last arguments it is linear.
      tile: from a number of worlds, and whether a derivative is made of them, to how many of them
        are best taken at a time.
      results: `(avals, worlds)` of the arguments to the avals of the results, where these are known
        before the call is traced.
      needs: `(avals, worlds, used)` to which arguments the results that are used depend on, where
        this is known without tracing.
      made: `(avals, worlds)` to the traced function, where it is known without tracing.
      shortcut: what is tried first for a tile of many worlds; None: nothing.
    """

    def __init__(
        self,
        run: Callable,
        shared: Sequence[bool],
        linear: int,
        tile: Callable[[int, bool], int],
        results: Callable[[Sequence, int | None], list] | None = None,
        needs: Callable[[Sequence, int | None, Sequence[bool]], list[bool]] | None = None,
        made: Callable[[Sequence, int | None], ClosedJaxpr] | None = None,
        shortcut: Shortcut | None = None,
    ) -> None:
        self.run, self.shared, self.linear, self.tile = run, tuple(shared), linear, tile
        self.results = results or self._traced_results
        self.needs, self.made = needs or self._traced_needs, made or self._made
        self.shortcut = shortcut
        self._derived: dict[tuple, Call] = {}
        self._programs: dict[tuple, ClosedJaxpr] = {}
        self._recalled_programs: dict[int, ClosedJaxpr] = {}

    def __call__(self, *leaves: Array, worlds: int | None = None) -> list[Array]:
        """The call as one operation."""
        results: list[Array] = CALL.bind(*leaves, call=self, worlds=worlds)
        return results

    def derived(self, make: Callable[..., "Call"], *how: Hashable) -> "Call":
        """The call `make(self, *how)`, made once (derived.py)."""
        if (make, *how) not in self._derived:
            self._derived[make, *how] = make(self, *how)
        return self._derived[make, *how]

    def function(self, worlds: int | None, staged: bool) -> Callable[..., list[Array]]:
        """The function for a number of worlds; in a program that is being made, traced once."""
        if not staged:
            return partial(self.run, worlds, False)

        def of_program(*leaves: Array) -> list[Array]:
            return evaluated(self.program([jax.typeof(a) for a in leaves], worlds), True, leaves)

        return of_program

    def program(self, avals: Sequence, worlds: int | None) -> ClosedJaxpr:
        """The traced function, of arguments that are like these."""
        given = [jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]
        key = worlds, differentiated(), tuple(given)
        if key not in self._programs:
            self._programs[key] = self.made(given, worlds)
        return self._programs[key]

    def _made(self, given: Sequence, worlds: int | None) -> ClosedJaxpr:
        traced = jax.make_jaxpr(partial(self.run, worlds, True))(*given)
        needed, _ = partial_eval.dce_jaxpr(traced.jaxpr, [True] * len(traced.out_avals), True)
        return traced.replace(jaxpr=needed)

    def _traced_results(self, avals: Sequence, worlds: int | None) -> list:
        return [a.strip_weak_type() for a in self.program(avals, worlds).out_avals]

    def _traced_needs(
        self, avals: Sequence, worlds: int | None, used: Sequence[bool]
    ) -> list[bool]:
        return inputs_of(self.program(avals, worlds), used)

    def __repr__(self) -> str:
        """The programs that it was traced to, as they stand in the text of one that calls it."""
        return "\n".join(str(p) for p in self._programs.values())

    def ends(self, avals: Sequence, worlds: int | None) -> int:
        """How many arrays the iterations end with that a derivative needs not find again."""
        return remember.recording(self.program(avals, worlds))[1]

    def recalling(self, worlds: int | None, staged: bool, ends: Leaves) -> Callable:
        """The function where the ends of its iterations are known."""
        if not ends:
            return self.function(worlds, staged)

        def of_program(*leaves: Array) -> list[Array]:
            program = self.recalled([jax.typeof(a) for a in leaves], worlds)
            return evaluated(program, staged, (*leaves, *ends))

        return of_program

    def recalled(self, avals: Sequence, worlds: int | None) -> ClosedJaxpr:
        """The traced function that takes the ends of its iterations after its arguments."""
        program = self.program(avals, worlds)
        if id(program) not in self._recalled_programs:
            self._recalled_programs[id(program)] = remember.recalling(program)
        return self._recalled_programs[id(program)]


def inputs_of(program: ClosedJaxpr, used: Sequence[bool]) -> list[bool]:
    """The inputs of a program that some of its results depend on."""
    inputs: list[bool] = partial_eval.dce_jaxpr(program.jaxpr, list(used))[1]
    return inputs


def evaluated(program: ClosedJaxpr, staged: bool, leaves: Leaves) -> list[Array]:
    """The results of a program; one in a program that is being made stays a part of its own."""
    function = jaxpr_as_fun(program)
    found: list[Array] = (jax.jit(function) if staged else function)(*leaves)
    return found


CALL = Primitive("physics")
CALL.multiple_results = True


def program_of(eqn: JaxprEqn) -> ClosedJaxpr:
    """The program that a call in a traced function runs."""
    avals = [v.aval for v in eqn.invars]
    return eqn.params["call"].program(avals, eqn.params["worlds"])


@CALL.def_impl
def _run(*leaves: Array, call: Call, worlds: int | None) -> list[Array]:
    return call.run(worlds, False, *leaves)


@CALL.def_abstract_eval
def _results(*avals: Any, call: Call, worlds: int | None) -> list:
    return call.results(avals, worlds)


def _lowered(*leaves: Array, call: Call, worlds: int | None) -> list[Array]:
    if platform().in_kernels:
        return in_kernels(call.program([jax.typeof(a) for a in leaves], worlds), leaves)
    return call.function(worlds, True)(*leaves)


mlir.register_lowering(CALL, mlir.lower_fun(_lowered, multiple_results=True))
