"""Speed of stepping many worlds on the accelerator of this machine, in several forms.

    python benchmarks/gpu.py [--models humanoid quadruped pile FILE.xml] [--worlds 1024 8192 65536]
        [--forms xla kernels mjx] [--minutes 9] [--json benchmarks/results/gpu.json]

Forms (gpu_programs.py):
  xla       with `for_platform(..., kernels=False)`: compiled by XLA alone
  kernels   the default: the solver in one kernel, and other matrix forms
  graphs    kernels, with loops and branches in CUDA graphs
  gradient, gradient_kernels
            reverse-mode gradients of ten steps, in the first two forms; steps/s counts these ten
  mjx       MuJoCo XLA in JAX, for comparison, if it is installed
  warp      MuJoCo Warp, for comparison, if it is installed

All programs are compiled first, several at a time; then each is run alone. Programs later in the
list than the minutes last are reported as not measured. With `--check` a step of some worlds is
compared with the same step on the CPU in float64. With `--profile` the time of kernels is reported
by stage. States are those of the model with noise, after 150 steps.
"""

import argparse
import concurrent.futures
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpu_profile
import gpu_programs
import jax
import numpy as np
from gpu_programs import Case

RUNS_BEFORE = 3  # runs of a program before it is timed


def main() -> None:
    args = arguments()
    end = time.monotonic() + 60 * args.minutes
    cases = [Case(*case.split(":")[:2], int(case.split(":")[2])) for case in args.cases]
    cases += [
        Case(model, form, n) for n in args.worlds for model in args.models for form in args.forms
    ]
    rows = []
    with concurrent.futures.ThreadPoolExecutor(args.threads) as pool:
        # the threads wait for XLA's compiler most of the time
        made = {case: pool.submit(gpu_programs.made, case) for case in cases}
        checks = {}
        for case in cases if args.check else ():
            key = case.model, case.form
            if key not in checks and case.form in ("xla", "kernels"):
                checks[key] = pool.submit(gpu_programs.error, *key)
        for case in cases:
            row = case._asdict() | measured(made[case], end, args.profile)
            if (check := checks.pop((case.model, case.form), None)) is not None:
                row |= result(lambda c=check: {"error_of_qacc": c.result(end - time.monotonic())})
            rows.append(row)
            print(line(row), flush=True)
        for one in made.values():
            one.cancel()
    if args.json:
        device = gpu_programs.device(warp=all(case.form == "warp" for case in cases))
        about = {"device": device, "jax": jax.__version__}
        about |= {"steps": gpu_programs.STEPS, "limits": gpu_programs.LIMITS}
        Path(args.json).write_text(json.dumps(about | {"rows": rows}, indent=1))


def arguments() -> argparse.Namespace:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--models", nargs="*", default=["humanoid", "quadruped", "pile"])
    ap.add_argument("--worlds", nargs="+", type=int, default=[8192, 1024, 65536])
    ap.add_argument("--forms", nargs="+", default=["xla", "kernels", "mjx"])
    ap.add_argument("--cases", nargs="+", default=[], help="MODEL:FORM:WORLDS, before the others")
    ap.add_argument("--minutes", type=float, default=9, help="no measurement begins after")
    ap.add_argument("--threads", type=int, default=8, help="programs that are compiled at a time")
    ap.add_argument("--check", action="store_true", help="compare a step with the CPU")
    ap.add_argument("--profile", action="store_true", help="tell the time of kernels")
    ap.add_argument("--json", help="file for the results")
    return ap.parse_args()


def measured(made: concurrent.futures.Future, end: float, profile: bool) -> dict:
    """Return steps per second and memory of a program, and its profile; or the error."""
    left = end - time.monotonic()
    if left <= 0:
        return {"error": "not measured: no time left"}
    return result(lambda: figures(made.result(timeout=left), profile))


def result(measure: Callable[[], dict]) -> dict:
    """Return the figures of a measurement, or its error message."""
    try:
        return measure()
    except Exception as error:  # noqa: BLE001 - what fails is a result
        return {"error": f"{type(error).__name__}: {error}"[:300]}


def figures(program: gpu_programs.Program, profile: bool) -> dict:
    d, run = program.start, program.run
    for _ in range(RUNS_BEFORE):
        d = run(d)
    best = np.inf
    for _ in range(3):
        began = time.perf_counter()
        d = run(d)
        best = min(best, time.perf_counter() - began)
    finite = all(bool(np.isfinite(np.asarray(a)).all()) for a in program.state(d))
    row = {
        "steps_per_second": program.steps / best,
        "ms_a_step": 1e3 * best * program.worlds / program.steps,
        "seconds_to_make": program.seconds,
        "kb_per_world": program.bytes / program.worlds / 1024,
        "finite": finite,
    }
    if profile and program.compiled is not None:
        row |= gpu_profile.profile(lambda: run(d), program)
    return row


def line(row: dict[str, Any]) -> str:
    head = f"{row['model'].split('/')[-1]:12} {row['form']:8} {row['worlds']:6}"
    if "steps_per_second" not in row:
        return f"{head} {row['error']}"
    text = (
        f"{head} {row['steps_per_second']:14,.0f} steps/s, {row['ms_a_step']:.3f} ms,"
        f" made in {row['seconds_to_make']:5.1f} s, {row['kb_per_world']:7.1f} kB a world,"
        f" finite {row['finite']} {row.get('error', '')}"
    )
    if "error_of_qacc" in row:
        text += f", error {row['error_of_qacc']:.1e}"
    return text + gpu_profile.lines(row)


if __name__ == "__main__":
    main()
