"""Speed and results of reinforcement learning, compared with other engines.

    python benchmarks/learn.py score RUN [--episodes 8]
    python benchmarks/learn.py race [--seconds 240] [--json FILE]

`score` evaluates a policy of `jaxsim train` in the original environment of Gymnasium or of the
Control Suite, which runs in MuJoCo C. The initial states are drawn by the original.

`race` runs the same PPO of rejax, with the same settings, for the same time on two engines: jaxsim
and MuJoCo XLA (MJX). Compilation is included, and is reported separately.
"""

import argparse
import importlib.util
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import rejax
from gymnax.environments import spaces
from mujoco import mjx

from jaxsim.envs import VectorEnv
from jaxsim.envs.rejax import RejaxEnv, RejaxParameters
from jaxsim.envs.tasks import make
from jaxsim.learn.run import old_run

REPEAT = 5
PPO = {
    "learning_rate": 7e-4,
    "num_steps": 32,
    "num_minibatches": 8,
    "num_epochs": 4,
    "ent_coef": 0.0,
    "max_grad_norm": 0.5,
    "normalize_observations": True,
    "normalize_rewards": True,
    "agent_kwargs": {"hidden_layer_sizes": (128, 128)},
}


def main() -> None:
    args = _arguments()
    found = score(args) if args.what == "score" else race(args)
    print(json.dumps(found, indent=2))
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=2) + "\n")


# --- a policy in the original environment ---


def score(args: argparse.Namespace) -> dict[str, Any]:
    run = old_run(args.run)
    step, states = run.restore()
    act = jax.jit(run.learner.act)
    play = _in_gymnasium if run.training.task.endswith("-v5") else _in_the_suite
    ours = jax.jit(run.evaluate)(states, run.test_keys(args.episodes)).score
    seeds = []
    for seed in range(run.training.seeds):
        state = jax.tree.map(lambda x, seed=seed: x[seed], states)
        theirs = play(run.training.task, lambda obs, s=state: act(s, obs), args.episodes)
        seeds.append({"here": _summary(ours[seed]), "original": _summary(theirs)})
    return {"task": run.training.task, "step": step, "episodes": args.episodes, "seeds": seeds}


def _in_gymnasium(task: str, act: Callable, episodes: int) -> np.ndarray:
    import gymnasium

    env = gymnasium.make(task)
    scores = np.zeros(episodes)
    for i in range(episodes):
        obs, _ = env.reset(seed=i)
        over = False
        while not over:
            action = np.asarray(act(jnp.asarray(obs, jnp.float32)[None]))[0]
            obs, reward, terminated, truncated, _ = env.step(action)
            scores[i] += reward
            over = terminated or truncated
    return scores


def _in_the_suite(task: str, act: Callable, episodes: int) -> np.ndarray:
    os.environ.setdefault("MUJOCO_GL", "disable")
    from dm_control.mujoco.wrapper.mjbindings import sizes

    # it uses fields that MuJoCo 4.0 has removed
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    for name, holder in (("mjmodel", model), ("mjdata", mujoco.MjData(model))):
        for field in [f for f in sizes.array_sizes[name] if not hasattr(holder, f)]:
            sizes.array_sizes[name].pop(field)
    from dm_control import suite

    domain, _, name = task.partition("_")
    scores = np.zeros(episodes)
    for i in range(episodes):
        env = suite.load(domain, name, task_kwargs={"random": i})
        told = env.reset()
        while not told.last():
            obs = np.concatenate([np.ravel(x) for x in told.observation.values()])
            told = env.step(np.asarray(act(jnp.asarray(obs, jnp.float32)[None]))[0])
            scores[i] += told.reward or 0.0
    return scores


def _summary(scores: Any) -> dict[str, float]:
    scores = np.asarray(scores, float)
    return {"mean": round(scores.mean(), 2), "error": round(scores.std() / len(scores) ** 0.5, 2)}


# --- the same learner on two engines ---


class Played(NamedTuple):
    """A world of MJX and the results of its episodes."""

    data: Any
    key: jax.Array
    steps: jax.Array
    score: jax.Array
    last_score: jax.Array
    last_steps: jax.Array


