"""Environment steps per second compared with the bare engine, with equally many physics steps.

    python benchmarks/envs.py [--worlds 256] [--actions 200] [--repeat 2] [--json FILE]

The task is a walker with a reward for speed, an observation of the state and a velocity, random
actions, and episodes of 100 actions with automatic resets. `bare` is a scan of steps under random
controls. Programs are compiled before; each is run `RUNS` times, alternating, and the fastest run
counts.
"""

import argparse
import json
import time
from pathlib import Path

import jax
import jax.numpy as jnp

import jaxsim
from jaxsim.envs import Env, VectorEnv, randomize

MODEL = Path(__file__).resolve().parent.parent / "configs" / "walker.xml"
RUNS = 3


class Walk(Env):
    """Walker with a reward for speed, terminated when the torso is low."""

    def start(self, m, d, key):
        return d.replace(qpos=d.qpos + 0.02 * jax.random.normal(key, d.qpos.shape, d.qpos.dtype))

    def observe(self, m, d):
        return jnp.concatenate([d.qpos[1:], d.qvel, jaxsim.sensor_data(m, d, "velocity")])

    def reward(self, m, before, after, action):
        return after.qvel[1]

    def terminal(self, m, d):
        return d.qpos[0] < -0.6


def main() -> None:
    args = _arguments()
    m = jaxsim.load_model(MODEL)
    env = Walk(m, repeat=args.repeat)
    keys = jax.random.split(jax.random.key(0), args.worlds)

    def light(m, key):
        return {"body_mass": m.body_mass * jax.random.uniform(key, m.body_mass.shape, minval=0.9)}

    models, axes = randomize(m, keys, light)
    forms = {
        "next": VectorEnv(env, length=100),
        "same": VectorEnv(env, length=100, autoreset="same"),
        "randomized": VectorEnv(env, length=100, model=models, axes=axes),
    }
    programs = {"bare": _bare(m, args), **{n: _steps(w, args) for n, w in forms.items()}}
    starts = {"bare": _start(m, keys), **{n: jax.jit(w.reset)(keys) for n, w in forms.items()}}
    result: dict = {"worlds": args.worlds, "repeat": args.repeat, "jax": jax.__version__}
    for name, program in programs.items():
        begin = time.perf_counter()
        programs[name] = program.lower(starts[name], jax.random.key(1)).compile()
        result[name] = {"compile_s": time.perf_counter() - begin, "best_s": float("inf")}
    for _ in range(RUNS):
        for name, program in programs.items():
            begin = time.perf_counter()
            jax.block_until_ready(program(starts[name], jax.random.key(1)))
            took = time.perf_counter() - begin
            result[name]["best_s"] = min(result[name]["best_s"], took)
    for name in programs:
        rate = args.worlds * args.actions * args.repeat / result[name]["best_s"]
        result[name]["physics_steps_per_s"] = rate
        share = rate / result["bare"]["physics_steps_per_s"]
        result[name]["of_bare"] = share
        print(f"{name:11} {rate:10,.0f} physics steps/s, {share:.2f} of the bare engine")
    if args.json:
        Path(args.json).write_text(json.dumps(result, indent=1) + "\n")


def _steps(worlds, args):
    def run(state, key):
        def act(carry, _):
            state, key = carry
            key, own = jax.random.split(key)
            shape = (args.worlds, worlds.env.action_size)
            action = jax.random.uniform(own, shape, minval=-1.0)
            state = worlds.step(state, action)
            return (state, key), (state.reward.mean(), state.done.sum())

        return jax.lax.scan(act, (state, key), length=args.actions)

    return jax.jit(run)


def _bare(m, args):
    def run(d, key):
        def act(carry, _):
            d, key = carry
            key, own = jax.random.split(key)
            d = d.replace(ctrl=jax.random.uniform(own, d.ctrl.shape, minval=-1.0))
            step = jax.vmap(lambda d: jaxsim.step(m, d))
            d = jax.lax.fori_loop(0, args.repeat, lambda _, d: step(d), d)
            return (d, key), d.qvel.mean()

        return jax.lax.scan(act, (d, key), length=args.actions)

    return jax.jit(run)


def _start(m, keys):
    env = Walk(m)
    return jax.jit(jax.vmap(lambda k: env.start(m, env.begin, k)))(keys)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=256)
    parser.add_argument("--actions", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
