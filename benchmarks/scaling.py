"""Speed of many worlds on several devices and processes of one machine.

    python benchmarks/scaling.py [--model cartpole] [--worlds 512] [--devices 1 2 4 8]
        [--processes 1 2 4] [--json benchmarks/results/scaling.json]

Each case runs `BatchProgram` in fresh processes: one process with 1 to 8 virtual CPU devices, then
1 to 4 processes with one device each, connected by `jax.distributed`. The best of five runs counts.
Devices beyond the cores of the machine share them: these cases show what the division costs, not
what it gains.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

STEPS, CHUNK, RUNS = 200, 50, 5
ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--model", default="cartpole")
    ap.add_argument("--worlds", type=int, default=512)
    ap.add_argument("--devices", nargs="+", type=int, default=[1, 2, 4, 8])
    ap.add_argument("--processes", nargs="+", type=int, default=[1, 2, 4])
    ap.add_argument("--limit", type=float, default=900, help="seconds for a case")
    ap.add_argument("--json", help="file for the results")
    ap.add_argument("--case", nargs=3, help=argparse.SUPPRESS)  # of a process that measures
    args = ap.parse_args()
    if args.case:
        measure(args)
        return
    cases = [(1, n) for n in args.devices]
    cases += [(n, 1) for n in args.processes if (n, 1) not in cases]
    rows = [run_case(args, *case) for case in cases]
    for row in rows:
        print(json.dumps(row))
    if args.json:
        from throughput import machine

        what = {"machine": machine(), "model": args.model, "worlds": args.worlds, "steps": STEPS}
        note = f"{os.cpu_count()} cores, shared by all devices and processes"
        Path(args.json).write_text(json.dumps(what | {"note": note, "rows": rows}, indent=1) + "\n")


def run_case(args: argparse.Namespace, processes: int, devices: int) -> dict:
    """Measure a number of processes, each with some devices; process 0 reports."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    env = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "JAX_NUM_CPU_DEVICES": str(devices),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, __file__, "--model", args.model, "--worlds", str(args.worlds)]
    children = [
        subprocess.Popen(
            [*command, "--case", address, str(processes), str(i)],
            env=env,
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(processes)
    ]
    try:
        outputs = [child.communicate(timeout=args.limit)[0] for child in children]
    finally:
        for child in children:
            child.kill()
    where = {"processes": processes, "devices": processes * devices}
    if any(child.returncode for child in children):
        return where | {"error": f"exit codes {[child.returncode for child in children]}"}
    return where | json.loads(outputs[0].splitlines()[-1])


def measure(args: argparse.Namespace) -> None:
    """Print the speed of a case, in one of its processes."""
    import jax

    address, processes, process = args.case[0], int(args.case[1]), int(args.case[2])
    if processes > 1:
        jax.distributed.initialize(address, processes, process)
    import jaxsim

    m = jaxsim.load_model(str(ROOT / "configs" / f"{args.model}.xml"))
    start = jaxsim.replicate(jaxsim.make_data(m), args.worlds, devices=jax.devices())
    program = jaxsim.BatchProgram(m, start, size=CHUNK)
    seconds = []
    for _ in range(RUNS + 1):
        begin = time.perf_counter()
        for chunk in program.run(start, STEPS):
            jax.block_until_ready(chunk.d)
        seconds.append(time.perf_counter() - begin)
    best = min(seconds[1:])
    row = {
        "tile": program.tile,
        "steps_per_s": round(args.worlds * STEPS / best),
        "compile_s": round(program.compile_seconds, 1),
    }
    print(json.dumps(row), flush=True)
    if processes > 1:
        jax.distributed.shutdown()


if __name__ == "__main__":
    main()
