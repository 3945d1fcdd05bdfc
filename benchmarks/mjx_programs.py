"""Environments of MuJoCo Playground, written for MJX, on MJX and on jaxsim in its place.

    python benchmarks/mjx_programs.py [NAME ...] [--worlds 64] [--seconds 3] [--json FILE]

Nothing of an environment is changed but what `mujoco.mjx` is when it is imported: MJX, or
`jaxsim.mjx`. Each runs in a process of its own. Told are the seconds to load it, to the first reset
and to the first step (tracing and compiling), the steps of the environment a second, and how far
what is seen and earned is apart after some actions from the same keys. Robots need
`mujoco_menagerie`; without it name tasks of the Control Suite.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import types
import warnings
from pathlib import Path

import jax
import numpy as np

SUITE = (
    "AcrobotSwingup BallInCup CartpoleSwingup CheetahRun FingerSpin FishSwim HopperHop HumanoidRun "
    "PendulumSwingup PointMass ReacherEasy SwimmerSwimmer6 WalkerWalk"
).split()
ENGINES = ("mjx", "jaxsim")
ACTIONS = 5  # after which two engines are compared; later, contacts amplify the rounding


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=SUITE)
    parser.add_argument("--worlds", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--engine", choices=ENGINES, help="in this process, for one name")
    parser.add_argument("--seen", type=Path, help="where what is seen is written")
    args = parser.parse_args()
    if args.engine:
        print(json.dumps(run(args)))
        return
    found = {name: both(name, args) for name in args.names}
    if args.json:
        args.json.write_text(json.dumps({"worlds": args.worlds, "tasks": found}, indent=1) + "\n")


def both(name: str, args: argparse.Namespace) -> dict:
    """A task on both engines, one after the other."""
    result, seen = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for engine in ENGINES:
            file = Path(folder) / f"{engine}.npz"
            options = ("--worlds", str(args.worlds), "--seconds", str(args.seconds))
            command = [sys.executable, __file__, name, "--engine", engine, "--seen", str(file)]
            done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
            if done.returncode:
                result[engine] = {"error": done.stderr.strip().splitlines()[-1]}
                continue
            result[engine] = json.loads(done.stdout.splitlines()[-1])
            seen[engine] = dict(np.load(file))
    if len(seen) == len(ENGINES):
        a, b = (seen[engine] for engine in ENGINES)
        result["apart"] = {key: float(np.abs(a[key] - b[key]).max()) for key in a}
        result["ratio"] = result["jaxsim"]["rate"] / result["mjx"]["rate"]
    print(name, json.dumps(result), flush=True)
    return result


def run(args: argparse.Namespace) -> dict:
    """A task on one engine."""
    warnings.simplefilter("ignore")
    if args.engine == "jaxsim":
        _put_in_place()
    from mujoco_playground import registry

    times, last = {}, time.perf_counter()

    def lap(what: str) -> None:
        nonlocal last
        now = time.perf_counter()
        times[what], last = round(now - last, 2), now

    (name,) = args.names
    env = registry.load(name, config_overrides={"impl": "jax"})
    lap("load")
    reset, step = jax.jit(jax.vmap(env.reset)), jax.jit(jax.vmap(env.step))
    begun = jax.block_until_ready(reset(jax.random.split(jax.random.PRNGKey(0), args.worlds)))
    lap("reset")
    moves = np.random.default_rng(0).uniform(-1, 1, (ACTIONS, args.worlds, env.action_size))
    state = jax.block_until_ready(step(begun, moves[0]))
    lap("step")
    for move in moves[1:]:  # a second compilation, if a task's own values are weakly typed
        state = step(state, move)
    np.savez(args.seen, start=_seen(begun), obs=_seen(state), reward=np.asarray(state.reward))
    lap("actions")
    count = 0
    while time.perf_counter() - last < args.seconds:
        state = jax.block_until_ready(step(state, moves[0]))
        count += args.worlds
    return times | {"rate": count / (time.perf_counter() - last)}


def _seen(state) -> np.ndarray:
    return np.asarray(state.obs["state"] if isinstance(state.obs, dict) else state.obs)


def _put_in_place() -> None:
    """Makes `mujoco.mjx` jaxsim's, after Brax has been imported, whose wrappers use no physics."""
    import brax.envs  # noqa: F401
    import mujoco

    from jaxsim import mjx

    inner = types.ModuleType("mujoco.mjx._src")
    inner.math, inner.types = mjx.math, mjx
    mjx._src, mujoco.mjx = inner, mjx
    sys.modules |= {"mujoco.mjx": mjx, "mujoco.mjx._src": inner, "mujoco.mjx._src.math": mjx.math}


if __name__ == "__main__":
    main()
