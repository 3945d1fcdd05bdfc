"""Identification of twenty parameters of a seven-joint arm from noisy motion of MuJoCo C.

    python benchmarks/identify.py [--starts 8] [--steps 125] [--out results/identify.json]

The masses of six links and damping and dry friction of seven joints are fitted to joint angles and
drive torques. For comparison, on the same data from the same starts, with the same weights, bounds
and limit of iterations: scipy's least_squares with finite differences on MuJoCo C, one thread, and
MuJoCo's own toolbox, mujoco.sysid, with its optimizer and all threads (pip install
'mujoco[sysid]'; left out if it is missing). Prints times, costs, errors and z scores (error over
its reported standard deviation).
"""

import argparse
import copy
import json
import os
import time
from pathlib import Path

# systems of twenty unknowns: the threads of a BLAS library would wait for each other
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import mujoco
import numpy as np
from mujoco import rollout, sysid
from scipy import optimize

import jaxsim
from jaxsim import identify

ITERATIONS = 50
MASSES = (3.0, 2.8, 2.4, 2.2, 1.5, 1.3, 0.8)
GAINS = (400, 400, 300, 300, 150, 100, 50)
ANGLE, TORQUE = 1e-3, 0.5  # standard deviations of the noise [rad, N m]


def arm(free: bool = True) -> str:
    """Return an arm with alternating axes, and friction and damping as in a data sheet."""
    body, end = "", ""
    for i, mass in enumerate(MASSES):
        axis = "0 0 1" if i % 2 == 0 else "0 1 0"
        body += (
            f'<body name="link{i + 1}" pos="0 0 {0.1 if i == 0 else 0.18}">'
            f'<joint name="j{i + 1}" axis="{axis}" damping="0.5" armature="0.02"'
            f' frictionloss="{0.3 if free else 0}"/>'
            f'<geom type="capsule" size="0.05" fromto="0 0 0.02 0.01 0.02 0.16" mass="{mass}"/>'
        )
        end += "</body>"
    n = range(1, 8)
    drives = "".join(
        f'<position name="d{i}" joint="j{i}" kp="{GAINS[i - 1]}" kv="{GAINS[i - 1] / 10}"/>'
        for i in n
    )
    sensors = "".join(f'<jointpos name="q{i}" joint="j{i}"/>' for i in n)
    sensors += "".join(f'<actuatorfrc name="t{i}" actuator="d{i}"/>' for i in n)
    return f"""<mujoco model="arm"><option timestep="0.004" integrator="implicitfast"/>
      <worldbody>{body}{end}</worldbody><actuator>{drives}</actuator>
      <sensor>{sensors}</sensor></mujoco>"""


FORMS = {
    "body:link[2-7]/mass": identify.scale(0.3, 3),
    "dof_damping": identify.log(0.02, 20),
    "dof_frictionloss": identify.log(0.02, 10),
}
# the same bounds as lowest and highest values
LOW = np.concatenate([0.3 * np.array(MASSES[1:]), np.full(14, 0.02)])
HIGH = np.concatenate([3.0 * np.array(MASSES[1:]), np.full(7, 20.0), np.full(7, 10.0)])


def numbers(theta: np.ndarray) -> np.ndarray:
    """Return the twenty values of their unknowns, as `identify.scale` and `identify.log` do."""
    return LOW * (HIGH / LOW) ** (1 / (1 + np.exp(-theta)))


def write(mj: mujoco.MjModel, numbers: np.ndarray) -> None:
    """Set the twenty values in a model of MuJoCo."""
    mj.body_mass[2:] = numbers[:6]
    mj.dof_damping[:], mj.dof_frictionloss[:] = numbers[6:13], numbers[13:]
    mujoco.mj_setConst(mj, mujoco.MjData(mj))


