"""Initial state of a world, including trees that start asleep; reset and keyframes."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import SleepPolicy
from jaxsim.model.allocate import Keep, allocate, check_supported, kept_names
from jaxsim.model.data import WAITING_FIELDS, Data
from jaxsim.model.initial.state import neutral_controls
from jaxsim.model.model import Model
from jaxsim.model.names import name2id
from jaxsim.model.shaped import Bool, Int
from jaxsim.physics.pipeline.forward import forward
from jaxsim.physics.pipeline.sleeping import PASSIVE_AND_BIAS_FORCES
from jaxsim.physics.public.arguments import check_data, check_model
from jaxsim.physics.sleep.sleep_islands import start_asleep
from jaxsim.physics.sleep.trees import can_sleep, update_sleep_counts
from jaxsim.physics.unsupported import describe_object
from jaxsim.transforms.layout import batched
from jaxsim.transforms.platform import FAST_COMPILE_OPTIONS
from jaxsim.transforms.program_cache import ProgramCache


def make_data(m: Model, keep: Keep = "default") -> Data:
    """Return the initial state of one world, at rest; see `jaxsim.make_data`.

    Args:
      m: the model.
      keep: which results a step carries besides the state and the inputs.
    """
    check_supported(m)
    m.check_values("make_data: m.")
    d = allocate(m, keep)
    # Trees with the policy INIT need a forward pass.
    if not can_sleep(m) or not np.any(m.tree_sleep_policy == SleepPolicy.INIT):
        return d
    d = _begin_asleep(m, d)
    _warn(m, d)
    return d


def reset_data(m: Model, d: Data, where: Bool[jax.Array, "*batch"] | None = None) -> Data:
    """Reset worlds to the initial state of `make_data`, with the fields that `d` keeps.

    Corresponds to `mj_resetData` in MuJoCo.

    Args:
      m: the model.
      d: one world, or many with a leading axis.
      where: worlds to reset, (worlds,) bool, or () for one; the others keep their state. None: `d`
        is one world, which is reset.

    Example:
      >>> worlds = jaxsim.replicate(d.replace(qpos=jnp.ones(1)), 3)
      >>> jaxsim.reset_data(m, worlds, where=jnp.array([False, True, False])).qpos[:, 0].tolist()
      [1.0, 0.0, 1.0]
    """
    if where is None and jnp.ndim(d.time):
        raise ValueError(
            "reset_data: d has many worlds; specify which to reset: where=jnp.ones(worlds, bool)"
        )
    start = make_data(m, kept_names(d))
    return start if where is None else d.where(where, start)


def reset_data_keyframe(m: Model, d: Data, key: int | str | Int[jax.Array, ""]) -> Data:
    """Return the state of a keyframe; corresponds to `mj_resetDataKeyframe` in MuJoCo.

    Args:
      m: the model.
      d: a world, whose kept fields the result has.
      key: name or id of the keyframe; the id may be traced.
    """
    # Replace the state by that of the keyframe.
    key = _key(m, key)
    frame = {name: getattr(m, of_key)[key] for name, of_key in _KEYFRAME_FIELDS.items()}
    return reset_data(m, d).replace(**frame)


def set_keyframe(m: Model, d: Data, key: int | str | Int[jax.Array, ""]) -> Model:
    """Return the model with the state of a world stored as one of its keyframes.

    The time of a keyframe is one number: in single precision it is `d.time`, without the low-order
    part of the clock. `get_state`, `copy_state` and checkpoints have both.

    Corresponds to `mj_setKeyframe` in MuJoCo.

    Args:
      m: the model.
      d: one world.
      key: name or id of the keyframe; the id may be traced.

    Example:
      >>> m = jaxsim.load_model("<mujoco><keyframe><key name='here'/></keyframe></mujoco>")
      >>> d = jaxsim.make_data(m).replace(time=jnp.array(2.5))
      >>> jaxsim.set_keyframe(m, d, "here").key_time.tolist()
      [2.5]
    """
    if isinstance(d, Data) and jnp.ndim(d.time):
        raise ValueError("set_keyframe: d has many worlds; a keyframe is the state of one, d[0]")
    check_model("set_keyframe", m)
    check_data("set_keyframe", m, d)
    key, frames = _key(m, key), {n: jnp.asarray(getattr(m, n)) for n in _KEYFRAME_FIELDS.values()}
    return m.replace(
        **{n: frames[n].at[key].set(getattr(d, name).astype(frames[n].dtype))
           for name, n in _KEYFRAME_FIELDS.items()}
    )  # fmt: skip


# State fields of a keyframe: field of Data, field of Model.
_KEYFRAME_FIELDS = {
    **{name: f"key_{name}" for name in ("time", "qpos", "qvel", "act", "plastic", "ctrl")},
    "mocap_pos": "key_mpos",
    "mocap_quat": "key_mquat",
}


def _key(m: Model, key: int | str | jax.Array) -> int | jax.Array:
    """Return the id of a keyframe."""
    if isinstance(key, str):
        return name2id(m, "key", key)
    if not isinstance(key, jax.core.Tracer) and not np.issubdtype(np.result_type(key), np.integer):
        raise ValueError(f"key: expected a name or a number, got {key!r}")
    if isinstance(key, int | np.integer) and not 0 <= key < m.nkey:
        raise ValueError(f"key: the model has {m.nkey} keyframes; there is no keyframe {key}")
    return key


def reset_ctrl(m: Model, d: Data) -> Data:
    """Reset controls to neutral: zero, and identity quaternions for orientation actuators.

    Args:
      m: the model.
      d: one world, or many with leading axes.
    """
    check_model("reset_ctrl", m)
    check_data("reset_ctrl", m, d, np.shape(d.time) if isinstance(d, Data) else ())
    neutral = neutral_controls(m).astype(d.ctrl.dtype)
    return d.replace(ctrl=jnp.broadcast_to(neutral, d.ctrl.shape))


def _data_with_sleeping_trees(m: Model, d: Data) -> Data:
    """Return the initial state with trees of policy INIT asleep; needs one forward pass."""
    # Results of the forward pass that sleeping trees keep.
    found = forward(m, d)
    number, _ = start_asleep(m, found)
    names = (*WAITING_FIELDS, *PASSIVE_AND_BIAS_FORCES, "sensordata")
    kept = {n: getattr(found, n) for n in names if getattr(d, n) is not None}
    kept |= {n: jnp.zeros_like(d.qvel) for n in ("qfrc_smooth", "qacc_smooth")}
    return update_sleep_counts(m, d.replace(**kept, tree_asleep=number, tree_start=number))


_in_a_program = ProgramCache(batched(_data_with_sleeping_trees))
_for_one_run = ProgramCache(
    batched(_data_with_sleeping_trees), compiler_options=FAST_COMPILE_OPTIONS
)


def _begin_asleep(m: Model, d: Data) -> Data:
    """Run `_data_with_sleeping_trees` for one world; outside a trace in a program compiled without
    optimization."""
    if any(isinstance(a, jax.core.Tracer) for a in jax.tree.leaves((m, d))):
        return _in_a_program(m, d)
    with jax.ensure_compile_time_eval():
        started: Data = _for_one_run(m, d)
    return started


def _warn(m: Model, d: Data) -> None:
    """Warn of a tree that should start asleep and cannot; not possible inside a trace."""
    if isinstance(d.tree_asleep, jax.core.Tracer):
        return
    begins = m.tree_sleep_policy == SleepPolicy.INIT
    fails = np.flatnonzero(begins & (np.asarray(d.tree_asleep) < 0))
    if len(fails):
        first = describe_object(m, "body", m.tree_bodyadr[fails[0]])
        warnings.warn(
            f"{first}: sleep='init', but its tree cannot sleep: trees that it touches or is "
            f"coupled to do not start asleep ({len(fails)} of {begins.sum()} such trees)",
            stacklevel=3,
        )
