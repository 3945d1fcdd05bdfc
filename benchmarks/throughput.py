"""Speed, compile time and memory of stepping many worlds, against MuJoCo C and MJX in one run.

    python benchmarks/throughput.py [--models humanoid pile] [--worlds 1 64 1024 4096]
        [--preset rl|own] [--engines jaxsim devices rollout mjx c] [--devices 2] [--grad]
        [--json benchmarks/results/NAME.json]

Every (engine, model) pair runs in a process of its own, without a compilation cache, so that
trace and compile times are those of a first call. Prints a table and writes JSON. `jaxsim` and
`mjx` are `scan(vmap(step))` on one device; on `--devices` devices that share the cores of the CPU,
`devices` is `scan(over_devices(vmap(step)))` and `rollout` is our `BatchProgram`, what `jaxsim
rollout` runs. (Batched factorizations, as the peer
has them, wait forever when there are as many devices as cores.)
"""

import argparse
import json
import multiprocessing
import os
import platform
import time

import states

SEVERAL = ("devices", "rollout")  # engines that use several devices


def main() -> None:
    args = arguments()
    rows = []
    for model in args.models:
        for engine in args.engines:
            devices = args.devices if engine in SEVERAL else 1
            row = in_process(devices, args.limit, measure, engine, model, args)
            rows.append(row)
            print(line(row), flush=True)
    print(table(rows, args.worlds))
    if args.json:
        with open(args.json, "w") as file:
            what = {"machine": machine(), "preset": args.preset, "devices": args.devices}
            json.dump(what | {"rows": rows}, file, indent=1)


def arguments() -> argparse.Namespace:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--models", nargs="+", default=list(states.MODELS))
    ap.add_argument("--worlds", nargs="+", type=int, default=[1, 64, 1024, 4096])
    ap.add_argument("--preset", choices=["rl", "own"], default="rl")
    ap.add_argument("--engines", nargs="+", default=["c", "mjx", "jaxsim"])
    ap.add_argument("--devices", type=int, default=os.cpu_count(), help=f"for {SEVERAL}")
    ap.add_argument("--grad", action="store_true", help="also the gradient of a 10-step rollout")
    ap.add_argument("--limit", type=float, default=900, help="seconds for an engine and model")
    ap.add_argument("--json", help="file for the results")
    return ap.parse_args()


def in_process(devices: int, limit: float, function, *args):
    """Calls a function in a fresh process; what goes wrong there becomes part of the result."""
    # read when the child starts JAX
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=_child, args=(theirs, function, args))
    child.start()
    theirs.close()
    try:
        if ours.poll(limit):
            return ours.recv()
        child.kill()
        return {"engine": args[0], "model": args[1], "error": f"no result after {limit:.0f} s"}
    except EOFError:
        child.join()
        return {"engine": args[0], "model": args[1], "error": f"exit {child.exitcode}"}
    finally:
        child.join()


def _child(pipe, function, args) -> None:
    try:
        pipe.send(function(*args))
    except Exception as error:  # noqa: BLE001 - a peer's failure is a result
        text = f"{type(error).__name__}: {error}"[:200]
        pipe.send({"engine": args[0], "model": args[1], "error": text})


def measure(engine: str, model: str, args: argparse.Namespace) -> dict:
    row = {"engine": engine, "model": states.title(model), "steps_per_s": {}}
    m = states.load(model, args.preset)
    row["nv"] = int(m.nv)
    if engine == "c":
        import engines

        for worlds in args.worlds:
            start = states.states(m, worlds)
            threads = min(worlds, os.cpu_count() or 1)
            row["steps_per_s"][worlds] = engines.c_steps_per_second(m, start, threads)
        return row
    one_batch = rollout_batch if engine == "rollout" else scan_batch
    for worlds in args.worlds:
        result = one_batch(engine, m, worlds)
        row["steps_per_s"][worlds] = result.pop("steps_per_s")
        row[f"compile_{worlds}"] = result
    if args.grad and engine not in SEVERAL:
        row["grad"] = gradient(engine, m, worlds=64, steps=10)
    return row


def scan_batch(engine: str, m, worlds: int) -> dict:
    """Compiles a scan over `vmap(step)` and times it."""
    import engines
    import jax

    step, model, data = engines.ENGINES[engine](m, states.states(m, worlds))
    many = jax.vmap(step, in_axes=(None, 0))
    if engine == "devices":
        import jaxsim

        many = jaxsim.over_devices(many, in_axes=(None, 0))
    steps = steps_of(worlds)

    def run(model, d):
        return jax.lax.scan(lambda d, _: (many(model, d), None), d, length=steps)[0]

    timed, compiled = compile_times(run, model, data)
    out, best = best_of(lambda: compiled(model, data))
    memory = compiled.memory_analysis()
    return timed | {
        "steps_per_s": worlds * steps / best,
        "temp_bytes_per_world": memory.temp_size_in_bytes / worlds,
        "data_bytes_per_world": sum(a.nbytes for a in jax.tree.leaves(data)) / worlds,
        "finite": bool(jax.numpy.isfinite(out.qpos).all()),
    }


