"""One time step: checks of the state, forward dynamics, integration.

MuJoCo's documentation, Programming: Simulation loop, and Modeling: Option flags (autoreset).
Where all trees of all worlds sleep undisturbed, a shorter program runs
(sleep/fully_asleep_state.py).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column
from jaxsim.enums import DisableBit, EnableBit, IntegratorType, WarningType
from jaxsim.math import select_where
from jaxsim.model.contact import no_contacts
from jaxsim.model.data import ALWAYS_KEPT, JUST_AWAKE, WAITING_FIELDS, Data
from jaxsim.model.initial import start_state
from jaxsim.model.model import Model
from jaxsim.physics.integrate.integrate import advance, rk4, single_step
from jaxsim.physics.inverse import compare_fwd_inv
from jaxsim.physics.pipeline.forward import forward
from jaxsim.physics.pipeline.sleeping import PASSIVE_AND_BIAS_FORCES
from jaxsim.physics.sleep.fully_asleep_state import may_skip, stays_fully_asleep
from jaxsim.physics.sleep.trees import can_sleep, update_sleep_counts
from jaxsim.physics.warning import Trouble, count_warning, find_bad_worlds
from jaxsim.trace_context import trace_with
from jaxsim.transforms.layout import FastPathRule

RESULT_FIELDS = tuple(n for n in Data.fields if n not in ALWAYS_KEPT)
ZERO_AT_START = (
    *("time", "time_low", "history_low"),
    *("qvel", "act", "plugin_state", "qacc_warmstart", "userdata"),
    *("flexvert_lambda", "flexvert_conage"),
    *("ctrl", "qfrc_applied", "xfrc_applied"),
)


def step(m: Model, d: Data) -> Data:
    """Advance one world by `m.opt.timestep`.

    A state that is not finite, or too large, is reset to the model's initial state and counted in
    `d.warning`, unless the autoreset flag is disabled. A world whose acceleration is bad is reset
    and waits for the next step, as `make_data` returns it. Warning counters are never reset, so
    that they cover a whole run. `callbacks`, if given, replace those of the model in this step
    (`jaxsim.Callbacks`). Corresponds to `mj_step` in MuJoCo.

    Example:
      >>> step = jax.jit(jaxsim.step)  # many worlds: jax.jit(jax.vmap(jaxsim.step, (None, 0)))
      >>> round(float(step(m, d).time), 3)
      0.002
    """
    # One conditional for all worlds that run together.
    if not may_skip(m):
        return _awake_step(m, d)
    branches = (lambda d: _asleep_step(m, d), lambda d: _restrict_fields(d, _awake_step(m, d)))
    slept_or_stepped: Data = lax.cond(_all_stay_asleep(m, d), *branches, d)
    return slept_or_stepped


def _awake_step(m: Model, d: Data) -> Data:
    """Run a step in which trees may be awake."""
    return step_after_forward(
        m, forward(m, reset_bad_state(m, d)), IntegratorType(m.opt.integrator)
    )


def _all_stay_asleep(m: Model, d: Data) -> Array:
    """Return True if every tree of every world sleeps through the step, one bool."""
    bad = find_bad_worlds(d.qpos).where | find_bad_worlds(d.qacc_smooth).where
    return stays_fully_asleep(m, d) & ~jnp.any(bad)


def _asleep_step(m: Model, d: Data) -> Data:
    """Run a step through which all trees sleep: only time and non-tree state advance."""
    with trace_with(fully_asleep=True):
        found = forward(m, d)
        new = advance(m, found, found.qacc).replace(tree_asleep=d.tree_asleep)
    return _restrict_fields(d, new)


# The test covers a tile of worlds of a large model at once.
SLEEP_FAST_PATH = FastPathRule(may_skip, _all_stay_asleep, _asleep_step)


def _restrict_fields(d: Data, new: Data) -> Data:
    """Restrict a new Data to the fields of the old one, broadcast to its worlds."""
    unkept = [n for n in (*Data.fields, *Data.working) if getattr(d, n) is None]
    kept: Data = new.replace(**dict.fromkeys(unkept))
    return jax.tree.map(lambda a, old: jnp.broadcast_to(a, old.shape), kept, d)


def reset_bad_state(m: Model, d: Data) -> Data:
    """Reset a bad state to the model's initial state."""
    d = reset_worlds(m, find_bad_worlds(d.qpos), d, WarningType.BADQPOS)
    return reset_worlds(m, find_bad_worlds(d.qvel), d, WarningType.BADQVEL)


