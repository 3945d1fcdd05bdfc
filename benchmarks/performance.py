"""Figures of speed, size and scale, and the page that shows them.

    python benchmarks/performance.py                  # the page, from existing results
    python benchmarks/performance.py --measure all    # measures first: about an hour on two cores
    python benchmarks/performance.py --measure scale_worlds gradient

Measurements are runs of `throughput.py`, one JSON file each under `benchmarks/results/`; the page
is `docs/performance.md`, with a figure. The cost of single features is measured by `features.py`,
into `features.json`; that of one world that Python steps by `calls.py`, into `calls.json`; robots
with meshes by `robots.py`, into `robots.json`; on a GPU by `gpu.sh`, into `gpu.json`.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "performance.md"
PICTURES = HERE.parent / "docs" / "pictures"
ALL = ("c", "mjx", "jaxsim", "devices", "rollout")
FEW = ("c", "mjx", "rollout")
NAMES = {
    "c": "MuJoCo C",
    "mjx": "MJX",
    "jaxsim": "jaxsim",
    "devices": "jaxsim devices",
    "rollout": "jaxsim rollout",
}
COLORS = {
    "c": "#444444",
    "mjx": "#c07020",
    "jaxsim": "#70a0d0",
    "devices": "#4080c0",
    "rollout": "#1050a0",
}

SOON = ["--limit", "240"]
# name of a run -> models, numbers of worlds, engines, more options of throughput.py
RUNS: dict[str, tuple[list[str], list[int], tuple[str, ...], list[str]]] = {
    "cpu_humanoid": (["humanoid"], [1, 1024], ALL, []),
    "cpu_quadruped": (["quadruped"], [1, 1024], ALL, []),
    "cpu_pile": (["pile"], [1, 1024], ALL, []),
    "gradient": (["humanoid", "quadruped"], [64], ("mjx", "jaxsim"), ["--grad"]),
    "scale_worlds": (["humanoid"], [1, 16, 256, 4096, 65536], ("c", "rollout"), []),
    "scale_worlds_mjx": (["humanoid"], [1, 16, 256, 4096], ("mjx",), []),
    "scale_robots": ([f"robots{n}" for n in (1, 4, 16)], [32], FEW, SOON),
    "scale_bodies": ([f"pile{n}" for n in (5, 20, 50, 100)], [32], FEW, SOON),
    "scale_dofs": (["chain30", "chain100", "tree200", "tree500"], [32], FEW, SOON),
}


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--measure", nargs="+", choices=["all", *RUNS], default=[])
    args = ap.parse_args()
    for name in RUNS if "all" in args.measure else args.measure:
        measure(name)
    PAGE.write_text(page())
    print(f"wrote {PAGE}")


def measure(name: str) -> None:
    models, worlds, engines, more = RUNS[name]
    command = [sys.executable, HERE / "throughput.py", "--json", RESULTS / f"{name}.json", *more]
    command += ["--models", *models, "--worlds", *map(str, worlds), "--engines", *engines]
    subprocess.run(command, check=True)


def page() -> str:
    """Return the page: a section for each measurement with results."""
    parts = [HEAD.format(machine=machine())]
    for text, names, table in SECTIONS:
        rows = rows_of(*names)
        if rows:
            parts.append(section(text, rows, table))
    worlds = rows_of("scale_worlds", "scale_worlds_mjx")
    if worlds:
        parts.append(picture(worlds))
    return "\n".join(parts)


def rows_of(*names: str) -> list[dict]:
    """Return the rows of runs that have been measured."""
    files = [RESULTS / f"{name}.json" for name in names]
    return [row for f in files if f.exists() for row in json.loads(f.read_text())["rows"]]


def machine() -> str:
    found = json.loads((RESULTS / "cpu_humanoid.json").read_text())["machine"]
    return f"{found['cores']} cores ({found['cpu']}), Python {found['python']}, jax {found['jax']}"


def section(text: str, rows: list[dict], table: Callable[[list[dict]], list[list[str]]]) -> str:
    head, *lines = table(rows)
    cells = [head, ["---"] * len(head), *lines]
    return text + "\n\n" + "\n".join("| " + " | ".join(c) + " |" for c in cells) + "\n"


def speed(rows: list[dict]) -> list[list[str]]:
    """Return steps per second, by model and batch size, with the ratios."""
    out = [["model", "worlds", *NAMES.values(), "rollout / C", "rollout / MJX"]]
    for model in unique(row["model"] for row in rows):
        of_model = {
            row["engine"]: row.get("steps_per_s", {}) for row in rows if row["model"] == model
        }
        for worlds in unique(w for rates in of_model.values() for w in rates):
            rate = {e: rates[worlds] for e, rates in of_model.items() if worlds in rates}
            cells = [f"{rate[e]:,.0f}" if e in rate else "-" for e in NAMES]
            ours = rate.get("rollout")
            ratios = [f"{ours / rate[e]:.2f}" if ours and e in rate else "-" for e in ("c", "mjx")]
            out.append([model, f"{int(worlds):,}", *cells, *ratios])
    return out


def programs(rows: list[dict]) -> list[list[str]]:
    """Return the compilation times of programs, their sizes, and their memory."""
    out = [
        ["model", "dofs", "engine", "trace + lower", "compile", "temporaries a world", "kernels"]
    ]
    for row in rows:
        for name in [n for n in row if n.startswith("compile_")][-1:]:
            made = row[name]
            out.append(
                [
                    row["model"],
                    f"{row['nv']}",
                    NAMES[row["engine"]],
                    f"{made['trace_s'] + made['lower_s']:.1f} s",
                    f"{made['compile_s']:.1f} s",
                    f"{made['temp_bytes_per_world'] / 1e3:,.0f} kB",
                    f"{made.get('hlo_fusions', '-'):,}" if "hlo_fusions" in made else "-",
                ]
            )
    return out


def gpu(rows: list[dict]) -> list[list[str]]:
    """Return steps per second on a GPU, by form."""
    out = [["model", "worlds", "form", "steps/s", "/ MJX", "error", "launches a step"]]
    for row in rows:
        rates = {
            r["form"]: r["steps_per_second"]
            for r in rows
            if (r["model"], r["worlds"]) == (row["model"], row["worlds"])
        }
        rate, peer = row["steps_per_second"], rates.get("mjx")
        error = row.get("error_of_qacc")
        out.append(
            [
                row["model"],
                f"{row['worlds']:,}",
                row["form"] + (" *" if row.get("note") else ""),
                f"{rate:,.0f}",
                "-" if peer is None else f"{rate / peer:.1f}",
                "-" if error is None else f"{error:.0e}",
                f"{row['launches']:.0f}",
            ]
        )
    return out


def gradients(rows: list[dict]) -> list[list[str]]:
    """Return times of reverse mode through ten steps of 64 worlds, and of the steps alone."""
    out = [["model", "engine", "trace + lower", "compile", "run", "of the forward time"]]
    for row in rows:
        grad = row.get("grad")
        if not grad:
            out.append([row["model"], NAMES[row["engine"]], row.get("error", "-"), "-", "-", "-"])
            continue
        forward = grad["worlds"] * grad["steps"] / row["steps_per_s"][str(grad["worlds"])]
        out.append(
            [
                row["model"],
                NAMES[row["engine"]],
                f"{grad['trace_s'] + grad['lower_s']:.1f} s",
                f"{grad['compile_s']:.1f} s",
                f"{1e3 * grad['run_s']:.0f} ms",
                f"{grad['run_s'] / forward:.1f}",
            ]
        )
    return out


def calls(rows: list[dict]) -> list[list[str]]:
    """Return times of a step of one world that Python drives."""
    out = [["model", "MuJoCo C", "MJX", "a call of `jit(step)`", "`ControlLoop`", "MJX / it"]]
    for model in unique(row["model"] for row in rows):
        took = {row["engine"]: row for row in rows if row["model"] == model}
        cells = [step_time(took.get(way, {})) for way in ("c", "mjx", "jit", "loop")]
        both = [took.get(way, {}).get("seconds") for way in ("mjx", "loop")]
        out.append([model, *cells, f"{both[0] / both[1]:.1f}" if all(both) else "-"])
    return out


def first_results(rows: list[dict]) -> list[list[str]]:
    """Return seconds from the start of a process to its result, ours next to MJX's."""
    out = [["what", "first run", "second run", "MJX, first", "MJX, second", "first / MJX"]]
    took = {row["name"]: (row["first_s"], row["second_s"]) for row in rows}
    for name, ours in took.items():
        if name.endswith(", MJX"):
            continue
        peer = took.get(f"{name}, MJX")
        cells = [f"{seconds:.1f} s" for seconds in (*ours, *(peer or ()))]
        ratio = f"{ours[0] / peer[0]:.2f}" if peer else "-"
        out.append([name, *cells, *["-"] * (4 - len(cells)), ratio])
    return out


