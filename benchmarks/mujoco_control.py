"""Trajectory optimization with MuJoCo C and numpy, as a reference for `benchmarks/control.py`.

    ilqr                  mjd_transitionFD for all steps in threads, the same Gauss-Newton model and
                          box as jaxsim, the first of the same step lengths that lowers the cost
    predictive_sampling   `mujoco.rollout` in threads, with the same spline knots

It reads the optimizations of `jaxsim optimize`, as far as `READERS` goes: quadratic costs of
angles, positions, velocities, controls and body positions.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import mujoco
import mujoco.rollout
import numpy as np

from jaxsim.control.optimization.read import Optimization
from jaxsim.control.sampling import SPLINE_BASES

LENGTHS = 0.5 ** np.arange(8)
LEAST, MOST, RATE = 1e-6, 1e8, 1.6
EPS = 1e-6  # step of the finite differences

History = list[tuple[float, float]]  # seconds, cost


class Read(NamedTuple):
    """One term: weights, and residual with derivative.

    Attributes:
      residual: (qpos, qvel, ctrl, sensordata), each (..., n) -> (..., k).
      slope: function of one state -> (k, nx + nu), given that of the sensors (ns, nx + nu).
    """

    weight: float
    terminal: float
    residual: Callable
    slope: Callable


class Course:
    """An optimization in MuJoCo."""

    def __init__(self, whole: Optimization, threads: int):
        mujoco.set_mju_user_warning(lambda text: None)  # for diverging motions, no log file
        form = whole.form
        spec = mujoco.MjSpec.from_file(str(whole.locations.folder / form.model))
        for sensor in list(spec.sensors):
            spec.delete(sensor)
        places = [c for c in form.cost if c.of.split(":")[0] in PLACED]
        for i, c in enumerate(places):
            kind, name = c.of.split(":")
            spec.add_sensor(
                name=f"place{i}",
                type=mujoco.mjtSensor.mjSENS_FRAMEPOS,
                objtype=PLACED[kind],
                objname=name.split(".xpos")[0],
            )
        self.m = spec.compile()
        self.m.opt.timestep = float(whole.m.opt.timestep)
        self.m.opt.integrator = int(whole.m.opt.integrator)
        self.steps, self.threads = whole.steps, threads
        self.lower, self.upper = (np.asarray(a, float) for a in whole.problem.limits(whole.m))
        self.qpos, self.qvel = np.array(whole.d.qpos, float), np.array(whole.d.qvel, float)
        self.terms = []
        for c in form.cost:
            assert (c.norm, c.minus) == ("quadratic", None), c.name
            at = places.index(c) if c in places else 0
            residual, slope = READERS[c.of.split(":")[0]](self.m, c, at)
            terminal = c.weight if c.terminal is None else c.terminal
            self.terms.append(Read(c.weight, terminal, residual, slope))
        self.data = [mujoco.MjData(self.m) for _ in range(threads)]
        self.pool = ThreadPoolExecutor(threads)
        self.nx = 2 * self.m.nv

    def step_cost(self, end: bool, *state: np.ndarray) -> np.ndarray:
        cost = 0.0
        for t in self.terms:
            w = t.terminal if end else t.weight
            if w:
                r = t.residual(*state)
                cost = cost + w / 2 * np.sum(r * r, axis=-1)
        return cost

    def begin(self, d: mujoco.MjData) -> None:
        mujoco.mj_resetData(self.m, d)
        d.qpos[:], d.qvel[:] = self.qpos, self.qvel


def _angle(m, cost, _):
    j = m.joint(cost.of.split(":")[1])
    q, v, target = j.qposadr[0], j.dofadr[0], (cost.target or (0.0,))[0]

    def residual(qpos, qvel, ctrl, sensed):
        left = qpos[..., q] - target
        return np.stack([np.sin(left), 1 - np.cos(left)], axis=-1)

    def slope(qpos, qvel, ctrl, sensed, C):
        J = np.zeros((2, 2 * m.nv + m.nu))
        left = qpos[q] - target
        J[:, v] = np.cos(left), np.sin(left)
        return J

    return residual, slope


def _qpos(m, cost, _):
    j = m.joint(cost.of.split(":")[1])
    size, nv = len(j.qpos0), len(j.damping) if np.ndim(j.damping) else 1
    q, v = j.qposadr[0], j.dofadr[0]
    target = np.array(cost.target or np.zeros(size))

    def residual(qpos, qvel, ctrl, sensed):
        value = qpos[..., q : q + size]
        if size == 1:
            return value - target
        w, x = target[3], target[4:]
        a, b = value[..., 3], value[..., 4:]
        scalar = w * a + np.sum(x * b, axis=-1)
        vector = w * b - a[..., None] * x - np.cross(x, b)
        sine = np.linalg.norm(vector, axis=-1)
        angle = 2 * np.arctan2(sine, scalar)
        angle = np.where(angle > np.pi, angle - 2 * np.pi, angle)
        factor = np.where(sine > 1e-12, angle / np.maximum(sine, 1e-12), 2.0)
        return np.concatenate([value[..., :3] - target[:3], factor[..., None] * vector], axis=-1)

    def slope(qpos, qvel, ctrl, sensed, C):
        J = np.zeros((nv, 2 * m.nv + m.nu))  # of a rotation, to first order
        J[:, v : v + nv] = np.eye(nv)
        return J

    return residual, slope


def _selected(m, cost, _):
    """Return terms of velocities and controls."""
    kind, _, name = cost.of.partition(":")
    if kind == "ctrl":
        at = np.arange(m.nu) if not name else np.array([m.actuator(name).id])
        first = 2 * m.nv
    else:
        j = m.joint(name) if name else None
        at = np.arange(m.nv) if j is None else j.dofadr[0] + np.arange(6 if j.type == 0 else 1)
        first = m.nv

    def residual(qpos, qvel, ctrl, sensed):
        return (ctrl if kind == "ctrl" else qvel)[..., at]

    def slope(qpos, qvel, ctrl, sensed, C):
        J = np.zeros((len(at), 2 * m.nv + m.nu))
        J[np.arange(len(at)), first + at] = 1
        return J

    return residual, slope


def _placed(m, cost, number):
    end = cost.of.split(".xpos")[1]
    rows = 3 * number + (np.arange(3) if not end else np.array(["xyz".index(end[1])]))
    target = np.array(cost.target or np.zeros(len(rows)))

    def residual(qpos, qvel, ctrl, sensed):
        return sensed[..., rows] - target

    def slope(qpos, qvel, ctrl, sensed, C):
        return C[rows]

    return residual, slope


PLACED = {
    "body": mujoco.mjtObj.mjOBJ_XBODY,
    "geom": mujoco.mjtObj.mjOBJ_GEOM,
    "site": mujoco.mjtObj.mjOBJ_SITE,
}
READERS = {"angle": _angle, "qpos": _qpos, "qvel": _selected, "ctrl": _selected}
READERS |= dict.fromkeys(PLACED, _placed)


def ilqr(course: Course, ctrl: np.ndarray, iterations: int) -> tuple[np.ndarray, History]:
    """Run iLQR with MuJoCo's finite differences; return controls, and cost over seconds."""
    start = time.perf_counter()
    states, cost = _run(course, ctrl)
    history, mu, growth = [(0.0, cost)], 0.0, 1.0
    for _ in range(iterations):
        if mu >= MOST:
            break
        model = _expand(course, states, ctrl)
        while True:
            policy = _backward(course, model, ctrl, mu)
            if policy is not None or mu >= MOST:
                break
            mu = max(LEAST, 10 * mu)
        if policy is None:
            break
        k, K, expected = policy
        if -expected <= 1e-6 * (1 + abs(cost)) and mu <= LEAST:
            break
        better = False
        for length in LENGTHS:
            tried, new = _run(course, ctrl, (states, length * k, K))
            if new < cost:
                ctrl, states, cost, better = tried["ctrl"], tried, new, True
                break
        if better:
            growth = min(1 / RATE, growth / RATE)
            mu = mu * growth if mu * growth >= LEAST else 0.0
        else:
            growth = max(RATE, growth * RATE)
            mu = max(LEAST, mu * growth)
        history.append((time.perf_counter() - start, cost))
    return ctrl, history


