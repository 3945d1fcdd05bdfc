"""SHAC and APG learn, are resumed with the same numbers, and report wrong settings."""

import warnings

import jax
import numpy as np
import pytest
from learn.same_state import assert_same_state

from jaxsim.envs import Env
from jaxsim.errors import ConfigError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from jaxsim.learn.run import new_run, old_run, train
pytestmark = [pytest.mark.usefixtures("single_precision"), pytest.mark.filterwarnings("ignore")]

SETTINGS = """\
task = "learn.tiny:Hold"
algorithm = "shac"
steps = 12_000
every = 4_000
seeds = 2
episodes = 3

[worlds]
count = 16
length = 25

[shac]
hidden = [16]
critic_hidden = [16]
num_epochs = 4

[apg]
hidden = [16]
"""


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    path = tmp_path_factory.mktemp("shac") / "hold.toml"
    path.write_text(SETTINGS)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["shac", "apg"])
def test_it_learns_and_goes_on_with_the_same_numbers(settings, tmp_path, algorithm):
    def stop(report):
        if report.step > 5000:
            raise KeyboardInterrupt

    changes = [f"algorithm={algorithm}"]
    whole = new_run(settings, tmp_path / "whole", changes)
    rows = train(whole, tier="optimized")
    state = jax.jit(whole.learner.begin)(whole.start_keys())
    before = jax.jit(whole.evaluate)(state, whole.test_keys(3)).score.mean(axis=1)
    after = np.array([row.score for row in rows[-2:]])
    assert (after > before + 2).all()
    with pytest.raises(KeyboardInterrupt):
        train(new_run(settings, tmp_path / "stopped", changes), stop, tier="optimized")
    stopped = old_run(tmp_path / "stopped")
    assert stopped.checkpoints.steps() == [4096]
    train(stopped, tier="optimized")
    assert_same_state(stopped.restore()[1], whole.restore()[1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("shac.num_minibatches=7", "16 worlds x 16 actions cannot be divided by 7"),
        ("shac.num_steps=0", "expected at least 1"),
        ("shac.critics=0", "expected at least 1"),
        ("shac.critic_hiden=[4]", "did you mean 'critic_hidden'"),
        ("shac.num_steps=9_000_000", "of memory, there are only"),
        ("apg.polyak=0.1", "apg.polyak: unknown setting"),
        ("critic_obs=['angle']", "observations are one array, not a dict with 'angle'"),
    ],
)
def test_wrong_settings_are_reported_with_their_location(settings, tmp_path, change, message):
    with pytest.raises(ConfigError) as caught:
        new_run(settings, tmp_path / "wrong", [change])
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"--set {change}")


def test_smooth_contacts_are_those_of_the_learner_alone(settings, tmp_path, monkeypatch):
    made, convert = [], Env.with_smooth_contacts
    monkeypatch.setattr(Env, "with_smooth_contacts", lambda *a: made.append(convert(*a)) or made[0])
    run = new_run(settings, tmp_path / "smooth", ["shac.smooth=0.01"])
    (env,) = made
    assert env.m.straight_through
    np.testing.assert_allclose(env.m.smooth, 0.01, rtol=1e-6)
    assert run.env.m.smooth is None