def simulate(mj: mujoco.MjModel, ctrl: np.ndarray) -> np.ndarray:
    """Return the sensors of all sequences from rest, (sequences, steps, 14)."""
    full = np.zeros(mujoco.mj_stateSize(mj, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    start = np.broadcast_to(full, (len(ctrl), len(full)))
    return rollout.rollout(mj, mujoco.MjData(mj), start, ctrl, persistent_pool=True)[1]


def recordings(steps: int, sequences: int, seed: int):
    """Return controls, noisy sensors and the true values."""
    rng = np.random.default_rng(seed)
    mj = mujoco.MjModel.from_xml_string(arm())
    true = np.concatenate(
        [
            np.array(MASSES[1:]) * np.exp(rng.uniform(-0.5, 0.5, 6)),
            np.exp(rng.uniform(np.log(0.3), np.log(2), 7)),
            np.exp(rng.uniform(np.log(0.2), np.log(2), 7)),
        ]
    )
    write(mj, true)
    t = 0.004 * np.arange(steps)[None, :, None, None]
    frequency, phase = rng.uniform(0.3, 2, (2, sequences, 1, 7, 3))
    ctrl = 0.25 * np.sin(2 * np.pi * (frequency * t + phase)).sum(-1)
    sigma = np.repeat([ANGLE, TORQUE], 7)
    y = simulate(mj, ctrl)
    return ctrl, y + sigma * rng.normal(size=y.shape), true, sigma


def ours(m, ctrl, y, sigma, starts: int) -> tuple[dict, identify.Fit]:
    names = [f"q{i}" for i in range(1, 8)] + [f"t{i}" for i in range(1, 8)]
    data = [
        identify.Sequence(
            dict(zip(names, b.T, strict=True)), ctrl=u, sigma=dict(zip(names, sigma, strict=True))
        )
        for u, b in zip(ctrl, y, strict=True)
    ]
    begin = time.perf_counter()
    fit = identify.fit(m, FORMS, data, starts=starts, iterations=ITERATIONS)
    return {"seconds": time.perf_counter() - begin} | fit.times, fit


def with_scipy(ctrl, y, sigma, thetas) -> dict:
    """Fit by scipy with two-point differences on MuJoCo C, with the values in the same bounds."""
    mj = mujoco.MjModel.from_xml_string(arm())

    def residual(values):
        write(mj, values)
        return ((simulate(mj, ctrl) - y) / sigma).ravel()

    begin, costs, evaluations = time.perf_counter(), [], 0
    options = {"bounds": (LOW, HIGH), "x_scale": "jac", "max_nfev": ITERATIONS}
    for start in map(numbers, thetas):
        end = optimize.least_squares(residual, start, **options)
        costs.append(float(end.cost))
        evaluations += end.nfev + end.njev * len(start)
    return {"seconds": time.perf_counter() - begin, "costs": costs, "evaluations": evaluations}


def with_sysid(ctrl, y, sigma, thetas) -> dict:
    """Fit by MuJoCo's toolbox, whose parameters are the values themselves, in the same bounds."""
    mj = mujoco.MjModel.from_xml_string(arm())
    # its rollouts leave out the last control
    times = 0.004 * np.arange(ctrl.shape[1] + 1)
    held = np.concatenate([ctrl, ctrl[:, -1:]], 1)
    full = np.zeros(mujoco.mj_stateSize(mj, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    evaluations = 0

    def build_model(params, spec):
        nonlocal evaluations
        evaluations += 1
        model = copy.copy(mj)
        write(model, params.as_vector())
        return model

    def weighted(params, predicted, measured, model, every, **_):
        return (predicted.data - measured.data) / sigma, predicted, measured

    data = sysid.ModelSequences(
        "arm",
        mujoco.MjSpec.from_string(arm()),
        [f"motion {i}" for i in range(len(y))],
        [full] * len(y),
        [sysid.TimeSeries.from_control_names(times, u, mj) for u in held],
        [sysid.TimeSeries.from_names(times[:-1], b, mj) for b in y],
    )
    residual = sysid.build_residual_fn(
        models_sequences=[data],
        build_model=build_model,
        modify_residual=weighted,
        resample_true=False,
    )
    begin, costs = time.perf_counter(), []
    for start in map(numbers, thetas):
        params = sysid.ParameterDict()
        params.add(sysid.Parameter("numbers", start, LOW, HIGH))
        found, _ = sysid.optimize(
            params, residual, max_iters=ITERATIONS, x_scale="jac", verbose=False
        )
        rows = np.concatenate([np.ravel(r) for r in residual(found.as_vector(), found)[0]])
        costs.append(float(rows @ rows / 2))
    return {"seconds": time.perf_counter() - begin, "costs": costs, "evaluations": evaluations}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--starts", type=int, default=8)
    parser.add_argument("--steps", type=int, default=125)
    parser.add_argument("--sequences", type=int, default=2)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    ctrl, y, true, sigma = recordings(args.steps, args.sequences, seed=0)
    m = jaxsim.load_model(arm())
    times, fit = ours(m, ctrl, y, sigma, args.starts)
    thetas = np.asarray(fit.parameters.draw(jax.random.key(0), args.starts), np.float64)
    others = {"scipy": with_scipy(ctrl, y, sigma, thetas)}
    if hasattr(sysid, "optimize"):
        others["sysid"] = with_sysid(ctrl, y, sigma, thetas)
    z = (fit.values - true) / fit.sd
    print(fit)
    print(
        f"jaxsim: {times['seconds']:.1f} s; trace {times['trace']:.1f}, "
        f"compile {times['compile']:.1f}, run {times['run']:.1f}"
    )
    print(f"  costs {np.sort(fit.costs).round(1)}, iterations {fit.solutions.iterations}")
    print(f"  errors over the truth {np.abs(fit.values / true - 1).max():.3%} at most")
    print(f"  z scores {np.sort(z).round(2)}, rms {np.sqrt((z**2).mean()):.2f}")
    for name, other in others.items():
        print(f"{name} on MuJoCo C: {other['seconds']:.1f} s, {other['evaluations']} evaluations")
        print(f"  costs {np.sort(other['costs']).round(1)}")
    if args.out:
        result = {
            "device": jax.devices()[0].device_kind,
            "jaxsim": times | {"costs": fit.costs.tolist()},
            "iterations": np.asarray(fit.solutions.iterations).tolist(),
            "z": z.tolist(),
            "largest_relative_error": float(np.abs(fit.values / true - 1).max()),
            **others,
        } | {n: getattr(args, n) for n in ("starts", "steps", "sequences")}
        args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
