"""Models and initial states of the benchmarks, equal for all engines, computed by MuJoCo C."""

from pathlib import Path

import mujoco
import numpy as np
from scenes import scene

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
MODELS = ("cartpole", "walker", "humanoid", "quadruped", "pile")
UNIQUE = 256  # different states; a larger batch repeats them with noise


def load(name: str, preset: str) -> mujoco.MjModel:
    """Return a model of `configs/`, a scene of `scenes.py` ("chain6", "pile100") or an MJCF file.

    Args:
      name: name of the model.
      preset: "rl": 4 solver iterations, 8 of the line search, no implicit damping, as in
        reinforcement learning; "own": the settings of the file.
    """
    text = scene(name)
    if text:
        m = mujoco.MjModel.from_xml_string(text)
    else:
        path = CONFIGS / f"{name}.xml"
        m = mujoco.MjModel.from_xml_path(str(path if path.exists() else name))
    if preset == "rl":
        m.opt.iterations, m.opt.ls_iterations = 4, 8
        m.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
        m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP
    return m


def title(name: str) -> str:
    """Return the name of a model in results: that of a file with its folder."""
    path = Path(name)
    return f"{path.parent.name}/{path.stem}" if path.suffix else name


def states(m: mujoco.MjModel, worlds: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return states with active contacts: qpos, qvel, act, ctrl, qacc_warmstart, worlds first."""
    rng = np.random.default_rng(seed)
    d = mujoco.MjData(m)
    rows: list[dict] = []
    for k in range(min(UNIQUE, worlds)):
        if m.nkey:
            mujoco.mj_resetDataKeyframe(m, d, 0)
        else:
            mujoco.mj_resetData(m, d)
        d.qvel[:] = 0.5 * rng.standard_normal(m.nv)
        d.ctrl[:] = 0.3 * rng.standard_normal(m.nu)
        for _ in range((k * 199) // UNIQUE):
            mujoco.mj_step(m, d)
        fields = ("qpos", "qvel", "act", "ctrl", "qacc_warmstart")
        rows.append({name: getattr(d, name).copy() for name in fields})
    out = {n: np.stack([rows[i % len(rows)][n] for i in range(worlds)]) for n in rows[0]}
    out["qvel"] += 0.01 * rng.standard_normal(out["qvel"].shape)
    return out
