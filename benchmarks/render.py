"""Pictures a second, of one and of many worlds, beside MuJoCo's renderer where it has a context.

    MUJOCO_GL=egl python benchmarks/render.py [MODEL.xml]

Writes benchmarks/results/render.json.
"""

import json
import os
import platform
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp

import jaxsim
from jaxsim.view import Look

HERE = Path(__file__).resolve().parent
MODEL = HERE.parent / "jaxsim/envs/tasks/quadruped.xml"
TURNS = 3


def best(call) -> float:
    """Seconds of the fastest of a few calls, after one that compiles."""
    call()
    times = []
    for _ in range(TURNS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def ours(path: str, size: int, worlds: int, what: tuple[str, ...]) -> float:
    m = jaxsim.load_model(path)
    look, d = Look.of(m, path), jaxsim.make_data(m)
    qpos = jnp.tile(d.qpos, (worlds, 1))

    @jax.jit
    def draw(qpos):
        def one(q):
            return jaxsim.render(m, d.replace(qpos=q), None, size, size, what=what, look=look)

        return jax.vmap(one)(qpos)

    return best(lambda: jax.block_until_ready(draw(qpos))) / worlds


def theirs(path: str, size: int, depth: bool) -> float | str:
    try:
        import mujoco

        m = mujoco.MjModel.from_xml_path(path)
        d = mujoco.MjData(m)
        mujoco.mj_forward(m, d)
        renderer = mujoco.Renderer(m, size, size)
    except Exception as error:  # noqa: BLE001  (whatever the library of the screen says)
        return f"no context: {error}"
    if depth:
        renderer.enable_depth_rendering()

    def draw():
        renderer.update_scene(d)
        renderer.render()

    return best(draw)


def main() -> None:
    path = sys.argv[1] if len(sys.argv) > 1 else str(MODEL)
    rows = []
    for size in (64, 128):
        for what in (("depth",), ("rgb",)):
            row = {"size": size, "what": what[0]}
            for worlds in (1, 64):
                seconds = ours(path, size, worlds, what)
                row[f"pictures_per_second_{worlds}_worlds"] = round(1 / seconds, 2)
            there = theirs(path, size, what == ("depth",))
            row["mujoco_pictures_per_second"] = (
                there if isinstance(there, str) else round(1 / there, 2)
            )
            rows.append(row)
            print(row, flush=True)
    result = {
        "model": Path(path).name,
        "device": str(jax.devices()[0]),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
        "mujoco_gl": os.environ.get("MUJOCO_GL", ""),
        "rows": rows,
    }
    target = HERE / "results/render.json"
    target.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
