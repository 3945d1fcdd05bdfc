"""Time to load models, against MuJoCo's compile of the same files in the same process.

    python benchmarks/load.py MODEL.xml ...
    python benchmarks/load.py --list models.txt [--json benchmarks/results/load.json]

Measured are, of each model:

    first   the first load in this process, with what JAX and jaxsim keep for later ones
    again   further loads of the same file
    save    writing the compiled model to a file
    saved   loading that file
    mujoco  MuJoCo's compile, its asset cache emptied before

Each is done `--repeat` times, except the first load, and the best counts: by the clock (`_s`), and
by the time of all threads on the processors (`_cpu_s`), which other work disturbs less.
Prints the slowest models and the worst ratios of `again` to `mujoco`, and the median ratios.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import jax
import mujoco

import jaxsim
from jaxsim.errors import ModelError, UnsupportedWarning

SHOWN = 10
WAYS = ("first", "again", "save", "saved", "mujoco")


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
    row: dict = {"model": "/".join(path.parts[-3:])}

    def best(way: str, load: Callable, *operands, times: int = repeat) -> None:
        wall, cpu = zip(*(seconds(load, *operands) for _ in range(times)), strict=True)
        row[f"{way}_s"], row[f"{way}_cpu_s"] = min(wall), min(cpu)

    try:
        best("first", jaxsim.load_model, path, times=1)
        best("again", jaxsim.load_model, path)
        best("mujoco", compile_afresh, path)
    except (ModelError, ValueError) as error:
        print(f"{path}: {str(error).splitlines()[0]}")
        return None
    m = jaxsim.load_model(path)
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "model.jxm"
        best("save", jaxsim.save_model, m, saved)
        best("saved", jaxsim.load_model, saved)
    return row


def compile_afresh(path: Path) -> None:
    """MuJoCo's compile, with nothing remembered of the assets."""
    mujoco.mj_clearCache(mujoco.mj_getCache())
    mujoco.MjModel.from_xml_path(str(path))


def seconds(load: Callable, *operands) -> tuple[float, float]:
    """Time by the clock, and on the processors."""
    wall, cpu = time.perf_counter(), time.process_time()
    load(*operands)
    return time.perf_counter() - wall, time.process_time() - cpu


def table(rows: list[dict]) -> str:
    """The medians, the slowest models and the worst ratios, in seconds on the processors."""
    if not rows:
        return "no model was loaded by both"

    def ratio(row: dict, way: str = "again", of: str = "cpu_s") -> float:
        return row[f"{way}_{of}"] / row[f"mujoco_{of}"]

    lines = [f"{len(rows)} models; median ratio to MuJoCo, on the processors (by the clock):"]
    for way in WAYS[:-1]:
        cpu, wall = (statistics.median(ratio(r, way, of) for r in rows) for of in ("cpu_s", "s"))
        lines.append(f"  {way:6s} {cpu:6.1f} ({wall:.1f})")
    for title, key in (("slowest", lambda row: row["again_cpu_s"]), ("worst ratio", ratio)):
        lines.append(
            f"{title + ':':12s}" + "".join(f"{way:>9s}" for way in WAYS) + "  again/mujoco"
        )
        lines += [
            " " * 12
            + "".join(f"{row[f'{way}_cpu_s']:9.4f}" for way in WAYS)
            + f"  {ratio(row):12.1f}  {row['model']}"
            for row in sorted(rows, key=key, reverse=True)[:SHOWN]
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
