"""Control loops with MuJoCo C and numpy, as a reference for `benchmarks/mpc.py`.

    predictive_sampling   `mujoco.rollout` in threads, with the same spline knots
    mppi                  the same, averaged with weights exp(-cost / temperature)

The loop is that of `jaxsim mpc` in simulated time: the plant waits for the plan. It reads the same
files, as far as the costs of benchmarks/mujoco_control.py go.
"""

import time
from typing import NamedTuple

import mujoco
import mujoco.rollout
import numpy as np
from mujoco_control import PLACED, READERS, Read

from jaxsim.control.closed_loop.read import ClosedLoop
from jaxsim.control.sampling import SPLINE_BASES

FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS


class Loop(NamedTuple):
    """A run of the loop: plan times [s], cost of each step of the plant, its end."""

    plan_seconds: np.ndarray
    plan_cpu_seconds: np.ndarray
    costs: np.ndarray
    qpos: np.ndarray


class Controlled:
    """A control loop in MuJoCo: a planner's model, and a plant."""

    def __init__(self, loop: ClosedLoop, threads: int, seed: int = 0):
        mujoco.set_mju_user_warning(lambda text: None)  # for diverging motions, no log file
        self.loop, self.threads, form = loop, threads, loop.form
        folder = loop.locations.folder
        self.m = compiled(folder / form.model, form, loop.planner.m.opt)
        plant = form.plant.model or form.model
        self.plant = compiled(folder / plant, form, loop.plant.m.opt)
        self.plant.body_mass[:] = loop.plant.m.body_mass
        self.plant.body_inertia[:] = loop.plant.m.body_inertia
        mujoco.mj_setConst(self.plant, mujoco.MjData(self.plant))
        self.terms, self.plant_terms = terms(self.m, form), terms(self.plant, form)
        limits = loop.planner.problem.limits(loop.planner.m)
        self.lower, self.upper = (np.asarray(a, float) for a in limits)
        self.random = np.random.default_rng(seed)
        self.data = [mujoco.MjData(self.m) for _ in range(threads)]
        self.basis = SPLINE_BASES[form.sampling.interpolation](form.sampling.knots, form.horizon)
        self.unit = (self.upper - self.lower) / 2

    def run(self, update) -> Loop:
        """Run the loop; `update` returns the mean of knots (samples, n, nu) and costs."""
        loop, form, m = self.loop, self.loop.form, self.m
        d = mujoco.MjData(self.plant)
        d.qpos[:], d.qvel[:] = loop.plant.d.qpos, loop.plant.d.qvel
        knots = np.repeat(np.asarray(loop.guess[:1], float), form.sampling.knots, axis=0)
        spacing = form.horizon * m.opt.timestep / max(form.sampling.knots - 1, 1)
        state = np.zeros(mujoco.mj_stateSize(self.plant, FULL))
        times, cpu, costs, path = [], [], [], []
        with mujoco.rollout.Rollout(nthread=self.threads) as pool:
            for _ in range(loop.periods):
                begun, used = time.perf_counter(), time.process_time()
                mujoco.mj_getState(self.plant, d, state, FULL)
                for _ in range(form.iterations):
                    knots, ctrl = self._improve(pool, state, knots, update)
                times.append(time.perf_counter() - begun)
                cpu.append(time.process_time() - used)
                for k in range(loop.every):
                    row = int(k * self.plant.opt.timestep / m.opt.timestep + 1e-3)
                    self._advance(d, ctrl[min(row, form.horizon - 1)], costs)
                    path.append(d.qpos.copy())
                knots = shifted(knots, loop.period / spacing)
        return Loop(np.array(times), np.array(cpu), np.array(costs), np.array(path))

    def _improve(self, pool, state: np.ndarray, knots: np.ndarray, update) -> tuple:
        """Sample plans about the mean; return the new mean, and the controls of the best."""
        form, m, n = self.loop.form, self.m, self.loop.form.horizon
        size = form.sampling.samples
        noise = self.random.normal(size=(size, *knots.shape))
        noise[0] = 0
        tried = np.clip(knots + form.sampling.sigma * self.unit * noise, self.lower, self.upper)
        u = np.zeros((size, n + 1, m.nu))
        u[:, :n] = np.clip(np.einsum("tk,sku->stu", self.basis, tried), self.lower, self.upper)
        first = np.tile(state, (size, 1))
        after, sensed = pool.rollout(m, self.data, first, u)
        every = np.concatenate([first[:, None], after[:, :-1]], axis=1)
        qpos, qvel = every[..., 1 : 1 + m.nq], every[..., 1 + m.nq : 1 + m.nq + m.nv]
        rows = qpos, qvel, u, sensed
        costs = np.sum(step_cost(self.terms, False, *(a[:, :-1] for a in rows)), axis=-1)
        costs = costs + step_cost(self.terms, True, *(a[:, -1] for a in rows))
        costs = np.where(np.isfinite(costs), costs, np.inf)
        return update(tried, costs), u[np.argmin(costs), :n]

    def _advance(self, d: mujoco.MjData, ctrl: np.ndarray, costs: list) -> None:
        """Make one step of the plant, and append its cost."""
        pushes, m = self.loop.disturbances, self.plant
        d.ctrl[:] = ctrl
        d.xfrc_applied[:] = 0
        for start, end, wrench in zip(pushes.start, pushes.end, pushes.wrench, strict=True):
            if start <= d.time + m.opt.timestep / 2 < end:
                d.xfrc_applied[:] += wrench
        qpos, qvel = d.qpos.copy(), d.qvel.copy()
        mujoco.mj_step(m, d)
        costs.append(float(step_cost(self.plant_terms, False, qpos, qvel, ctrl, d.sensordata)))


