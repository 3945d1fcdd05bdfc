"""Wrapper that makes a core function public: argument checks, batching and compilation.

A core function takes records and arrays with the batch axis last and runs on any number of worlds.
The wrapper checks the arguments (arguments.py), recomputes intermediate values that the caller's
Data does not carry (pipeline/recompute.py), registers a batching rule so that `vmap` becomes the
batch axis (transforms/), and compiles a program unless it is called inside one. `jaxsim.stages`,
`jaxsim.support` and api.py are made with it.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, TypeVar, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters.partial_eval import DynamicJaxprTracer

from jaxsim.arrays.array import Array, PyTree
from jaxsim.model.callbacks import Callbacks
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.pipeline.recompute import carried_fields, missing_fields, recompute_missing
from jaxsim.physics.pipeline.row import StageFields
from jaxsim.physics.pipeline.stages import STAGES
from jaxsim.physics.public.arguments import (
    OBJECT_COUNT_FIELDS,
    check_array,
    check_callbacks,
    check_data,
    check_model,
    object_id,
)
from jaxsim.physics.public.straight_through import straight_through
from jaxsim.transforms.layout import FastPathRule, batched
from jaxsim.transforms.program_cache import ProgramCache

Result = TypeVar("Result")


class PublicStage(Protocol):
    """A function of a model and a state whose result is a state."""

    def __call__(self, m: Model, d: Data) -> Data:
        """Return the state with the results of the stage."""


class Step(Protocol):
    """A function of a model and a state whose result is a state, and that takes callbacks."""

    def __call__(self, m: Model, d: Data, *, callbacks: Callbacks | None = None) -> Data:
        """Return the state after the step."""


@overload
def make_public(
    core: Callable,
    *,
    callbacks: Literal[True],
    fields: StageFields | None = None,
    fast_path: FastPathRule | None = None,
    namespace: str = "jaxsim.stages",
) -> Step: ...


@overload
def make_public(
    core: Callable[..., Result],
    *,
    fields: StageFields | None = None,
    namespace: str = "jaxsim.stages",
    name: str = "",
) -> Callable[..., Result]: ...


def make_public(
    core: Callable,
    *,
    callbacks: bool = False,
    fields: StageFields | None = None,
    fast_path: FastPathRule | None = None,
    namespace: str = "jaxsim.stages",
    name: str = "",
) -> Callable:
    """Return the public form of a core function.

    The attribute `carries` of the public function passes its reads and writes to
    `make_data(keep=...)`.

    Args:
      core: takes unpacked records and arrays `[items, *W]`.
      callbacks: add the argument `callbacks`, which overrides those of the model.
      fields: reads and writes; None: those of its row in the table of stages.
      fast_path: a less expensive function for some states; None: none.
      namespace: the one that exports the function, for messages.
      name: public name; "": that of the core function.
    """
    signature, name = inspect.signature(core), name or core.__name__.lstrip("_")
    names = tuple(signature.parameters)
    if fields is None:
        fields = STAGES[name].fields if name in STAGES else StageFields()

    @functools.wraps(core)
    def core_with_recompute(m, *rest):
        # Recompute intermediate values that the Data does not carry.
        return core(
            m,
            *(recompute_missing(m, a, fields.inputs) if isinstance(a, Data) else a for a in rest),
        )

    plain = batched(core_with_recompute, fast_path)
    with_smooth_derivative = straight_through(plain)

    def native(m, *rest):
        return (with_smooth_derivative if m.straight_through else plain)(m, *rest)

    program = ProgramCache(native)

    @functools.wraps(core)
    def function(*args, **named):
        # Bind arguments by name, and separate the callbacks.
        own = named.pop("callbacks", None) if callbacks else None
        m, *rest = signature.bind(*args, **named).args
        check_model(name, m)
        m = m if own is None else m.replace(callbacks=own)
        check_callbacks(name, m)
        given = dict(zip(names[1:], rest, strict=False))
        rest = _check_arguments(f"{namespace}.{name}", m, given, fields)
        # Inside a trace add to the caller's program, else compile one.
        arrays = [a if isinstance(a, Data) else to_items(a, m.qpos0.dtype) for a in rest]
        run = native if _is_tracing(m, *arrays) else program
        return _separate_buffers(run(m, *arrays))

    function.__name__ = name
    vars(function)["carries"] = carried_fields(fields)
    if callbacks:
        vars(function)["__signature__"] = _add_callbacks_parameter(signature)
    return function


def _check_arguments(
    path: str, m: Model, given: Mapping[str, Any], fields: StageFields
) -> list[Any]:
    """Check the arguments after the model; return them, with names of objects resolved to ids.

    Args:
      path: public path of the function.
      m: the model.
      given: arguments by the names of the parameters.
      fields: reads and writes of the function.
    """
    name = path.rpartition(".")[2]
    values = {
        n: object_id(name, m, n, a) if n in OBJECT_COUNT_FIELDS else a for n, a in given.items()
    }
    for argument, value in values.items():
        if argument == "d":
            check_data(name, m, value)
            check_carries(path, m, value, fields)
        else:
            check_array(name, m, argument, value)
    return list(values.values())


def public_stage(name: str) -> PublicStage:
    """Return the public form of a stage, by its name in the table."""
    function = STAGES[name].function
    assert function is not None
    public: PublicStage = make_public(function, name=name)
    return public


def _is_tracing(*arguments: PyTree) -> bool:
    """Return True if operations become part of a program that the caller traces.

    Otherwise the call compiles its own, also under `vmap` and `grad` outside `jit`: executed one by
    one, the operations of a step take a thousand times as long, and every shape compiles
    separately.
    """
    return any(map(_is_staged, jax.tree.leaves(arguments)))


def _is_staged(a: object) -> bool:
    """Return True if an array, or the value inside a transformation's tracer, is being staged."""
    if not isinstance(a, jax.core.Tracer):
        return False
    return isinstance(a, DynamicJaxprTracer) or _is_staged(
        getattr(a, "val", getattr(a, "primal", None))
    )


