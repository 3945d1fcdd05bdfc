"""The engines under test: each makes `(step, model, batch of data)` from the same states."""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import rollout as mj_rollout


def jaxsim_engine(m: mujoco.MjModel, start: dict[str, np.ndarray]):
    """Our engine; the model crosses over compiled, so that only the physics is compared."""
    import jaxsim

    model = jaxsim.put_model(m)
    return jaxsim.step, model, _batch(jaxsim.make_data(model), start)


def mjx_engine(m: mujoco.MjModel, start: dict[str, np.ndarray]):
    """MuJoCo XLA, the JAX peer."""
    from mujoco import mjx

    model = mjx.put_model(m, impl="jax")
    return mjx.step, model, _batch(mjx.make_data(m, impl="jax"), start)


ENGINES: dict[str, Callable] = {
    "jaxsim": jaxsim_engine,
    "devices": jaxsim_engine,
    "mjx": mjx_engine,
}


def c_steps_per_second(m: mujoco.MjModel, start: dict[str, np.ndarray], threads: int) -> float:
    """MuJoCo C through its own batched rollout."""
    worlds = len(start["qpos"])
    steps = max(20, 40_000 // worlds)
    spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
    full = np.zeros((worlds, mujoco.mj_stateSize(m, spec)))
    d = mujoco.MjData(m)
    for k in range(worlds):
        for name in ("qpos", "qvel", "act", "qacc_warmstart"):
            getattr(d, name)[:] = start[name][k]
        mujoco.mj_getState(m, d, full[k], spec)
    ctrl = np.repeat(start["ctrl"][:, None], steps, axis=1) if m.nu else None
    data = [mujoco.MjData(m) for _ in range(threads)]
    best = 0.0
    with mj_rollout.Rollout(nthread=threads) as pool:
        for _ in range(3):
            began = time.perf_counter()
            pool.rollout(m, data, full, ctrl, nstep=steps)
            best = max(best, worlds * steps / (time.perf_counter() - began))
    return best


def _batch(d, start: dict[str, np.ndarray]):
    worlds = len(start["qpos"])
    d = jax.tree.map(lambda a: jnp.broadcast_to(a, (worlds, *jnp.shape(a))), d)
    return d.replace(**{n: jnp.asarray(v, d.qpos.dtype) for n, v in start.items()})