def cost_of(course: Course, ctrl: np.ndarray) -> float:
    """Return the cost of the motion of controls (steps, nu) in MuJoCo."""
    return _run(course, np.asarray(ctrl, float))[1]


def _run(course: Course, ctrl: np.ndarray, change: tuple | None = None) -> tuple[dict, float]:
    """Return the motion of controls, or of a change of another motion with feedback."""
    m, d, n = course.m, course.data[0], course.steps
    course.begin(d)
    out = {
        "qpos": np.zeros((n + 1, m.nq)),
        "qvel": np.zeros((n + 1, m.nv)),
        "warm": np.zeros((n + 1, m.nv)),
        "ctrl": np.zeros((n + 1, m.nu)),
        "sensed": np.zeros((n + 1, m.nsensordata)),
    }
    dx = np.zeros(course.nx)
    for t in range(n + 1):
        u = np.zeros(m.nu)
        if t < n:
            u = ctrl[t]
            if change is not None:
                old, k, K = change
                mujoco.mj_differentiatePos(m, dx[: m.nv], 1.0, old["qpos"][t], d.qpos)
                dx[m.nv :] = d.qvel - old["qvel"][t]
                u = np.clip(u + k[t] + K[t] @ dx, course.lower, course.upper)
        d.ctrl[:] = u
        out["qpos"][t], out["qvel"][t], out["ctrl"][t] = d.qpos, d.qvel, u
        out["warm"][t] = d.qacc_warmstart
        mujoco.mj_step(m, d)
        out["sensed"][t] = d.sensordata
    cost = _cost(course, out["qpos"], out["qvel"], out["ctrl"], out["sensed"])
    out["ctrl"] = out["ctrl"][:n]
    bad = d.warning[mujoco.mjtWarning.mjWARN_BADQACC].number
    return out, np.inf if bad or not np.isfinite(cost) else float(cost)


