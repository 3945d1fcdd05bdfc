"""Learning curves of first-order learners and of PPO: returns over time, compilation included.

    python benchmarks/first_order.py [CASE ...] [--json FILE] [--pictures FOLDER] [--runs FOLDER]
    python benchmarks/first_order.py --list

Each case is a run of `jaxsim train` in a process of its own, with all of its seeds in one program
on one core. A process is stopped at the limit of its processor time. Seconds count from its start:
import, tracing, compilation, learning and evaluations. `cpu_seconds` is the processor time of the
process, which other work on the machine lengthens little; `compile_seconds` is wall time until the
first actions. Cases of one task have the same widths of the policy; an algorithm has its own number
of worlds and actions per update.

Results are added to the file case by case. A case that is there with the same settings is not
repeated; without names, all cases run. The picture of a task is drawn from the file.
"""

import argparse
import csv
import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.figure
import numpy as np

from jaxsim.atomic_write import write_whole
from jaxsim.io.config import read_config
from jaxsim.learn.config import Training

ROOT = Path(__file__).parents[1]
CONFIGS = ROOT / "configs" / "learn"
COLORS = {"ppo": "tab:gray", "shac": "tab:blue", "apg": "tab:green"}
DASHES = ("-", "--", ":", "-.")  # of the cases of one task and algorithm, in order
POLL_SECONDS = 0.5
TICKS = os.sysconf("SC_CLK_TCK")


class Case(NamedTuple):
    """A training.

    Attributes:
      config: name of the settings in configs/learn.
      limit: limit of its processor time [s].
      changes: settings that override those of the file.
      label: text of the legend; "": name of the algorithm.
    """

    config: str
    limit: float
    changes: tuple[str, ...] = ()
    label: str = ""


PLAIN = ('task="quadruped_velocity_plain"',)
PLAIN_SHAC = (
    'algorithm="shac"',
    "steps=250_000",
    "every=25_600",
    "episodes=8",
    "worlds.count=32",
    "shac.learning_rate=3e-3",
    "shac.gamma=0.97",
    "shac.num_epochs=8",
    "shac.hidden=[128,128]",
    "shac.initial_std=0.2",
    "shac.max_world_grad_norm=10",
)
CASES = {
    "half_cheetah_shac": Case("half_cheetah_shac", 600),
    "half_cheetah_ppo": Case("half_cheetah", 600, ("every=75_000", "episodes=8")),
    "half_cheetah_shac_unbounded": Case(
        "half_cheetah_shac", 600, ("shac.max_world_grad_norm=1e30",), "SHAC, no bound for worlds"
    ),
    "quadruped_plain_shac": Case("quadruped", 1200, (*PLAIN, *PLAIN_SHAC)),
    "quadruped_plain_ppo": Case("quadruped", 1200, (*PLAIN, "every=50_000", "episodes=8")),
    "hopper_shac": Case("hopper_shac", 700, ("shac.hidden=[128,128]",)),
    "hopper_ppo": Case("hopper", 700, ("steps=1_000_000", "every=50_000", "episodes=8")),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--json", type=Path, default=ROOT / "benchmarks/results/first_order.json")
    parser.add_argument("--pictures", type=Path, default=ROOT / "docs/pictures")
    parser.add_argument("--runs", type=Path, default=Path("runs/first_order"))
    parser.add_argument("--core", type=int, help="the core of all processes; default: the last")
    parser.add_argument("--list", action="store_true", help="list the cases and end")
    args = parser.parse_args()
    if unknown := set(args.cases) - set(CASES):
        parser.error(f"no case {min(unknown)!r}; there are: {', '.join(CASES)}")
    if args.list:
        print("\n".join(f"{name:32} {' '.join(map(str, case))}" for name, case in CASES.items()))
        return
    core = max(os.sched_getaffinity(0)) if args.core is None else args.core
    os.sched_setaffinity(0, {core})  # inherited by the trainings
    for name in args.cases or CASES:
        found = _read(args.json)
        settings = _settings(CASES[name])
        if found["cases"].get(name, {}).get("settings") == settings:
            print(f"{name}: in {args.json} already", flush=True)
            continue
        found["cases"][name] = run_case(name, CASES[name], args.runs)
        args.json.parent.mkdir(parents=True, exist_ok=True)
        write_whole(args.json, json.dumps(found, indent=1) + "\n")
    draw(_read(args.json)["cases"], args.pictures)


def run_case(name: str, case: Case, folder: Path) -> dict[str, Any]:
    """Return the curve of a training in a process of its own.

    Raises:
      RuntimeError: the process failed, or the folder of the run exists.
    """
    run = folder / name
    if run.exists():
        raise RuntimeError(f"{run}: there is a run already; move it away")
    run.parent.mkdir(parents=True, exist_ok=True)
    changes = [word for change in case.changes for word in ("--set", change)]
    config = str(CONFIGS / f"{case.config}.toml")
    options = ["--out", str(run), "--tier", "optimized", "--no-cache"]
    command = [sys.executable, "-m", "jaxsim", "train", config, *options, *changes]
    log = run.with_suffix(".log")
    began = time.monotonic()
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT)
        points, stopped = _follow(process, run / "curve.csv", case.limit, began)
    if process.returncode and not stopped:
        raise RuntimeError(f"{name} failed:\n{log.read_text()[-2000:]}")
    training = _training(case)
    compiled = re.search(r"^compiled +in ([\d.]+) s", log.read_text(), re.MULTILINE)
    result = {
        "task": training.task,
        "algorithm": training.algorithm,
        "label": case.label or training.algorithm.upper(),
        "machine": f"one core, {platform.machine()}",
        "settings": _settings(case),
        "limit_seconds": case.limit,
        "stopped_at_limit": stopped,
        "compile_seconds": float(compiled[1]) if compiled else None,
        "points": points,
    }
    last = points[-1]["returns"] if points else None
    print(f"{name}: {len(points)} points, returns {last}", flush=True)
    return result