class MjxCheetah:
    """HalfCheetah-v5 on MJX, with the interface of `RejaxEnv`."""

    def __init__(self, length: int):
        home = importlib.util.find_spec("gymnasium").submodule_search_locations[0]
        m = mujoco.MjModel.from_xml_path(f"{home}/envs/mujoco/assets/half_cheetah.xml")
        self.m, self.begin = mjx.put_model(m), mjx.make_data(m)
        self.length, self.limits = length, jnp.asarray(m.actuator_ctrlrange, jnp.float32)
        self.default_params = RejaxParameters(length)

    def observation_space(self, params: Any) -> Any:
        return spaces.Box(-jnp.inf, jnp.inf, (17,))

    def action_space(self, params: Any) -> Any:
        return spaces.Box(self.limits[:, 0], self.limits[:, 1], (6,))

    def reset(self, key: jax.Array, params: Any) -> tuple[jax.Array, Played]:
        key, position, velocity = jax.random.split(key, 3)
        qpos = self.begin.qpos + jax.random.uniform(position, (9,), minval=-0.1, maxval=0.1)
        d = self.begin.replace(qpos=qpos, qvel=0.1 * jax.random.normal(velocity, (9,)))
        zero, steps = jnp.zeros(()), jnp.zeros((), jnp.int32)
        return _seen(d), Played(d, key, steps, zero, zero, steps)

    def step(self, key: jax.Array, state: Played, action: jax.Array, params: Any) -> tuple:
        d = state.data.replace(ctrl=action)
        after = jax.lax.fori_loop(0, REPEAT, lambda _, d: mjx.step(self.m, d), d)
        speed = (after.qpos[0] - d.qpos[0]) / (REPEAT * self.m.opt.timestep)
        reward = speed - 0.1 * jnp.sum(action**2)
        steps, score = state.steps + 1, state.score + reward
        told = Played(after, state.key, steps, score, state.last_score, state.last_steps)
        _, fresh = self.reset(state.key, params)
        fresh = fresh._replace(last_score=score, last_steps=steps)
        new = jax.tree.map(lambda a, b: jnp.where(steps >= self.length, a, b), fresh, told)
        return _seen(new.data), new, reward, jnp.zeros((), bool), {}


def _seen(d: Any) -> jax.Array:
    return jnp.concatenate([d.qpos[1:], d.qvel])


def race(args: argparse.Namespace) -> dict[str, Any]:
    engines = {
        "jaxsim": lambda: RejaxEnv(VectorEnv(make("HalfCheetah-v5"), length=args.length)),
        "mjx": lambda: MjxCheetah(args.length),
    }
    found = {name: _learned(engines[name](), args) for name in engines}
    ours, theirs = (found[name]["actions_per_second"] for name in ("jaxsim", "mjx"))
    return {
        "task": "HalfCheetah-v5",
        "worlds": args.worlds,
        "length": args.length,
        "seconds": args.seconds,
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "engines": found,
        "ratio_of_actions_per_second": round(ours / theirs, 2),
    }


def _learned(env: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Run a PPO for some seconds, compilation included; return the scores of its episodes."""
    algorithm = rejax.PPO.create(env=env, num_envs=args.worlds, **PPO)
    began = time.perf_counter()
    state = jax.block_until_ready(jax.jit(algorithm.init_state)(jax.random.key(0)))
    statistics = jax.tree.map(lambda x: x.astype(jnp.float32), state.rew_rms_state)
    state = state.replace(rew_rms_state=statistics)
    learn = jax.jit(algorithm.train_iteration, donate_argnums=0).lower(state).compile()
    compiled = time.perf_counter() - began
    curve = []
    while (now := time.perf_counter() - began) < args.seconds:
        state = jax.block_until_ready(learn(state))
        episodes = state.env_state
        whole = np.asarray(episodes.last_steps) > 0
        if whole.any():
            mean = float(np.asarray(episodes.last_score)[whole].mean())
            curve.append((round(now, 1), int(state.global_step), round(mean, 1)))
    actions = int(state.global_step)
    thinned = curve[:: max(1, len(curve) // 20)]
    return {
        "compile_seconds": round(compiled, 1),
        "actions": actions,
        "actions_per_second": round(actions / (time.perf_counter() - began - compiled), 1),
        "best_training_return": max((score for _, _, score in curve), default=None),
        "curve_seconds_actions_return": thinned,
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    one = what.add_parser("score")
    one.add_argument("run")
    one.add_argument("--episodes", type=int, default=8)
    two = what.add_parser("race")
    two.add_argument("--seconds", type=float, default=240)
    two.add_argument("--worlds", type=int, default=128)
    two.add_argument("--length", type=int, default=200, help="actions of an episode")
    for parser_ in (one, two):
        parser_.add_argument("--json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
