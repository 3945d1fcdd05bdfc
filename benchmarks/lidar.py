"""A lidar: thousands of rays from a moving sensor, compared with MuJoCo C and MJX in one run.

    python benchmarks/lidar.py [--scenes full mesh primitives] [--rays 1024 4096]
        [--worlds 1 64 1024] [--engines c mjx jaxsim] [--json benchmarks/results/lidar.json]

Every (scene, engine, rays, worlds) runs in a process of its own, without a compilation cache. The
poses of the sensor and of free bodies differ between worlds; a call computes the poses of all
bodies and then the rays. C is `mj_kinematics` and `mj_multiRay`, world after world on one core, in
double precision; jaxsim and MJX are `jit(vmap(...))` in single precision, on all cores. The scene
"full" has geoms that MJX's rays do not support (the height field, cylinders); "mesh" is without
these, "primitives" without the mesh too. A case of MJX whose test of all rays against all faces
would not fit the memory is left out.
"""

import argparse
import json
import time
from pathlib import Path

import mujoco
import numpy as np
from throughput import in_process, machine

LIMIT = 1200.0  # seconds for one case

SENSOR = "sensor"
FACES = 5120  # faces of the mesh: a sphere with bumps
GEOMS = 24  # primitives
MEMORY = 8e9  # bytes that a case of MJX may need: nine numbers for each ray and face
SECONDS = 2.0  # duration of the measurement of a case


def main() -> None:
    args = arguments()
    rows = []
    for scene in args.scenes:
        for rays in args.rays:
            for worlds in args.worlds:
                for engine in args.engines:
                    row = in_process(1, LIMIT, measure, engine, scene, rays, worlds)
                    rows.append({"scene": scene, "rays": rays, "worlds": worlds} | row)
                    print(line(rows[-1]), flush=True)
    if args.json:
        what = {"machine": machine(), "faces": FACES, "geoms": GEOMS}
        Path(args.json).write_text(json.dumps(what | {"rows": rows}, indent=1) + "\n")


def arguments() -> argparse.Namespace:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--scenes", nargs="+", default=list(SCENES))
    ap.add_argument("--rays", nargs="+", type=int, default=[1024, 4096])
    ap.add_argument("--worlds", nargs="+", type=int, default=[1, 64, 1024])
    ap.add_argument("--engines", nargs="+", default=["c", "mjx", "jaxsim"])
    ap.add_argument("--json", help="file for the results")
    return ap.parse_args()


def measure(engine: str, scene: str, rays: int, worlds: int) -> dict:
    """Return rays per second of one engine, and the time of compilation."""
    m, way = model(scene), pattern(rays)
    qpos = states(m, worlds)
    found = {"engine": engine} | ENGINES[engine](m, qpos, way)
    if "seconds" in found:
        found["rays_per_s"] = rays * worlds / found["seconds"]
    return found


def line(row: dict) -> str:
    head = f"{row['scene']:11} {row['rays']:5} rays {row['worlds']:5} worlds {row['engine']:7}"
    if "rays_per_s" not in row:
        return f"{head} {row.get('error', '')}"
    compiled = f", compiled in {row['compile_s']:.1f} s" if "compile_s" in row else ""
    return f"{head} {row['rays_per_s']:12,.0f} rays/s, {row['met']:.0%} meet{compiled}"


# scenes: a sensor on a free body among others, above the ground


def model(scene: str) -> mujoco.MjModel:
    assets, ground, kinds = SCENES[scene]
    rng = np.random.default_rng(0)
    things = [f'type="{kinds[k % len(kinds)]}" size=".3 .4 .5"' for k in range(GEOMS)]
    if "mesh" in assets:
        things += ['type="mesh" mesh="rock"'] * 2
    bodies = "".join(
        f'<body pos="{x:.3f} {y:.3f} 1"><freejoint/><geom {thing}/></body>'
        for thing, (x, y) in zip(things, rng.uniform(-8, 8, (len(things), 2)), strict=True)
    )
    sensor = f'<body name="{SENSOR}" pos="0 0 1.5"><freejoint/><geom size=".1"/></body>'
    return mujoco.MjModel.from_xml_string(
        # MJX's rays fail in a model without any material
        f'<mujoco><asset><material name="paint"/>{assets}</asset>'
        f"<worldbody>{ground}{sensor}{bodies}</worldbody></mujoco>"
    )