def compiled(file, form, option) -> mujoco.MjModel:
    """Return the model of a file with the sensors of the costs, and with options."""
    spec = mujoco.MjSpec.from_file(str(file))
    for sensor in list(spec.sensors):
        spec.delete(sensor)
    for i, c in enumerate(places(form)):
        kind, name = c.of.split(":")
        spec.add_sensor(
            name=f"place{i}",
            type=mujoco.mjtSensor.mjSENS_FRAMEPOS,
            objtype=PLACED[kind],
            objname=name.split(".xpos")[0],
        )
    m = spec.compile()
    m.opt.timestep, m.opt.integrator = float(option.timestep), int(option.integrator)
    return m


def places(form) -> list:
    """Return the costs that read a position of a body, geom or site."""
    return [c for c in form.cost if c.of.split(":")[0] in PLACED]


def terms(m: mujoco.MjModel, form) -> list[Read]:
    """Return the terms of the cost."""
    found = []
    for c in form.cost:
        assert (c.norm, c.minus) == ("quadratic", None), c.name
        at = places(form).index(c) if c in places(form) else 0
        residual, slope = READERS[c.of.split(":")[0]](m, c, at)
        terminal = c.weight if c.terminal is None else c.terminal
        found.append(Read(c.weight, terminal, residual, slope))
    return found


def step_cost(found: list[Read], end: bool, *state: np.ndarray) -> np.ndarray:
    """Return the cost of states, (...,)."""
    cost = np.zeros(state[0].shape[:-1])
    for t in found:
        w = t.terminal if end else t.weight
        if w:
            r = t.residual(*state)
            cost = cost + w / 2 * np.sum(r * r, axis=-1)
    return cost


def shifted(rows: np.ndarray, by: float) -> np.ndarray:
    """Return knots shifted in time, linearly interpolated; the last is held."""
    at = np.clip(np.arange(len(rows)) + by, 0, len(rows) - 1)
    before = at.astype(int)
    after, part = np.minimum(before + 1, len(rows) - 1), (at - before)[:, None]
    return (1 - part) * rows[before] + part * rows[after]


def best_knots(tried: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Return the knots of the lowest cost: predictive sampling."""
    return tried[np.argmin(costs)]


def mean_knots(temperature: float):
    """Return the update of MPPI."""

    def update(tried: np.ndarray, costs: np.ndarray) -> np.ndarray:
        weight = np.exp(-(costs - costs.min()) / temperature)
        return np.einsum("s,snu->nu", weight / weight.sum(), tried)

    return update
