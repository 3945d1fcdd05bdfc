"""Times of jaxsim.control: linearisation beside MuJoCo, and a swing-up by each method.

    python -m benchmarks.control [--states 100] [--repeat 5] [--methods ilqr mppi ...]

Both columns of the first table are taken in turns in one run, so that a busy machine slows both.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import optax

import jaxsim
from jaxsim import control

WALKER, CARTPOLE = "configs/walker.xml", "configs/cartpole.xml"
TURNS = 150


def milliseconds(function) -> float:
    start = time.perf_counter()
    jax.block_until_ready(function())
    return 1e3 * (time.perf_counter() - start)


def linearization(states: int, repeat: int) -> None:
    """A and B of states along a motion of the walker."""
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


def swing_up(wanted: list[str]) -> None:
    """The cost of a swing-up of the cart and pole, against seconds."""
    m = jaxsim.load_model(CARTPOLE)
    m = m.replace(opt=m.opt.replace(timestep=jnp.asarray(0.02, m.qpos0.dtype)))
    d = jaxsim.reset_data_keyframe(m, jaxsim.make_data(m, keep=("sensordata",)), "hanging")
    problem = control.Problem(
        [
            control.Term(
                "upright",
                lambda m, d: jnp.stack([1 - jnp.cos(d.qpos[1]), jnp.sin(d.qpos[1])]),
                weight=1.0,
                terminal=100.0,
            ),
            control.Term("home", lambda m, d: d.qpos[0], weight=0.1, terminal=10.0),
            control.Term("slow", lambda m, d: d.qvel, weight=0.01, terminal=5.0),
            control.Term("effort", lambda m, d: d.ctrl, weight=0.1),
        ]
    )
    steps, key = 100, jax.random.key(0)
    guess, knots = 0.01 * jnp.ones((steps, m.nu)), jnp.zeros((10, m.nu))
    sampled = {"steps": steps, "samples": 128, "sigma": 0.3, "iterations": TURNS}
    methods = {
        "ilqr": lambda: control.ilqr(m, d, guess, problem, iterations=TURNS).history,
        "shoot": lambda: (
            control.shoot(
                m, d, guess, problem, iterations=TURNS, optimizer=optax.adam(0.05), checkpoint=False
            ).history
        ),
        "predictive_sampling": lambda: (
            control.predictive_sampling(m, d, knots, problem, key, **sampled).history
        ),
        "mppi": lambda: control.mppi(m, d, knots, problem, key, temperature=1.0, **sampled).history,
        "cem": lambda: control.cem(m, d, knots, problem, key, **(sampled | {"sigma": 1.0})).history,
    }
    print(f"swing-up of {CARTPOLE}, {steps} steps of 0.02 s")
    shown = (0, 10, 50, TURNS - 1)
    print(f"| method | {' | '.join(f'cost before turn {k}' for k in shown)} | ms a turn |")
    print("|---|---|---|---|---|---|")
    for name, solve in methods.items():
        if name not in wanted:
            continue
        run = jax.jit(solve)
        milliseconds(run)
        taken = milliseconds(run) / TURNS
        costs = np.asarray(run())
        row = " | ".join(f"{costs[k]:.1f}" for k in shown)
        print(f"| {name} | {row} | {taken:.1f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=5)
    methods = ["ilqr", "shoot", "predictive_sampling", "mppi", "cem"]
    parser.add_argument("--methods", nargs="*", default=methods)
    arguments = parser.parse_args()
    if arguments.states:
        linearization(arguments.states, arguments.repeat)
    swing_up(arguments.methods)
