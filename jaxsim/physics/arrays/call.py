"""A function of the physics as one operation of JAX, with its many worlds last in every order of
transformations.

A function of the physics is written for one world and for many, which stand in the last axis of its
arrays. Batched one operation after another, as `vmap` would, it has the worlds first, several times
slower; and so would its derivative. Here a whole function is one operation to JAX, with rules that
keep the form of many worlds:

  * `vmap` moves the worlds last and calls the function once for all of them; another `vmap` around
    it makes one set of worlds of both;
  * a derivative is a call as well, of the derivative of the function in the form it has, for one
    world or for many: forwards (`tangent`) or backwards (`transposed`). Calls of derivatives are
    batched, and differentiated, by the same rules.

Backwards a call begins again from its arguments, so that a rollout keeps states, not what a step
computes on its way; but for the ends of iterations, which are few numbers and were dear
(remember.py).
"""

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, JaxprEqn, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir, partial_eval

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.cpu_kernels import in_kernels
from jaxsim.physics.arrays.platform import platform
from jaxsim.physics.arrays.remember import recalling, recording

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
    ) -> None:
        self.run, self.shared, self.linear, self.tile = run, tuple(shared), linear, tile
        self.results = results or self._traced_results
        self.needs, self.made = needs or self._traced_needs, made or self._made
        self.recording = functools.cache(self._recording)
        self.tangent = functools.cache(self._tangent)
        self.transposed = functools.cache(self._transposed)
        self.columns = functools.cache(self._columns)
        self.part = functools.cache(self._part)
        self._programs: dict[tuple, ClosedJaxpr] = {}
        self._recalled_programs: dict[int, ClosedJaxpr] = {}

    def __call__(self, *leaves: Array, worlds: int | None = None) -> list[Array]:
        """The call as one operation."""
        results: list[Array] = CALL.bind(*leaves, call=self, worlds=worlds)
        return results

    def function(self, worlds: int | None, staged: bool) -> Callable[..., list[Array]]:
        """The function for a number of worlds; in a program that is being made, traced once."""
        if not staged:
            return partial(self.run, worlds, False)

        def of_program(*leaves: Array) -> list[Array]:
            return _evaluated(self.program([jax.typeof(a) for a in leaves], worlds), True, leaves)

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
        return _inputs(self.program(avals, worlds), used)

    def __repr__(self) -> str:
        """The programs that it was traced to, as they stand in the text of one that calls it."""
        return "\n".join(str(p) for p in self._programs.values())

    def ends(self, avals: Sequence, worlds: int | None) -> int:
        """How many arrays the iterations end with that a derivative needs not find again."""
        return recording(self.program(avals, worlds))[1]

    def _recording(self) -> "Call":
        """The call that returns the ends of its iterations, too."""

        def run(worlds: int | None, staged: bool, *leaves: Array) -> list[Array]:
            program, _ = recording(self.program([jax.typeof(a) for a in leaves], worlds))
            return _evaluated(program, staged, leaves)

        return Call(run, self.shared, self.linear, self.tile)

    def _recalling(self, worlds: int | None, staged: bool, ends: Leaves) -> Callable:
        """The function where the ends of its iterations are known."""
        if not ends:
            return self.function(worlds, staged)

        def of_program(*leaves: Array) -> list[Array]:
            program = self._recalled([jax.typeof(a) for a in leaves], worlds)
            return _evaluated(program, staged, (*leaves, *ends))

        return of_program

    def _recalled(self, avals: Sequence, worlds: int | None) -> ClosedJaxpr:
        """The traced function that takes the ends of its iterations after its arguments."""
        program = self.program(avals, worlds)
        if id(program) not in self._recalled_programs:
            self._recalled_programs[id(program)] = recalling(program)
        return self._recalled_programs[id(program)]

    def _tangent(self, active: tuple[bool, ...], ends: int) -> "Call":
        """The change of the real results by changes of some arguments.

        Args:
          active: which arguments change. The changes follow the arguments and the ends.
          ends: how many ends of iterations follow the arguments.
        """
        number = len(active)

        def run(worlds: int | None, staged: bool, *leaves: Array) -> list[Array]:
            given, changes = leaves[:number], leaves[number + ends :]
            function = self._recalling(worlds, staged, leaves[number : number + ends])

            def of_active(*chosen: Array) -> list[Array]:
                rest = iter(chosen)
                every = (next(rest) if a else x for a, x in zip(active, given, strict=True))
                return [x for x in function(*every) if is_real(x)]

            chosen = tuple(x for a, x in zip(active, given, strict=True) if a)
            with _differentiated(True):
                changed: list[Array] = jax.jvp(of_active, chosen, changes)[1]
            return changed

        shared = [s and not a for s, a in zip(self.shared, active, strict=True)]
        new = [False] * sum(active)

        def results(avals: Sequence, worlds: int | None) -> list:
            return [a for a in self.results(avals[:number], worlds) if is_real(a)]

        def needs(avals: Sequence, worlds: int | None, used: Sequence[bool]) -> list[bool]:
            # what the results do not depend on, their change does not; in a scan, where it is found
            # out step by step which arguments change, most tangents are asked this alone
            given, some = avals[:number], iter(used)
            every = [next(some) if is_real(a) else False for a in self.results(given, worlds)]
            with _differentiated(True):
                program = (self._recalled if ends else self.program)(given, worlds)
            inputs = _inputs(program, every)
            return inputs + [i for i, a in zip(inputs[:number], active, strict=True) if a]

        return Call(run, (*shared, *[False] * ends, *new), len(new), self.tile, results, needs)

    def _transposed(self, like: tuple[Like, ...], given: tuple[bool, ...]) -> "Call":
        """The weights of the linear arguments that weights of some results amount to.

        Args:
          like: the linear arguments.
          given: which results have weights, which stand in the place of the linear arguments.
        """

        def run(worlds: int | None, staged: bool, *leaves: Array) -> list[Array]:
            rest, weights = leaves[: -sum(given)], iter(leaves[-sum(given) :])
            function = partial(self.function(worlds, staged), *rest)
            changes = [a.struct(worlds) for a in like]
            results = jax.eval_shape(function, *changes)
            every = [
                next(weights) if g else jnp.zeros(r.shape, r.dtype)
                for g, r in zip(given, results, strict=True)
            ]
            return list(jax.linear_transpose(function, *changes)(every))

        new = [False] * sum(given)

        def results(avals: Sequence, worlds: int | None) -> list:
            del avals
            structs = [a.struct(worlds) for a in like]
            return [jax.core.ShapedArray(s.shape, s.dtype) for s in structs]

        return Call(run, (*self.shared[: -self.linear], *new), len(new), self.tile, results)

    def _columns(self) -> "Call":
        """The call for several values of its linear arguments, which have an axis of them first."""
        axes = (None,) * (len(self.shared) - self.linear) + (0,) * self.linear

        def run(worlds: int | None, staged: bool, *leaves: Array) -> list[Array]:
            columns: list[Array] = jax.vmap(self.function(worlds, staged), axes)(*leaves)
            return columns

        return Call(run, self.shared, self.linear, self.tile)

    def _part(
        self, like: tuple[Like, ...], inputs: tuple[bool, ...], outputs: tuple[bool, ...]
    ) -> "Call":
        """Some results, of the arguments that these need.

        Args:
          like: all arguments.
          inputs, outputs: which arguments are needed, and which results are wanted.
        """

        def run(worlds: int | None, staged: bool, *leaves: Array) -> list[Array]:
            some = iter(leaves)
            structs = (a.struct(worlds) for a in like)
            every = [
                next(some) if i else jnp.zeros(s.shape, s.dtype)
                for i, s in zip(inputs, structs, strict=True)
            ]
            results = self.function(worlds, staged)(*every)
            return [r for r, o in zip(results, outputs, strict=True) if o]

        def whole(avals: Sequence, worlds: int | None) -> list:
            some, structs = iter(avals), (a.struct(worlds) for a in like)
            return [
                next(some) if i else jax.core.ShapedArray(s.shape, s.dtype)
                for i, s in zip(inputs, structs, strict=True)
            ]

        def results(avals: Sequence, worlds: int | None) -> list:
            every = self.results(whole(avals, worlds), worlds)
            return [r for r, o in zip(every, outputs, strict=True) if o]

        def needs(avals: Sequence, worlds: int | None, used: Sequence[bool]) -> list[bool]:
            some = iter(used)
            every = self.needs(whole(avals, worlds), worlds, [o and next(some) for o in outputs])
            return [n for n, i in zip(every, inputs, strict=True) if i]

        def made(avals: Sequence, worlds: int | None) -> ClosedJaxpr:
            program = self.program(whole(avals, worlds), worlds)
            jaxpr, used = partial_eval.dce_jaxpr(program.jaxpr, list(outputs), list(inputs))
            if list(used) != list(inputs):
                # by name this form has more inputs than the one that was asked; zeros do for them
                return part._made(avals, worlds)
            return program.replace(jaxpr=jaxpr)

        shared = [s for s, i in zip(self.shared, inputs, strict=True) if i]
        linear = sum(inputs[len(inputs) - self.linear :])
        part = Call(run, shared, linear, self.tile, results, needs, made)
        return part


