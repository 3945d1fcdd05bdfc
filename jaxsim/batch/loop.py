"""Advance one world call by call: a control loop, hardware in the loop, a game.

JAX needs some microseconds for each array that a program reads or returns, and a state with its
model has hundreds of them: several times as long as the step of one world. Here all leaves of a
dtype are packed in one array, of which the fields of the state are views.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import PyTree
from jaxsim.batch.stored_program import load_or_compile
from jaxsim.cache import bounded_cache
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.public.api import step
from jaxsim.physics.public.arguments import check_count, check_data, check_model


class ControlLoop:
    """A state that is read, written and advanced in place.

    Args:
      m: the model. It is read once; a changed model needs a new loop, which reuses the program.
      d: a state of one world, which is copied.
      function: `(m, d) -> d`, called by `step`.

    Attributes:
      data: the state. Its fields are numpy arrays that stay the same objects: values written to
        them are used by the next call, which then overwrites them with its result.

    Raises:
      ValueError: `d` is a batch.
      TypeError: the result of the function is no state of the same shapes, at the first call.

    >>> import jaxsim
    >>> m = jaxsim.load_model(
    ...     "<mujoco><worldbody><body><joint name='j'/><geom size='.1'/></body></worldbody>"
    ...     "<actuator><motor joint='j'/></actuator></mujoco>"
    ... )
    >>> loop = jaxsim.ControlLoop(m, jaxsim.make_data(m))
    >>> for _ in range(10):
    ...     loop.data.ctrl[:] = 1 - loop.data.qpos
    ...     loop.step()
    >>> round(float(loop.data.time), 3)
    0.02
    """

    def __init__(self, m: Model, d: Data, function: Callable[[Model, Data], Data] = step):
        check_model("ControlLoop", m)
        check_data("ControlLoop", m, d, ())
        m, d = jax.device_get(jax.tree.map(jnp.asarray, (m, d)))
        of_model, of_data = _kinds(m), _kinds(d)
        self._layout = function, of_model, of_data
        self._program: Callable | None = None
        self._model = jax.device_put(of_model.pack(m, np.concatenate))
        self._numbers = of_data.pack(d, np.concatenate)
        self.data: Data = of_data.unpack(self._numbers)

    def step(self, count: int = 1) -> None:
        """Call the function `count` times, each time replacing the state by its result."""
        count = check_count("ControlLoop.step: count", count)
        if self._program is None:
            self._program = _compiled_function(*self._layout)
        for _ in range(count):
            found = self._program(self._model, self._numbers)
            for numbers, new in zip(self._numbers, found, strict=True):
                np.copyto(numbers, new)


class _Kinds(NamedTuple):
    """Layout of the leaves of a tree in one packed array per dtype."""

    structure: jax.tree_util.PyTreeDef
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype, ...]

    @property
    def kinds(self) -> list[np.dtype]:
        return list(dict.fromkeys(self.dtypes))

    @property
    def describe(self) -> dict[str, str]:
        """Return the dtype and shape of each leaf, by name."""
        whole = jax.tree.unflatten(self.structure, range(len(self.shapes)))
        return {
            jax.tree_util.keystr(path, simple=True, separator="."): f"{self.dtypes[k]}"
            f"{list(self.shapes[k])}"
            for path, k in jax.tree_util.tree_leaves_with_path(whole)
        }

    @property
    def packed(self) -> list[jax.ShapeDtypeStruct]:
        """Return shape and dtype of the packed arrays."""
        sizes = dict.fromkeys(self.kinds, 0)
        for shape, kind in zip(self.shapes, self.dtypes, strict=True):
            sizes[kind] += int(np.prod(shape))
        return [jax.ShapeDtypeStruct((size,), kind) for kind, size in sizes.items()]

    def pack(self, tree: PyTree, concatenate: Callable = jnp.concatenate) -> list:
        """Return one packed array per dtype."""
        leaves = list(zip(jax.tree.leaves(tree), self.dtypes, strict=True))
        return [concatenate([a.ravel() for a, of in leaves if of == kind]) for kind in self.kinds]

    def unpack(self, numbers: Sequence) -> Any:
        """Return the tree; for numpy arrays its leaves are views."""
        whole = dict(zip(self.kinds, numbers, strict=True))
        start = dict.fromkeys(self.kinds, 0)
        leaves = []
        for shape, kind in zip(self.shapes, self.dtypes, strict=True):
            end = start[kind] + int(np.prod(shape))
            leaves.append(whole[kind][start[kind] : end].reshape(shape))
            start[kind] = end
        return jax.tree.unflatten(self.structure, leaves)


def _kinds(tree: PyTree) -> _Kinds:
    leaves, structure = jax.tree.flatten(tree)
    return _Kinds(structure, tuple(map(np.shape, leaves)), tuple(np.dtype(a.dtype) for a in leaves))


@bounded_cache(32)
def _compiled_function(function: Callable, of_model: _Kinds, of_data: _Kinds) -> Callable:
    """Return the compiled function of packed arrays, shared by all loops of the same layout."""

    advance = partial(_advance_packed, function, of_model, of_data)
    return load_or_compile(advance, of_model.packed, of_data.packed, name="the control loop")


def _advance_packed(
    function: Callable, of_model: _Kinds, of_data: _Kinds, model: list, numbers: list
) -> list:
    """Call a function of model and state on packed arrays."""
    new = function(of_model.unpack(model), of_data.unpack(numbers))
    if (found := _kinds(new)) != of_data:
        raise TypeError(_packed_difference(of_data, found))
    return of_data.pack(new)


def _packed_difference(state: _Kinds, found: _Kinds) -> str:
    own, other = state.describe, found.describe
    wrong = [
        f"{name}: {other.get(name, 'nothing')} instead of {own.get(name, 'nothing')}"
        for name in own | other
        if own.get(name) != other.get(name)
    ]
    start = "ControlLoop: function: expected a state like the one that it is given, got"
    return f"{start} {'; '.join(wrong[:3]) or 'other static fields'}"
