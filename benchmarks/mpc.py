"""Control loops of `configs/mpc`: rate and cost, next to MuJoCo C with as many threads.

    python benchmarks/mpc.py [--files cartpole ...] [--threads 2] [--seconds 4]
        [--json benchmarks/results/mpc.json]

Each loop runs in simulated time, so that the cost does not depend on the machine: by jaxsim with
the method of its file and with predictive sampling (float32, one device per thread, optimized
programs), and by MuJoCo C (double precision) with predictive sampling and MPPI written with
`mujoco.rollout` and NumPy (benchmarks/mujoco_mpc.py). Samples, knots, horizon and plant are the
same. The time of a plan is reported by the wall clock, its median and its least value, and by the
processor: on a busy machine only the last is comparable, and it includes the spinning of threads
that wait. Results are added to the JSON file loop by loop.
"""

import argparse
import json
import time
from pathlib import Path

import jax
import mujoco
import mujoco_mpc
import numpy as np
from throughput import in_process, machine

from jaxsim.control.closed_loop.program import LoopProgram
from jaxsim.control.closed_loop.read import read_closed_loop
from jaxsim.control.closed_loop.run import run_simulated
from jaxsim.control.closed_loop.run_log import summarize

FOLDER = Path("configs/mpc")
FILES = ("cartpole",)
SAMPLING = "predictive_sampling"


def ours(file: str, changes: tuple[str, ...]) -> dict:
    """Run a loop by jaxsim."""
    loop = read_closed_loop(file, changes)
    program = LoopProgram(loop, "optimized")
    used = _timed_plans(program)
    run = run_simulated(program)
    summary = summarize(loop, run)
    row = {"method": loop.form.method, "compile_s": program.compile_seconds}
    return row | _figures(run.plan_seconds, used, run.costs.sum(axis=1)) | summary["plans"]


def _timed_plans(program: LoopProgram) -> np.ndarray:
    """Return the processor time of each of some plans from the start [s]."""
    problem, _ = program.problems()
    running, d = program.start()
    state, used = program.state_of(d), []
    for _ in range(20):
        begun = time.process_time()
        running = program.plan(problem, state, running)
        used.append(time.process_time() - begun)
    return np.array(used)


def theirs(file: str, changes: tuple[str, ...], threads: int) -> list[dict]:
    """Run a loop by MuJoCo C, with both methods."""
    loop = read_closed_loop(file, changes)
    updates = {
        SAMPLING: mujoco_mpc.best_knots,
        "mppi": mujoco_mpc.mean_knots(loop.form.mppi.temperature),
    }
    rows = []
    for method, update in updates.items():
        run = mujoco_mpc.Controlled(loop, threads).run(update)
        figures = _figures(run.plan_seconds, run.plan_cpu_seconds, run.costs)
        rows.append({"method": method} | figures)
    return rows


def _figures(seconds: np.ndarray, used: np.ndarray, costs: np.ndarray) -> dict:
    end = costs[-max(1, len(costs) // 5) :]
    return {
        "plan_ms_median": 1e3 * float(np.median(seconds)),
        "plan_ms_least": 1e3 * float(np.min(seconds)),
        "plan_cpu_ms_median": 1e3 * float(np.median(used)),
        "cost": float(np.mean(costs)),
        "cost_end": float(np.mean(end)),
    }


def loop_rows(name: str, args: argparse.Namespace) -> dict:
    """Return the results of a file, by engine and method."""
    file = str(FOLDER / f"{name}.toml")
    changes = (f"seconds={args.seconds}",) if args.seconds else ()
    method = read_closed_loop(file).form.method
    rows = {}
    for each in dict.fromkeys((method, SAMPLING)):
        row = in_process(args.threads, args.limit, ours, file, (*changes, f"method={each}"))
        rows[f"jaxsim {each}"] = row
    found = in_process(1, args.limit, theirs, file, changes, args.threads)
    for row in found if isinstance(found, list) else [found]:  # a failure is one row
        rows[f"MuJoCo C {row.get('method', 'failed')}"] = row
    for engine, row in rows.items():
        print(f"| {name} | {engine} | {_cells(row)} |", flush=True)
    return rows


def _cells(row: dict) -> str:
    if "plan_ms_median" not in row:
        return str(row)
    times = ("plan_ms_median", "plan_ms_least", "plan_cpu_ms_median")
    return " | ".join(
        [f"{row[k]:.3g}" for k in times] + [f"{row['cost']:.4g}", f"{row['cost_end']:.4g}"]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", nargs="*", default=FILES)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, help="length of each run; default: the file's")
    parser.add_argument("--limit", type=float, default=1800, help="seconds for one method")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    result: dict = {"loops": {}}
    if args.json is not None and args.json.exists():
        result = json.loads(args.json.read_text())
    result["machine"] = machine() | {"mujoco": mujoco.__version__, "jax": jax.__version__}
    print("| loop | engine | ms (median) | ms (least) | processor ms | cost/step | at the end |")
    print("|---|---|---|---|---|---|---|")
    for name in args.files:
        result["loops"][name] = loop_rows(name, args)
        if args.json is not None:
            args.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
