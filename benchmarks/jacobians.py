"""A and B of one step, as iLQR needs them, compared with MuJoCo's finite differences.

    python benchmarks/jacobians.py [MODEL.xml ...] [--worlds 1 64] [--repeat 5] [--x64]
        [--json benchmarks/results/jacobians.json]

The Jacobians of jaxsim are exact: one program for all worlds (`jaxsim.derivative.transition`).
MuJoCo's `mjd_transitionFD` is centered, in double precision, one state after another on one thread.
Both run alternately for the same states of a motion with constant controls; medians are reported.
Where the solver stops at its iteration limit they differ: jaxsim has the derivative of the
converged solution, finite differences that of the last iterate.
"""

import argparse
import json
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from throughput import machine

import jaxsim
from jaxsim.derivative import transition

MODELS = ("configs/walker.xml", "configs/quadruped.xml", "configs/humanoid.xml")
CTRL = 0.1
EPS = 1e-6
APART = 5  # steps between two states


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--worlds", type=int, nargs="+", default=[1, 64])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--x64", action="store_true", help="double precision here too")
    parser.add_argument("--json", type=Path, help="file for the results")
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", args.x64)
    rows = []
    for path in args.models:
        rows += measure(path, args.worlds, args.repeat)
        if args.json:  # after each model, as compilation takes minutes
            args.json.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")


def measure(path: str, worlds: list[int], repeat: int) -> list[dict]:
    """Return a row for each number of worlds."""
    mj = mujoco.MjModel.from_xml_path(path)
    m = jaxsim.put_model(mj)
    states = motion(mj, max(worlds))
    return [compare(path, m, mj, states[:count], repeat) for count in worlds]


def motion(mj: mujoco.MjModel, count: int) -> list[mujoco.MjData]:
    """Return states of a motion with constant controls."""
    d, states = mujoco.MjData(mj), []
    d.ctrl[:] = CTRL
    for _ in range(count):
        mujoco.mj_step(mj, d, APART)
        states.append(mujoco.MjData(mj))
        mujoco.mj_copyData(states[-1], mj, d)
    return states


def compare(path: str, m: jaxsim.Model, mj: mujoco.MjModel, states: list, repeat: int) -> dict:
    """Return milliseconds of both, and the difference of their results."""
    d = jaxsim.replicate(jaxsim.make_data(m, keep=()), len(states))
    names = ("qpos", "qvel", "act", "ctrl", "qacc_warmstart")
    d = d.replace(
        **{n: jnp.asarray(np.array([getattr(s, n) for s in states]), d.qpos.dtype) for n in names}
    )
    program = jax.jit(jax.vmap(lambda m, d: transition(m, d, sensors=False), (None, 0)))
    start = time.perf_counter()
    ours = program.lower(m, d).compile()
    compiling = time.perf_counter() - start
    found = jax.block_until_ready(ours(m, d))
    nx = 2 * mj.nv + mj.na
    A, B = np.zeros((len(states), nx, nx)), np.zeros((len(states), nx, mj.nu))

    def theirs() -> None:
        for k, state in enumerate(states):
            mujoco.mjd_transitionFD(mj, state, EPS, True, A[k], B[k], None, None)

    times = [
        (milliseconds(lambda: jax.block_until_ready(ours(m, d))), milliseconds(theirs))
        for _ in range(repeat)
    ]
    mine, other = np.median(times, axis=0)
    both = [(a, b) for a, b in zip(found, (A, B), strict=False) if b.size]
    gap = max(np.abs(a - b).max() / np.abs(b).max() for a, b in both)
    row = {
        "model": path,
        "worlds": len(states),
        "dtype": str(d.qpos.dtype),
        "jaxsim_ms": mine,
        "mjd_transitionFD_ms": other,
        "trace_and_compile_s": compiling,
        "apart": float(gap),  # relative to the largest entry
    }
    print(
        f"{path}, {len(states)} worlds, {row['dtype']}: {mine:.2f} ms, mjd_transitionFD "
        f"{other:.2f} ms; {compiling:.0f} s to compile; {gap:.1e} apart",
        flush=True,
    )
    return row


def milliseconds(function) -> float:
    start = time.perf_counter()
    function()
    return 1e3 * (time.perf_counter() - start)


if __name__ == "__main__":
    main()
