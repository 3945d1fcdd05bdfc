"""Command tracking of policies of the quadruped, in jaxsim and in MuJoCo C.

    python benchmarks/learn_quadruped.py RUN [--episodes 16] [--json FILE]

RUN is a folder of `jaxsim train configs/learn/quadruped.toml`. The policy of each seed runs whole
episodes; so do the trot alone (action zero) and a standing robot (action zero without the gait),
from the same initial states with the same commands, which differ from those of the evaluations in
training. In MuJoCo C the physics is `mj_step`, in double precision; observation and reward are
computed by the task from its results.

Errors are of velocities in the frame of the trunk, x and y [m/s] and about z [rad/s], until the
episode ends: `error` of every moment, which includes the sway of each step of a leg, and `drift` of
the mean velocity of the episode.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from jaxsim import sensor_data
from jaxsim.envs import Env
from jaxsim.envs.tasks import make
from jaxsim.envs.tasks.quadruped import QUADRUPED_MODEL
from jaxsim.learn.run import old_run

LENGTH = 1000
ERRORS = ("error_x", "error_y", "error_turn")
# fields that the task reads, under the same names in both engines
READ = "time qpos qvel ctrl userdata xmat sensordata actuator_force".split()
Act = Callable[[Any, jax.Array], jax.Array]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run")
    parser.add_argument("--episodes", type=int, default=16)
    parser.add_argument("--json", help="where to write the results")
    args = parser.parse_args()

    run = old_run(args.run)
    step, states = run.restore()
    env, keys = run.env, jax.random.split(jax.random.key(1000), args.episodes)
    seeds = [jax.tree.map(lambda x, i=i: x[i], states) for i in range(run.training.seeds)]
    still: Act = lambda policy, obs: jnp.zeros((obs.shape[0], 12), obs.dtype)  # noqa: E731
    found = {
        "task": run.training.task,
        "step": step,
        "episodes": args.episodes,
        "seeds": [
            {"here": h, "mujoco": m}
            for h, m in zip(*_both(env, run.learner.act, seeds, keys), strict=True)
        ],
    }
    for name, task in (("trot", env), ("stands", make("quadruped_velocity_plain"))):
        here, there = _both(task, still, [None], keys)
        found[name] = {"here": here[0], "mujoco": there[0]}
    print(json.dumps(found, indent=2))
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=2) + "\n")


def _both(env: Env, act: Act, policies: list, keys: jax.Array) -> tuple[list, list]:
    here, there = jax.jit(_here(env, act)), jax.jit(_told(env, act))
    return (
        [_summary(jax.device_get(here(p, keys))) for p in policies],
        [_summary(_in_mujoco(env, there, p, keys)) for p in policies],
    )


# --- in jaxsim ---


def _here(env: Env, act: Act) -> Callable:
    """Return a function that runs a batch of episodes: rewards, ends, errors and velocities."""

    def play(policy: Any, keys: jax.Array) -> tuple:
        def turn(state: Any, _: None) -> tuple:
            state = jax.vmap(env.step)(state, act(policy, state.obs))
            errors = jnp.stack([state.metrics[name] for name in ERRORS], axis=-1)
            v, w = (sensor_of(env, state.data, name) for name in ("velocity", "rotation"))
            apart = jnp.concatenate([v[:, :2], w[:, 2:]], axis=1) - state.data.userdata
            return state, (state.reward, state.done > 0, errors, apart)

        return jax.lax.scan(turn, jax.vmap(env.reset)(keys), length=LENGTH)[1]

    return play


def sensor_of(env: Env, d: Any, name: str) -> jax.Array:
    return jax.vmap(lambda d: sensor_data(env.m, d, name))(d)


# --- in MuJoCo C ---


def _told(env: Env, act: Act) -> Callable:
    """Return (policy, before, after) of worlds -> controls, reward, end, errors, velocities."""

    def tell(policy: Any, before: dict, after: dict) -> tuple:
        was, now = (jax.vmap(lambda x: env.begin.replace(**x))(x) for x in (before, after))
        zero = jnp.zeros(env.action_size)
        obs = jax.vmap(lambda d: env.observe(env.m, d))(now)
        action = jnp.clip(act(policy, obs), -1.0, 1.0)
        ctrl = jax.vmap(lambda d, a: env.control(env.m, d, a).ctrl)(now, action)
        reward = jax.vmap(lambda a, b: env.reward(env.m, a, b, zero))(was, now)
        metrics = jax.vmap(lambda a, b: env.metrics(env.m, a, b, zero))(was, now)
        errors = jnp.stack([metrics[name] for name in ERRORS], axis=-1)
        v, w = (sensor_of(env, now, name) for name in ("velocity", "rotation"))
        apart = jnp.concatenate([v[:, :2], w[:, 2:]], axis=1) - now.userdata
        over = jax.vmap(lambda d: env.terminal(env.m, d))(now)
        return ctrl, (reward, over, errors, apart)

    return tell


def _in_mujoco(env: Env, tell: Callable, policy: Any, keys: jax.Array) -> tuple:
    m = mujoco.MjModel.from_xml_path(str(QUADRUPED_MODEL))
    starts = jax.device_get(jax.vmap(lambda key: env.start(env.m, env.begin, key))(keys))
    worlds = [mujoco.MjData(m) for _ in keys]
    for i, d in enumerate(worlds):
        for name in ("qpos", "qvel", "userdata"):
            getattr(d, name)[:] = getattr(starts, name)[i]
        mujoco.mj_forward(m, d)

    def read() -> dict[str, np.ndarray]:
        form = {name: (len(worlds), *getattr(env.begin, name).shape) for name in READ}
        values = {name: np.array([getattr(d, name) for d in worlds]) for name in READ}
        return {name: values[name].reshape(form[name]).astype(np.float32) for name in READ}

    now, story = read(), []
    ctrl, _ = tell(policy, now, now)
    for _ in range(LENGTH):
        before = now
        for d, u in zip(worlds, np.asarray(ctrl, float), strict=True):
            d.ctrl[:] = u
            mujoco.mj_step(m, d, env.repeat)
            mujoco.mj_step1(m, d)
        now = read()
        ctrl, told = jax.device_get(tell(policy, before, now))
        story.append(told)
    return jax.tree.map(lambda *x: np.stack(x), *story)


# --- results ---


def _summary(story: tuple) -> dict[str, Any]:
    """Return the return, its standard error, errors and drifts [m/s, m/s, rad/s], and falls.

    Reward and end are (actions, episodes); errors and velocities less commands (..., 3).
    """
    reward, over, errors, apart = (np.asarray(x, float) for x in story)
    alive = np.cumsum(over, 0) - over == 0  # up to and including the last action
    scores, count = (reward * alive).sum(0), alive.sum(0)[:, None]
    error = (errors * alive[..., None]).sum(0) / count
    drift = np.abs((apart * alive[..., None]).sum(0) / count)
    return {
        "return": round(scores.mean(), 2),
        "standard error": round(scores.std() / len(scores) ** 0.5, 2),
        "error": error.mean(0).round(3).tolist(),
        "drift": drift.mean(0).round(3).tolist(),
        "fell": int(over.any(0).sum()),
    }


if __name__ == "__main__":
    main()
