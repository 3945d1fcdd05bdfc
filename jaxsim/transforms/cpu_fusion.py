"""Fusion of a jaxpr into a few large kernels on XLA:CPU.

XLA:CPU runs a program kernel by kernel. A step has a thousand kernels or more; for one world, or
as many as fit a core's cache, starting a kernel takes longer than running it. XLA compiles small
loops ("small calls") whole, as one kernel with loops and branches inside, and treats any call that
carries the same metadata (`_KERNEL_ATTRIBUTES`) this way. So `fuse_calls` partitions a jaxpr, in
order, into parts of at most `max_kernel_operations` operations and marks each part: a step of one
world takes a quarter of the time, one of many worlds in tiles two thirds.

A marked kernel may contain only operations for which XLA emits code itself (`KERNEL_PRIMITIVES`):
no library calls (factorizations, sorts, matrix-matrix products, long sums) and no callbacks. Other
operations run between the kernels. Where XLA does not know the metadata it has no effect.

    jaxpr        a = zeros 8   b = sin x   c = cholesky b   d = while (a, c)   e = d + x
    units        [b]           [c]         [a, d]           [e]            _group_equations
    evaluator    kernel        unfused     kernel           kernel         _evaluator
    parts        [b]           [c]         [a, d, e]                       _pack_units
    program      kernel(x): b  cholesky b  kernel(c, x): e                 _close_jaxpr

Equations that depend only on arguments which all worlds share, the model's, come first, in kernels
of their own (`split_shared`): XLA moves these out of the loop over tiles.

A filled array moves to its first use, and so does a part of an argument: else a kernel would copy
a column of a large table for a later one. A part returns the values that later parts use. A call or
a branch that is larger than a kernel, and the body of a loop that no kernel can hold, is opened and
partitioned in the same way; a part of fewer than `min_kernel_operations` operations is not worth a
kernel. XLA makes each kernel one function, and its compile time grows faster than the function. So
a loop of more than `max_loop_operations` operations is opened, too, although a kernel could hold
it.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxpr_as_fun

from jaxsim.arrays.array import Array
from jaxsim.transforms.tuning import tuning

_KERNEL_ATTRIBUTES = {"xla_cpu_small_call": "true", "inlineable": "false"}
_MIN_LIBRARY_SUM = 4096  # length of a sum from which on XLA calls a library
_LOOP_PRIMITIVES = ("scan", "while")
_VIEW_PRIMITIVES = ("slice", "squeeze", "reshape")
_INEXPENSIVE = (*_VIEW_PRIMITIVES, "broadcast_in_dim", "convert_element_type", "stop_gradient")

KERNEL_PRIMITIVES = frozenset(
    # elementwise
    """
    abs add add_any and acos acosh asin asinh atan atan2 atanh cbrt ceil clamp clz
    convert_element_type bitcast_convert_type cos cosh div eq erf exp exp2 expm1 floor ge gt
    integer_pow is_finite le log log1p logistic lt max min mul ne neg nextafter not or
    population_count pow rem round rsqrt select_n shift_left shift_right_arithmetic
    shift_right_logical sign sin sinh sqrt square sub tan tanh xor
    """
    # indexing, reductions, layout
    """
    argmax argmin broadcast broadcast_in_dim concatenate copy copy_p cummax cummin cumsum
    dot_general dynamic_slice dynamic_update_slice empty2 expand_dims gather iota pad reduce
    reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum reshape rev slice split
    squeeze stack tile transpose unstack
    """
    # calls, control flow, and the primitives of this package
    """
    closed_call cond custom_jvp_call custom_linear_solve custom_vjp_call custom_vmap_call
    jit pjit scan while physics bilinear selected put picked placed weighted forest_sums
    solver_solution solution optimization_barrier stop_gradient reshard pvary
    """.split()
)


def fuse_calls(
    program: ClosedJaxpr,
    leaves: Sequence[Array],
    is_loop_body: bool = False,
    shared: Sequence[bool] = (),
) -> list[Array]:
    """Evaluate a program, or the body of a loop, in fused kernels where kernels can hold it.

    Args:
      program: the program.
      leaves: its arguments.
      is_loop_body: whether it is the body of a loop.
      shared: which arguments all worlds share; empty: none.
    """
    groups = split_shared(program.jaxpr, shared) if any(shared) else (program.jaxpr.eqns,)
    parts = [list(_group_equations(program.jaxpr.replace(eqns=g), is_loop_body)) for g in groups]
    units = [unit for part in parts for unit in part]
    # Reorder the equations as the units have them, and find when each value is last used.
    jaxpr = program.jaxpr.replace(eqns=[eqn for unit in units for eqn in unit.eqns])
    values = dict(zip(jaxpr.invars, leaves, strict=True))
    consts = dict(zip(jaxpr.constvars, program.consts, strict=True))
    last = _last_uses(jaxpr)
    end = 0
    # Evaluate part by part; a part returns the values that later parts or the results use.
    for eqns, evaluate in (packed for part in parts for packed in _pack_units(part)):
        end += len(eqns)
        part = _close_jaxpr(jaxpr, eqns, consts, {v for v, k in last.items() if k >= end})
        found = evaluate(part, [values[v] for v in part.jaxpr.invars])
        values |= zip(part.jaxpr.outvars, found, strict=True)
    known = values | consts
    return [jnp.asarray(v.val if isinstance(v, Literal) else known[v]) for v in jaxpr.outvars]


def split_shared(jaxpr: Jaxpr, shared: Sequence[bool]) -> tuple[list[JaxprEqn], list[JaxprEqn]]:
    """Split off the equations that depend on shared arguments only, and come first.

    Contact parameters of all pairs, for example, depend on the model, not on the state. In kernels
    of their own they are invariants of the loops over tiles and steps, out of which XLA moves them.
    What takes less time to compute than to read, such as a slice or a broadcast, stays where it is
    used. Arrays that depend on no argument are made in both groups.

    Args:
      jaxpr: the program.
      shared: which of its arguments are shared.
    """
    known = {v for v, is_shared in zip(jaxpr.invars, shared, strict=True) if is_shared}
    filled: dict[Var, JaxprEqn] = {}
    apart: set[int] = set()
    for k, eqn in enumerate(jaxpr.eqns):
        given = [v for v in eqn.invars if not isinstance(v, Literal) and v not in jaxpr.constvars]
        if all(v in filled for v in given):
            filled |= dict.fromkeys(eqn.outvars, eqn)
        elif all(v in known or v in filled for v in given) and not eqn.effects:
            known.update(eqn.outvars)
            apart.add(k)

    # Keep inexpensive equations with their users, unless one of these is split off.
    needed: set[Var] = set()
    for k in sorted(apart, reverse=True):
        eqn = jaxpr.eqns[k]
        if eqn.primitive.name in _INEXPENSIVE and not needed & set(eqn.outvars):
            apart.discard(k)
        else:
            needed.update(v for v in eqn.invars if not isinstance(v, Literal))
    first: list[JaxprEqn] = []
    copies: dict[Var, Var] = {}

    def copy_filled(v: Var) -> Var:
        """Return a variable of the first group with the same contents."""
        if v not in filled:
            return v
        if v not in copies:
            eqn = filled[v]
            invars = [i if isinstance(i, Literal) else copy_filled(i) for i in eqn.invars]
            outvars = [Var(o.aval) for o in eqn.outvars]
            copies.update(zip(eqn.outvars, outvars, strict=True))
            first.append(eqn.replace(invars=invars, outvars=outvars))
        return copies[v]

    for k in sorted(apart):
        eqn = jaxpr.eqns[k]
        invars = [i if isinstance(i, Literal) else copy_filled(i) for i in eqn.invars]
        first.append(eqn.replace(invars=invars))
    rest = [eqn for k, eqn in enumerate(jaxpr.eqns) if k not in apart]
    return first, rest


def _last_uses(jaxpr: Jaxpr) -> dict[Var, int]:
    """Return the index of the last equation that uses each value; past the end for results."""
    eqns = enumerate(jaxpr.eqns)
    last = {v: k for k, eqn in eqns for v in eqn.invars if not isinstance(v, Literal)}
    return last | {v: len(jaxpr.eqns) for v in jaxpr.outvars if not isinstance(v, Literal)}


class _Unit(NamedTuple):
    """Equations that stay together.

    Attributes:
      eqns: the equations.
      size: number of their operations, including those of bodies and branches.
      evaluate: function of a program and its arguments that evaluates it: in a kernel, or not.
    """

    eqns: list[JaxprEqn]
    size: int
    evaluate: Callable


def _group_equations(jaxpr: Jaxpr, is_loop_body: bool) -> Iterator[_Unit]:
    """Group equations in order, each with the constant-filled arrays that it is the first to use.

    A loop updates an array without a copy if the array is created in the same kernel; one from
    another kernel it would copy first. Filled arrays that are results themselves need no kernel:
    XLA writes them once, in the requested layout. `waiting` holds filled arrays not yet used, and
    `one_number` the variables that are broadcasts of one scalar.
    """
    arguments = set(jaxpr.invars)
    waiting: dict[Var, JaxprEqn] = {}
    one_number: set[Var] = set()

    def dequeue_filled(values: Iterable) -> list[JaxprEqn]:
        """Dequeue the equations of the filled arrays that these values need."""
        found = (waiting.pop(v, None) for v in values if not isinstance(v, Literal))
        return [e for eqn in found if eqn for e in (*dequeue_filled(eqn.invars), eqn)]

    for eqn in jaxpr.eqns:
        # Defer a broadcast of a scalar until its first use.
        of_one = all(isinstance(v, Literal) or v in one_number for v in eqn.invars)
        if eqn.primitive.name in ("broadcast_in_dim", "reshape") and of_one:
            waiting[eqn.outvars[0]] = eqn
            one_number.add(eqn.outvars[0])
            continue
        # Defer a part of an argument, too.
        if eqn.primitive.name in _VIEW_PRIMITIVES and eqn.invars[0] in arguments:
            waiting[eqn.outvars[0]] = eqn
            arguments.add(eqn.outvars[0])
            continue
        # Emit the equation together with the deferred arrays that it uses. XLA updates the state of
        # a loop without a copy; a kernel would return a new array.
        arrays = dequeue_filled(eqn.invars)
        count = 1 + sum(1 for inner in _inner_jaxprs(eqn) for _ in _all_equations(inner))
        updates = eqn.primitive.name == "dynamic_update_slice" and eqn.invars[0] in arguments
        evaluate = _evaluate_unfused if is_loop_body and updates else _evaluator(eqn, count)
        if arrays and evaluate is not _evaluate_as_kernel:
            yield _Unit(arrays, len(arrays), _evaluate_as_kernel)
            arrays = []
        yield _Unit([*arrays, eqn], len(arrays) + count, evaluate)
    if waiting:
        arrays = dequeue_filled(list(waiting))
        yield _Unit(arrays, len(arrays), _evaluate_unfused)


def _pack_units(units: Sequence[_Unit]) -> Iterator[tuple[list[JaxprEqn], Callable]]:
    """Pack units, in order, into parts of at most `max_kernel_operations` operations with one
    evaluator each."""
    most, least = tuning().max_kernel_operations, tuning().min_kernel_operations
    part: list[JaxprEqn] = []
    size, evaluate = 0, _evaluate_as_kernel

    def finish() -> tuple[list[JaxprEqn], Callable]:
        return part, evaluate if size >= least else _evaluate_unfused

    for unit in units:
        opened = unit.evaluate in _SEPARATE_EVALUATORS
        if part and (unit.evaluate != evaluate or opened or size + unit.size > most):
            yield finish()
            part, size = [], 0
        part += unit.eqns
        size, evaluate = size + unit.size, unit.evaluate
    if part:
        yield finish()


def _evaluator(eqn: JaxprEqn, count: int) -> Callable:
    """Return how an equation of `count` operations is evaluated: opened, in a kernel, or as is."""
    name, fusible = eqn.primitive.name, _is_fusible(eqn)
    # Calls and branches larger than a kernel get kernels of their own, and so does the body of a
    # loop that no kernel can hold.
    if name in _SPLIT_PRIMITIVES and not (fusible and count <= tuning().max_kernel_operations):
        return _SPLIT_PRIMITIVES[name]
    if fusible and not (name == "while" and count > tuning().max_loop_operations):
        return _evaluate_as_kernel
    return _evaluate_loop if name == "while" else _evaluate_unfused


def _evaluate_unfused(program: ClosedJaxpr, leaves: Sequence[Array]) -> list[Array]:
    """Evaluate a program outside of kernels."""
    results: list[Array] = jaxpr_as_fun(program)(*leaves)
    return results


def _evaluate_call(program: ClosedJaxpr, leaves: Sequence[Array]) -> list[Array]:
    """Evaluate the body of a call in kernels of its own."""

    def run(params: dict, given: list[Array]) -> list[Array]:
        return fuse_calls(next(params[n] for n in _CALLED if n in params), given)

    return _evaluate_single(program, leaves, run)


def _evaluate_branch(program: ClosedJaxpr, leaves: Sequence[Array]) -> list[Array]:
    """Evaluate the branch of a large `cond` in kernels of its own."""

    def run(params: dict, given: list[Array]) -> list[Array]:
        branches = [partial(fuse_calls, branch) for branch in params["branches"]]
        found: list[Array] = lax.switch(given[0].astype(jnp.int32), branches, given[1:])
        return found

    return _evaluate_single(program, leaves, run)


def _evaluate_loop(program: ClosedJaxpr, leaves: Sequence[Array]) -> list[Array]:
    """Evaluate the body of a loop in kernels of its own."""

    def run(params: dict, given: list[Array]) -> list[Array]:
        of_test, of_body = params["cond_nconsts"], params["body_nconsts"]
        known, consts = given[:of_test], given[of_test : of_test + of_body]

        def goes_on(state: list[Array]) -> Array:
            return _evaluate_unfused(params["cond_jaxpr"], [*known, *state])[0]

        def iterate(state: list[Array]) -> list[Array]:
            return fuse_calls(params["body_jaxpr"], [*consts, *state], is_loop_body=True)

        found: list[Array] = lax.while_loop(goes_on, iterate, given[of_test + of_body :])
        return found

    return _evaluate_single(program, leaves, run)


def _evaluate_single(
    program: ClosedJaxpr, leaves: Sequence[Array], run: Callable[[dict, list[Array]], list[Array]]
) -> list[Array]:
    """Evaluate a program of one equation by `run`, a function of its parameters and arguments."""
    (eqn,) = program.jaxpr.eqns
    known = dict(zip(program.jaxpr.invars, leaves, strict=True))
    known |= zip(program.jaxpr.constvars, program.consts, strict=True)
    given = [jnp.asarray(v.val) if isinstance(v, Literal) else known[v] for v in eqn.invars]
    found = dict(zip(eqn.outvars, run(eqn.params, given), strict=True))
    return [found[v] for v in program.jaxpr.outvars]


_SPLIT_PRIMITIVES = {
    "jit": _evaluate_call,
    "pjit": _evaluate_call,
    "custom_jvp_call": _evaluate_call,
    "custom_vmap_call": _evaluate_call,
    "cond": _evaluate_branch,
}  # if larger than a kernel, or if none can hold it
_CALLED = ("call_jaxpr", "call", "jaxpr")  # names of the parameter that holds what is called
_SEPARATE_EVALUATORS = (_evaluate_call, _evaluate_branch, _evaluate_loop)


def _close_jaxpr(jaxpr: Jaxpr, part: list[JaxprEqn], consts: dict, later: set[Var]) -> ClosedJaxpr:
    """Make a program of some equations; its results are the values used later."""
    # Inputs are the values that the part uses but does not compute; constants stay constants.
    own = {v for eqn in part for v in eqn.outvars}
    used = dict.fromkeys(
        v for eqn in part for v in eqn.invars if not isinstance(v, Literal) and v not in own
    )
    constvars = [v for v in used if v in consts]
    inner = jaxpr.replace(
        constvars=constvars,
        invars=[v for v in used if v not in consts],
        outvars=[v for eqn in part for v in eqn.outvars if v in later],
        eqns=part,
        debug_info=jaxpr.debug_info._replace(arg_names=None, result_paths=None),
    )
    return ClosedJaxpr(inner, [consts[v] for v in constvars])


def _evaluate_as_kernel(program: ClosedJaxpr, leaves: Sequence[Array]) -> list[Array]:
    """Evaluate a program as one marked kernel.

    XLA's compiler aborts the process if a kernel has an argument without a use. So each argument
    gets a use that no optimization removes: its first element goes into an array that is an unused
    result. A sum instead would have to be simplified by XLA, over and over, with the whole program.

    A last axis of 1, that of arrays which all worlds share, is added inside the kernel: outside XLA
    gives it a layout that a kernel does not accept, and copies the array for each call.
    """
    # The barrier keeps XLA from moving a constant into the function, which would leave its argument
    # unused.
    used = [a for a in leaves if a.size]
    given = lax.optimization_barrier([_drop_shared_axis(a) for a in used])

    def function(*given: Array) -> tuple[Array, ...]:
        rest = iter([a.reshape(b.shape) for a, b in zip(given, used, strict=True)])
        every = (next(rest) if a.size else jnp.zeros(a.shape, a.dtype) for a in leaves)
        seen = jnp.concatenate(
            [jnp.zeros(1, jnp.float32), *(a.ravel()[:1].astype(jnp.float32) for a in given)]
        )
        return seen, *jaxpr_as_fun(program)(*every)

    seen, *results = jax.jit(function)(*given)
    # The metadata is attached to the call that produces `seen`; the barrier keeps the unused result
    # alive.
    _, results = lax.optimization_barrier((set_xla_metadata(seen, **_KERNEL_ATTRIBUTES), results))
    return list(results)


def _drop_shared_axis(a: Array) -> Array:
    """Return an array without its last axis if that has length 1."""
    return a[..., 0] if a.ndim > 1 and a.shape[-1] == 1 else a


def _is_fusible(eqn: JaxprEqn, in_loop: bool = False) -> bool:
    """Return whether a kernel can hold an equation and everything that it calls."""
    if not _is_emitted(eqn, in_loop):
        return False
    in_loop = in_loop or eqn.primitive.name in _LOOP_PRIMITIVES
    return all(_is_fusible(e, in_loop) for inner in _inner_jaxprs(eqn) for e in inner.eqns)


def _is_emitted(eqn: JaxprEqn, in_loop: bool) -> bool:
    """Return whether XLA emits code for this equation itself, without a library call."""
    name = eqn.primitive.name
    if name == "dot_general":
        (left, right), batch = eqn.params["dimension_numbers"]
        ranks = [len(v.aval.shape) for v in eqn.invars]  # type: ignore[attr-defined]
        # XLA emits matrix-vector products, and small matrix-matrix products that contract the first
        # axis of both; others become library calls. In a loop large ones are held too, because a
        # library call would split the loop, with all that is in it.
        by_columns = (left, right) == ((0,), (0,)) and (
            in_loop or _multiplications(eqn) <= tuning().max_kernel_multiplications
        )
        held = not any(batch) and max(ranks) <= 2 and (min(ranks) == 1 or by_columns)
        return held and not _is_long_sum(eqn)
    if name == "weighted":
        return not _is_long_sum(eqn)
    if name in ("reduce_sum", "reduce_max", "reduce_min"):
        return _argument_size(eqn) < _MIN_LIBRARY_SUM
    return name in KERNEL_PRIMITIVES


def _is_long_sum(product: JaxprEqn) -> bool:
    """Return whether a product is one scalar, a sum of at least `_MIN_LIBRARY_SUM` terms."""
    (result,) = product.outvars
    return result.aval.size == 1 and _argument_size(product) >= _MIN_LIBRARY_SUM  # type: ignore[attr-defined]


def _multiplications(product: JaxprEqn) -> int:
    """Return the number of multiplications of a product that contracts the first axes."""
    (result,) = product.outvars
    return product.invars[0].aval.shape[0] * result.aval.size  # type: ignore[attr-defined]


def _argument_size(eqn: JaxprEqn) -> int:
    """Return the size of the first argument of an equation."""
    return math.prod(eqn.invars[0].aval.shape)  # type: ignore[attr-defined]


def _all_equations(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """Iterate over all equations, including those of called functions."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in _inner_jaxprs(eqn):
            yield from _all_equations(inner)


def _inner_jaxprs(eqn: JaxprEqn) -> Iterator[Jaxpr]:
    """Iterate over the jaxprs that an equation calls."""
    if eqn.primitive.name == "physics":  # a nested call (primitive.py)
        call, worlds = eqn.params["call"], eqn.params["worlds"]
        yield call.program([v.aval for v in eqn.invars], worlds).jaxpr
    if eqn.primitive.name == "custom_linear_solve":  # its product is for derivatives
        yield eqn.params["jaxprs"].solve.jaxpr
        return
    # Jaxprs among the parameters: bodies of loops, branches, called functions.
    for value in eqn.params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            if isinstance(part, ClosedJaxpr):
                yield part.jaxpr
            elif isinstance(part, Jaxpr):
                yield part