def _cost(course: Course, *rows: np.ndarray) -> np.ndarray:
    """Return the cost of motions, rows (..., steps + 1, n)."""
    running = course.step_cost(False, *(a[..., :-1, :] for a in rows))
    return np.sum(running, axis=-1) + course.step_cost(True, *(a[..., -1, :] for a in rows))


def _expand(course: Course, states: dict, ctrl: np.ndarray) -> tuple:
    """Return the derivatives of all steps, in threads."""
    m, n, nx = course.m, course.steps, course.nx
    nz, ns = nx + m.nu, m.nsensordata
    F, C = np.zeros((n + 1, nx, nz)), np.zeros((n + 1, ns, nz))
    u = np.concatenate([ctrl, np.zeros((1, m.nu))])

    def some(worker: int) -> None:
        d = course.data[worker]
        A, B = np.zeros((nx, nx)), np.zeros((nx, m.nu))
        CC, D = (np.zeros((ns, nx)), np.zeros((ns, m.nu))) if ns else (None, None)
        for t in range(worker, n + 1, course.threads):
            d.qpos[:], d.qvel[:], d.ctrl[:] = states["qpos"][t], states["qvel"][t], u[t]
            d.qacc_warmstart[:] = states["warm"][t]
            mujoco.mjd_transitionFD(m, d, EPS, 0, A, B, CC, D)
            F[t, :, :nx], F[t, :, nx:] = A, B
            if ns:
                C[t, :, :nx], C[t, :, nx:] = CC, D

    list(course.pool.map(some, range(course.threads)))
    g, H = np.zeros((n + 1, nz)), np.zeros((n + 1, nz, nz))
    for t in range(n + 1):
        state = states["qpos"][t], states["qvel"][t], u[t], states["sensed"][t]
        for term in course.terms:
            w = term.weight if t < n else term.terminal
            if w:
                J = term.slope(*state, C[t])
                g[t] += w * J.T @ term.residual(*state)
                H[t] += w * J.T @ J
    return F, g, H


