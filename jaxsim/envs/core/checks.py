"""Checks of the shapes and types of task hooks and of the arguments of environments.

Hooks are traced on abstract values when an environment is constructed: nothing is computed, and a
hook with a wrong shape is reported by its name at construction instead of failing in the learner.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.envs.state import KEPT_STATE_FIELDS, State, strip_results
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.switch.switches import differ_in_switches


def check_hooks(env: Any) -> None:
    """Raise ValueError if a hook of a task returns an invalid value.

    Args:
      env: the constructed Env.
    """
    m, d = env.m, env.begin
    size = _action_size(env)
    action = jax.ShapeDtypeStruct((size,), d.qpos.dtype)
    _check_world(env, "start", jax.eval_shape(env.start, m, d, jax.random.key(0)))
    _check_world(env, "control", jax.eval_shape(env.control, m, d, action))
    _check_observation(env, _hook_outputs(env.observe, m, d))
    before = strip_results(d)
    told = (m, before, d, action)
    _check_number(env, "reward", _hook_outputs(env.reward, *told))
    _check_flag(env, _hook_outputs(env.terminal, m, d))
    _check_metrics(env, _hook_outputs(env.metrics, *told))
    _check_range(env, size)


def _hook_outputs(hook: Callable, *given: Any) -> Any:
    """Return the shapes and types that a hook returns; non-arrays are returned as they are."""
    found: list[Any] = []

    def record_shapes(*given: Any) -> None:
        found.append(jax.tree.map(_shape_and_type, hook(*given), is_leaf=lambda x: x is None))

    jax.eval_shape(record_shapes, *given)
    return found[0]


def _shape_and_type(x: Any) -> Any:
    """Return the shape and type of an array or number; anything else as it is."""
    if isinstance(x, (bool, int, float, complex)):
        return jax.ShapeDtypeStruct((), np.result_type(x))
    return jax.ShapeDtypeStruct(x.shape, x.dtype) if hasattr(x, "dtype") else x


def _hook_error(env: Any, hook: str, expected: str, got: Any, cure: str = "") -> ValueError:
    is_array = isinstance(got, jax.ShapeDtypeStruct)
    told = f"{got.dtype} of shape {got.shape}" if is_array else f"{type(got).__name__} {got!r}"
    end = f"; {cure}" if cure else ""
    return ValueError(f"{type(env).__name__}.{hook}: expected {expected}, got {told}{end}")


def _is_real(x: Any) -> bool:
    kinds = (jnp.floating, jnp.integer, jnp.bool_)
    return hasattr(x, "dtype") and any(jnp.issubdtype(x.dtype, kind) for kind in kinds)


def _action_size(env: Any) -> int:
    size = env.action_size
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0:
        raise _hook_error(env, "action_size", "a whole number, at least 0", size)
    return int(size)


def _check_world(env: Any, hook: str, got: Any) -> None:
    """Raise ValueError for a Data whose state has another shape or type."""
    if not isinstance(got, Data):
        cure = "return d.replace(qpos=...)" if hook == "start" else "return d.replace(ctrl=...)"
        raise _hook_error(env, hook, "a Data", got, cure)
    for name in sorted(KEPT_STATE_FIELDS):
        old, new = getattr(env.begin, name), getattr(got, name)
        if old is None and new is None:
            continue
        if old is None or new is None or (old.shape, old.dtype) != (new.shape, new.dtype):
            want = "None" if old is None else f"{old.dtype} of shape {old.shape}"
            cure = ""
            if old is not None and new is not None and old.shape == new.shape:
                cure = f"write .astype(d.{name}.dtype)"
            raise _hook_error(env, hook, f"{name} as {want}", new, cure)


def _check_observation(env: Any, got: Any) -> None:
    expected = "a real array with at least one axis, or a dict of real arrays by name"
    if isinstance(got, Mapping):
        for name, x in got.items():
            if not isinstance(name, str) or not _is_real(x):
                raise _hook_error(env, f"observe[{name!r}]", "a real array", x)
        if not got:
            raise _hook_error(env, "observe", expected, got)
    elif not _is_real(got) or not got.shape:
        cure = "write jnp.atleast_1d(...)" if _is_real(got) else "join parts by jnp.concatenate"
        raise _hook_error(env, "observe", expected, got, cure)


def _check_number(env: Any, hook: str, got: Any) -> None:
    if not _is_real(got) or got.shape:
        cure = "take one entry, [0], or their sum" if getattr(got, "shape", ()) else ""
        raise _hook_error(env, hook, "a real number, shape ()", got, cure)


def _check_flag(env: Any, got: Any) -> None:
    if not hasattr(got, "dtype") or got.shape or got.dtype != bool:
        cure = "compare with a limit, d.qpos[2] < 0.3"
        if getattr(got, "shape", ()):
            cure = "take one entry, [0], or jnp.any(...)"
        raise _hook_error(env, "terminal", "bool, shape ()", got, cure)


def _check_metrics(env: Any, got: Any) -> None:
    if not isinstance(got, Mapping) or not all(isinstance(name, str) for name in got):
        raise _hook_error(env, "metrics", "a dict of numbers by name", got)
    for name, x in got.items():
        _check_number(env, f"metrics[{name!r}]", x)


def _check_range(env: Any, size: int) -> None:
    found = _hook_outputs(env.action_range)
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise _hook_error(env, "action_range", "a pair (least, largest)", found)
    for x in found:
        if not _is_real(x) or x.shape != (size,):
            raise _hook_error(env, "action_range", f"two real arrays of shape ({size},)", x)


# --- arguments ---


def check_is_model(m: Any) -> None:
    """Raise ValueError if `m` is no Model."""
    if isinstance(m, Model):
        return
    cure = ""
    if isinstance(m, str) or hasattr(m, "__fspath__"):
        cure = f"; load it: Env(jaxsim.load_model({str(m)[:60]!r}))"
    elif type(m).__name__ == "MjModel":
        cure = "; make one with jaxsim.put_model"
    raise ValueError(f"Env: m: expected a Model, got {type(m).__name__}{cure}")


def check_one_key(key: Any) -> None:
    """Raise ValueError if `key` is not one random key."""
    if _key_axes(key) != 0:
        cure = ""
        if _key_axes(key):
            cure = "; many worlds are VectorEnv(env).reset(keys), or jax.vmap(env.reset)(keys)"
        raise ValueError(f"key: expected one random key, got {_describe_key(key)}{cure}")


def check_keys(name: str, keys: Any, count: int | None = None) -> None:
    """Raise ValueError if `keys` are not random keys of many worlds, or not `count`."""
    expected = "one random key for each world, " + (f"({count},)" if count else "(worlds,)")
    wrong = count is not None and jnp.shape(keys)[:1] != (count,)
    if _key_axes(keys) != 1 or wrong:
        worlds = count or "worlds"
        raise ValueError(
            f"{name}: expected {expected}, got {_describe_key(keys)}; "
            f"jax.random.split(key, {worlds}) makes them"
        )


def _key_axes(key: Any) -> int | None:
    """Return the leading axes of random keys, typed or raw; None: they are no keys."""
    if not hasattr(key, "dtype"):
        return None
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return len(key.shape)
    raw = key.dtype == jnp.uint32 and len(key.shape)
    return len(key.shape) - 1 if raw else None


def _describe_key(key: Any) -> str:
    if _key_axes(key) == 0:
        return "one key"
    kind = "keys" if _key_axes(key) else type(key).__name__
    return f"{kind} of shape {jnp.shape(key)}" if hasattr(key, "shape") else f"{kind} {key!r}"


def check_state(state: Any, action: Any, size: int, worlds: bool) -> None:
    """Raise ValueError for a state or an action of another number of worlds.

    Args:
      state: a State of one world, or of many with a leading axis.
      action: its actions.
      size: length of an action.
      worlds: whether there should be many worlds.
    """
    if not isinstance(state, State):
        raise ValueError(
            f"state: expected the State of a reset or step, got {type(state).__name__}"
        )
    shape = jnp.shape(state.done)
    if worlds and len(shape) != 1:
        cure = "; Env.step takes one" if not shape else ""
        raise ValueError(f"state: expected many worlds, (worlds,), got one of shape {shape}{cure}")
    if not worlds and shape:
        raise ValueError(
            f"state: expected one world, got {shape[0]}; many are VectorEnv(env).step, or "
            "jax.vmap(env.step)"
        )
    expected = (*shape, size)
    if jnp.shape(action) != expected:
        raise ValueError(f"action: expected shape {expected}, got {jnp.shape(action)}")


def check_models(base: Model, model: Any, axes: Any) -> None:
    """Raise ValueError for models of worlds that do not fit their axes.

    Args:
      base: the model of the environment.
      model: the models, or None.
      axes: the axis of worlds of each leaf, or None.
    """
    if model is None:
        if axes is not None:
            raise ValueError("axes: given without models; pass model=... and axes=...")
        return
    cure = "models, axes = randomize(m, keys, change) gives both"
    if not isinstance(model, Model):
        raise ValueError(f"model: expected a Model, got {type(model).__name__}; {cure}")
    like = base  # some of its fields may have become traced by `randomize`
    if differ_in_switches(base.structure, model.structure):
        like = base.replace_unchecked({"structure": model.structure}, native=False)
    form: Any = jax.tree.structure(like)
    if form != jax.tree.structure(model):
        raise ValueError("model: has another structure than that of env; make it from env.m")
    model.check_values("model: ")
    flags: list[int | None] = []

    def note(axis: Any, part: Any) -> None:
        flags.extend([axis] * len(jax.tree.leaves(part)))

    try:  # axes may be a prefix of the model, as for vmap, where None is the axis of all leaves
        jax.tree.map(note, axes, model, is_leaf=lambda axis: axis is None)
    except ValueError:
        raise ValueError(f"axes: do not fit model; {cure}") from None
    sizes: dict[int, str] = {}
    pairs = jax.tree.leaves_with_path(base)
    for i, ((path, old), new) in enumerate(zip(pairs, jax.tree.leaves(model), strict=True)):
        name = jax.tree_util.keystr(path).lstrip(".")
        axis = flags[i]
        shape = list(jnp.shape(new))
        if axis is not None and axis < len(shape):
            sizes.setdefault(shape.pop(axis), name)
        if tuple(shape) != jnp.shape(old):
            with_axis = "" if axis is None else f" beside its axis {axis} of worlds"
            raise ValueError(
                f"{'model' if axes is not None else 'axes'}: {name}: expected shape "
                f"{jnp.shape(old)}{with_axis}, got {jnp.shape(new)}; models that differ need the "
                f"axis of each leaf: {cure}"
            )
    if len(sizes) > 1:
        told = ", ".join(f"{n} of {name}" for n, name in sizes.items())
        raise ValueError(f"model: leaves have different numbers of worlds: {told}")
