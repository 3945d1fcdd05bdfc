"""Step length of a single Newton iteration, compared with MuJoCo.

    python benchmarks/one_iteration.py MODEL.xml [--states 256] [--evaluations 5 50]

Environments give their solver one iteration with few evaluations of the line search, which does not
converge, so two implementations may differ by more than rounding. Random states near the keyframe
of a model are solved in double precision from the same warm start. For each number of evaluations
the program reports the difference of the velocities after a step, the distance of both
accelerations from the line of the Newton direction, and the difference of their step lengths from
the one of zero slope; also the change of MuJoCo's own velocities if the velocities before are
perturbed by a relative 1e-12.
"""

import argparse
import copy
import json

import jax
import mujoco
import numpy as np
from scipy.optimize import brentq

import jaxsim

ACTIVE = 1  # mjtConstraintState: quadratic


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--states", type=int, default=256)
    parser.add_argument("--evaluations", type=int, nargs="+", default=[5, 50])
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    model = mujoco.MjModel.from_xml_path(args.model)
    model.opt.iterations, model.opt.jacobian = 1, mujoco.mjtJacobian.mjJAC_DENSE
    model.opt.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
    for evaluations in args.evaluations:
        model.opt.ls_iterations = evaluations
        print(json.dumps({"evaluations": evaluations} | compare(model, states(model, args.states))))


def states(model: mujoco.MjModel, count: int) -> list[mujoco.MjData]:
    """Return states near the keyframe, after four steps of MuJoCo."""
    rng, out = np.random.default_rng(0), []
    for _ in range(count):
        d = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, d, 0)
        move = rng.uniform(-0.3, 0.3, model.nv)
        move[:6] *= 0.1  # a floating base
        mujoco.mj_integratePos(model, d.qpos, move, 1.0)
        d.qvel[:] = rng.uniform(-1, 1, model.nv)
        d.ctrl[:] += rng.uniform(-0.3, 0.3, model.nu)
        for _ in range(4):
            mujoco.mj_step(model, d)
        out.append(d)
    return out


def solved(model: mujoco.MjModel, starts: list, change: float = 0.0) -> list[mujoco.MjData]:
    """Return MuJoCo's solution of each state, with its velocities perturbed."""
    rng, out = np.random.default_rng(1), []
    for start in starts:
        d = copy.copy(start)
        d.qvel[:] *= 1 + change * rng.normal(size=model.nv)
        d.qacc_warmstart[:] = start.qacc_warmstart
        mujoco.mj_forward(model, d)
        out.append(d)
    return out


def compare(model: mujoco.MjModel, starts: list) -> dict:
    """Return the figures of one number of evaluations."""
    m = jaxsim.put_model(model)
    start = jaxsim.make_data(m)
    names = ("qpos", "qvel", "qacc_warmstart", "ctrl")
    worlds = {name: np.array([getattr(d, name) for d in starts]) for name in names}
    run = jax.jit(jax.vmap(lambda given: jaxsim.forward(m, start.replace(**given)).qacc))
    ours, theirs = np.asarray(run(worlds)), solved(model, starts)
    again = solved(model, starts, 1e-12)
    lines = [Line(model, d, warm) for d, warm in zip(theirs, worlds["qacc_warmstart"], strict=True)]
    c = np.array([d.qacc for d in theirs])
    h = model.opt.timestep
    result = {
        "apart": _spread(h * np.abs(ours - c).max(1)),
        "MuJoCo changed": _spread(h * np.abs([d.qacc for d in again] - c).max(1)),
    }
    for name, found in (("jaxsim", ours), ("MuJoCo", c)):
        at = [line.length(x) for line, x in zip(lines, found, strict=True)]
        best = [line.best() for line in lines]
        beside = [line.beside(x) for line, x in zip(lines, found, strict=True)]
        result[name] = {
            "beside the line": max(beside),
            "length - best": _spread(np.abs(np.subtract(at, best))),
        }
    return result


def _spread(a: np.ndarray) -> dict:
    return {
        "median": float(np.median(a)),
        "max": float(a.max()),
        "over 1e-6": int((a > 1e-6).sum()),
    }


class Line:
    """Cost along the Newton direction from the initial point of the solver."""

    def __init__(self, model: mujoco.MjModel, d: mujoco.MjData, warm: np.ndarray):
        self.model, self.d, nv = model, d, model.nv
        self.M, self.J = np.zeros((nv, nv)), d.efc_J.reshape(-1, nv).copy()
        mujoco.mj_fullM(model, d, self.M)
        self.start = min(warm.copy(), d.qacc_smooth.copy(), key=lambda x: self._at(x)[0])
        self._at(self.start)
        weight = d.efc_D * (d.efc_state == ACTIVE)
        H = self.M + self.J.T @ (weight[:, None] * self.J)
        self.v = -np.linalg.solve(H, self._at(self.start)[1])

    def _at(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return cost and gradient."""
        cost = np.zeros(1)
        mujoco.mj_constraintUpdate(self.model, self.d, self.J @ x - self.d.efc_aref, cost, 0)
        apart = self.M @ (x - self.d.qacc_smooth)
        value = cost[0] + 0.5 * (x - self.d.qacc_smooth) @ apart
        return value, apart - self.J.T @ self.d.efc_force

    def slope(self, length: float) -> float:
        return float(self.v @ self._at(self.start + length * self.v)[1])

    def length(self, x: np.ndarray) -> float:
        return float((x - self.start) @ self.v / (self.v @ self.v))

    def beside(self, x: np.ndarray) -> float:
        """Return the distance of an acceleration from the line, relative to that from the start."""
        way = x - self.start
        beside = np.abs(way - self.length(x) * self.v).max()
        return float(beside / max(np.abs(way).max(), 1e-9))

    def best(self) -> float:
        """Return the step length of zero slope."""
        if np.abs(self.v).max() == 0:
            return 0.0
        high = 1.0
        while self.slope(high) < 0:
            high *= 2
        return float(brentq(self.slope, 0, high, xtol=1e-15))


if __name__ == "__main__":
    main()