def _inputs(program: ClosedJaxpr, used: Sequence[bool]) -> list[bool]:
    """The inputs of a program that some of its results depend on."""
    inputs: list[bool] = partial_eval.dce_jaxpr(program.jaxpr, list(used))[1]
    return inputs


def _evaluated(program: ClosedJaxpr, staged: bool, leaves: Leaves) -> list[Array]:
    """The results of a program; one in a program that is being made stays a part of its own."""
    function = jaxpr_as_fun(program)
    found: list[Array] = (jax.jit(function) if staged else function)(*leaves)
    return found


def is_real(a: Any) -> bool:
    """Whether something is differentiated, not counted."""
    return jnp.issubdtype(a.dtype, np.floating)


_differentiated = jax.make_user_context(default_value=False)


def differentiated() -> bool:
    """Whether a derivative is made of what is traced: it has no loops of unknown length then."""
    return bool(_differentiated.value)


def is_in_kernels() -> bool:
    """Whether the program that is traced will be a few large kernels (cpu_kernels.py).

    Programs of derivatives are not: they have twice the size and gain nothing in proportion.
    """
    return platform().in_kernels and not differentiated()


def not_differentiated() -> AbstractContextManager:
    """A context for the inside of a function that has a derivative of its own."""
    return _differentiated(False)


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
    if is_in_kernels() and not call.linear:
        return in_kernels(call.program([jax.typeof(a) for a in leaves], worlds), leaves)
    return call.function(worlds, True)(*leaves)


