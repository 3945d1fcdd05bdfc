"""Time to load models, against MuJoCo's compile of the same files in the same process.

    python benchmarks/load.py MODEL.xml ...
    python benchmarks/load.py --list models.txt [--json benchmarks/results/load.json]

Each model is loaded by both in turn, `--repeat` times, and the best time of each counts. Both read
from disk; MuJoCo's asset cache is emptied before each of its compiles. Prints the slowest and the
worst ratios, and their median.
"""

import argparse
import json
import os
import statistics
import time
import warnings
from pathlib import Path

import jax
import mujoco

import jaxsim
from jaxsim.errors import ModelError, UnsupportedWarning

SHOWN = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--list", type=Path, help="file of paths, one a line")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, help="file for the results")
    args = parser.parse_args()
    listed = args.list.read_text().split() if args.list else []
    warnings.simplefilter("ignore", UnsupportedWarning)
    jax.device_put(0.0)  # starts JAX
    rows = [
        row for path in [*args.models, *map(Path, listed)] if (row := measure(path, args.repeat))
    ]
    print(table(rows))
    if args.json:
        machine = {"cpus": os.cpu_count(), "jax": jax.__version__, "mujoco": mujoco.__version__}
        args.json.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1))


def measure(path: Path, repeat: int) -> dict | None:
    """Seconds of both engines for one model; None if one of them refuses it."""
    try:
        ours = min(seconds(jaxsim.load_model, path) for _ in range(repeat))
        theirs = min(seconds(compile_afresh, path) for _ in range(repeat))
    except (ModelError, ValueError) as error:
        print(f"{path}: {str(error).splitlines()[0]}")
        return None
    return {"model": "/".join(path.parts[-3:]), "jaxsim_s": ours, "mujoco_s": theirs}


def compile_afresh(path: str) -> None:
    """MuJoCo's compile, with nothing remembered of the assets."""
    mujoco.mj_clearCache(mujoco.mj_getCache())
    mujoco.MjModel.from_xml_path(path)


def seconds(load, path: Path) -> float:
    began = time.perf_counter()
    load(str(path))
    return time.perf_counter() - began


def table(rows: list[dict]) -> str:
    """The slowest models, the worst ratios, and the medians."""
    if not rows:
        return "no model was loaded by both"
    ratio = {row["model"]: row["jaxsim_s"] / row["mujoco_s"] for row in rows}
    lines = [f"{len(rows)} models; ratio to MuJoCo: median {statistics.median(ratio.values()):.1f}"]
    for title, key in (
        ("slowest", lambda row: row["jaxsim_s"]),
        ("worst ratio", lambda row: ratio[row["model"]]),
    ):
        lines.append(title)
        lines += [
            f"  {row['jaxsim_s']:8.3f} s  {row['mujoco_s']:8.3f} s  {ratio[row['model']]:6.1f}  "
            f"{row['model']}"
            for row in sorted(rows, key=key, reverse=True)[:SHOWN]
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
