"""Random states of a model, and worlds made of them: one way for all tests."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

import jaxsim
from jaxsim import Data, Model

# what a user sets in a state, in mjData and in Data
INPUTS = (
    "time qpos qvel act ctrl qfrc_applied xfrc_applied mocap_pos mocap_quat userdata eq_active"
).split()


def random_state(
    mj: mujoco.MjModel,
    seed: int = 0,
    *,
    spread: float | np.ndarray = 1.0,
    speed: float = 1.0,
    settle: int = 0,
) -> mujoco.MjData:
    """A state with all inputs set, after `mj_forward`.

    Args:
      mj: the model.
      seed: of the random numbers.
      spread: standard deviation of the displacement from qpos0, for all dofs or for each; in the
        coordinates of velocities, so that quaternions stay quaternions.
      speed: standard deviation of the velocities.
      settle: steps that are taken then, before forces are applied.
    """
    rng = np.random.default_rng(seed)
    d = mujoco.MjData(mj)
    mujoco.mj_integratePos(mj, d.qpos, spread * rng.normal(size=mj.nv), 1.0)
    d.qvel[:] = speed * rng.normal(size=mj.nv)
    d.ctrl[:] = rng.normal(size=mj.nu)
    d.act[:] = rng.uniform(size=mj.na)
    d.mocap_pos[:] += 0.1 * rng.normal(size=(mj.nmocap, 3))
    for quat in d.mocap_quat:
        mujoco.mju_quatIntegrate(quat, rng.normal(size=3), 0.1)
    d.userdata[:] = rng.normal(size=mj.nuserdata)
    d.time = rng.uniform(0, 2)
    if settle:
        mujoco.mj_step(mj, d, settle)
    d.qfrc_applied[:] = rng.normal(size=mj.nv)
    d.xfrc_applied[1:] = rng.normal(size=(mj.nbody - 1, 6))
    mujoco.mj_forward(mj, d)
    return d


def inputs(m: Model, state: mujoco.MjData, keep: Any = "default") -> Data:
    """A world with the inputs of a state, and nothing computed for it."""
    d = jaxsim.make_data(m, keep)
    return d.replace(
        **{n: jax.device_put(np.array(getattr(state, n), getattr(d, n).dtype)) for n in INPUTS}
    )


# by numpy: jax.numpy would compile a program for each shape that a record has


def stack(worlds: Sequence, axis: int = 0):
    """Records of one world each as one record of many worlds."""
    return jax.tree.map(lambda *a: jax.device_put(np.stack(a, axis)), *worlds)


def pushed(mj, number: int) -> tuple[list, dict]:
    """Random states of the oracle, with forces on the dofs; and their fields, worlds first."""
    rng, states = np.random.default_rng(0), []
    for _ in range(number):
        mjd = mujoco.MjData(mj)
        mujoco.mj_integratePos(mj, mjd.qpos, 0.5 * rng.standard_normal(mj.nv), 1)
        for field in (mjd.qvel, mjd.qfrc_applied):
            field[:] = rng.standard_normal(mj.nv)
        states.append(mjd)
    fields = ("qpos", "qvel", "qfrc_applied")
    return states, {n: jnp.asarray(np.stack([getattr(s, n) for s in states])) for n in fields}


def world(many, k: int):
    """One world of many; keys of random numbers may be in it, which numpy does not know."""

    def one(a):
        is_key = jnp.issubdtype(a.dtype, jax.dtypes.prng_key)
        return a[k] if is_key else jax.device_put(np.array(np.asarray(a)[k]))

    return jax.tree.map(one, many)


def single(tree):
    """All real numbers in single precision."""
    return jax.tree.map(
        lambda a: jax.device_put(np.array(a, np.float32)) if a.dtype == np.float64 else a, tree
    )