mlir.register_lowering(CALL, mlir.lower_fun(_lowered, multiple_results=True))


def _change(primals: Leaves, tangents: Sequence, *, call: Call, worlds: int | None) -> tuple:
    ends = call.ends([jax.typeof(a) for a in primals], worlds)
    known = (call.recording() if ends else call)(*primals, worlds=worlds)
    results, found = known[: len(known) - ends], known[len(known) - ends :]
    active = tuple(not isinstance(t, ad.Zero) for t in tangents)
    some = [t for t in tangents if not isinstance(t, ad.Zero)]
    changes = iter(call.tangent(active, ends)(*primals, *found, *some, worlds=worlds))
    none = (ad.Zero(jax.typeof(r).to_tangent_aval()) for r in results)
    return results, [next(changes) if is_real(r) else z for r, z in zip(results, none, strict=True)]


ad.primitive_jvps[CALL] = _change


def _weights(weights: Sequence, *leaves: Any, call: Call, worlds: int | None) -> list:
    rest, changes = leaves[: -call.linear], leaves[-call.linear :]
    given = tuple(not isinstance(w, ad.Zero) for w in weights)
    if not any(given):
        return [None] * len(leaves)
    some = [w for w in weights if not isinstance(w, ad.Zero)]
    like = tuple(
        Like.of(c.aval if ad.is_undefined_primal(c) else jax.typeof(c), worlds) for c in changes
    )
    found = call.transposed(like, given)(*rest, *some, worlds=worlds)
    wanted = [w if ad.is_undefined_primal(c) else None for c, w in zip(changes, found, strict=True)]
    return [None] * len(rest) + wanted


ad.primitive_transposes[CALL] = _weights