def step_after_forward(m: Model, d: Data, kind: IntegratorType) -> Data:
    """Advance the state by one time step, after the forward dynamics."""
    # Optional comparison of forward and inverse dynamics.
    d = compare_fwd_inv(m, d) if m.opt.enableflags & EnableBit.FWDINV else d
    bad = find_bad_worlds(d.qacc)
    # Integrate, then reset the worlds with a bad acceleration.
    new = rk4(m, d) if kind == IntegratorType.RK4 else single_step(m, d, kind)
    return _reset_and_clear(m, new, bad, WarningType.BADQACC)


def check_pos(m: Model, d: Data) -> Data:
    """Reset worlds whose `qpos` is not finite, or too large, and count them in `d.warning`.

    The reset state is that of `make_data`. With the flag autoreset disabled they are only counted.
    Corresponds to `mj_checkPos` in MuJoCo.
    """
    return _reset_and_clear(m, d, find_bad_worlds(d.qpos), WarningType.BADQPOS)


def check_vel(m: Model, d: Data) -> Data:
    """Reset worlds whose `qvel` is not finite, or too large, and count them in `d.warning`.

    The reset state is that of `make_data`. With the flag autoreset disabled they are only counted.
    Corresponds to `mj_checkVel` in MuJoCo.
    """
    return _reset_and_clear(m, d, find_bad_worlds(d.qvel), WarningType.BADQVEL)


def check_acc(m: Model, d: Data) -> Data:
    """Reset worlds whose `qacc` is not finite, or too large, and count them in `d.warning`.

    The reset state is that of `forward` at the initial state, with the results that `d` keeps. With
    the flag autoreset disabled they are only counted. Corresponds to `mj_checkAcc` in MuJoCo.
    """
    # Count and reset, then recompute the results of the reset worlds.
    bad = find_bad_worlds(d.qacc)
    new = _reset_and_clear(m, d, bad, WarningType.BADQACC)
    if m.opt.disableflags & DisableBit.AUTORESET:
        return new
    found = forward(m, new)
    names = [
        n for n in Data.fields if n in {*ALWAYS_KEPT, *RESULT_FIELDS} and getattr(d, n) is not None
    ]
    old, now = ({name: getattr(a, name) for name in names} for a in (new, found))
    return new.replace(**select_where(bad.where, now, old))


def _reset_and_clear(m: Model, d: Data, bad: Trouble, warning: WarningType) -> Data:
    d = reset_worlds(m, bad, d, warning)
    return d if m.opt.disableflags & DisableBit.AUTORESET else clear_results(m, bad.where, d)


def reset_worlds(m: Model, bad: Trouble, d: Data, warning: WarningType) -> Data:
    """Count the bad worlds, and reset their state and inputs."""
    d = count_warning(d, warning, bad)
    if m.opt.disableflags & DisableBit.AUTORESET:
        return d
    # Initial values: zeros, constants of the model, sleep state.
    olds = {name: old for name in ZERO_AT_START if (old := getattr(d, name)) is not None}
    zero = jax.tree.map(jnp.zeros_like, olds)
    constant = {n: a for n, a in start_state(m).items() if isinstance(a, np.ndarray)}
    tables = {name: column(a, d.qpos) for name, a in constant.items()}
    start = zero | start_state(m) | tables | _sleep_at_start(m, d)
    kept = {name: select_where(bad.where, value, getattr(d, name)) for name, value in start.items()}
    return d.replace(**kept)


def _sleep_at_start(m: Model, d: Data) -> dict:
    """Return the initial sleep state of the trees, with their stored results cleared."""
    if not can_sleep(m):
        return {}
    awake = jnp.full_like(d.tree_asleep, JUST_AWAKE)
    names = (*WAITING_FIELDS, *PASSIVE_AND_BIAS_FORCES, "sensordata")
    olds = {name: old for name in names if (old := getattr(d, name)) is not None}
    asleep = awake if d.tree_start is None else d.tree_start
    return jax.tree.map(jnp.zeros_like, olds) | {"tree_asleep": asleep}


def clear_results(m: Model, bad: Array, d: Data) -> Data:
    """Clear the results of the bad worlds, which do not belong to the initial state."""
    names = [n for n in (*RESULT_FIELDS, "solver_niter") if getattr(d, n) is not None]
    results = {n: getattr(d, n) for n in names}
    none = jax.tree.map(jnp.zeros_like, results)
    if d.contact is not None:
        none["contact"] = no_contacts(d.contact)
    d = d.replace(**select_where(bad, none, results))
    return update_sleep_counts(m, d) if can_sleep(m) else d
