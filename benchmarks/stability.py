"""Drift of bodies at rest, and settling of piles, compared with MuJoCo C.

    python benchmarks/stability.py [--scenes stack10 cards mixed20] [--seconds 10]
        [--json benchmarks/results/stability.json]

Both engines begin in the same state and run in their default precision: MuJoCo in double, jaxsim in
single. `moved_median` and `moved_most` are the median and the largest final distance of bodies from
their initial positions [m]; for piles they measure how far bodies fell and spread. `speed` is the
largest final speed of a body [m/s], `deep` the deepest contact of the last second [m], `lost` the
number of bodies farther than 3 m from the origin along an axis.
"""

import argparse
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from scenes import scene

import jaxsim

SURROUNDINGS = 3.0  # coordinate beyond which a body is lost [m]


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--scenes", nargs="+", default=["stack10", "cards", "mixed20"])
    ap.add_argument("--seconds", type=float, default=10.0)
    ap.add_argument("--json", type=Path, help="file for the results")
    args = ap.parse_args()
    rows = []
    for name in args.scenes:
        text = scene(name)
        if text is None:
            ap.error(f"no scene is called {name}; benchmarks/scenes.py defines them")
        for engine, run in (("c", run_mujoco), ("jaxsim", run_jaxsim)):
            rows.append({"scene": name, "engine": engine} | run(text, args.seconds))
            print(rows[-1], flush=True)
    if args.json:
        what = {"mujoco": mujoco.__version__, "jax": jax.__version__, "seconds": args.seconds}
        args.json.write_text(json.dumps(what | {"rows": rows}, indent=1))


def run_mujoco(text: str, seconds: float) -> dict:
    """Simulate a scene with MuJoCo C, and return its figures."""
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    start, deep = d.xpos[1:].copy(), []
    for _ in range(round(seconds / m.opt.timestep)):
        mujoco.mj_step(m, d)
        deep.append(min([0.0, *d.contact.dist[: d.ncon]]))
    return figures(start, d.xpos[1:], d.qvel, deep, m.opt.timestep)


def run_jaxsim(text: str, seconds: float) -> dict:
    """Simulate a scene with jaxsim, and return its figures."""
    m = jaxsim.load_model(text)
    d = jax.jit(jaxsim.forward)(m, jaxsim.make_data(m))
    start = np.asarray(d.xpos[1:])

    def step(d: jaxsim.Data, _: None) -> tuple[jaxsim.Data, jax.Array]:
        d = jaxsim.step(m, d)
        return d, jnp.minimum(jnp.min(d.contact.dist), 0)

    run = jax.jit(lambda d: jax.lax.scan(step, d, length=round(seconds / float(m.opt.timestep))))
    d, deep = run(d)
    counts = [str(w) for w in jaxsim.warning_counts(d)]
    found = figures(start, np.asarray(d.xpos[1:]), d.qvel, deep, float(m.opt.timestep))
    return found | ({"warnings": counts} if counts else {})


def figures(start: np.ndarray, end: np.ndarray, qvel: np.ndarray, deep: list, dt: float) -> dict:
    """Return the figures of one run.

    Args:
      start, end: positions of the bodies, (n, 3) [m].
      qvel: final velocities of free bodies, (6 n,).
      deep: distance of the deepest contact at each step [m], at most 0.
      dt: time step [s].
    """
    moved = np.linalg.norm(end - start, axis=1)
    speed = np.linalg.norm(np.asarray(qvel).reshape(-1, 6)[:, :3], axis=1)
    last = np.asarray(deep)[-round(1 / dt) :]
    return {
        "moved_median": float(np.median(moved)),
        "moved_most": float(moved.max()),
        "speed": float(speed.max()),
        "deep": float(-last.min()),
        "lost": int((np.abs(end) > SURROUNDINGS).any(axis=1).sum()),
    }


if __name__ == "__main__":
    main()