def rollout_batch(engine: str, m, worlds: int) -> dict:
    """Compiles our `BatchProgram` and times it."""
    import engines
    import jax

    import jaxsim

    _, model, data = engines.ENGINES["jaxsim"](m, states.states(m, worlds))
    steps = steps_of(worlds)
    program = jaxsim.BatchProgram(model, data, size=steps)
    out, best = best_of(lambda: next(program.run(data, steps)).d)
    return {
        "trace_s": program.trace_seconds,
        "lower_s": 0.0,  # one figure for both
        "compile_s": program.compile_seconds,
        "steps_per_s": worlds * steps / best,
        "temp_bytes_per_world": program.temporary_bytes / worlds,
        "tile": program.tile,
        "finite": bool(jax.numpy.isfinite(out.qpos).all()),
    }


def steps_of(worlds: int) -> int:
    return max(5, min(1000, 20_000 // worlds))


def best_of(run, repetitions: int = 4):
    """Result and least time of a compiled program, after a first run that is not timed."""
    import jax

    jax.block_until_ready(run())
    best = float("inf")
    for _ in range(repetitions):
        began = time.perf_counter()
        out = jax.block_until_ready(run())
        best = min(best, time.perf_counter() - began)
    return out, best


def compile_times(run, *args):
    """Seconds of tracing, lowering and compiling; size of the program."""
    import jax

    t0 = time.perf_counter()
    traced = jax.jit(run).trace(*args)
    t1 = time.perf_counter()
    lowered = traced.lower()
    t2 = time.perf_counter()
    compiled = lowered.compile()
    t3 = time.perf_counter()
    text = compiled.as_text()
    times = {
        "trace_s": t1 - t0,
        "lower_s": t2 - t1,
        "compile_s": t3 - t2,
        "hlo_instructions": text.count(" = "),
        "hlo_fusions": text.count(" fusion("),
    }
    return times, compiled


def gradient(engine: str, m, worlds: int, steps: int) -> dict:
    """Reverse-mode gradient of a short rollout with respect to the initial velocity.

    The peer differentiates in reverse only with a single solver iteration; it gets that.
    """
    import engines
    import jax

    if engine == "mjx":
        m.opt.iterations, m.opt.ls_iterations = 1, 4
    step, model, data = engines.ENGINES[engine](m, states.states(m, worlds))

    def loss(model, d, qvel):
        d = d.replace(qvel=qvel)
        d = jax.lax.scan(lambda d, _: (step(model, d), None), d, length=steps)[0]
        return jax.numpy.sum(d.qpos**2)

    many = jax.vmap(jax.grad(loss, argnums=2), in_axes=(None, 0, 0))
    timed, compiled = compile_times(many, model, data, data.qvel)
    g = jax.block_until_ready(compiled(model, data, data.qvel))
    began = time.perf_counter()
    g = jax.block_until_ready(compiled(model, data, data.qvel))
    run_s = time.perf_counter() - began
    finite = bool(jax.numpy.isfinite(g).all())
    return timed | {"run_s": run_s, "worlds": worlds, "steps": steps, "finite": finite}


def line(row: dict) -> str:
    if "error" in row:
        return f"{row['model']:10s} {row['engine']:7s} {row['error']}"
    rates = "  ".join(f"{w}: {v:,.0f}" for w, v in row["steps_per_s"].items())
    return f"{row['model']:10s} {row['engine']:7s} steps/s {rates}"


def table(rows: list[dict], batches: list[int]) -> str:
    head = ["model", "engine", *(f"steps/s {b}" for b in batches)]
    head += ["trace+lower s", "compile s", "kB/world", "instr", "grad compile s", "grad run s"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for row in rows:
        if "error" in row:
            lines.append(f"| {row['model']} | {row['engine']} | {row['error']} |")
            continue
        c = row.get(f"compile_{batches[-1]}", {})
        g = row.get("grad", {})
        cells = [row["model"], row["engine"], *(f"{v:,.0f}" for v in row["steps_per_s"].values())]
        cells += [
            f"{c['trace_s'] + c['lower_s']:.2f}" if c else "",
            f"{c['compile_s']:.1f}" if c else "",
            f"{c['temp_bytes_per_world'] / 1e3:.1f}" if c else "",
            f"{c.get('hlo_instructions', '')}" if c else "",
            f"{g['compile_s']:.1f}" if g else "",
            f"{g['run_s']:.2f}" if g else "",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def machine() -> dict:
    import jax

    return {
        "cpu": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "jax": jax.__version__,
        "devices": [str(d.device_kind) for d in jax.devices()],
    }


if __name__ == "__main__":
    main()
