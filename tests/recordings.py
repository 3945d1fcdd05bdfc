"""Motion recorded with MuJoCo C: the data that parameters are to be recovered from."""

import mujoco
import numpy as np


def record(mj: mujoco.MjModel, ctrl: np.ndarray, qpos=None, qvel=None) -> dict[str, np.ndarray]:
    """States and sensors of a motion, at the time of each row of controls.

    Args:
      mj: the model.
      ctrl: (steps, nu).
      qpos, qvel: of the start; None: qpos0, at rest.

    Returns:
      "qpos", "qvel" and "sensordata", (steps, n) each.
    """
    d = mujoco.MjData(mj)
    if qpos is not None:
        d.qpos[:] = qpos
    if qvel is not None:
        d.qvel[:] = qvel
    rows: dict[str, list] = {"qpos": [], "qvel": [], "sensordata": []}
    for u in ctrl:
        d.ctrl[:] = u
        rows["qpos"].append(d.qpos.copy())
        rows["qvel"].append(d.qvel.copy())
        mujoco.mj_step(mj, d)
        rows["sensordata"].append(d.sensordata.copy())
    return {n: np.array(a) for n, a in rows.items()}


def waves(rng: np.random.Generator, steps: int, nu: int, size: float, h: float) -> np.ndarray:
    """Controls that excite a motion: sums of three sines, (steps, nu)."""
    t = h * np.arange(steps)[:, None, None]
    frequency, phase = rng.uniform(0.3, 2.5, (2, 1, nu, 3))
    return size / 3 * np.sin(2 * np.pi * (frequency * t + phase)).sum(-1)
