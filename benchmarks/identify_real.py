"""Identification from real recordings: tosses of a cube, and a robot arm with torques.

    python benchmarks/identify_real.py cube [--tosses 1 4 16 64] [--seconds 120]
    python benchmarks/identify_real.py panda LOG.npz MODEL.xml [--friction FRICTION.csv]

cube: fits of examples/cube_tosses/identify.toml from more and more tosses, compared with the
simplex search of Nelder and Mead on MuJoCo C with the same pieces, loss, bounds, first guess and
processor time. Both compute the same cost: a fit whose cost on MuJoCo C (`cost_mujoco`) differs by
more than COST_TOLERANCE stops the benchmark. Each result predicts whole tosses that were held back,
from their initial states: mean over samples and tosses of the distance of the centers, as a
percentage of the side, and of the angle between the orientations, the measures of ContactNets
(Pfrommer, Halm and Posa, CoRL 2020).

panda: linear least squares of torques (benchmarks/panda_torques.py).

Times are those of the processor; results are written to results/identify_real_*.json.
"""

import argparse
import contextlib
import json
import math
import time
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np
from mujoco import rollout
from panda_torques import panda
from scipy import optimize
from scipy.spatial.transform import Rotation

from jaxsim import identify
from jaxsim.identify.study import read_study

ROOT = Path(__file__).resolve().parent
EXAMPLE = ROOT.parent / "examples/cube_tosses"
SIDE, RATE, SUBSTEPS, HELD = 0.1048, 148, 4, 64  # [m], [Hz], and the first toss held back
ROBUST, SAMPLES = 3.0, 12  # of the file: pseudo-Huber constant, samples of a piece
# Largest relative difference of costs of the same values: rounding of single precision.
COST_TOLERANCE = 1e-3
SIGMA = np.array([5e-4] * 3 + [3.5e-3] * 4)
NAMES = (
    *("geom:cube/size", "geom:cube/friction[0]", "geom:cube/solref[0]", "geom:cube/solref[1]"),
    *("geom:table/pos[2]", "body:cube/inertia"),
)
GUESS = np.array([0.0524, 0.2, 0.01, 0.8, 0.0, 1.0])
LOW = np.array([0.048, 0.03, 0.0035, 0.1, -0.006, 0.5])
HIGH = np.array([0.058, 0.8, 0.05, 4.0, 0.004, 2.0])
# Restitution e of a linear spring and damper: e = exp(-pi z / sqrt(1 - z^2)), z the damping ratio.
PUBLISHED_FRICTION, PUBLISHED_RESTITUTION = 0.18, 0.125


class Toss(NamedTuple):
    """A recording: state at its first sample, (13,), and the poses of all, (n, 7)."""

    state: np.ndarray
    poses: np.ndarray


def read_tosses() -> list[Toss]:
    """Return all tosses of the example."""
    recordings = identify.read_recordings(EXAMPLE / "tosses.npz")
    return [Toss(series.values[0], series.values[:, :7]) for series in recordings]


def mujoco_model(values: np.ndarray) -> mujoco.MjModel:
    """Return the cube with other parameters, in the order of NAMES."""
    half, friction, timeconst, ratio, height, inertia = values
    spec = mujoco.MjSpec.from_file(str(EXAMPLE / "cube.xml"))
    cube, table = spec.geom("cube"), spec.geom("table")
    cube.size, cube.friction = [half] * 3, [friction, 0, 0]
    cube.solref, table.pos = [timeconst, ratio], [0, 0, height]
    m = spec.compile()
    m.body_inertia[1] *= inertia
    # MuJoCo takes the mass matrix of a simple body from dof_M0, which only this updates
    mujoco.mj_setConst(m, mujoco.MjData(m))
    return m