def features(rows: list[dict]) -> list[list[str]]:
    """Return time and memory of a step of one world, by scene."""
    of_case: dict[tuple[str, int], dict[str, dict]] = {}
    for row in rows:
        of_case.setdefault((row["model"], row["worlds"]), {})[row["engine"]] = row
    out = [["scene", "dofs", "worlds", "MuJoCo C", "jaxsim", "jaxsim / C", "MJX"]]
    out[0] += ["memory C", "memory jaxsim", "jaxsim made in"]
    for (scene, worlds), row in of_case.items():
        c, ours = row.get("c", {}), row.get("jaxsim", {})
        both = "seconds" in ours and "seconds" in c
        ratio = f"{ours['seconds'] / c['seconds']:,.1f}" if both else "-"
        times = [step_time(row.get(engine, {})) for engine in ("c", "jaxsim", "mjx")]
        memory = [f"{r['bytes'] / 1e3:,.0f} kB" if "bytes" in r else "-" for r in (c, ours)]
        made = f"{ours['compile_s']:.0f} s" if "compile_s" in ours else "-"
        dofs = next((f"{r['nv']:,}" for r in (c, ours) if "nv" in r), "-")
        cells = [scene, dofs, f"{worlds:,}", *times[:2], ratio, times[2], *memory, made]
        out.append(cells)
    return out


