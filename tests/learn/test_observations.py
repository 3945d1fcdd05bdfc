"""Observations that are a dict: what the policy sees of them, and what the critic sees besides."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.errors import ConfigError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from jaxsim.learn.run import new_run
pytestmark = [pytest.mark.usefixtures("single_precision"), pytest.mark.filterwarnings("ignore")]

SETTINGS = """\
task = "learn.tiny:Privileged"
algorithm = "{algorithm}"
steps = 400
episodes = 2
{seen}

[worlds]
count = 4
length = 10
every_episode = true
pushes = {{ "*" = [0.1, 0.2] }}

[worlds.randomize]
"joint:hinge/damping" = [0.5, 1.5]

[ppo]
num_steps = 4
num_minibatches = 2
num_epochs = 1
hidden = [4]

[sac]
num_epochs = 1
fill_buffer = 8
batch_size = 4
buffer_size = 64
hidden = [4]

[shac]
num_steps = 4
num_minibatches = 2
num_epochs = 1
hidden = [4]
critic_hidden = [4]
"""


def run(tmp_path, algorithm="ppo", seen=""):
    file = tmp_path / "settings.toml"
    file.write_text(SETTINGS.format(algorithm=algorithm, seen=seen))
    return new_run(file, tmp_path / "run")


def widths(params):
    """Inputs of the first layers of a network."""
    leaves = jax.tree.leaves_with_path(params)
    found = {jax.tree_util.keystr(p): x.shape[-2] for p, x in leaves if x.ndim > 1}
    return [n for path, n in found.items() if "Dense_0']['kernel" in path]


# which of (cos, sin, damping, speed) actor and critic see
CASES = {
    "privileged by name": ("", 2, 4),
    "named": ('actor_obs = ["privileged_speed"]\ncritic_obs = ["angle"]', 1, 2),
    "all": ('actor_obs = ["angle", "privileged_speed", "privileged_damping"]', 4, 4),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("algorithm", ["ppo", "sac", "shac"])
def test_networks_see_their_parts(tmp_path, algorithm, case):
    """And what they do not see has no effect; the training runs with it."""
    seen, actor, critic = CASES[case]
    made = run(tmp_path, algorithm, seen)
    state = jax.jit(made.learner.begin)(made.start_keys())
    for _ in range(2):
        state = jax.jit(made.learner.learn)(state)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(state.actor_ts.params))
    assert set(widths(state.actor_ts.params)) == {actor}
    values = {critic + (1 if algorithm == "sac" else 0)}
    assert set(widths(state.critic_ts.params)) == values
    one = jax.tree.map(lambda x: x[0], state)
    obs = {"angle": jnp.ones((1, 2)), "privileged_damping": jnp.ones((1, 1)),
           "privileged_speed": jnp.ones((1, 1))}  # fmt: skip
    names = {2: {"angle"}, 1: {"privileged_speed"}, 4: set(obs)}[actor]
    for name in obs:
        other = obs | {name: obs[name] + 5.0}
        moved = np.abs(made.learner.act(one, other) - made.learner.act(one, obs)).max()
        assert (moved > 0) == (name in names)
    scores = jax.jit(made.evaluate)(state, made.test_keys(2))
    assert np.isfinite(scores.score).all()


@pytest.mark.parametrize(
    ("seen", "message"),
    [
        (
            'actor_obs = ["angel"]',
            "settings.toml:5: actor_obs: no observation 'angel'; did you mean",
        ),
        ('critic_obs = ["x"]', "settings.toml:5: critic_obs: no observation 'x'; there are: angle"),
    ],
)
def test_an_observation_that_is_not_there_is_told(tmp_path, seen, message):
    with pytest.raises(ConfigError) as caught:
        run(tmp_path, seen=seen)
    assert message in str(caught.value)


@pytest.mark.slow
def test_a_task_of_two_dicts_of_one_name_is_flat(tmp_path):
    """Arrays side by side in the order of their names."""
    made = run(tmp_path)
    state = jax.jit(made.learner.begin)(made.start_keys())
    world = jax.tree.map(lambda x: x[0], state.env_state.world)
    expected = np.concatenate([world.obs[n] for n in sorted(world.obs)], axis=1)
    assert state.last_obs.shape == (1, 4, 4)
    assert expected.shape == (4, 4)
    assert len(np.unique(world.obs["privileged_damping"])) == 4
