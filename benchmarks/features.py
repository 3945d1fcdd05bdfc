"""Time and memory of a step with each feature, compared with MuJoCo C and MJX in one run.

    python benchmarks/features.py [--scenes cloth soft rope arm lidar asleep awake servos shell]
        [--worlds 1 64] [--engines c mjx jaxsim] [--small] [--seconds 1] [--priority 6]
        [--json benchmarks/results/features.json]

Every (scene, engine, worlds) runs in a process of its own. C runs on one core and steps one world
after another in double precision; jaxsim and MJX are a scan of `vmap(step)` in single precision, on
all cores: ten steps, or a hundred for one world, since the call of a program with some 300 arrays
takes as long as ten steps of few dofs. A scene that MJX cannot load has its message instead of a
time; so has every scene if MJX is not installed. All worlds begin in the state of MuJoCo after some
steps. Memory of C is its `mjData`; that of the others the state of a world, and the temporaries of
the program divided by the worlds. On a loaded machine `--priority` lets only the timed steps run
before other processes (Linux, where it is permitted); compilation is then measured in CPU time, not
in wall-clock time. The file keeps the cases that a run does not measure; `performance.py` shows it.
"""

import argparse
import contextlib
import json
import os
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from throughput import in_process, machine

LONG = 10.0  # seconds of a call, of which one is enough
LIMIT = 1200.0  # seconds of one case, with compilation
PROCESSOR = {"mjx": 120}  # CPU seconds, for engines that may not terminate
OUT_OF_TIME = f"exit -{int(signal.SIGXCPU)}"
ENGINES = ("c", "mjx", "jaxsim")
TABLE = ("scene", "nv", "worlds", "engine", "us a step and world", "memory a world", "compiled in")


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--scenes", nargs="+", default=list(SCENES), choices=list(SCENES))
    ap.add_argument("--worlds", nargs="+", type=int, default=[1, 64])
    ap.add_argument("--engines", nargs="+", default=list(ENGINES))
    ap.add_argument("--small", action="store_true", help="scenes of a size to try the program with")
    ap.add_argument("--seconds", type=float, default=1.0, help="that a case runs (default 1)")
    ap.add_argument("--priority", type=int, default=0, help="real-time priority of timed steps")
    ap.add_argument("--json", help="file for the results")
    args = ap.parse_args()
    cases = earlier(args.json, args.small) if args.json else {}
    print("| " + " | ".join(TABLE) + " |\n" + "| --- " * len(TABLE) + "|")
    for name in args.scenes:
        for worlds in args.worlds:
            for engine in args.engines:
                given = (engine, name, worlds, args.small, args.seconds, args.priority)
                row = in_process(1, LIMIT, measure, *given) | {"worlds": worlds}
                if engine in PROCESSOR and row.get("error", "").startswith(OUT_OF_TIME):
                    row["error"] = f"not made in {PROCESSOR[engine]} s of the processor"
                row |= {"load": round(os.getloadavg()[0], 1), "priority": args.priority}
                print(line(row), flush=True)
                cases[name, worlds, engine] = row
                if args.json:  # after each case, so a run may be interrupted at any time
                    rows = [cases[case] for case in sorted(cases, key=place)]
                    found = {"machine": machine(), "small": args.small, "rows": rows}
                    Path(args.json).write_text(json.dumps(found, indent=1) + "\n")


def earlier(file: str, small: bool) -> dict[tuple[str, int, str], dict]:
    """Return the cases of earlier runs in a file."""
    found = json.loads(Path(file).read_text()) if Path(file).exists() else {"rows": []}
    if found.get("small", small) != small:
        raise SystemExit(f"{file} has scenes of another size; name another file")
    rows = found["rows"]
    return {(row["model"], row["worlds"], row["engine"]): row for row in rows}


def place(case: tuple[str, int, str]) -> tuple[int, int, int]:
    """Return the sort key of a case in the file."""
    scene, worlds, engine = case
    return list(SCENES).index(scene), worlds, ENGINES.index(engine)