def step_time(row: dict) -> str:
    """Return microseconds of a step of one world, or the error."""
    if "error" in row:
        return "; ".join(row["error"].split("\n"))[:80].replace("|", "/")
    return f"{1e6 * row['seconds']:,.0f} us" if row else "-"


def unique(items: Iterable) -> list:
    return list(dict.fromkeys(items))


def picture(rows: list[dict]) -> str:
    """Plot steps per second over the number of worlds."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.5))
    for row in rows:
        rates = {int(w): v for w, v in row.get("steps_per_s", {}).items()}
        engine = row["engine"]
        axes.loglog(list(rates), list(rates.values()), "o-", label=NAMES[engine], c=COLORS[engine])
    axes.set_xlabel("worlds")
    axes.set_ylabel("humanoid steps a second")
    axes.grid(alpha=0.3)
    axes.legend()
    PICTURES.mkdir(exist_ok=True)
    figure.savefig(PICTURES / "scale_worlds.svg", bbox_inches="tight", metadata={"Date": None})
    return "![steps a second over the number of worlds](pictures/scale_worlds.svg)\n"


HEAD = """# Performance

Generated by `python benchmarks/performance.py`; `--measure all` repeats the measurements.
Figures of {machine}; float32, 4 solver iterations and 8 line search iterations. Rows of one
model come from one run, one engine after another on the same machine; compare them with each
other. `jaxsim` and `MJX` are `scan(vmap(step))` on one device; with a device for each core,
`jaxsim devices` is `scan(over_devices(vmap(step)))`, and `jaxsim rollout` is `BatchProgram`,
which that command runs; MuJoCo C uses its own batched rollout with a thread for each core. XLA
compiles jaxsim's programs with the options of `jaxsim/xla.py` and MJX's without. GPU figures
are in a separate section. In the sections of robots, bodies, chains, trees, worlds and features
MJX was measured separately, within days on the same machine. [Which way to run](running.md)
explains the functions.
"""
FIRST = """## Time to the first result

