"""Random models with unusual combinations of features, one for each seed.

    python benchmarks/odd_models.py 17              # prints model 17
    python benchmarks/odd_models.py 0 40 --check    # models 0 to 39, in jaxsim and in MuJoCo

With --check it prints which engine rejects the model, or the differences after a step from a random
state.
"""

import argparse

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from odd.bodies import Bodies
from odd.drives import Drives
from odd.sensors import Sensors
from odd.settings import Settings
from odd.ties import Ties

import jaxsim
from jaxsim.errors import ModelError

COMPARED = (
    "qpos qvel act xpos xquat subtree_com actuator_length ten_length cvel qfrc_bias qfrc_passive "
    "qfrc_actuator qfrc_constraint qacc sensordata"
).split()
RTOL = 1e-4  # error of the solvers, amplified by stiff constraints


class OddModel(Settings, Bodies, Ties, Drives, Sensors):
    """A random model; `text` is its MJCF."""

    def __init__(self, seed: int):
        super().__init__(seed)
        for part in (self.options, self.assets, self.bodies, self.flexes, self.contacts):
            part()
        for part in (self.tendons, self.equalities, self.actuators, self.sensors, self.keys):
            part()


def differences(text: str, seed: int) -> list[str] | None:
    """Return the fields that differ after a step; None if MuJoCo rejects the model."""
    try:
        mj = mujoco.MjModel.from_xml_string(text)
    except ValueError as refusal:
        try:
            m = jaxsim.load_model(text)
        except ModelError:
            return None
        return None if m.unsupported else [f"refused by MuJoCo only: {refusal}"]
    try:
        m = jaxsim.load_model(text)
    except ModelError as refusal:
        return [f"refused here only: {refusal}"]
    if m.unsupported:
        return [f"not simulated: {m.unsupported[0]}"]
    rng, state = np.random.default_rng(seed), mujoco.MjData(mj)
    mujoco.mj_integratePos(mj, state.qpos, 0.05 * rng.normal(size=mj.nv), 1.0)
    state.qvel[:], state.ctrl[:] = rng.normal(size=mj.nv), rng.normal(size=mj.nu)
    state.act[:] = 0.3 * rng.uniform(size=mj.na)
    given = {name: jnp.asarray(getattr(state, name)) for name in ("qpos", "qvel", "ctrl", "act")}
    d = jax.jit(jaxsim.step)(m, jaxsim.make_data(m, keep=COMPARED).replace(**given))
    mujoco.mj_step(mj, state)
    return [name for name in COMPARED if not _close(getattr(d, name), getattr(state, name))]


def _close(ours: jax.Array, theirs: np.ndarray) -> bool:
    """Compare row by row, with a tolerance relative to the largest number of a row."""
    size = np.abs(theirs).reshape(len(theirs), -1).max(axis=1, initial=0)
    rows = np.abs(np.asarray(ours) - theirs).reshape(len(theirs), -1).max(axis=1, initial=0)
    return bool(np.all(rows <= RTOL * size + RTOL * 1e-3 * (1 + size.max(initial=0))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("first", type=int, help="seed of the first model")
    parser.add_argument("last", type=int, nargs="?", help="seed after the last; default: first + 1")
    parser.add_argument("--check", action="store_true", help="compare with MuJoCo, do not print")
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    for seed in range(args.first, args.last or args.first + 1):
        text = OddModel(seed).text
        if not args.check:
            print(text)
        elif (found := differences(text, seed)) is not None:
            print(f"{seed}: {', '.join(found) or 'equal'}", flush=True)


if __name__ == "__main__":
    main()
