"""Speed of stepping many worlds on the accelerator of this machine, in the forms we have.

    python benchmarks/gpu.py [--models humanoid quadruped pile FILE.xml] [--worlds 1024 8192 65536]
        [--forms xla kernels graphs mjx] [--minutes 9] [--json benchmarks/results/gpu.json]

  xla      what users get: kernels as XLA makes them
  kernels  with `for_platform(..., kernels=True)`: the solver in one kernel, and other systems
  graphs   that, with loops and branches in CUDA graphs
  mjx      MuJoCo XLA in JAX, the peer, where it is installed

All programs are compiled first, several at a time; then each is run alone. What comes later in the
list than the minutes last is named as not measured. The forms' states after a step are compared
with those of `xla`. Needs no MuJoCo: states are the model's own, with noise, after a few steps.
"""

import argparse
import concurrent.futures
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
STEPS = 50  # of one timed program
LIMITS = {"iterations": 4, "ls_iterations": 8}  # as reinforcement learning runs them
GRAPHS = {"xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUSTOM_CALL,WHILE,CONDITIONAL"}


class Case(NamedTuple):
    """A program to measure."""

    model: str
    form: str
    worlds: int


def main() -> None:
    args = arguments()
    end = time.monotonic() + 60 * args.minutes
    cases = [
        Case(model, form, n) for n in args.worlds for model in args.models for form in args.forms
    ]
    rows = []
    with concurrent.futures.ThreadPoolExecutor(args.threads) as pool:
        # the threads wait for XLA's compiler most of the time
        made = {case: pool.submit(made_program, case) for case in cases}
        reference: dict = {}
        for case in cases:
            row = case._asdict() | measured(made[case], case, end, reference)
            rows.append(row)
            print(line(row), flush=True)
        for one in made.values():
            one.cancel()
    if args.json:
        device = str(jax.devices()[0].device_kind)
        what = {"device": device, "jax": jax.__version__, "steps": STEPS, "limits": LIMITS}
        Path(args.json).write_text(json.dumps(what | {"rows": rows}, indent=1))


def arguments() -> argparse.Namespace:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--models", nargs="+", default=["humanoid", "quadruped", "pile"])
    ap.add_argument("--worlds", nargs="+", type=int, default=[8192, 1024, 65536])
    ap.add_argument("--forms", nargs="+", default=["xla", "kernels", "graphs", "mjx"])
    ap.add_argument("--minutes", type=float, default=9, help="no measurement begins after")
    ap.add_argument("--threads", type=int, default=8, help="programs that are compiled at a time")
    ap.add_argument("--json", help="file for the results")
    return ap.parse_args()


def made_program(case: Case) -> tuple[Callable, Any, Any, float]:
    """The compiled steps of a case, its arguments, and the seconds to trace and compile it."""
    began = time.perf_counter()
    if case.form == "mjx":
        step, m, d = peer(case)
        options = None
    else:
        m = model_of(case.model)
        step, d = jaxsim.step, started(m, case.worlds)
        options = GRAPHS if case.form == "graphs" else None

    def steps(m: Any, d: Any) -> Any:
        many = jax.vmap(step, (None, 0))
        return jax.lax.scan(lambda d, _: (many(m, d), None), d, None, length=STEPS)[0]

    with jaxsim.for_platform(jax.default_backend(), kernels=case.form in ("kernels", "graphs")):
        lowered = jax.jit(steps).lower(m, d)
    compiled = lowered.compile(options)
    return compiled, m, d, time.perf_counter() - began


def model_of(name: str) -> jaxsim.Model:
    path = CONFIGS / f"{name}.xml"
    m = jaxsim.load_model(str(path if path.exists() else name))
    return m.replace(opt=m.opt.replace(**LIMITS))


def started(m: jaxsim.Model, worlds: int) -> jaxsim.Data:
    """States that differ, of the first key frame or the reference pose."""
    d = jaxsim.make_data(m)
    if m.nkey:
        d = jaxsim.reset_data_keyframe(m, d, 0)
    rng = np.random.default_rng(0)
    qvel = jnp.asarray(0.5 * rng.standard_normal((worlds, m.nv)), d.qpos.dtype)
    ctrl = jnp.asarray(0.3 * rng.standard_normal((worlds, m.nu)), d.qpos.dtype)
    many = jax.tree.map(lambda a: jnp.broadcast_to(a, (worlds, *a.shape)), d)
    return many.replace(qvel=qvel, ctrl=ctrl)


def peer(case: Case) -> tuple[Callable, Any, Any]:
    """MuJoCo XLA in the same states."""
    import mujoco
    from mujoco import mjx

    path = CONFIGS / f"{case.model}.xml"
    theirs = mujoco.MjModel.from_xml_path(str(path if path.exists() else case.model))
    theirs.opt.iterations, theirs.opt.ls_iterations = LIMITS["iterations"], LIMITS["ls_iterations"]
    ours = started(model_of(case.model), case.worlds)
    d = mjx.make_data(theirs, impl="jax")
    d = jax.tree.map(lambda a: jnp.broadcast_to(a, (case.worlds, *jnp.shape(a))), d)
    return (
        mjx.step,
        mjx.put_model(theirs, impl="jax"),
        d.replace(qpos=ours.qpos, qvel=ours.qvel, ctrl=ours.ctrl),
    )


def measured(made: concurrent.futures.Future, case: Case, end: float, reference: dict) -> dict:
    """Steps a second, memory, and how far the states are from those of the form `xla`."""
    left = end - time.monotonic()
    if left <= 0:
        return {"error": "not measured: no time left"}
    try:
        program, m, d, seconds = made.result(timeout=left)
        out = jax.block_until_ready(program(m, d))
        best = min(timed(program, m, d) for _ in range(3))
        memory = program.memory_analysis().temp_size_in_bytes / case.worlds / 1024
    except Exception as error:  # noqa: BLE001 - what fails is a result
        return {"error": f"{type(error).__name__}: {error}"[:200]}
    qpos = np.asarray(out.qpos)
    if case.form == "xla":
        reference[case.model, case.worlds] = qpos
    apart = reference.get((case.model, case.worlds))
    return {
        "steps_per_second": case.worlds * STEPS / best,
        "seconds_to_make": seconds,
        "kb_per_world": memory,
        "finite": bool(np.isfinite(qpos).all()),
        "median_difference": None if apart is None else float(np.median(np.abs(qpos - apart))),
    }


def timed(program: Callable, m: Any, d: Any) -> float:
    began = time.perf_counter()
    jax.block_until_ready(program(m, d))
    return time.perf_counter() - began


def line(row: dict) -> str:
    head = f"{row['model']:12} {row['form']:8} {row['worlds']:6}"
    if "error" in row:
        return f"{head} {row['error']}"
    apart = row["median_difference"]
    return (
        f"{head} {row['steps_per_second']:14,.0f} steps/s, made in {row['seconds_to_make']:5.1f} s,"
        f" {row['kb_per_world']:7.1f} kB a world"
        + ("" if apart is None else f", {apart:.1e} from xla")
    )


if __name__ == "__main__":
    main()
