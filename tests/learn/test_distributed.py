"""A training in two processes: that of one process to rounding, and resumed on other devices."""

import numpy as np
import pytest
from many_processes import finish, run_commands, start

from jaxsim.learn.curve import read_curve

SETTINGS = """\
task = "learn.tiny:Hold"
steps = 4_096
every = 2_048
episodes = 3

[worlds]
count = 16
length = 25
obs_noise = 0.01

[worlds.randomize]
body_mass = [0.9, 1.1]

[ppo]
num_steps = 16
num_minibatches = 2
num_epochs = 2
hidden = [8]
"""


def scores(folder):
    return [row.score for row in read_curve(folder / "curve.csv")]


@pytest.mark.slow
def test_training_in_two_processes_and_resuming_in_one(tmp_path):
    (tmp_path / "hold.toml").write_text(SETTINGS)
    train = "train hold.toml --tier fast --out".split()
    first, second = run_commands([*train, "two", "--set", "steps=2_048"], 2, cwd=tmp_path)
    assert first.code == 0, first.err
    assert second.code == 0, second.err
    assert "2 of 2 processes" in first.out
    assert (second.out.count("return"), second.err) == (0, "")
    (one,) = finish([start(["-m", "jaxsim", *train, "one"], cwd=tmp_path)])
    assert one.code == 0, one.err
    resume = "train two --resume --tier fast --set steps=4_096".split()
    (resumed,) = finish([start(["-m", "jaxsim", *resume], cwd=tmp_path)])
    assert resumed.code == 0, resumed.err
    assert "resumed at 2,048 of 4,096 actions" in resumed.out
    alone, divided = scores(tmp_path / "one"), scores(tmp_path / "two")
    assert len(alone) == len(divided) == 2
    np.testing.assert_allclose(divided, alone, rtol=1e-2)  # each update amplifies rounding