def pieces_of(tosses: list[Toss]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the state at the start of each piece, (13,), and the poses that it predicts, (k, 7).

    Velocities are central differences, as in a fit of untied pieces.
    """
    found = []
    for toss in tosses:
        pos, turns = toss.poses[:, :3], Rotation.from_quat(toss.poses[:, 3:], scalar_first=True)
        for first in range(0, len(pos) - 1, SAMPLES):
            state = toss.state
            if first:
                linear = (pos[first + 1] - pos[first - 1]) * RATE / 2
                middle = turns[first].inv()
                ends = (middle * turns[first + 1]).as_rotvec() - (
                    middle * turns[first - 1]
                ).as_rotvec()
                state = np.concatenate([toss.poses[first], linear, ends * RATE / 2])
            # the sample at a cut is the start of the next piece
            end = first + SAMPLES if first + SAMPLES < len(pos) - 1 else len(pos)
            found.append((state, toss.poses[first + 1 : end]))
    return found


def predict(m: mujoco.MjModel, state: np.ndarray, samples: int) -> np.ndarray:
    """Return the poses of the next samples, (samples, 7)."""
    full = np.concatenate([[0.0], state])[None]
    states = rollout.rollout(m, mujoco.MjData(m), full, nstep=samples * SUBSTEPS)[0]
    poses: np.ndarray = states[0, SUBSTEPS - 1 :: SUBSTEPS, 1:8]
    return poses


def cost_of(values: np.ndarray, pieces: list) -> float:
    """Return the cost that a fit minimizes, by MuJoCo."""
    m, total = mujoco_model(values), 0.0
    for state, poses in pieces:
        u = (predict(m, state, len(poses)) - poses) / SIGMA
        total += ROBUST**2 * np.sum(np.sqrt(1 + (u / ROBUST) ** 2) - 1)
    return float(total)


def nelder_mead(pieces: list, seconds: float) -> dict:
    """Minimize the cost by a simplex in logits of the bounds, for some processor time."""
    begin, best = time.process_time(), [math.inf, GUESS]
    evaluations = 0

    class OutOfTime(Exception):
        pass

    def values_of(u: np.ndarray) -> np.ndarray:
        return LOW + (HIGH - LOW) / (1 + np.exp(-u))

    def cost(u: np.ndarray) -> float:
        nonlocal evaluations
        if time.process_time() - begin > seconds:
            raise OutOfTime
        found = cost_of(values_of(u), pieces)
        evaluations += 1
        if found < best[0]:
            best[:] = found, values_of(u)
        return found

    start = np.log((GUESS - LOW) / (HIGH - GUESS))
    simplex = start + np.vstack([np.zeros(len(start)), 0.5 * np.eye(len(start))])
    options = {"initial_simplex": simplex, "maxfev": 2000}
    with contextlib.suppress(OutOfTime):
        optimize.minimize(cost, start, method="Nelder-Mead", options=options)
    used = time.process_time() - begin
    return {"values": list(best[1]), "cost": best[0], "evaluations": evaluations, "seconds": used}


def errors(values: np.ndarray, tosses: list[Toss]) -> dict:
    """Return errors of whole tosses: mean, standard error of the mean, median."""
    m, position, angle = mujoco_model(values), [], []
    for toss in tosses:
        poses = np.vstack([toss.poses[0], predict(m, toss.state, len(toss.poses) - 1)])
        off = np.linalg.norm(poses[:, :3] - toss.poses[:, :3], axis=1)
        cosine = np.abs(np.sum(poses[:, 3:] * toss.poses[:, 3:], axis=1))
        norms = np.linalg.norm(poses[:, 3:], axis=1) * np.linalg.norm(toss.poses[:, 3:], axis=1)
        position.append(100 * off.mean() / SIDE)
        angle.append(np.degrees(2 * np.arccos(np.minimum(cosine / norms, 1))).mean())
    found = {}
    for name, each in (("position_percent", position), ("angle_degrees", angle)):
        deviation = np.std(each, ddof=1) / math.sqrt(len(each))
        found[name] = {"mean": np.mean(each), "se": deviation, "median": np.median(each)}
    return json.loads(json.dumps(found, default=float))


def with_gradients(count: int, iterations: int) -> dict:
    """Fit the study of the example from some tosses."""
    begin = time.process_time()
    study = read_study(EXAMPLE / "identify.toml", [f"data.0.recordings='0:{count}'"])
    how = study.study.fit
    fit = identify.fit(
        study.m,
        study.parameters,
        study.data,
        iterations=iterations,
        segments=how.segments,
        tied=how.tied,
        robust=how.robust,
        tier="fast",
    )
    order = [fit.names.index(n) for n in NAMES]
    return {
        "values": fit.values[order].tolist(),
        "sd": fit.sd[order].tolist(),
        "cost": fit.cost,
        "iterations": int(np.asarray(fit.solutions.iterations)[0]),
        "seconds": time.process_time() - begin,
        "wall": fit.times,
    }


def published() -> np.ndarray:
    """Return the published friction and restitution, with the stiffest contact of the bounds."""
    decrement = -math.log(PUBLISHED_RESTITUTION)
    ratio = decrement / math.hypot(math.pi, decrement)
    return np.array([0.0524, PUBLISHED_FRICTION, 2 / (RATE * SUBSTEPS), ratio, 0.0, 1.0])


def cube(args: argparse.Namespace) -> dict:
    tosses = read_tosses()
    held = tosses[HELD:]
    results = {
        "names": NAMES,
        "held": len(held),
        "first_guess": errors(GUESS, held),
        "published": {"values": published().tolist(), "errors": errors(published(), held)},
        "fits": {},
    }
    for count in args.tosses:
        pieces = pieces_of(tosses[:count])
        ours = with_gradients(count, args.iterations)
        ours |= {"cost_mujoco": cost_of(np.array(ours["values"]), pieces)}
        if not math.isclose(ours["cost"], ours["cost_mujoco"], rel_tol=COST_TOLERANCE):
            raise RuntimeError(
                f"{count} tosses: costs differ: {ours['cost']}, on MuJoCo C "
                f"{ours['cost_mujoco']}; model, states or residual are not the same"
            )
        ours |= {"errors": errors(np.array(ours["values"]), held)}
        simplex = nelder_mead(pieces, args.seconds or ours["seconds"])
        simplex |= {"errors": errors(np.array(simplex["values"]), held)}
        results["fits"][str(count)] = {"gradients": ours, "nelder_mead": simplex}
        for name, found in results["fits"][str(count)].items():
            means = [found["errors"][n]["mean"] for n in ("position_percent", "angle_degrees")]
            print(f"{count} tosses, {name}: {np.round(found['values'], 5)}", end=" ")
            print(
                f"errors {means[0]:.1f} % {means[1]:.1f} deg, {found['seconds']:.0f} s", flush=True
            )
        write(args.out or ROOT / "results/identify_real_cube.json", results)
    return results


def write(path: Path, results: dict) -> None:
    path.write_text(json.dumps(results, indent=1, default=float) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    tossed = commands.add_parser("cube", help="tosses of a cube")
    tossed.add_argument("--tosses", type=int, nargs="+", default=[1, 4, 16, 64])
    tossed.add_argument("--iterations", type=int, default=30)
    tossed.add_argument("--seconds", type=float, help="of the simplex search; else as the fit")
    arm = commands.add_parser("panda", help="torques of a robot arm")
    arm.add_argument("log", type=Path, help=".npz: time, qpos, qvel, torque")
    arm.add_argument("model", type=Path, help="MJCF of the arm")
    arm.add_argument("--friction", type=Path, help="CSV of a sigmoid friction model, 3 rows")
    for command in (tossed, arm):
        command.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.command == "cube":
        cube(args)
    else:
        write(args.out or ROOT / "results/identify_real_panda.json", panda(args))


if __name__ == "__main__":
    main()
