"""The models that come with the package are physical: judged by MuJoCo."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

pytestmark = pytest.mark.kernels

CONFIGS = Path(__file__).resolve().parent.parent / "configs"


def settle(name: str, seconds: float, key: int | None = None):
    model = mujoco.MjModel.from_xml_path(str(CONFIGS / name))
    state = mujoco.MjData(model)
    if key is not None:
        mujoco.mj_resetDataKeyframe(model, state, key)
    mujoco.mj_step(model, state, round(seconds / model.opt.timestep))
    return model, state


@pytest.mark.parametrize(
    ("name", "key", "height"),
    [("humanoid.xml", None, 0.84), ("humanoid.xml", 0, 0.68), ("quadruped.xml", None, 0.29)],
)
def test_robots_stand(name, key, height):
    _, state = settle(name, 4, key)
    assert state.xpos[1, 2] > height
    assert np.abs(state.qvel).max() < 0.15
    assert state.ncon >= 4


def test_the_pile_comes_to_rest_on_the_floor():
    _, state = settle("pile.xml", 4)
    assert (state.xpos[1:, 2] > 0.02).all()
    assert (state.xpos[1:, 2] < 0.4).all()
    assert state.ncon > 12


def test_the_pole_falls_when_pushed():
    _, still = settle("cartpole.xml", 1)
    _, hanging = settle("cartpole.xml", 1, key=0)
    assert still.qpos[1] == 0
    assert abs(hanging.qpos[1] - np.pi) < 1e-3


def test_the_walker_stays_in_its_plane():
    _, state = settle("walker.xml", 2)
    assert np.ptp(state.xpos[1:, 1]) < 0.13
    assert state.xpos[1, 2] > 0.05
