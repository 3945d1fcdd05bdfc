"""Initial world and controls of a rollout: random, zero, or from a file."""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.assets.read.npz import read_npz
from jaxsim.cli.input.resource_limits import check_controls_file
from jaxsim.cli.user_error import InputProblem
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.public.make_data import make_data, reset_data_keyframe

_HOLD_SECONDS = (
    0.1  # seconds for which a random control is held; noise at every step hardly moves a robot
)


def initial_data(m: Model, key: str | None) -> Data:
    """Return the initial world of a model, or the one of the keyframe that `--key` names."""
    d = make_data(m)
    if key is None:
        return d
    try:
        return reset_data_keyframe(m, d, key)
    except ValueError as error:
        raise InputProblem(f"--key: {error}") from None


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RandomControl:
    """Uniformly distributed controls within their ranges, -1 to 1 without a range, held for some
    steps."""

    key: jax.Array
    low: jax.Array
    high: jax.Array
    hold: int = field(metadata={"static": True})
    worlds: int = field(metadata={"static": True})

    def at(self, i: jax.Array) -> jax.Array:
        """Return the controls of all worlds at step `i`, (worlds, nu)."""
        key = jax.random.fold_in(self.key, i // self.hold)
        shape = (self.worlds, len(self.low))
        unit = jax.random.uniform(key, shape, self.low.dtype)
        return self.low[None] + unit * (self.high - self.low)[None]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FileControl:
    """Recorded controls, (steps, worlds, nu), or (steps, 1, nu) if all worlds share them."""

    values: jax.Array
    worlds: int = field(metadata={"static": True})

    def at(self, i: jax.Array) -> jax.Array:
        """Return the controls of all worlds at step `i`, (worlds, nu)."""
        return jnp.broadcast_to(self.values[i], (self.worlds, self.values.shape[-1]))


def make_control(kind: str, m: Model, worlds: int, steps: int, seed: int) -> Any:
    """Return the source of controls that `--ctrl` specifies; None: all controls are zero."""
    if kind == "zero":
        return None
    if kind == "random":
        return _random(m, worlds, seed)
    if not kind.endswith(".npz"):
        raise InputProblem(f"--ctrl: expected 'random', 'zero' or a file FILE.npz, got '{kind}'")
    values = _read(kind, m, worlds, steps)
    return FileControl(jnp.asarray(values, dtype=m.qpos0.dtype), worlds)


def _random(m: Model, worlds: int, seed: int) -> RandomControl:
    limited = m.actuator_ctrllimited  # one flag per control, as the ranges
    low = jnp.where(limited, m.actuator_ctrlrange[:, 0], -1)
    high = jnp.where(limited, m.actuator_ctrlrange[:, 1], 1)
    hold = max(1, round(_HOLD_SECONDS / float(m.opt.timestep)))
    return RandomControl(jax.random.key(seed), low, high, hold, worlds)


def _read(path: str, m: Model, worlds: int, steps: int) -> np.ndarray:
    """Read and check a file of controls; (steps, worlds or 1, nu)."""
    check_controls_file(path)
    try:
        ctrl = read_npz(path, "ctrl")["ctrl"]
    except OSError as error:
        raise InputProblem(f"{path}: {error.strerror or error}; give --ctrl an .npz file") from None
    except ValueError as error:
        raise InputProblem(str(error)) from None
    except MemoryError:
        raise InputProblem(f"{path}: not enough memory for 'ctrl'; give fewer steps") from None
    if ctrl.dtype.kind not in "iuf":
        raise InputProblem(f"{path}: ctrl has type {ctrl.dtype}, expected real numbers")
    if ctrl.shape[1:] != {2: (m.nu,), 3: (worlds, m.nu)}.get(ctrl.ndim):
        raise InputProblem(
            f"{path}: ctrl has shape {ctrl.shape}, "
            f"expected (steps, {m.nu}) or (steps, {worlds}, {m.nu})"
        )
    ctrl = ctrl[:, None] if ctrl.ndim == 2 else ctrl
    if len(ctrl) < steps:
        raise InputProblem(
            f"{path}: ctrl has {len(ctrl)} steps, the rollout {steps}; use --steps {len(ctrl)}"
        )
    bad = np.argwhere(~np.isfinite(ctrl[:steps]))
    if len(bad):
        step, world, actuator = bad[0]
        raise InputProblem(
            f"{path}: ctrl is {ctrl[tuple(bad[0])]} at step {step}, world {world}, "
            f"control {actuator}; every number must be finite"
        )
    return ctrl[:steps]
