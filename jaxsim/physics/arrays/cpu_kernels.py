"""Programs in few kernels of a CPU.

XLA:CPU runs a program kernel by kernel. A step has some thousand, each of which takes fewer
nanoseconds than it takes to begin one, if the worlds are one or as few as fit the cache of a core.
XLA itself compiles small loops whole, as one kernel with loops and branches inside; it does so with
any function whose call bears the same mark. So a program is cut into parts of a few hundred
operations, which are marked: a step of one world takes a quarter of the time, and one of many
worlds, taken a few at a time, two thirds.

A kernel holds what XLA writes out itself: no call of a library (factorizations, sorting, products
of two matrices, long sums), no callbacks. What it holds is listed; the rest stands between the
kernels. Where the mark means nothing it changes nothing.
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

from jaxsim.physics.arrays.array import Array

MARK = {"xla_cpu_small_call": "true", "inlineable": "false"}
SIZE = 600  # operations of a part: kernels are compiled by several threads, each by one
LONG = 4096  # numbers that XLA leaves to a library to sum
PRODUCTS = 8192  # a product of two matrices in a kernel takes a nanosecond for each
LOOPS = ("scan", "while")
LEAST = 8  # fewer are not worth a kernel of their own

HOLDS = frozenset(
    # of each number
    """
    abs add add_any and acos acosh asin asinh atan atan2 atanh cbrt ceil clamp convert_element_type
    bitcast_convert_type cos cosh div eq erf exp exp2 expm1 floor ge gt integer_pow is_finite le log
    log1p logistic lt max min mul ne neg nextafter not or pow rem round rsqrt select_n
    shift_left shift_right_arithmetic shift_right_logical sign sin sinh sqrt square sub tan tanh xor
    """
    # of places
    """
    argmax argmin broadcast broadcast_in_dim concatenate copy copy_p cummax cummin cumsum
    dot_general dynamic_slice dynamic_update_slice empty2 expand_dims gather iota pad reduce_and
    reduce_max reduce_min reduce_or reduce_prod reduce_sum reshape rev slice split squeeze stack
    tile transpose unstack
    """
    # of functions and loops
    """
    closed_call cond custom_jvp_call custom_linear_solve custom_vjp_call custom_vmap_call
    jit pjit scan while physics bilinear selected put picked placed weighted forest_sums
    end_of_iteration solution optimization_barrier stop_gradient reshard pvary
    """.split()
)


def in_kernels(program: ClosedJaxpr, leaves: Sequence[Array]) -> list[Array]:
    """The results of a program, by kernels for the parts that kernels can hold."""
    units = list(_units(program.jaxpr.eqns))
    jaxpr = program.jaxpr.replace(eqns=[eqn for unit in units for eqn in unit.eqns])
    values = dict(zip(jaxpr.invars, leaves, strict=True))
    consts = dict(zip(jaxpr.constvars, program.consts, strict=True))
    last = _last_uses(jaxpr)
    end = 0
    for part, run in _parts(units):
        end += len(part)
        piece = _closed(jaxpr, part, consts, {v for v, k in last.items() if k >= end})
        found = run(piece, [values[v] for v in piece.jaxpr.invars])
        values |= zip(piece.jaxpr.outvars, found, strict=True)
    known = values | consts
    return [jnp.asarray(v.val if isinstance(v, Literal) else known[v]) for v in jaxpr.outvars]


def _last_uses(jaxpr: Jaxpr) -> dict[Var, int]:
    """The number of the last operation that uses each value; of a result that of none."""
    eqns = enumerate(jaxpr.eqns)
    last = {v: k for k, eqn in eqns for v in eqn.invars if not isinstance(v, Literal)}
    return last | {v: len(jaxpr.eqns) for v in jaxpr.outvars if not isinstance(v, Literal)}


class _Unit(NamedTuple):
    """Operations that stay together, how many they are with all inside, and how they are run."""

    eqns: list[JaxprEqn]
    number: int
    run: Callable


def _units(eqns: Sequence[JaxprEqn]) -> Iterator[_Unit]:
    """Operations in order, each with the arrays of one number that it is the first to use.

    A loop that fills an array does so in place where the array is made in the same kernel; one that
    comes from another kernel it would copy first. Those that are results need no kernel: XLA writes
    them once, in the order of axes that is asked for.
    """
    waiting: dict[Var, JaxprEqn] = {}
    one_number: set[Var] = set()

    def awaited(values: Iterable) -> list[JaxprEqn]:
        found = (waiting.pop(v, None) for v in values if not isinstance(v, Literal))
        return [e for eqn in found if eqn for e in (*awaited(eqn.invars), eqn)]

    for eqn in eqns:
        of_one = all(isinstance(v, Literal) or v in one_number for v in eqn.invars)
        if eqn.primitive.name in ("broadcast_in_dim", "reshape") and of_one:
            waiting[eqn.outvars[0]] = eqn
            one_number.add(eqn.outvars[0])
            continue
        arrays = awaited(eqn.invars)
        number = 1 + sum(1 for inner in _inside(eqn) for _ in _all(inner))
        run = _run_of(eqn, number)
        if arrays and run is not _one_kernel:
            yield _Unit(arrays, len(arrays), _one_kernel)
            arrays = []
        yield _Unit([*arrays, eqn], len(arrays) + number, run)
    if waiting:
        arrays = awaited(list(waiting))
        yield _Unit(arrays, len(arrays), _as_it_is)


def _parts(units: Sequence[_Unit]) -> Iterator[tuple[list[JaxprEqn], Callable]]:
    """Operations in parts, in order, and how each part is run."""
    part: list[JaxprEqn] = []
    size, run = 0, _one_kernel
    for eqns, number, how in units:
        if part and (how != run or how in ALONE or size + number > SIZE):
            yield part, run if size >= LEAST else _as_it_is
            part, size = [], 0
        part += eqns
        size, run = size + number, how
    if part:
        yield part, run if size >= LEAST else _as_it_is


def _run_of(eqn: JaxprEqn, number: int) -> Callable:
    if eqn.primitive.name in OPENED and number > SIZE:
        return OPENED[eqn.primitive.name]
    return _one_kernel if _is_held(eqn) else _as_it_is


def _as_it_is(program: ClosedJaxpr, leaves: Sequence[Array]) -> list[Array]:
    results: list[Array] = jaxpr_as_fun(program)(*leaves)
    return results


def _opened(program: ClosedJaxpr, leaves: Sequence[Array]) -> list[Array]:
    """A function that is called, in kernels of its own."""
    return _alone(program, leaves, lambda p, given: in_kernels(p["jaxpr"], given))


def _branched(program: ClosedJaxpr, leaves: Sequence[Array]) -> list[Array]:
    """A large branch that is taken, in kernels of its own."""

    def run(params: dict, given: list[Array]) -> list[Array]:
        branches = [partial(in_kernels, branch) for branch in params["branches"]]
        found: list[Array] = lax.switch(given[0].astype(jnp.int32), branches, given[1:])
        return found

    return _alone(program, leaves, run)


def _alone(
    program: ClosedJaxpr, leaves: Sequence[Array], run: Callable[[dict, list[Array]], list[Array]]
) -> list[Array]:
    """The results of a program of one operation: `run` of its parameters and arguments."""
    (eqn,) = program.jaxpr.eqns
    known = dict(zip(program.jaxpr.invars, leaves, strict=True))
    known |= zip(program.jaxpr.constvars, program.consts, strict=True)
    given = [jnp.asarray(v.val) if isinstance(v, Literal) else known[v] for v in eqn.invars]
    found = dict(zip(eqn.outvars, run(eqn.params, given), strict=True))
    return [found[v] for v in program.jaxpr.outvars]


OPENED = {"jit": _opened, "pjit": _opened, "cond": _branched}  # if they are large
ALONE = (_opened, _branched)


def _closed(jaxpr: Jaxpr, part: list[JaxprEqn], consts: dict, later: set[Var]) -> ClosedJaxpr:
    """Some operations as a program, whose results are what is used later."""
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


def _one_kernel(program: ClosedJaxpr, leaves: Sequence[Array]) -> list[Array]:
    """The results of a program that a kernel can hold.

    XLA's compiler ends the process where a kernel has an argument without a use. So each one has a
    use that no optimization finds to be needless: in a list that is a result, which nobody reads. A
    sum of them would be for XLA to simplify, turn by turn, with the whole program.
    """
    # behind a barrier, or a constant would be moved into the function, and the argument be left
    given = lax.optimization_barrier([a for a in leaves if a.size])

    def function(*given: Array) -> tuple[Array, ...]:
        rest = iter(given)
        every = (next(rest) if a.size else jnp.zeros(a.shape, a.dtype) for a in leaves)
        seen = jnp.concatenate(
            [jnp.zeros(1, jnp.float32), *(a.ravel()[:1].astype(jnp.float32) for a in given)]
        )
        return seen, *jaxpr_as_fun(program)(*every)

    seen, *results = jax.jit(function)(*given)
    # the mark is on the call whose result `seen` is; the barrier keeps it where nobody reads that
    _, results = lax.optimization_barrier((set_xla_metadata(seen, **MARK), results))
    return list(results)


def _is_held(eqn: JaxprEqn, in_loop: bool = False) -> bool:
    """Whether a kernel can hold an operation and all that it calls."""
    if not _can(eqn, in_loop):
        return False
    in_loop = in_loop or eqn.primitive.name in LOOPS
    return all(_is_held(e, in_loop) for inner in _inside(eqn) for e in inner.eqns)


def _can(eqn: JaxprEqn, in_loop: bool) -> bool:
    name = eqn.primitive.name
    if name == "dot_general":
        (left, right), batch = eqn.params["dimension_numbers"]
        ranks = [len(v.aval.shape) for v in eqn.invars]  # type: ignore[attr-defined]
        # of a matrix and a vector, and of two small ones by columns: others become a library's
        # in a loop large ones too, which would open the loop, with all that is in it, turn by turn
        by_columns = (left, right) == ((0,), (0,)) and (in_loop or _products(eqn) < PRODUCTS)
        held = not any(batch) and max(ranks) <= 2 and (min(ranks) == 1 or by_columns)
        return held and not _is_long_sum(eqn)
    if name == "weighted":
        return not _is_long_sum(eqn)
    if name in ("reduce_sum", "reduce_max", "reduce_min"):
        return _numbers(eqn) < LONG
    return name in HOLDS


def _is_long_sum(product: JaxprEqn) -> bool:
    """Whether a product is one number, of many."""
    (result,) = product.outvars
    return result.aval.size == 1 and _numbers(product) >= LONG  # type: ignore[attr-defined]


def _products(product: JaxprEqn) -> int:
    """How many numbers are multiplied in a product by columns."""
    (result,) = product.outvars
    return product.invars[0].aval.shape[0] * result.aval.size  # type: ignore[attr-defined]


def _numbers(eqn: JaxprEqn) -> int:
    """How many numbers an operation takes, of its first argument."""
    return math.prod(eqn.invars[0].aval.shape)  # type: ignore[attr-defined]


def _all(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """All operations, also of the functions that are called."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in _inside(eqn):
            yield from _all(inner)


def _inside(eqn: JaxprEqn) -> Iterator[Jaxpr]:
    if eqn.primitive.name == "physics":  # a call inside of a call (call.py)
        call, worlds = eqn.params["call"], eqn.params["worlds"]
        yield call.program([v.aval for v in eqn.invars], worlds).jaxpr
    for value in eqn.params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            if isinstance(part, ClosedJaxpr):
                yield part.jaxpr
            elif isinstance(part, Jaxpr):
                yield part
