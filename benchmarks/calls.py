"""One world that Python drives: controls are written, a step is taken, the position is read.

    python benchmarks/calls.py [--models humanoid quadruped pile] [--ways c mjx jit loop]
        [--priority 6] [--json benchmarks/results/calls.json]

`c`: `mujoco.mj_step`, in double precision; `mjx`, `jit`: a call of `jit(step)` of MJX and jaxsim;
`loop`: `jaxsim.ControlLoop`. Each way runs in a process of its own, from the same state, with the
controls of `states.py`; the time of a step is the median of ten runs of 200. `--priority` lets
these, and nothing else, run before other work of the machine (as in `features.py`);
`performance.py` shows the file.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from features import before_others
from throughput import in_process, machine

MODELS = ("humanoid", "quadruped", "pile")
WAYS = ("c", "mjx", "jit", "loop")
RUNS, STEPS = 10, 200
LIMIT = 300.0  # seconds of a case, with compilation


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--models", nargs="+", default=list(MODELS))
    ap.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    ap.add_argument("--priority", type=int, default=0, help="real-time priority of timed steps")
    ap.add_argument("--json", help="file for the results")
    args = ap.parse_args()
    rows = []
    for model in args.models:
        for way in args.ways:
            row = in_process(1, LIMIT, measure, way, model, args.priority)
            found = f"{1e6 * row['seconds']:,.1f} us" if "seconds" in row else row["error"]
            print(f"{model:10} {way:5} {found}", flush=True)
            rows.append(row)
    if args.json:
        Path(args.json).write_text(
            json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n"
        )


def measure(way: str, model: str, priority: int) -> dict:
    """Seconds of a step, the state written to and read from by numpy."""
    import states

    m = states.load(model, "rl")
    start = states.states(m, 1)
    ctrl = start.pop("ctrl")[0]
    advance = MAKERS[way](m, {name: value[0] for name, value in start.items()})
    advance(ctrl)
    times = []
    with before_others(priority):
        for _ in range(RUNS):
            began = time.perf_counter()
            for _ in range(STEPS):
                assert np.isfinite(advance(ctrl)[-1])
            times.append((time.perf_counter() - began) / STEPS)
    return {"engine": way, "model": model, "worlds": 1, "seconds": float(np.median(times))}


def in_c(m, start: dict) -> Callable:
    import mujoco

    d = mujoco.MjData(m)
    for name, value in start.items():
        getattr(d, name)[:] = value

    def advance(ctrl):
        d.ctrl[:] = ctrl
        mujoco.mj_step(m, d)
        return d.qpos

    return advance


def by_calls(library, m, start: dict) -> Callable:
    """`jit(step)` of jaxsim or MJX, called for each step."""
    import jax
    import jax.numpy as jnp

    model, d = library.put_model(m), library.make_data(library.put_model(m))
    d = d.replace(**{name: jnp.asarray(value, d.qpos.dtype) for name, value in start.items()})
    step = jax.jit(lambda m, d, ctrl: library.step(m, d.replace(ctrl=ctrl)))

    def advance(ctrl):
        nonlocal d
        d = step(model, d, ctrl.astype(np.float32))
        return np.asarray(d.qpos)

    return advance


def of_jaxsim(m, start: dict) -> Callable:
    import jaxsim

    return by_calls(jaxsim, m, start)


def of_mjx(m, start: dict) -> Callable:
    from mujoco import mjx

    return by_calls(mjx, m, start)


def in_loop(m, start: dict) -> Callable:
    import jaxsim

    model = jaxsim.put_model(m)
    loop = jaxsim.ControlLoop(model, jaxsim.make_data(model))
    for name, value in start.items():
        getattr(loop.data, name)[...] = value

    def advance(ctrl):
        loop.data.ctrl[:] = ctrl
        loop.step()
        return loop.data.qpos

    return advance


MAKERS = {"c": in_c, "mjx": of_mjx, "jit": of_jaxsim, "loop": in_loop}

if __name__ == "__main__":
    main()