def line(row: dict) -> str:
    """Return a row of the table."""
    cells = [row["model"], row.get("nv", ""), row["worlds"], row["engine"]]
    if "error" in row:
        cells += [row["error"].split("\n")[0][:60], "", ""]
    else:
        made = f"{row['compile_s']:.1f} s" if "compile_s" in row else ""
        cells += [f"{1e6 * row['seconds']:,.1f}", f"{row['bytes'] / 1e3:,.0f} kB", made]
    return "| " + " | ".join(map(str, cells)) + " |"


def measure(
    engine: str, name: str, worlds: int, small: bool, seconds: float, priority: int
) -> dict:
    """Return seconds of a step of one world, bytes per world, and seconds of compilation."""
    import mujoco

    if engine in PROCESSOR:
        limit = PROCESSOR[engine]
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10))

    make, size, little, before = SCENES[name]
    m = mujoco.MjModel.from_xml_string(make(little if small else size))
    d = mujoco.MjData(m)
    for _ in range(before):
        mujoco.mj_step(m, d)
    row = {"engine": engine, "model": name, "nv": int(m.nv)}
    if engine == "c":
        return row | in_c(m, d, worlds, seconds, priority)
    return row | in_jax(engine, m, d, worlds, seconds, priority)


def steps_of(worlds: int) -> int:
    """Return the number of steps of a call."""
    return max(10, 100 // worlds)


def in_c(m, d, worlds: int, seconds: float, priority: int) -> dict:
    """Measure MuJoCo C on one core, one world after another."""
    import mujoco

    spec = mujoco.mjtState.mjSTATE_INTEGRATION
    start = np.zeros(mujoco.mj_stateSize(m, spec))
    mujoco.mj_getState(m, d, start, spec)

    def steps() -> None:
        for _ in range(worlds):
            mujoco.mj_setState(m, d, start, spec)
            for _ in range(steps_of(worlds)):
                mujoco.mj_step(m, d)

    found = repeated(steps, seconds, priority) / (worlds * steps_of(worlds))
    return {"seconds": found, "bytes": int(d.nbuffer + d.maxuse_arena)}


def in_jax(engine: str, m, d, worlds: int, seconds: float, priority: int) -> dict:
    """Measure jaxsim or MJX, with worlds that begin in the same state."""
    import jax
    import jax.numpy as jnp

    if engine == "mjx":
        from mujoco import mjx as library

        model, one, step = library.put_model(m), library.put_data(m, d), library.step
    else:
        import jaxsim as library

        model, one, step = library.put_model(m), library.put_data(m, d), library.step
    began = time.process_time()
    batch = jax.tree.map(lambda a: jnp.broadcast_to(a, (worlds, *jnp.shape(a))), one)

    def steps(model, batch):
        many = jax.vmap(step, (None, 0))
        return jax.lax.scan(lambda b, _: (many(model, b), None), batch, length=steps_of(worlds))[0]

    program = jax.jit(steps).lower(model, batch).compile()
    made = time.process_time() - began
    temporary = program.memory_analysis().temp_size_in_bytes / worlds
    state = sum(a.nbytes for a in jax.tree.leaves(one) if hasattr(a, "nbytes"))
    found = repeated(lambda: jax.block_until_ready(program(model, batch)), seconds, priority)
    found /= worlds * steps_of(worlds)
    return {"seconds": found, "bytes": int(state + temporary), "compile_s": made}


def repeated(function, seconds: float, priority: int) -> float:
    """Return the median time of calls after the first, or that of the first if it took long."""
    began = time.perf_counter()
    function()
    times: list[float] = []
    if (first := time.perf_counter() - began) > LONG:
        return first
    with before_others(priority):
        while sum(times) < seconds or len(times) < 3:
            began = time.perf_counter()
            function()
            times.append(time.perf_counter() - began)
    return float(np.median(times))


@contextlib.contextmanager
def before_others(priority: int) -> Iterator[None]:
    """Run all threads of this process before those of others; 0: no change."""

    def give(policy: int, level: int) -> None:
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(ProcessLookupError):  # a thread that has just ended
                os.sched_setscheduler(int(thread), policy, os.sched_param(level))

    if not priority:
        yield
        return
    give(os.SCHED_FIFO, priority)
    try:
        yield
    finally:
        give(os.SCHED_OTHER, 0)


# scenes

APART = '<contact contype="0" conaffinity="0" selfcollide="none"/>'


def cloth(side: int) -> str:
    """Return a square cloth of vertices, held at two corners, without contacts."""
    return f"""<mujoco><option timestep=".001"/><worldbody>
    <flexcomp name="cloth" type="grid" count="{side} {side} 1" spacing=".05 .05 .05" dim="2"
      radius=".005" mass="1" pos="0 0 2"><pin id="0 {side - 1}"/>{APART}
      <elasticity young="3e3" poisson=".3" thickness=".01" damping=".01" elastic2d="both"/>
    </flexcomp></worldbody></mujoco>"""


def soft(side: int) -> str:
    """Return a soft cube, held at one corner, without contacts."""
    return f"""<mujoco><option timestep=".0005"/><worldbody>
    <flexcomp name="cube" type="grid" count="{side} {side} {side}" spacing=".1 .1 .1" dim="3"
      radius=".01" mass="2" pos="0 0 2"><pin id="0"/>{APART}
      <elasticity young="5e3" poisson=".2" damping=".002"/></flexcomp></worldbody></mujoco>"""


def rope(links: int) -> str:
    """Return an elastic rod that hangs by its end."""
    return f"""<mujoco><option timestep=".0005"/><worldbody>
    <flexcomp name="rope" type="grid" count="{links} 1 1" spacing=".05 .05 .05" dim="1"
      radius=".01" mass=".5" pos="0 0 2"><pin id="0"/>{APART}
      <elasticity young="1e6" poisson=".3" damping=".002"/></flexcomp></worldbody></mujoco>"""


def arm(muscles: int) -> str:
    """Return an arm of seven hinges; each tendon wraps around the bone below its joint."""
    axes = ("0 1 0", "1 0 0", "0 0 1", "0 1 0", "0 0 1", "0 1 0", "1 0 0")
    place = np.random.default_rng(0).uniform(-0.05, 0.05, (muscles, 2, 2))

    def sites(bone: int) -> str:
        ends = [(k, end) for k in range(muscles) for end in (0, 1) if k % len(axes) + end == bone]
        return "".join(
            f'<site name="s{k}_{end}" pos="{place[k, end, 0]:.4f} {place[k, end, 1]:.4f} -.1"/>'
            for k, end in ends
        )

    bodies = "".join(
        f'<body pos="0 0 {-0.2 if k else 2}"><joint name="j{k}" axis="{axis}" damping=".2" '
        f'range="-60 60"/><geom name="b{k}" type="cylinder" fromto="0 0 0 0 0 -.2" size=".03" '
        f'contype="0" conaffinity="0"/>{sites(k + 1)}'
        for k, axis in enumerate(axes)
    )
    paths = "".join(
        f'<spatial name="t{k}"><site site="s{k}_0"/><geom geom="b{k % len(axes)}"/>'
        f'<site site="s{k}_1"/></spatial>'
        for k in range(muscles)
    )
    drives = "".join(f'<muscle tendon="t{k}" lengthrange=".1 .4"/>' for k in range(muscles))
    return (
        f'<mujoco><option timestep=".002"/><worldbody>{sites(0)}{bodies}{"</body>" * len(axes)}'
        f"</worldbody><tendon>{paths}</tendon><actuator>{drives}</actuator></mujoco>"
    )


def lidar(rays: int) -> str:
    """Return a robot that drives among boxes, with a lidar camera."""
    high = 25
    posts = "".join(
        f'<geom type="box" size=".2 .2 .5" pos="{3 * np.cos(a):.3f} {3 * np.sin(a):.3f} .5"/>'
        for a in np.linspace(0, 2 * np.pi, 24, endpoint=False)
    )
    return f"""<mujoco><worldbody><geom type="plane" size="9 9 1"/>{posts}
    <body pos="0 0 .3"><freejoint/><geom type="box" size=".2 .2 .1"/>
      <camera name="eye" pos=".25 0 0" xyaxes="0 -1 0 0 0 1" fovy="80"
        resolution="{rays // high} {high}"/></body></worldbody>
    <sensor><rangefinder camera="eye"/></sensor></mujoco>"""


def awake(boxes: int) -> str:
    """Return the field of boxes of `asleep` without sleeping."""
    return asleep(boxes).replace('sleep="enable"', 'sleep="disable"')


def asleep(boxes: int) -> str:
    """Return a field of boxes at rest, which sleep."""
    side = int(np.ceil(np.sqrt(boxes)))
    bodies = "".join(
        f'<body pos="{k % side} {k // side} .1"><freejoint/>'
        '<geom type="box" size=".1 .1 .1"/></body>'
        for k in range(boxes)
    )
    return f"""<mujoco><option><flag sleep="enable"/></option><worldbody>
    <geom type="plane" size="99 99 1"/>{bodies}</worldbody></mujoco>"""


def servos(joints: int) -> str:
    """Return a hanging chain with PIDs and DC motors, with delayed controls and sensors."""
    late = 'nsample="6" delay=".01" interp="linear"'
    body = "".join(
        f'<body pos="{0.2 if k else 0} 0 {0 if k else 3}"><joint name="j{k}" axis="0 {k % 2} '
        f'{1 - k % 2}" damping=".1"/><geom type="capsule" fromto="0 0 0 .2 0 0" size=".03" '
        'contype="0" conaffinity="0"/>'
        for k in range(joints)
    )
    drives = "".join(
        f'<pid joint="j{k}" kp="20" ki="5" kv="1" {late}/>'
        if k % 2
        else f'<dcmotor joint="j{k}" motorconst=".05 .05" resistance="2" {late}/>'
        for k in range(joints)
    )
    sensed = "".join(f'<jointpos joint="j{k}" {late}/>' for k in range(joints))
    return (
        f"<mujoco><option timestep='.002'/><worldbody>{body}{'</body>' * joints}</worldbody>"
        f"<actuator>{drives}</actuator><sensor>{sensed}</sensor></mujoco>"
    )


def shell(side: int) -> str:
    """Return a cloth without penetration (IPC), on a ball and on itself."""
    return f"""<mujoco><option integrator="discrete" timestep=".002"><flag ipc="enable"/></option>
    <worldbody><geom type="plane" size="2 2 .1"/><geom size=".1" pos=".02 .01 0"/>
    <flexcomp name="cloth" type="grid" count="{side} {side} 1" spacing=".03 .03 .03" dim="2"
      pos="0 0 .13" radius=".004" mass=".3"><contact selfcollide="auto"/>
      <elasticity young="3e3" poisson=".1" thickness=".004" elastic2d="both" damping=".01"/>
    </flexcomp></worldbody></mujoco>"""


# by name: function, size, small size, and MuJoCo's steps before the measurement
SCENES = {
    "cloth": (cloth, 20, 4, 100),
    "soft": (soft, 5, 3, 100),
    "rope": (rope, 40, 6, 100),
    "arm": (arm, 80, 10, 50),
    "lidar": (lidar, 1000, 50, 10),
    "asleep": (asleep, 100, 4, 300),
    "awake": (awake, 100, 4, 300),
    "servos": (servos, 12, 4, 50),
    "shell": (shell, 8, 3, 60),
}

if __name__ == "__main__":
    main()
