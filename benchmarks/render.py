"""Images per second, of one and of many worlds, compared with MuJoCo's renderer.

    MUJOCO_GL=egl python benchmarks/render.py [MODEL.xml] [--worlds 1,64] [--sizes 64,128]

Writes benchmarks/results/render.json and, for the default model, the table of docs/render.md,
within minutes; `--table` rewrites the table from the file, without measuring; `--out` selects
another file, and writes no table. MuJoCo's renderer is left out without an OpenGL context.
"""

import argparse
import json
import os
import platform
import time
from pathlib import Path

import jax
import jax.numpy as jnp

import jaxsim
from jaxsim.view import Look

HERE = Path(__file__).resolve().parent
MODEL = HERE.parent / "jaxsim/envs/tasks/quadruped.xml"
RESULT, PAGE = HERE / "results/render.json", HERE.parent / "docs/render.md"
BEGIN, END = "<!-- benchmarks/render.py writes this table -->\n", "<!-- until here -->\n"
KINDS = {"depth": "depth", "rgb": "colors with shadows"}


def best(call, turns: int) -> float:
    """Return the seconds of the fastest of a few calls, after one that compiles."""
    call()
    times = []
    for _ in range(turns):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def ours(path: str, size: int, worlds: int, what: str, turns: int) -> float:
    """Return the seconds of an image."""
    m = jaxsim.load_model(path)
    look, d = Look.of(m, path), jaxsim.make_data(m)
    qpos = jnp.tile(d.qpos, (worlds, 1))

    @jax.jit
    def draw(qpos, look):
        def one(q):
            return jaxsim.render(m, d.replace(qpos=q), None, size, size, what=what, look=look)

        return jax.vmap(one)(qpos)

    return best(lambda: jax.block_until_ready(draw(qpos, look)), turns) / worlds


def theirs(path: str, size: int, what: str, turns: int) -> float | str:
    """Return the seconds of an image of MuJoCo's renderer, or its error message."""
    try:
        import mujoco

        m = mujoco.MjModel.from_xml_path(path)
        d = mujoco.MjData(m)
        mujoco.mj_forward(m, d)
        renderer = mujoco.Renderer(m, size, size)
    except Exception as error:  # noqa: BLE001  (any error of the graphics library)
        return f"no context: {error}"
    if what == "depth":
        renderer.enable_depth_rendering()

    def draw():
        renderer.update_scene(d)
        renderer.render()

    found = best(draw, turns)
    renderer.close()
    return found


def measured(path: str, sizes: list[int], worlds: list[int], turns: int) -> dict:
    """Return all figures."""
    rows = []
    for size in sizes:
        for what in KINDS:
            row = {"size": size, "what": what}
            for number in worlds:
                seconds = ours(path, size, number, what, turns)
                row[f"pictures_per_second_{number}_worlds"] = round(1 / seconds, 2)
            there = theirs(path, size, what, turns)
            known = isinstance(there, float)
            row["mujoco_pictures_per_second"] = round(1 / there, 2) if known else there
            rows.append(row)
            print(row, flush=True)
    return {
        "model": Path(path).name,
        "device": str(jax.devices()[0]),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
        "mujoco_gl": os.environ.get("MUJOCO_GL", ""),
        "rows": rows,
    }


def table(result: dict) -> str:
    """Return the figures in Markdown."""
    first = result["rows"][0]
    columns = [name for name in first if name.startswith("pictures_per_second_")]
    numbers = [name.split("_")[3] for name in columns]
    heads = [f"{n} world{'s' * (n != '1')}" for n in numbers]
    lines = [f"| | {' | '.join(heads)} | MuJoCo |", "| --- " * (len(heads) + 2) + "|"]
    for row in result["rows"]:
        there = row["mujoco_pictures_per_second"]
        cells = [f"{row[c]:.0f}" for c in columns]
        cells.append(f"{there:.0f}" if isinstance(there, float) else "-")
        name = f"{KINDS[row['what']]}, {row['size']} x {row['size']}"
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def write_table(result: dict) -> None:
    """Replace the table in docs/render.md."""
    before, rest = PAGE.read_text().split(BEGIN)
    after = rest.split(END)[1]
    where = f"\nOn {result['machine']}, {result['device']}, `{result['model']}`:\n\n"
    PAGE.write_text(before + BEGIN + where + table(result) + "\n" + END + after)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default=str(MODEL))
    parser.add_argument("--worlds", default="1,64")
    parser.add_argument("--sizes", default="64,128")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args()
    if args.table:
        write_table(json.loads(args.out.read_text()))
        return
    sizes, worlds = ([int(n) for n in x.split(",")] for x in (args.sizes, args.worlds))
    result = measured(args.model, sizes, worlds, args.turns)
    args.out.write_text(json.dumps(result, indent=2) + "\n")
    if args.out == RESULT and args.model == str(MODEL):
        write_table(result)


if __name__ == "__main__":
    main()
