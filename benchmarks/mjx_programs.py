"""Environments of MuJoCo Playground, written for MJX, on MJX and on jaxsim.

    python benchmarks/mjx_programs.py [NAME ...] [--worlds 64] [--seconds 3] [--menagerie FOLDER]
                                      [--json FILE] [--states FOLDER] [--limit 900] [--table]

The environments are unmodified: on jaxsim each runs as with `python -m jaxsim.mjx`, which replaces
`mujoco.mjx` by `jaxsim.mjx`. Each runs in a process of its own, which ends after `--limit` seconds
of processor time. Reported are the seconds to load it, to the first reset and to the first step
(tracing and compiling), the actions per second, and the difference of observations and rewards
after some actions from the same keys. Seconds are those of all processors together, which other
programs on the machine change less than those of a clock. MuJoCo in C is compared too: from the
state before each of 20 actions it runs the steps of that action with the same controls, and the
largest difference of qpos is reported.

A later command with the same FILE and FOLDER resumes: it skips what FILE has with a comparison with
C, and runs again what failed. FOLDER keeps the observations, so that two engines can be compared
that ran in different commands (`--engines`).

No NAME: the tasks of the Control Suite; "all": all environments of Playground. Robots need the
models of `mujoco_menagerie`, in FOLDER or in Playground's own folder. `--table` prints the rows of
docs/differences.md from FILE.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import jax
import numpy as np

SUITE = (
    "AcrobotSwingup BallInCup CartpoleSwingup CheetahRun FingerSpin FishSwim HopperHop HumanoidRun "
    "PendulumSwingup PointMass ReacherEasy SwimmerSwimmer6 WalkerWalk"
).split()
ENGINES = ("mjx", "jaxsim")
ACTIONS = 5  # actions before two engines are compared; later, contacts amplify the rounding
ACTIONS_IN_C = 20  # actions that MuJoCo runs, each from the same state


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=SUITE)
    parser.add_argument("--worlds", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--engine", choices=ENGINES, help="in this process, for one name")
    parser.add_argument("--seen", type=Path, help="file for the observations, with --engine")
    parser.add_argument("--states", type=Path, help="folder that keeps the observations")
    parser.add_argument("--limit", type=int, default=900, help="processor seconds of one process")
    parser.add_argument("--menagerie", type=Path, help="folder of MuJoCo Menagerie")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("--table", action="store_true", help="print what --json has as rows")
    args = parser.parse_args()
    if args.engine:
        print(json.dumps(run(args)))
        return
    if args.table:
        print(table(json.loads(args.json.read_text())["tasks"]))
        return
    names = every_name() if args.names == ["all"] else args.names
    found = json.loads(args.json.read_text())["tasks"] if args.json and args.json.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        args.states = args.states or Path(folder)
        args.states.mkdir(parents=True, exist_ok=True)
        for name in names:
            found[name] = both(name, found.get(name, {}), args)
            if args.json:
                whole = {"worlds": args.worlds, "tasks": dict(sorted(found.items()))}
                args.json.write_text(json.dumps(whole, indent=1) + "\n")


def every_name() -> list[str]:
    from mujoco_playground import registry

    return [*registry.ALL_ENVS]


def table(found: dict) -> str:
    """Return rows of Markdown: actions per second of both engines, and differences."""
    rows = []
    for name, task in found.items():
        rates = [task.get(engine, {}).get("rate") for engine in ("jaxsim", "mjx")]
        apart, c = task.get("apart", {}).get("obs"), task.get("jaxsim", {}).get("from C")
        cells = [*(f"{r:,.0f}" if r else "-" for r in rates)]
        cells += [f"{x:.0e}".replace("e-0", "e-") if x is not None else "-" for x in (apart, c)]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def both(name: str, earlier: dict, args: argparse.Namespace) -> dict:
    """Run a task on the engines that have no result yet, one after the other."""
    files = {engine: args.states / f"{name}-{engine}.npz" for engine in ENGINES}
    missing = [e for e in args.engines if "from C" not in earlier.get(e, {})]
    if not missing:
        return earlier
    result = {engine: earlier[engine] for engine in ENGINES if engine in earlier}
    result |= {engine: run_apart(name, engine, files[engine], args) for engine in missing}
    if all("from C" in result.get(engine, {}) for engine in ENGINES):
        result["ratio"] = result["jaxsim"]["rate"] / result["mjx"]["rate"]
    if all(file.exists() for file in files.values()):
        a, b = (dict(np.load(files[engine])) for engine in ENGINES)
        result["apart"] = {key: float(np.abs(a[key] - b[key]).max()) for key in a}
    print(name, json.dumps(result), flush=True)
    return result


def run_apart(name: str, engine: str, file: Path, args: argparse.Namespace) -> dict:
    """Run a task on one engine in a process with a limit, and return its result or error."""
    command = [sys.executable, __file__, name, "--engine", engine, "--seen", str(file)]
    command += ["--worlds", str(args.worlds), "--seconds", str(args.seconds)]
    command += ["--limit", str(args.limit)]
    if args.menagerie:
        command += ["--menagerie", str(args.menagerie)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode < 0:
        return {"error": f"stopped by signal {-done.returncode}, limit {args.limit} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def run(args: argparse.Namespace) -> dict:
    """Run a task on one engine."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CPU, (args.limit, args.limit))
    if args.engine == "jaxsim":
        from jaxsim.mjx.replace_imports import replace_mjx_modules

        replace_mjx_modules()
    from mujoco_playground import registry
    from mujoco_playground._src import mjx_env

    if args.menagerie:
        mjx_env.MENAGERIE_PATH = type(mjx_env.MENAGERIE_PATH)(args.menagerie)
        mjx_env.ensure_menagerie_exists = lambda: None

    times, last = {}, time.process_time()

    def lap(what: str) -> None:
        nonlocal last
        now = time.process_time()
        times[what], last = round(now - last, 2), now

    (name,) = args.names
    chooses = "impl" in registry.get_default_config(name)
    env = registry.load(name, config_overrides={"impl": "jax"} if chooses else None)
    lap("load")
    reset, step = jax.jit(jax.vmap(env.reset)), jax.jit(jax.vmap(env.step))
    begun = jax.block_until_ready(reset(jax.random.split(jax.random.PRNGKey(0), args.worlds)))
    lap("reset")
    moves = np.random.default_rng(0).uniform(-1, 1, (ACTIONS, args.worlds, env.action_size))
    state = jax.block_until_ready(step(begun, moves[0]))
    lap("step")
    for move in moves[1:]:  # a second compilation, if the values of a task are weakly typed
        state = step(state, move)
    np.savez(args.seen, start=_seen(begun), obs=_seen(state), reward=np.asarray(state.reward))
    lap("actions")
    count = 0
    while time.process_time() - last < args.seconds:
        state = jax.block_until_ready(step(state, moves[0]))
        count += args.worlds
    rate = count / (time.process_time() - last)
    return times | {"rate": rate, "from C": from_c(env, begun, step, moves)}


def from_c(env, begun, step, moves) -> float:
    """Return the largest difference of qpos from MuJoCo C, of one world, over single actions."""
    import mujoco

    model, state, worst = env.mj_model, begun, 0.0
    for k in range(ACTIONS_IN_C):
        before, state = state, step(state, moves[k % ACTIONS])
        old, new = (jax.device_get(jax.tree.map(lambda a: a[0], s.data)) for s in (before, state))
        if np.asarray(state.done)[0]:
            break
        data = mujoco.MjData(model)
        for name in ("qpos", "qvel", "act", "qacc_warmstart", "time"):
            setattr(data, name, getattr(old, name))
        for name in ("ctrl", "xfrc_applied", "qfrc_applied", "mocap_pos", "mocap_quat"):
            setattr(data, name, getattr(new, name))
        mujoco.mj_step(model, data, env.n_substeps)
        worst = max(worst, float(np.abs(data.qpos - new.qpos).max()))
    return worst


def _seen(state) -> np.ndarray:
    return np.asarray(state.obs["state"] if isinstance(state.obs, dict) else state.obs)


if __name__ == "__main__":
    main()
