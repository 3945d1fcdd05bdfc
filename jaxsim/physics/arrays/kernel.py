"""The program of one world as one kernel of a CPU.

XLA:CPU runs a program kernel by kernel. A step of one world has some thousand, each of which takes
fewer nanoseconds than it takes to begin one. XLA compiles small loops whole, as one kernel with the
loops and branches inside; it does so with any function whose call bears the same mark. Then a step
of one world takes a quarter of the time, and compiles no slower.

A kernel holds what XLA writes out itself: no calls of a library (factorizations, sorting, products
of two matrices of any form), no callbacks. What it holds is listed; a program that has anything
else runs as ever. Where the mark means nothing it changes nothing.
"""

from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, jaxpr_as_fun

from jaxsim.physics.arrays.array import Array

MARK = {"xla_cpu_small_call": "true", "inlineable": "false"}

HOLDS = frozenset(
    # of each number
    """
    abs add and acos acosh asin asinh atan atan2 atanh cbrt ceil clamp convert_element_type
    bitcast_convert_type cos cosh div eq erf exp exp2 expm1 floor ge gt integer_pow is_finite le log
    log1p logistic lt max min mul ne neg nextafter not or pow rem round rsqrt select_n
    shift_left shift_right_arithmetic shift_right_logical sign sin sinh sqrt square sub tan tanh xor
    """
    # of places
    """
    argmax argmin broadcast broadcast_in_dim concatenate copy copy_p cummax cummin cumsum
    dot_general dynamic_slice dynamic_update_slice expand_dims gather iota pad reduce_and reduce_max
    reduce_min reduce_or reduce_prod reduce_sum reshape rev slice split squeeze stack tile transpose
    """
    # of functions and loops
    """
    closed_call cond custom_jvp_call custom_linear_solve custom_vjp_call custom_vmap_call
    jit pjit scan while physics bilinear end_of_iteration solution optimization_barrier
    stop_gradient
    """.split()
)


def holds(program: ClosedJaxpr) -> bool:
    """Whether a kernel can hold a program."""
    return all(map(_is_held, _equations(program.jaxpr)))


def in_one_kernel(program: ClosedJaxpr, leaves: Sequence[Array]) -> list[Array]:
    """The results of a program that a kernel can hold, as one kernel.

    XLA's compiler ends the process where a kernel has an argument without a use. So each one has a
    use that no optimization finds to be needless: in a sum that is a result, which nobody reads.
    """
    given = [a for a in leaves if a.size]

    def function(*given: Array) -> tuple[Array, ...]:
        rest = iter(given)
        every = (next(rest) if a.size else jnp.zeros(a.shape, a.dtype) for a in leaves)
        seen = sum(a.ravel()[0].astype(jnp.float32) for a in given)
        return seen, *jaxpr_as_fun(program)(*every)

    seen, *results = jax.jit(function)(*given)
    set_xla_metadata(seen, **MARK)
    return results


def _is_held(eqn: JaxprEqn) -> bool:
    name = eqn.primitive.name
    if name == "dot_general":
        (left, right), batch = eqn.params["dimension_numbers"]
        ranks = [v.aval.ndim for v in eqn.invars]
        vector = any(rank == len(axes) for rank, axes in zip(ranks, (left, right), strict=True))
        return not any(batch) and (vector or (left, right) == ((0,), (0,)))
    return name in HOLDS


def _equations(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """All equations, also of the functions that are called."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in _inside(eqn):
            yield from _equations(inner)


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
