"""Recomputed results of the present state; `step` returns those of the state before it."""

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.pipeline.forward import run_step1
from jaxsim.transforms.layout import batched

_run_step1 = batched(run_step1)


def refresh_world(m: Model, d: Data) -> Data:
    """Return a world with poses, velocities and their sensors of its state, as after `mj_step1`.

    Forces, accelerations and their sensors are unchanged. Only fields that `d` carries are
    computed, and under `jit` only those that are read afterwards.
    """
    new: Data = _run_step1(m, d)
    return new
