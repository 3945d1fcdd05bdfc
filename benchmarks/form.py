"""The form of the numerical code: tree dynamics and solver products, written in different ways.

    python benchmarks/form.py [--worlds 1 1024 4096] [--json benchmarks/results/NAME.json]

The task is M(q) and the bias force of a humanoid (27 dofs), a chain of 30 hinges and a tree of 60
dofs:
  components   this project's stages, worlds last
  vmap         the same stages under plain vmap, worlds first
  grouped      arrays grouped by tree level under vmap: MuJoCo XLA's own stages
docs/developer/measurements.md quotes the figures.
"""

import argparse
import json
import time

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import states
import throughput
from mujoco import mjx
from mujoco.mjx._src import smooth

import jaxsim
from jaxsim.physics.body.inertia import com_pos, crb
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.body.rne import com_vel, rne
from jaxsim.transforms.layout import unpack_record

LIMIT = 1200.0  # seconds for one case


def tree60() -> str:
    """A free root with nine limbs of six hinges."""
    limb = "".join(
        f'<body pos=".2 0 0"><joint axis="0 {i % 2} {1 - i % 2}"/>'
        '<geom type="capsule" fromto="0 0 0 .2 0 0" size=".03" contype="0" conaffinity="0"/>'
        for i in range(6)
    )
    limbs = "".join(f'<frame euler="0 0 {40 * k}">{limb}{"</body>" * 6}</frame>' for k in range(9))
    root = '<body pos="0 0 2"><freejoint/><geom size=".2" contype="0" conaffinity="0"/>'
    return f"<mujoco><worldbody>{root}{limbs}</body></worldbody></mujoco>"


def models() -> dict[str, mujoco.MjModel]:
    return {
        "humanoid": states.load("humanoid", "rl"),
        "chain30": mujoco.MjModel.from_xml_string(states.chain(30)),
        "tree60": mujoco.MjModel.from_xml_string(tree60()),
    }


def stages(m, d):
    """M and the bias force by this project's stages."""
    for stage in (kinematics, com_pos):
        d = stage(m, d)
    d = d.replace(ten_J=jnp.zeros((m.ntendon, m.nv, *d.qpos.shape[1:]), d.qpos.dtype))
    d = com_vel(m, crb(m, d))
    return d.M, rne(m, d)


def components(m: mujoco.MjModel, q, v):
    """Worlds last, all at once."""
    model = jaxsim.put_model(m)
    data = jaxsim.make_data(model)

    def run(model, q, v):
        last = jax.tree.map(lambda a: a[..., None], (model, data))
        mw, dw = (unpack_record(x, 1) for x in last)
        return stages(mw, dw.replace(qpos=q.T, qvel=v.T))

    return run, model


def vmapped(m: mujoco.MjModel, q, v):
    """The one-world form under plain vmap."""
    model = jaxsim.put_model(m)
    data = jaxsim.make_data(model)

    def one(model, q, v):
        return stages(unpack_record(model, 0), unpack_record(data, 0).replace(qpos=q, qvel=v))

    return jax.vmap(one, (None, 0, 0)), model


def grouped(m: mujoco.MjModel, q, v):
    """The peer: arrays grouped by level, under vmap."""
    model = mjx.put_model(m, impl="jax")
    data = mjx.make_data(m, impl="jax")

    def one(model, q, v):
        d = data.replace(qpos=q, qvel=v)
        for stage in (smooth.kinematics, smooth.com_pos, smooth.crb, smooth.com_vel):
            d = stage(model, d)
        d = smooth.rne(model, d)
        return mjx.full_m(model, d), d.qfrc_bias

    return jax.vmap(one, (None, 0, 0)), model


FORMS = {"components": components, "vmap": vmapped, "grouped": grouped}


def measure(form: str, name: str, worlds: int) -> dict:
    m = models()[name]
    rng = np.random.default_rng(0)
    start = states.states(m, worlds)
    q, v = (jnp.asarray(start[k], jnp.float32) for k in ("qpos", "qvel"))
    v = v + 0.1 * jnp.asarray(rng.standard_normal(v.shape), jnp.float32)
    run, model = FORMS[form](m, q, v)
    row, compiled = throughput.compile_times(run, model, q, v)
    row |= {"model": name, "form": form, "worlds": worlds, "run_ms": best_ms(compiled, model, q, v)}

    def loss(q):
        return sum(jnp.sum(x**2) for x in run(model, q, v))

    times, gradient = throughput.compile_times(jax.grad(loss), q)
    row["grad_compile_s"], row["grad_ms"] = times["compile_s"], best_ms(gradient, q)
    return row


def best_ms(compiled, *args) -> float:
    jax.block_until_ready(compiled(*args))
    times = []
    for _ in range(15):
        began = time.perf_counter()
        jax.block_until_ready(compiled(*args))
        times.append(time.perf_counter() - began)
    return 1e3 * min(times)


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--worlds", nargs="+", type=int, default=[1, 1024, 4096])
    ap.add_argument("--json")
    args = ap.parse_args()
    rows = []
    print(
        "| model | form | worlds | trace+lower s | compile s | run ms | instr "
        "| grad compile s | grad ms |"
    )
    print("|" + " --- |" * 9)
    for name in models():
        for form in FORMS:
            for worlds in args.worlds:
                row = throughput.in_process(1, LIMIT, measure, form, name, worlds)
                rows.append(row)
                if "error" in row:
                    print(f"| {name} | {form} | {worlds} | {row['error']} |", flush=True)
                    continue
                print(
                    f"| {name} | {form} | {worlds} | {row['trace_s'] + row['lower_s']:.2f} |"
                    f" {row['compile_s']:.2f} | {row['run_ms']:.2f} | {row['hlo_instructions']} |"
                    f" {row['grad_compile_s']:.2f} | {row['grad_ms']:.2f} |",
                    flush=True,
                )
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"machine": throughput.machine(), "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
