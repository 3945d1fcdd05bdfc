"""Time to the first result of commands and programs, each in a fresh process.

    python benchmarks/first_result.py [--only NAME ...]
    python benchmarks/first_result.py --json benchmarks/results/first_result.json
    python benchmarks/first_result.py --against FOLDER    # another checkout of jaxsim, in turn

Each row runs twice: with an empty cache of programs, and with what the first run left in it.
Printed are seconds by the clock and of all processors (children included), which other work
disturbs less. MJX's rows compile the same function of the same model; they need `mujoco-mjx`.
"""

import argparse
import json
import os
import resource
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


def batch(model: str, imports: str) -> list[str]:
    """Return the command that compiles and runs a step of 64 worlds."""
    text = imports.format(model=f"configs/{model}.xml", make="jaxsim.make_data(m)")
    return [sys.executable, "-c", BATCH.format(imports=text)]


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
    "step humanoid": batch("humanoid", OURS),
    "step humanoid, MJX": batch("humanoid", THEIRS),
    "step pile": batch("pile", OURS),
    "step pile, MJX": batch("pile", THEIRS),
    "gradient humanoid": [sys.executable, "-c", GRADIENT],
}


def main() -> None:
    """Measure the rows in turn and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", default=list(ROWS), choices=list(ROWS), metavar="NAME")
    parser.add_argument("--against", type=Path, help="another checkout to measure in turn")
    parser.add_argument("--json", type=Path, help="file for the results")
    args = parser.parse_args()
    trees = {"here": ROOT} | ({"there": args.against.resolve()} if args.against else {})
    rows: list[dict[str, Any]] = []
    for name in args.only:
        for where, tree in trees.items():
            row = {"name": name, "tree": where, **measure(ROWS[name], tree)}
            rows.append(row)
            print(
                f"{name:22} {where:6} first {row['first_s']:6.1f} s ({row['first_cpu_s']:.1f} s of "
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
        command = [
            part.format(out=f"{folder}/out") if part == "{out}" else part for part in command
        ]
        for run in ("first", "second"):
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            found[f"{run}_s"] = time.perf_counter() - start
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            found[f"{run}_cpu_s"] = used
    return found


if __name__ == "__main__":
    main()
