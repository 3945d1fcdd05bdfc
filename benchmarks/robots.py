"""Robots as their makers ship them, with meshes and terrain, on all engines in one run.

    python benchmarks/robots.py --folder MODELS [--scenes benchmarks/robots.txt]
        [--only panda hand] [--worlds 64 512] [--engines c mjx rollout]
        [--json benchmarks/results/robots.json]

Scenes are paths in a file, relative to a folder with checkouts of `mujoco_menagerie` (in
`menagerie/`) and of the models of `mujoco_playground` (in `playground/`). The settings are those of
each file. Rows that a run does not measure stay in the JSON, so that a list can be measured in
parts; `performance.py` shows them.
"""

import argparse
import json
import os
from pathlib import Path

from performance import programs, section, speed
from throughput import SEVERAL, in_process, line, machine, measure

HERE = Path(__file__).resolve().parent


def main() -> None:
    args = arguments()
    rows = saved_rows(args.json)
    for path in scenes(args):
        for engine in args.engines:
            devices = args.devices if engine in SEVERAL else 1
            row = in_process(devices, args.limit, measure, engine, str(path), args)
            rows[row["model"], engine] = json.loads(json.dumps(row))  # keys as in the file
            print(line(row), flush=True)
            if args.json:
                what = {"machine": machine(), "preset": args.preset, "rows": list(rows.values())}
                args.json.write_text(json.dumps(what, indent=1) + "\n")
    measured = list(rows.values())
    print(section("Steps per second", measured, speed))
    print(section("Programs", measured, programs))


def arguments() -> argparse.Namespace:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--folder", type=Path, required=True, help="folder of the scenes' paths")
    ap.add_argument("--scenes", type=Path, default=HERE / "robots.txt", help="list of paths")
    ap.add_argument("--only", nargs="+", default=[""], help="parts of paths to measure")
    ap.add_argument("--worlds", nargs="+", type=int, default=[1, 64, 512, 4096])
    ap.add_argument("--engines", nargs="+", default=["c", "mjx", "rollout"])
    ap.add_argument("--devices", type=int, default=os.cpu_count(), help=f"for {SEVERAL}")
    ap.add_argument("--limit", type=float, default=900, help="seconds for an engine and scene")
    ap.add_argument("--json", type=Path, help="file for the results; rows in it are kept")
    ap.set_defaults(preset="own", grad=False)
    return ap.parse_args()


def scenes(args: argparse.Namespace) -> list[Path]:
    """Return the scenes to measure; those that the folder lacks are reported and left out."""
    lines = (text.split("#")[0].strip() for text in args.scenes.read_text().splitlines())
    wanted = [text for text in lines if text and any(part in text for part in args.only)]
    found = []
    for text in wanted:
        path = args.folder / text
        if path.exists():
            found.append(path)
        else:
            print(f"{text}: not in {args.folder}", flush=True)
    return found


def saved_rows(file: Path | None) -> dict[tuple[str, str], dict]:
    """Return the rows of an earlier run, by scene and engine."""
    if file is None or not file.exists():
        return {}
    rows = json.loads(file.read_text())["rows"]
    return {(row["model"], row["engine"]): row for row in rows}


if __name__ == "__main__":
    main()
