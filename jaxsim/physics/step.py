"""One time step: checks, forward dynamics, integration."""

import jax.numpy as jnp
import numpy as np

from jaxsim.data import Data
from jaxsim.enums import DisableBit, IntegratorType, WarningType
from jaxsim.math import select
from jaxsim.model import Model
from jaxsim.physics.forward import forward
from jaxsim.physics.integrate import INTEGRATORS
from jaxsim.physics.tree import column, take, total

MAXVAL = 1e10  # MuJoCo's mjMAXVAL: a state beyond it counts as diverged


def step(m: Model, d: Data) -> Data:
    """Advances one world by `m.opt.timestep`.

    A state that is not finite, or too large, is put back to the model's start and counted in
    `d.warning`, unless the autoreset flag is off. A world whose acceleration is bad is put back
    and waits there for the next step.
    """
    d = _check(m, d, d.qpos, WarningType.BADQPOS)
    d = _check(m, d, d.qvel, WarningType.BADQVEL)
    d = forward(m, d)
    bad = _is_bad(d.qacc)
    new = INTEGRATORS[IntegratorType(m.opt.integrator)](m, d)
    return _reset_where(m, bad, new, WarningType.BADQACC)


def _check(m: Model, d: Data, x, warning: WarningType) -> Data:
    return _reset_where(m, _is_bad(x), d, warning)


def _is_bad(x):
    """Worlds with a number that is not finite or too large, `[1, *W]` bool."""
    wrong = ~(jnp.abs(x) < MAXVAL)
    return total(wrong.astype(x.dtype)) > 0


def _reset_where(m: Model, bad, d: Data, warning: WarningType) -> Data:
    """Counts the bad worlds and puts their state and inputs back to the start."""
    here = np.arange(len(WarningType)) == warning
    count = d.warning + column(here.astype(np.int32), d.warning) * bad.astype(jnp.int32)
    d = d.replace(warning=count)
    if m.opt.disableflags & DisableBit.AUTORESET:
        return d
    start = start_state(m, d)
    kept = {name: select(bad, value, getattr(d, name)) for name, value in start.items()}
    return d.replace(**kept)


def start_state(m: Model, d: Data) -> dict:
    """State and inputs of a world at the start, in the form of the physics."""
    zeros = ("time", "qvel", "act", "qacc_warmstart", "ctrl", "qfrc_applied", "xfrc_applied")
    out = {name: jnp.zeros_like(getattr(d, name)) for name in zeros}
    out["qpos"] = m.qpos0
    if m.nmocap:
        body = np.argsort(np.where(m.body_mocapid < 0, m.nbody, m.body_mocapid))[: m.nmocap]
        out["mocap_pos"] = take(m.body_pos, body)
        out["mocap_quat"] = take(m.body_quat, body).normalize()
    return out
