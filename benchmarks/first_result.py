"""Time to the first result of commands and programs, each in a fresh process.

    python benchmarks/first_result.py [--only NAME ...]
    python benchmarks/first_result.py --json benchmarks/results/first_result.json
    python benchmarks/first_result.py --against FOLDER    # another checkout of jaxsim, in turn
    python benchmarks/first_result.py --robots FILE.xml ...    # also a step of these models

Each row runs twice: with an empty cache of programs, and with what the first run left in it.
Printed are seconds by the clock and of all processors (children included), which other work
disturbs less. A training ends with the first line of its curve, after 8,000 actions. MJX's rows
compile the same function of the same model; they need `mujoco-mjx`. Its reverse mode allows one
iteration of the solver.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
COMMAND = [sys.executable, "-m", "jaxsim"]

BATCH = """
import jax, jax.numpy as jnp
{imports}
d = jax.tree.map(lambda x: jnp.broadcast_to(x, (64, *jnp.shape(x))), d)
jax.block_until_ready(jax.jit(jax.vmap(step, (None, 0)))(m, d))
"""
OURS = "import jaxsim; from jaxsim import step; m = jaxsim.load_model('{model}'); d = {make}"
THEIRS = (
    "import mujoco; from mujoco.mjx import step, put_model, make_data; "
    "m = put_model(mujoco.MjModel.from_xml_path('{model}')); d = make_data(m)"
)
GRADIENT = """
import jax, jax.numpy as jnp, jaxsim
m = jaxsim.load_model('configs/humanoid.xml')
d = jaxsim.make_data(m)
def height(v):
    end, _ = jaxsim.rollout(m, d.replace(qvel=v), steps=10)
    return end.qpos[2]
jax.block_until_ready(jax.jit(jax.grad(height))(d.qvel))
"""
GRADIENT_MJX = """
import jax, jax.numpy as jnp, mujoco
from mujoco import mjx
model = mujoco.MjModel.from_xml_path('configs/humanoid.xml')
model.opt.iterations, model.opt.ls_iterations = 1, 1
m = mjx.put_model(model)
d = mjx.make_data(m)
def height(v):
    end, _ = jax.lax.scan(lambda d, _: (mjx.step(m, d), None), d.replace(qvel=v), length=10)
    return end.qpos[2]
jax.block_until_ready(jax.jit(jax.grad(height))(d.qvel))
"""
POLL_SECONDS = 0.05


def batch(path: str | Path, imports: str) -> list[str]:
    """Return the command that compiles and runs a step of 64 worlds."""
    text = imports.format(model=path, make="jaxsim.make_data(m)")
    return [sys.executable, "-c", BATCH.format(imports=text)]


def train(config: str) -> list[str]:
    """Return the command of a training that has the first line of its curve early."""
    return [
        *COMMAND,
        *("train", f"configs/learn/{config}.toml", "--set", "every=8_000", "--out", "{out}"),
    ]


ROWS: dict[str, list[str]] = {
    "import": [sys.executable, "-c", "import jaxsim"],
    "import jax": [sys.executable, "-c", "import jax"],
    "identify arm": [*COMMAND, "identify", "configs/identify/arm.toml", "--out", "{out}"],
    "optimize cart-pole": [*COMMAND, "optimize", "configs/optimize/cartpole_swingup.toml"],
    "optimize hopper": [*COMMAND, "optimize", "configs/optimize/hopper_jump.toml"],
    "rollout humanoid": [
        *COMMAND,
        *("rollout", "configs/humanoid.xml", "--worlds", "64", "--steps", "20"),
    ],
    "train cart-pole": train("cartpole_swingup"),
    "train hopper": train("hopper"),
    "step humanoid": batch("configs/humanoid.xml", OURS),
    "step humanoid, MJX": batch("configs/humanoid.xml", THEIRS),
    "step pile": batch("configs/pile.xml", OURS),
    "step pile, MJX": batch("configs/pile.xml", THEIRS),
    "gradient humanoid": [sys.executable, "-c", GRADIENT],
    "gradient humanoid, MJX": [sys.executable, "-c", GRADIENT_MJX],
}


def main() -> None:
    """Measure the rows in turn and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", default=list(ROWS), choices=list(ROWS), metavar="NAME")
    parser.add_argument("--against", type=Path, help="another checkout to measure in turn")
    parser.add_argument("--robots", nargs="+", type=Path, default=[], help="models to step")
    parser.add_argument("--json", type=Path, help="file for the results")
    args = parser.parse_args()
    chosen = {name: ROWS[name] for name in args.only}
    chosen |= {f"step {'/'.join(x.parts[-2:])}": batch(x.resolve(), OURS) for x in args.robots}
    trees = {"here": ROOT} | ({"there": args.against.resolve()} if args.against else {})
    rows: list[dict[str, Any]] = []
    for name, command in chosen.items():
        for where, tree in trees.items():
            row = {"name": name, "tree": where, **measure(command, tree)}
            rows.append(row)
            print(
                f"{name:32} {where:6} first {row['first_s']:6.1f} s ({row['first_cpu_s']:.1f} s of "
                f"processors), second {row['second_s']:6.1f} s ({row['second_cpu_s']:.1f} s)",
                flush=True,
            )
    if args.json:
        args.json.write_text(json.dumps({"cpus": os.cpu_count(), "rows": rows}, indent=1) + "\n")


def measure(command: list[str], tree: Path) -> dict[str, float]:
    """Return the seconds of a first and of a second run of a command in a checkout."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "PYTHONPATH": str(tree),
            "XDG_CACHE_HOME": folder,
            "JAX_PLATFORMS": "cpu",
        }
        if "-c" in command:  # commands of jaxsim have a cache of their own
            environment |= {
                "JAX_COMPILATION_CACHE_DIR": folder,
                "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            }
        for run in ("first", "second"):
            out = Path(folder, run)
            words = [str(out) if word == "{out}" else word for word in command]
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            if "train" in command:
                run_until_first_row(words, tree, environment, out / "curve.csv")
            else:
                subprocess.run(words, cwd=tree, env=environment, check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            found[f"{run}_s"] = time.perf_counter() - start
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            found[f"{run}_cpu_s"] = used
    return found


def run_until_first_row(command: list[str], tree: Path, environment: dict, curve: Path) -> None:
    """Run a training until its curve has a row of results; then end it.

    Raises:
      RuntimeError: the training ended before.
    """
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=tree, env=environment, **quiet)
    while not (curve.exists() and len(curve.read_text().splitlines()) > 1):
        if process.poll() is not None:
            raise RuntimeError(f"{' '.join(command)}: exit status {process.returncode}")
        time.sleep(POLL_SECONDS)
    process.send_signal(signal.SIGKILL)
    process.wait()


if __name__ == "__main__":
    main()