def rock() -> str:
    """Return a mesh of 5,120 faces: an icosahedron, refined four times, with bumps."""
    vertex, face = _icosphere(4)
    vertex = vertex * (1 + 0.1 * np.sin(5 * vertex).prod(axis=1, keepdims=True))
    assert len(face) == FACES
    numbers = (" ".join(map(str, x.ravel())) for x in (vertex.round(6), face))
    return '<mesh name="rock" vertex="{}" face="{}"/>'.format(*numbers)


def hills() -> str:
    x, y = np.meshgrid(*[np.linspace(0, 6, 60)] * 2)
    heights = " ".join(map(str, (np.sin(x) * np.cos(1.3 * y)).round(4).ravel()))
    return f'<hfield name="hills" nrow="60" ncol="60" size="15 15 .8 .2" elevation="{heights}"/>'


def _icosphere(times: int) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices on the unit sphere and faces, after repeated division into four."""
    t = (1 + 5**0.5) / 2
    a = [(-1, t, 0), (1, t, 0), (-1, -t, 0), (1, -t, 0)]
    vertex = np.array([np.roll(p, k) for k in range(3) for p in a], float)
    vertex /= np.linalg.norm(vertex, axis=1)[:, None]
    apart = np.linalg.norm(vertex[:, None] - vertex, axis=2)
    near = (apart > 0) & (apart < 1.1)
    n = range(len(vertex))
    face = [
        (i, j, k)
        for i in n for j in n for k in n
        if i < j < k and near[i, j] and near[j, k] and near[i, k]
    ]  # fmt: skip
    for _ in range(times):
        points, number, more = vertex.tolist(), {}, []

        def middle(i: int, j: int) -> int:
            key = min(i, j), max(i, j)
            if key not in number:  # noqa: B023
                number[key] = len(points)  # noqa: B023
                p = np.add(points[i], points[j])  # noqa: B023
                points.append((p / np.linalg.norm(p)).tolist())  # noqa: B023
            return number[key]  # noqa: B023

        for i, j, k in face:
            a, b, c = middle(i, j), middle(j, k), middle(k, i)
            more += [(i, a, c), (a, j, b), (c, b, k), (a, b, c)]
        vertex, face = np.array(points), more
    face = np.array(face)
    p, q, r = (vertex[face[:, k]] for k in range(3))
    inwards = np.sum(np.cross(q - p, r - p) * p, axis=1) < 0
    face[inwards] = face[inwards][:, ::-1]
    return vertex, face


FLOOR = '<geom type="plane" size="0 0 1"/>'
KNOWN = ("sphere", "capsule", "ellipsoid", "box")  # supported by MJX's rays
SCENES = {
    "full": (rock() + hills(), '<geom type="hfield" hfield="hills"/>', (*KNOWN, "cylinder")),
    "mesh": (rock(), FLOOR, KNOWN),
    "primitives": ("", FLOOR, KNOWN),
}


def pattern(rays: int) -> np.ndarray:
    """Return directions of the rays in the frame of the sensor: 32 rings, from 25 degrees below."""
    rings = 32
    down, turn = np.meshgrid(
        np.radians(np.linspace(-25, 15, rings)), np.linspace(0, 2 * np.pi, rays // rings, False)
    )
    parts = np.cos(down) * np.cos(turn), np.cos(down) * np.sin(turn), np.sin(down)
    return np.stack(parts, -1).reshape(-1, 3)


def states(m: mujoco.MjModel, worlds: int) -> np.ndarray:
    """Return states with other positions and yaw angles of the sensor and bodies in each world."""
    rng = np.random.default_rng(1)
    qpos = np.tile(m.qpos0, (worlds, 1)).reshape(worlds, -1, 7)
    qpos[..., :2] += rng.normal(size=(*qpos.shape[:2], 2))
    angle = rng.uniform(0, np.pi, qpos.shape[:2])
    qpos[..., 3], qpos[..., 6] = np.cos(angle), np.sin(angle)
    return qpos.reshape(worlds, -1)


# engines: seconds for all rays of all worlds once


def c_engine(m: mujoco.MjModel, qpos: np.ndarray, way: np.ndarray) -> dict:
    d, n, body = mujoco.MjData(m), len(way), m.body(SENSOR).id
    geom, dist = np.zeros(n, np.int32), np.zeros(n)
    met = []

    def world(q: np.ndarray) -> None:
        d.qpos[:] = q
        mujoco.mj_kinematics(m, d)
        vec = (way @ d.xmat[body].reshape(3, 3).T).ravel()
        mujoco.mj_multiRay(m, d, d.xpos[body], vec, None, 1, body, geom, dist, None, n, 1e10)

    some = qpos[:64]  # the worlds are alike and run one after another

    def call() -> None:
        for q in some:
            world(q)
        met.append((geom >= 0).mean())

    seconds = best_of(call) * len(qpos) / len(some)
    return {"seconds": seconds, "met": float(met[-1]), "cores": 1}


def jaxsim_engine(m: mujoco.MjModel, qpos: np.ndarray, way: np.ndarray) -> dict:
    import jaxsim

    model, body = jaxsim.put_model(m), m.body(SENSOR).id
    d = jaxsim.stages.kinematics(model, jaxsim.make_data(model, keep=["xpos", "xmat"]))

    def world(q, way):
        here = jaxsim.stages.kinematics(model, d.replace(qpos=q))
        hit = jaxsim.support.multi_ray(
            model, here, here.xpos[body], way @ here.xmat[body].T, bodyexclude=body
        )
        return hit.dist

    return in_jax(world, qpos, way)


def mjx_engine(m: mujoco.MjModel, qpos: np.ndarray, way: np.ndarray) -> dict:
    import jax
    from mujoco import mjx

    faces = sum(m.mesh_facenum[m.geom_dataid[m.geom_type == mujoco.mjtGeom.mjGEOM_MESH]])
    if m.nhfield:
        return {"error": "rays do not know height fields and cylinders"}
    if 36 * int(faces) * len(way) * len(qpos) > MEMORY:
        return {"error": "too large: every ray is compared with every face"}
    m.geom_contype[:] = m.geom_conaffinity[:] = 0  # it rejects pairs of geoms that may touch
    model, body = mjx.put_model(m, impl="jax"), m.body(SENSOR).id
    d = mjx.make_data(m, impl="jax")

    def world(q, way):
        here = mjx.kinematics(model, d.replace(qpos=q))
        one = lambda v: mjx.ray(model, here, here.xpos[body], v, bodyexclude=body)[0]  # noqa: E731
        return jax.vmap(one)(way @ here.xmat[body].T)

    return in_jax(world, qpos, way)


ENGINES = {"c": c_engine, "mjx": mjx_engine, "jaxsim": jaxsim_engine}


def in_jax(world, qpos: np.ndarray, way: np.ndarray) -> dict:
    """Compile a function of one world, batched over all of them, and time it."""
    import jax
    import jax.numpy as jnp

    operands = jnp.asarray(qpos, jnp.float32), jnp.asarray(way, jnp.float32)
    began = time.perf_counter()
    program = jax.jit(jax.vmap(world, (0, None))).lower(*operands).compile()
    compile_s = time.perf_counter() - began
    out = []
    seconds = best_of(lambda: out.append(jax.block_until_ready(program(*operands))))
    met = float((out[-1] >= 0).mean())
    temporaries = program.memory_analysis().temp_size_in_bytes
    return {"seconds": seconds, "met": met, "compile_s": compile_s, "temporaries": temporaries}


def best_of(call) -> float:
    """Return the shortest time of some calls, after one that does not count."""
    call()
    times, end = [], time.perf_counter() + SECONDS
    while len(times) < 2 or (time.perf_counter() < end and len(times) < 50):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    main()