def _add_callbacks_parameter(signature: inspect.Signature) -> inspect.Signature:
    kind = inspect.Parameter.KEYWORD_ONLY
    own = inspect.Parameter("callbacks", kind, default=None, annotation="Callbacks | None")
    return signature.replace(parameters=[*signature.parameters.values(), own])


def check_carries(path: str, m: Model, d: Data, fields: StageFields) -> None:
    """Raise ValueError if Data lacks all results, or a field that cannot be recomputed.

    `path` is the public path of the function.
    """
    # Fields that must be present for the stage, or to receive its results.
    absent = list(missing_fields(m, d, fields.inputs))
    results = sorted(fields.carries - fields.needs)
    if not absent and all(getattr(d, field) is None for field in results):
        absent = results
    if absent:
        raise ValueError(
            f"{path.rpartition('.')[2]}: this Data does not carry {absent[0]!r}; keep it: "
            f"make_data(m, keep=[{path}])"
        )


def to_items(a: Array | float | int, dtype: np.dtype) -> jax.Array:
    """Convert an argument to the layout of the physics: a scalar becomes one item."""
    whole = jnp.issubdtype(jnp.result_type(a), np.integer)
    a = jnp.asarray(a).astype(jnp.int32 if whole else dtype)
    return a if a.ndim else a[None]


def _separate_buffers(out: PyTree) -> PyTree:
    """Copy results that share a buffer, so that all can be donated to the next call.

    A program returns each result in its own buffer; outside a program two fields may share one.
    """
    seen: set[int] = set()

    # Copy every repeated buffer.
    def own(a):
        if isinstance(a, jax.core.Tracer) or id(a) not in seen:
            seen.add(id(a))
            return a
        return jnp.array(a, copy=True)

    return jax.tree.map(own, out)
