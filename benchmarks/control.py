"""jaxsim.control compared with MuJoCo C: linearization, and five motions by each method.

    python benchmarks/control.py [--states 100] [--motions push_box ...] [--methods ilqr ...]
        [--seconds 10] [--json benchmarks/results/control.json] [--plots FOLDER]

The motions are those of `configs/optimize`. The methods of jaxsim (float32) are compared with iLQR
with MuJoCo's finite differences, with equally many iterations, and with predictive sampling by
`mujoco.rollout` (benchmarks/mujoco_control.py; double precision, one thread per core). Costs are
reported over the seconds of the search; compilation is reported separately. All methods of a motion
run in sequence in one process, and MuJoCo C evaluates the results too. Results are added to the
JSON file motion by motion.
"""

import argparse
import json
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import mujoco_control
import numpy as np
from throughput import machine

import jaxsim
from jaxsim import control
from jaxsim.control.optimization.batched_search import search
from jaxsim.control.optimization.read import read_optimization
from jaxsim.optional import require

WALKER = "configs/walker.xml"
FOLDER = Path("configs/optimize")
MOTIONS = ("cartpole_swingup", "acrobot_swingup", "hopper_jump", "push_box", "quadruped_trot")
# changes of each method to the file
METHODS: dict[str, tuple[str, ...]] = {
    "ilqr": ("method=ilqr",),
    "multiple_shooting": ("method=multiple_shooting",),
    "predictive_sampling": ("method=predictive_sampling", "iterations=100"),
    "cem": ("method=cem", "iterations=100", "sampling.sigma=1.0"),
}
# without smooth contacts, if the file has them
HARD = {f"{name}, hard": (*METHODS[name], "smooth=[]") for name in ("ilqr", "multiple_shooting")}


def milliseconds(function) -> float:
    start = time.perf_counter()
    jax.block_until_ready(function())
    return 1e3 * (time.perf_counter() - start)


def linearization(states: int, repeat: int) -> dict:
    """Measure A and B of states along a motion of the walker."""
    m = jaxsim.load_model(WALKER)
    d = jaxsim.make_data(m, keep=())
    d = d.replace(ctrl=jnp.full(m.nu, 0.3))
    _, motion = jax.jit(lambda d: jaxsim.rollout(m, d, states, record=["qpos", "qvel"]))(d)

    @jax.jit
    def ours(qpos, qvel):
        return jax.vmap(lambda q, v: control.linearize(m, d.replace(qpos=q, qvel=v)))(qpos, qvel)

    mj = mujoco.MjModel.from_xml_path(WALKER)
    mjd = mujoco.MjData(mj)
    A, B = np.zeros((2 * mj.nv, 2 * mj.nv)), np.zeros((2 * mj.nv, mj.nu))
    qpos, qvel = np.asarray(motion["qpos"]), np.asarray(motion["qvel"])

    def theirs():
        mjd.ctrl[:] = 0.3
        for q, v in zip(qpos, qvel, strict=True):
            mjd.qpos[:], mjd.qvel[:] = q, v
            mujoco.mjd_transitionFD(mj, mjd, 1e-6, 1, A, B, None, None)

    compiling = milliseconds(lambda: ours(qpos, qvel))
    times = [(milliseconds(lambda: ours(qpos, qvel)), milliseconds(theirs)) for _ in range(repeat)]
    mine, other = np.median(times, axis=0)
    print(f"linearize, {states} states of {WALKER} ({qpos.dtype}): {mine:.1f} ms", end="")
    print(f" (first call {compiling / 1e3:.1f} s); mjd_transitionFD, one thread: {other:.1f} ms")
    return {
        "states": states,
        "jaxsim_ms": mine,
        "mjd_transitionFD_ms": other,
        "compile_s": compiling / 1e3,
    }


def motion(name: str, wanted: list[str], seconds: float) -> dict:
    """Return the costs of one motion by each method, over seconds."""
    file = FOLDER / f"{name}.toml"
    whole = read_optimization(file)
    methods = METHODS | (HARD if any(whole.form.smooth) else {})
    course = mujoco_control.Course(whole, machine()["cores"])
    guess = np.asarray(whole.controls()[0], float)
    before = mujoco_control.cost_of(course, guess)
    rows = {}
    for method, changes in methods.items():
        if method.split(",")[0] not in wanted:
            continue
        given = ("report=5", "guesses=1", *changes)
        if "sampling" in method or method == "cem":
            given = (*given, "smooth=[]")
        found = search(read_optimization(file, given))
        rows[f"jaxsim {method}"] = {
            "compile_s": found.compile_seconds,
            "way": [(b.seconds, float(b.costs[0]), b.smooth) for b in found.batches],
            "cost": found.after.cost,
            "in_mujoco": mujoco_control.cost_of(course, found.ctrl),
        }
        _tell(name, method, rows[f"jaxsim {method}"])
    turns = whole.form.iterations * max(1, len(whole.form.smooth))
    _, way = mujoco_control.ilqr(course, guess, turns)
    rows["MuJoCo ilqr, differences"] = {"compile_s": 0.0, "way": way, "cost": way[-1][1]}
    way = mujoco_control.predictive_sampling(course, guess, whole.form.sampling, seconds)
    rows["MuJoCo predictive_sampling"] = {"compile_s": 0.0, "way": way, "cost": way[-1][1]}
    for method in list(rows)[-2:]:
        _tell(name, method, rows[method])
    return {"steps": whole.steps, "nu": whole.m.nu, "cost_of_guess": before, "methods": rows}


def _tell(name: str, method: str, row: dict) -> None:
    seconds, cost = row["way"][-1][0], row["cost"]
    print(
        f"| {name} | {method} | {cost:.4g} | {seconds:.1f} | {row['compile_s']:.0f} |", flush=True
    )


def draw(folder: Path, name: str, result: dict) -> None:
    """Plot the costs of a motion over the seconds of the search."""
    figure = require("matplotlib.figure", "control").Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for method, row in result["methods"].items():
        way = [(p[0], p[1]) for p in row["way"]]
        if way[0][0] > 0:
            way = [(0.0, result["cost_of_guess"]), *way]
        line = "--" if method.startswith("MuJoCo") else "-"
        axes.plot(*zip(*way, strict=True), line, label=method)
    axes.set(xlabel="seconds of the search", ylabel="cost", yscale="log", title=name)
    axes.legend(fontsize=8)
    figure.savefig(folder / f"{name}.png", dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--motions", nargs="*", default=MOTIONS)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--seconds", type=float, default=10.0, help="of MuJoCo's sampling")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plots", type=Path)
    args = parser.parse_args()
    result: dict = {"motions": {}}
    if args.json is not None and args.json.exists():
        result = json.loads(args.json.read_text())
    result["machine"] = machine() | {"mujoco": mujoco.__version__}
    if args.states:
        result["linearize"] = linearization(args.states, args.repeat)
    print("| motion | method | cost | seconds | compile s |")
    print("|---|---|---|---|---|")
    for name in args.motions:
        result["motions"][name] = motion(name, args.methods, args.seconds)
        if args.plots is not None:
            draw(args.plots, name, result["motions"][name])
        if args.json is not None:
            args.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