def _follow(
    process: subprocess.Popen, curve: Path, limit: float, began: float
) -> tuple[list[dict[str, Any]], bool]:
    """Return the points of a curve as they appear, and whether the limit ended the process."""
    points: list[dict[str, Any]] = []
    stopped = False
    while True:
        over = process.poll() is not None
        cpu = None if over else _cpu_seconds(process.pid)
        now = time.monotonic()
        rows = list(csv.DictReader(curve.open())) if curve.exists() else []
        for step in sorted({int(row["step"]) for row in rows})[len(points) :]:
            returns = [float(row["score"]) for row in rows if int(row["step"]) == step]
            point = {"actions": step, "seconds": round(now - began, 1)}
            if cpu is None:  # the process ended within the last POLL_SECONDS
                cpu = points[-1]["cpu_seconds"] if points else float("nan")
            point["cpu_seconds"] = round(cpu, 1)
            points.append(point | {"returns": [round(x, 2) for x in returns]})
        if over:
            return points, stopped
        if cpu is not None and cpu > limit and not stopped:
            stopped = True
            process.send_signal(signal.SIGINT)
        time.sleep(POLL_SECONDS)


def _cpu_seconds(pid: int) -> float | None:
    """Return the processor time of a process so far, of all of its threads; None if it ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    user, system = text.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / TICKS


def _training(case: Case) -> Training:
    return read_config(CONFIGS / f"{case.config}.toml", Training, case.changes)[0]


def _settings(case: Case) -> dict[str, Any]:
    """Return the settings that determine a run, as JSON stores them."""
    training = _training(case)
    form = getattr(training, training.algorithm)
    names = ("task", "algorithm", "steps", "every", "seeds", "episodes")
    general = {name: getattr(training, name) for name in names}
    rest = {"worlds": vars(training.worlds), training.algorithm: vars(form)}
    settings: dict[str, Any] = json.loads(json.dumps(general | rest))
    return settings


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {"cases": {}}


def draw(cases: dict[str, dict[str, Any]], folder: Path) -> None:
    """Draw a picture for each task: returns over processor time, a thin line for each seed."""
    for task in dict.fromkeys(case["task"] for case in cases.values()):
        figure = matplotlib.figure.Figure(figsize=(7, 4), layout="constrained")
        axes = figure.add_subplot()
        seen: dict[str, int] = {}
        for case in cases.values():
            if case["task"] == task and case["points"]:
                index = seen.setdefault(case["algorithm"], 0)
                _draw_case(axes, case, DASHES[index % len(DASHES)])
                seen[case["algorithm"]] += 1
        axes.set(xlabel="processor time, compilation included [min]", ylabel="return", title=task)
        axes.set_xlim(left=0)
        axes.grid(alpha=0.3)
        axes.legend(loc="upper left")
        name = re.sub(r"\W+", "_", task.removesuffix("-v5")).lower()
        figure.savefig(folder / f"first_order_{name}.png", dpi=120)


def _draw_case(axes: Any, case: dict[str, Any], dashes: str) -> None:
    minutes = [point["cpu_seconds"] / 60 for point in case["points"]]
    returns = np.array([point["returns"] for point in case["points"]])
    color = COLORS[case["algorithm"]]
    axes.plot(minutes, returns, color=color, linewidth=0.8, alpha=0.5, linestyle=dashes)
    label = f"{case['label']}, mean of {returns.shape[1]} seeds"
    axes.plot(minutes, returns.mean(axis=1), color, linewidth=2.2, label=label, linestyle=dashes)


if __name__ == "__main__":
    main()