Generated by `benchmarks/first_result.py`: commands and short programs, each in a fresh process, by
the clock from its start to its end, import included; first without any cache, then with the
programs that the first run left on disk. A training ends with the first line of its curve, after
8,000 actions. Steps are `jit(vmap(step))` of 64 worlds, gradients those of ten steps of one. MJX's
reverse mode has one iteration of the solver."""
GRADIENTS = """## Gradients

With respect to the initial velocity, of a number that depends on the state after 10 steps, in
64 worlds. MJX's reverse mode allows one iteration of the solver, and uses one."""
ROBOTS = """## Equal robots in one model

`robots4`: four quadrupeds of 18 dofs on one floor that do not touch each other; 32 worlds."""
BODIES = """## Free bodies

`pile50`: fifty boxes, capsules and spheres, each of which can touch all others; 32 worlds."""
DOFS = """## Chains and trees

Hinges without contacts, `chain100` one after another, `tree200` each with two on it; 32 worlds."""

FEATURES = """## Features

Generated by `benchmarks/features.py`: a cloth of 400 vertices, a soft cube of 125, a rod of 40,
an arm with 80 muscles whose tendons wrap around its bones, a robot with a lidar of 1,000 rays,
100 boxes at rest, with and without sleep, 12 joints with delayed actuators and sensors, and a
cloth of 64 vertices on a ball under the flag ipc. Time and memory of a step of one world, from
ten steps in one program, a hundred for one world: C on one core in double precision, the others
on all cores in single precision. Timed steps had priority over other work of the machine;
compile times are CPU seconds."""

CALLS = """## One world driven by Python

Generated by `benchmarks/calls.py`: at each step NumPy writes the controls, a step is taken and
NumPy reads the position. JAX takes a few microseconds for each array of a program's arguments
and results, and wakes threads; a step inside `scan`, above, has no such cost."""

GPU = """## On a GPU

Generated by `benchmarks/gpu.sh` on one NVIDIA H200, jax 0.11.2, in three runs on one day; 4
iterations of the solver, 8 of its line search, float32. `xla`: programs without custom kernels;
`kernels`: the default on such a GPU, Newton's method as one kernel (`docs/numerics.md`); `mjx`:
MuJoCo XLA; `gradient_kernels`: the reverse-mode gradient of ten steps. Other programs were
compiled on the same machine meanwhile. Error: median over 64 worlds of the accelerations after
one step, compared with float64 on a CPU. Rows with a star are from a version before pivots were
computed in loops, inertias were stored world by world, two sorts of contacts were merged into
one and the matrix of the pile was stored in tiles."""

MODELS = ("cpu_humanoid", "cpu_quadruped", "cpu_pile")
SHIPPED = """## Robots with meshes and terrain

Robots of MuJoCo Menagerie and MuJoCo Playground as their makers ship them, with the settings of
their files (`benchmarks/robots.py`): convex hulls of meshes collide, feet touch height fields."""

SECTIONS = (
    ("## Steps per second", MODELS, speed),
    ("## Compilation", MODELS, programs),
    (FIRST, ("first_result",), first_results),
    (SHIPPED, ("robots",), speed),
    ("Their programs:", ("robots",), programs),
    (CALLS, ("calls",), calls),
    (GRADIENTS, ("gradient",), gradients),
    (GPU, ("gpu",), gpu),
    (ROBOTS, ("scale_robots",), speed),
    ("Their programs:", ("scale_robots",), programs),
    (BODIES, ("scale_bodies",), speed),
    ("Their programs:", ("scale_bodies",), programs),
    (DOFS, ("scale_dofs",), speed),
    ("Their programs:", ("scale_dofs",), programs),
    (FEATURES, ("features",), features),
    ("## Worlds", ("scale_worlds", "scale_worlds_mjx"), speed),
)

if __name__ == "__main__":
    main()