def _needed(used: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """The call without the results that nobody uses, and without what these alone need."""
    if not any(used):
        return [False] * len(eqn.invars), None
    call, worlds = eqn.params["call"], eqn.params["worlds"]
    inputs = call.needs([v.aval for v in eqn.invars], worlds, used)
    if all(used) and all(inputs):
        return inputs, eqn
    like = tuple(Like.of(v.aval, worlds) for v in eqn.invars)
    rest = eqn.replace(
        invars=[v for v, i in zip(eqn.invars, inputs, strict=True) if i],
        outvars=[v for v, u in zip(eqn.outvars, used, strict=True) if u],
        params={"call": call.part(like, tuple(inputs), tuple(used)), "worlds": worlds},
    )
    return inputs, rest


partial_eval.dce_rules[CALL] = _needed


def _batched(leaves: Leaves, axes: Sequence, *, call: Call, worlds: int | None) -> tuple:
    size = next(a.shape[axis] for a, axis in zip(leaves, axes, strict=True) if axis is not None)
    first = [
        a if axis is None else jnp.moveaxis(a, axis, 0)
        for a, axis in zip(leaves, axes, strict=True)
    ]
    own = [axis is not None for axis in axes]
    if call.linear and not any(own[: -call.linear]):
        results = _in_columns(first, own, size, call, worlds)
    elif worlds is None:
        results = _in_worlds(first, own, size, call)
    else:
        results = _in_more_worlds(first, own, size, call, worlds)
    return results, [0] * len(results)


batching.primitive_batchers[CALL] = _batched


def _in_columns(
    leaves: list[Array], own: list[bool], size: int, call: Call, worlds: int | None
) -> list[Array]:
    """Results for several values of the linear arguments, in the first axis."""
    number = len(leaves) - call.linear
    several = [
        a if has else jnp.broadcast_to(a, (size, *a.shape))
        for a, has in zip(leaves[number:], own[number:], strict=True)
    ]
    return call.columns()(*leaves[:number], *several, worlds=worlds)


def _in_worlds(leaves: list[Array], own: list[bool], size: int, call: Call) -> list[Array]:
    """Results of many worlds, which are the first axis of those arguments that have their own."""
    tile = call.tile(size, bool(call.linear))
    at_once = partial(_at_once, own=own, size=tile, call=call)
    if tile == size:
        return at_once(leaves)
    parts = [
        a.reshape(size // tile, tile, *a.shape[1:])
        for a, has in zip(leaves, own, strict=True)
        if has
    ]

    def one(parts: list[Array]) -> list[Array]:
        rest = iter(parts)
        return at_once([next(rest) if has else a for a, has in zip(leaves, own, strict=True)])

    return [a.reshape(size, *a.shape[2:]) for a in lax.map(one, parts)]


def _at_once(leaves: list[Array], own: list[bool], size: int, call: Call) -> list[Array]:
    """Worlds first, by worlds last. What all worlds share of a model stays one; the rest is
    repeated, so that everything computed from a state has all worlds."""
    if size == 1 and is_in_kernels():  # the program of one world is the faster one
        given = [a[0] if has else a for a, has in zip(leaves, own, strict=True)]
        return [a[None] for a in call(*given)]

    def last(a: Array, has: bool, shared: bool) -> Array:
        if has:
            return jnp.moveaxis(a, 0, -1)
        return jnp.broadcast_to(a[..., None], (*a.shape, 1 if shared else size))

    given = [last(*x) for x in zip(leaves, own, call.shared, strict=True)]
    return [jnp.moveaxis(a, -1, 0) for a in call(*given, worlds=size)]


def _in_more_worlds(
    leaves: list[Array], own: list[bool], size: int, call: Call, worlds: int
) -> list[Array]:
    """Many times many worlds, as one set of worlds."""
    one = [a.shape[-1] != worlds for a in leaves]
    if any(o and not shared for o, shared in zip(one, call.shared, strict=True)):
        # something that all worlds share is differentiated by: their changes are to be summed
        axes = tuple(0 if has else None for has in own)
        each: list[Array] = jax.vmap(call.function(worlds, True), axes)(*leaves)
        return each

    def first(a: Array, has: bool, is_one: bool) -> tuple[Array, bool]:
        """The argument with all worlds first, or one that serves all."""
        if is_one and not has:
            return a[..., 0], False
        a = a if has else a[None]
        a = jnp.moveaxis(jnp.broadcast_to(a, (size, *a.shape[1:-1], worlds)), -1, 1)
        return a.reshape(size * worlds, *a.shape[2:]), True

    given, has_own = zip(*(first(*x) for x in zip(leaves, own, one, strict=True)), strict=True)
    found = _in_worlds(list(given), list(has_own), size * worlds, call)
    return [jnp.moveaxis(a.reshape(size, worlds, *a.shape[1:]), 1, -1) for a in found]
