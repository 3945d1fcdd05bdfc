"""A loop as CleanRL writes them, PPO of continuous actions, learns on our Gymnasium worlds.

Numpy holds what was seen, JAX and optax the policy; episodes are recorded by Gymnasium's wrapper.
In the "next" way an action after an end is not taken: such a transition is left out.
"""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from envs.tasks import hold

from jaxsim.envs.gymnasium import GymnasiumVectorEnv

WORLDS, STEPS, LENGTH, ITERATIONS = 32, 64, 50, 20
GAMMA, LAMBDA, CLIP, EPOCHS, BATCHES = 0.9, 0.95, 0.2, 6, 4


@pytest.fixture(autouse=True)
def promotion_as_optax_needs_it():
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def network(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    pairs = zip(keys, sizes, sizes[1:], strict=False)
    return [(jax.random.normal(k, (a, b)) / np.sqrt(a), jnp.zeros(b)) for k, a, b in pairs]


def apply(layers, x):
    for W, b in layers[:-1]:
        x = jnp.tanh(x @ W + b)
    W, b = layers[-1]
    return x @ W + b


def log_probability(p, obs, action):
    z = (action - apply(p["mean"], obs)) / jnp.exp(p["log_std"])
    return (-0.5 * z**2 - p["log_std"]).sum(-1)


@jax.jit
def act(p, obs, key):
    mean = apply(p["mean"], obs)
    action = mean + jnp.exp(p["log_std"]) * jax.random.normal(key, mean.shape)
    return action, log_probability(p, obs, action), apply(p["value"], obs)[:, 0]


def loss(p, obs, action, old, advantage, target, taken):
    ratio = jnp.exp(log_probability(p, obs, action) - old)
    gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage)
    error = (apply(p["value"], obs)[:, 0] - target) ** 2
    return ((0.5 * error - gain) * taken).sum() / taken.sum()


def advantages(reward, value, last_value, terminated, over):
    """Generalized advantages; the observation after an action is the last one of its episode."""
    out, following = np.zeros_like(reward), np.zeros(WORLDS)
    after = np.concatenate([value[1:], last_value[None]])
    for t in reversed(range(STEPS)):
        delta = reward[t] + GAMMA * after[t] * (1 - terminated[t]) - value[t]
        out[t] = following = delta + GAMMA * LAMBDA * (1 - over[t]) * following
    return out


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ppo_in_the_way_of_cleanrl():
    """The return of an episode rises to most of what there is."""
    worlds = GymnasiumVectorEnv(hold(), WORLDS, length=LENGTH)
    worlds = gymnasium.wrappers.vector.RecordEpisodeStatistics(worlds)
    key = jax.random.key(1)
    key, actor, critic = jax.random.split(key, 3)
    p = {
        "mean": network(actor, (2, 32, 32, 1)),
        "value": network(critic, (2, 32, 32, 1)),
        "log_std": jnp.full(1, -0.5),
    }
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(3e-3))
    memory, rng = optimizer.init(p), np.random.default_rng(0)

    @jax.jit
    def update(p, memory, *batch):
        change, memory = optimizer.update(jax.grad(loss)(p, *batch), memory, p)
        return optax.apply_updates(p, change), memory

    obs, _ = worlds.reset(seed=1)
    begun, returns = np.zeros(WORLDS, bool), []
    for _ in range(ITERATIONS):
        rows = []
        for _ in range(STEPS):
            key, own = jax.random.split(key)
            action, old, value = (np.asarray(x) for x in act(p, obs, own))
            after, reward, terminated, truncated, info = worlds.step(action)
            over = terminated | truncated
            rows.append((obs, action, old, value, reward, terminated, over | begun, ~begun))
            obs, begun = after, over
            returns += list(info["episode"]["r"][over]) if over.any() else []
        columns = (np.stack(x) for x in zip(*rows, strict=True))
        seen, action, old, value, reward, terminated, over, taken = columns
        last_value = np.asarray(act(p, obs, key)[2])
        gain = advantages(reward, value, last_value, terminated, over)
        target = gain + value
        gain = (gain - gain[taken].mean()) / gain[taken].std()
        data = [x.reshape(STEPS * WORLDS, *x.shape[2:]) for x in (seen, action, old, gain, target)]
        data.append(taken.ravel().astype(float))
        for _ in range(EPOCHS):
            for chosen in np.split(rng.permutation(STEPS * WORLDS), BATCHES):
                p, memory = update(p, memory, *(x[chosen] for x in data))
    assert len(returns) >= WORLDS * (ITERATIONS * STEPS // (LENGTH + 1) - 1)
    first, last = np.mean(returns[:WORLDS]), np.mean(returns[-WORLDS:])
    assert last > first
    assert last > 0.8 * LENGTH