def _backward(course: Course, model: tuple, ctrl: np.ndarray, mu: float) -> tuple | None:
    F, g, H = model
    n, nx, nu = course.steps, course.nx, course.m.nu
    k, K = np.zeros((n, nu)), np.zeros((n, nu, nx))
    V, VV = g[-1, :nx], H[-1, :nx, :nx]
    expected = 0.0
    for t in reversed(range(n)):
        Q = g[t] + F[t].T @ V
        QQ = H[t] + F[t].T @ VV @ F[t]
        uu, ux = QQ[nx:, nx:], QQ[nx:, :nx]
        damped = uu + mu * np.eye(nu)
        try:
            np.linalg.cholesky(damped)
        except np.linalg.LinAlgError:
            return None
        k[t], free = _box(damped, Q[nx:], course.lower - ctrl[t], course.upper - ctrl[t])
        if free.any():
            K[t][free] = -np.linalg.solve(damped[np.ix_(free, free)], ux[free])
        expected += k[t] @ Q[nx:] + k[t] @ uu @ k[t] / 2
        V = Q[:nx] + K[t].T @ (uu @ k[t] + Q[nx:]) + ux.T @ k[t]
        VV = QQ[:nx, :nx] + K[t].T @ uu @ K[t] + K[t].T @ ux + ux.T @ K[t]
        VV = (VV + VV.T) / 2
    return k, K, expected


def _box(H: np.ndarray, q: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> tuple:
    x = np.clip(np.zeros_like(q), lower, upper)

    def value(x):
        return x @ H @ x / 2 + q @ x

    for _ in range(30):
        gradient = q + H @ x
        free = ~(((x <= lower) & (gradient > 0)) | ((x >= upper) & (gradient < 0)))
        if not free.any() or np.abs(gradient[free]).max() < 1e-9:
            break
        step = np.zeros_like(x)
        step[free] = -np.linalg.solve(H[np.ix_(free, free)], gradient[free])
        for length in 0.5 ** np.arange(12):
            new = np.clip(x + length * step, lower, upper)
            if value(new) < value(x):
                break
        else:
            break
        x = new
    gradient = q + H @ x
    return x, ~(((x <= lower) & (gradient > 0)) | ((x >= upper) & (gradient < 0)))


def predictive_sampling(
    course: Course, ctrl: np.ndarray, form, seconds: float, seed: int = 0
) -> History:
    """Run predictive sampling with `mujoco.rollout`, for some seconds; return cost over seconds."""
    m, n = course.m, course.steps
    size = form.samples
    basis = SPLINE_BASES[form.interpolation](form.knots, n)
    rows = np.round(np.linspace(0, n - 1, form.knots)).astype(int)
    knots, random = ctrl[rows], np.random.default_rng(seed)
    unit = (course.upper - course.lower) / 2
    course.begin(course.data[0])
    state = np.zeros(mujoco.mj_stateSize(m, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(m, course.data[0], state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    first, history, best = np.tile(state, (size, 1)), [], np.inf
    with mujoco.rollout.Rollout(nthread=course.threads) as pool:
        start = time.perf_counter()
        while not history or history[-1][0] < seconds:
            noise = random.normal(size=(size, *knots.shape))
            noise[0] = 0
            tried = np.clip(knots + form.sigma * unit * noise, course.lower, course.upper)
            u = np.zeros((size, n + 1, m.nu))
            u[:, :n] = np.clip(np.einsum("tk,sku->stu", basis, tried), course.lower, course.upper)
            after, sensed = pool.rollout(m, course.data, first, u)
            every = np.concatenate([first[:, None], after[:, :-1]], axis=1)
            qpos, qvel = every[..., 1 : 1 + m.nq], every[..., 1 + m.nq : 1 + m.nq + m.nv]
            costs = _cost(course, qpos, qvel, u, sensed)
            costs = np.where(np.isfinite(costs), costs, np.inf)
            knots = tried[np.argmin(costs)]
            best = min(best, float(costs.min()))
            history.append((time.perf_counter() - start, best))
    return history
