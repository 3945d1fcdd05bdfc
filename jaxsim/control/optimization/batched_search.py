"""Run the method of an optimization in batches of iterations, from all guesses at once.

A method continues from its last batch: its state is a dict of arrays, with the best controls `ctrl`
and their `cost`, one row per guess. One program serves all batches and stages.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.batch.stored_program import prepare_program
from jaxsim.control import sampling
from jaxsim.control.iterative_lqr import ilqr
from jaxsim.control.motion import advance_world, append_zero_control, step_costs
from jaxsim.control.multishooting import multiple_shooting, straight_line
from jaxsim.control.optimization.read import Optimization
from jaxsim.control.problem import Problem
from jaxsim.control.shooting import shoot
from jaxsim.derivative.ctrl_limits import without_ctrl_clamp
from jaxsim.derivative.tangent import difference, tangent_size
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.optional import require

Carried = dict[str, Any]
_SEARCH_STATE_FIELDS = ("qpos", "qvel", "act")


class Batch(NamedTuple):
    """Progress of a search.

    Attributes:
      stage: index of the stage.
      num_iterations: iterations completed in it.
      costs: cost of the best controls of each guess, in the model of the stage, (guesses,).
      seconds: time since the search began, excluding compilation.
      smooth: distance at which contacts start to act in this stage [m].
    """

    stage: int
    num_iterations: int
    costs: np.ndarray
    seconds: float
    smooth: float


class JudgedMotion(NamedTuple):
    """A motion in the model that judges it.

    Attributes:
      cost: its cost, infinite if it diverges.
      terms: cost of each term at each step and the end, (steps + 1,).
      records: recorded fields after each step, (steps, ...).
    """

    cost: float
    terms: dict[str, np.ndarray]
    records: dict[str, np.ndarray]


class Found(NamedTuple):
    """Result of a search.

    Attributes:
      ctrl: the best controls, (steps, nu).
      before: the motion of the first guess.
      after: the motion of the best controls.
      batches: progress after each batch.
      compile_seconds: time until the programs were compiled.
    """

    ctrl: np.ndarray
    before: JudgedMotion
    after: JudgedMotion
    batches: list[Batch]
    compile_seconds: float


def search(
    whole: Optimization,
    report: Callable[[Batch], None] = lambda batch: None,
    tier: str = "auto",
) -> Found:
    """Search for the controls of an optimization.

    Args:
      whole: the optimization, read from a file.
      report: called after each batch of iterations.
      tier: how the programs are compiled (`prepare_program`).
    """
    form = whole.form
    begin, go_on = _METHOD_FUNCTIONS[form.method]
    num_iterations = min(form.report, form.iterations)
    judge = Judge(whole, tier)
    guesses = np.asarray(whole.controls())
    before = judge(guesses[0])

    # one program for all batches
    now = begin(whole, guesses, judge)
    one = partial(go_on, whole, num_iterations)
    every = jax.vmap(one, in_axes=(None, None, 0, 0))
    start = time.perf_counter()
    key = jax.random.key(form.seed)
    keys = jax.random.split(key, len(guesses))
    operands = whole.stages[0], whole.problem, now, keys
    program = prepare_program(every, operands, name="the search", tier=tier).program
    compile_seconds = judge.compile_seconds + time.perf_counter() - start

    batches: list[Batch] = []
    start = time.perf_counter()
    for number, m in enumerate(whole.stages):
        # cost and regularization belong to the previous model
        now = now | {k: jnp.full_like(now[k], v) for k, v in _INITIAL_SEARCH.items() if k in now}
        for done in range(num_iterations, form.iterations + num_iterations, num_iterations):
            key, random = jax.random.split(key)
            now = program(m, whole.problem, now, jax.random.split(random, len(guesses)))
            costs = np.asarray(now["cost"])
            smooth = 0.0 if m.smooth is None else float(m.smooth)
            batches.append(Batch(number, done, costs, time.perf_counter() - start, smooth))
            report(batches[-1])
            if np.all(now["ended"]):
                break

    # of the results of all guesses, the one with the lowest cost in the model itself
    follow = {name: now[name] for name in ("states", "gains") if name in now}
    rows = [jax.tree.map(lambda a, i=i: a[i], follow) for i in range(len(guesses))]
    motions = [judge(ctrl, **row) for ctrl, row in zip(now["ctrl"], rows, strict=True)]
    best = min(motions, key=lambda motion: motion.cost)
    return Found(best.records["ctrl"], before, best, batches, compile_seconds)


class Judge:
    """Runs controls in the model of an optimization, and returns the cost of each term."""

    def __init__(self, whole: Optimization, tier: str = "auto"):
        self._whole = whole
        # in the same order in all processes, because compiled programs are cached by their text
        self._record = tuple(dict.fromkeys((*whole.form.record, *_SEARCH_STATE_FIELDS, "ctrl")))
        m, d, steps = whole.m, whole.d, whole.steps
        self._states = {n: np.stack([getattr(d, n)] * (steps + 1)) for n in _SEARCH_STATE_FIELDS}
        self._gains = np.zeros((steps, m.nu, tangent_size(m)), m.qpos0.dtype)
        ctrl = np.zeros((steps, m.nu), m.qpos0.dtype)
        start = time.perf_counter()
        operands = (m, d, ctrl, self._states, self._gains, whole.problem)
        self._program = prepare_program(self._run, operands, name="the motion", tier=tier).program
        self.compile_seconds = time.perf_counter() - start

    def __call__(self, ctrl: Any, states: Any = None, gains: Any = None) -> JudgedMotion:
        """Return the motion of controls (steps, nu), with feedback (steps, nu, nx) about states if
        given.

        Feedback joins the pieces of multiple shooting, whose defects may not be closed yet, to a
        motion.
        """
        whole = self._whole
        states, gains = (self._states, self._gains) if gains is None else (states, gains)
        ctrl = jnp.asarray(ctrl, whole.m.qpos0.dtype)
        cost, terms, records = self._program(whole.m, whole.d, ctrl, states, gains, whole.problem)
        each = dict(zip((t.name for t in whole.problem.terms), np.asarray(terms), strict=True))
        return JudgedMotion(float(cost), each, jax.tree.map(np.asarray, records))

    def _run(
        self, m: Model, d: Data, ctrl: jax.Array, states: Any, gains: jax.Array, problem: Problem
    ) -> tuple:
        free, (lower, upper) = without_ctrl_clamp(m), problem.limits(m)

        def advance(now: Data, row: tuple) -> tuple[Data, tuple]:
            u, K, old, is_end = row
            u = jnp.clip(u + K @ difference(free, d.replace(**old), now), lower, upper)
            u = jnp.where(is_end, 0, u)
            after, residuals, bad = advance_world(free, now, u, problem)
            return after, (residuals, bad, {name: getattr(after, name) for name in self._record})

        is_end = jnp.arange(len(ctrl) + 1) == len(ctrl)
        rows = (append_zero_control(ctrl), append_zero_control(gains), states, is_end)
        _, (residuals, bad, records) = jax.lax.scan(advance, d, rows)
        terms = [
            step_costs(Problem([t]), (r,)) for t, r in zip(problem.terms, residuals, strict=True)
        ]
        cost = jnp.where(jnp.any(bad), jnp.inf, sum(jnp.sum(c) for c in terms))
        return cost, jnp.stack(terms), jax.tree.map(lambda a: a[:-1], records)


def _initial_state(whole: Optimization, guesses: np.ndarray, judge: Judge) -> Carried:
    """Return the state that all methods share."""
    ctrl = jnp.asarray(guesses, whole.m.qpos0.dtype)
    cost = jnp.full(len(ctrl), jnp.inf, ctrl.dtype)
    return {"ctrl": ctrl, "cost": cost, "ended": jnp.zeros(len(ctrl), bool)}


def _keep_better(now: Carried, ctrl: jax.Array, cost: jax.Array) -> Carried:
    """Keep the better of two controls."""
    better = cost < now["cost"]
    ctrl = jnp.where(better, ctrl, now["ctrl"])
    return {"ctrl": ctrl, "cost": jnp.minimum(cost, now["cost"]), "ended": now["ended"]}


def _begin_ilqr(whole: Optimization, guesses: np.ndarray, judge: Judge) -> Carried:
    now = _initial_state(whole, guesses, judge)
    return now | {"mu": jnp.zeros_like(now["cost"])}


def _ilqr(
    whole: Optimization, iterations: int, m: Model, problem: Problem, now: Carried, key: jax.Array
) -> Carried:
    found = ilqr(
        m,
        whole.d,
        now["ctrl"],
        problem,
        iterations=iterations,
        tolerance=whole.form.ilqr.tolerance,
        regularization=now["mu"],
    )
    return {
        "ctrl": found.ctrl,
        "cost": found.cost,
        "ended": found.iterations < iterations,
        "mu": found.regularization,
    }


def _begin_pieces(whole: Optimization, guesses: np.ndarray, judge: Judge) -> Carried:
    """Return the initial states: the motions of the guesses, or a line."""
    now = _begin_ilqr(whole, guesses, judge)
    m, d, steps = whole.m, whole.d, whole.steps
    if whole.goal is not None:
        line = straight_line(m, d, whole.goal, steps)
        rows = {name: getattr(line, name) for name in _SEARCH_STATE_FIELDS}
        each = [rows] * len(guesses)
    else:
        motions = [judge(ctrl).records for ctrl in guesses]
        start = {name: np.asarray(getattr(d, name))[None] for name in _SEARCH_STATE_FIELDS}
        each = [{n: np.concatenate([a, r[n]]) for n, a in start.items()} for r in motions]
    gains = jnp.zeros((len(guesses), steps, m.nu, tangent_size(m)), now["ctrl"].dtype)
    return now | {"states": jax.tree.map(lambda *a: jnp.stack(a), *each), "gains": gains}


def _run_multiple_shooting(
    whole: Optimization, iterations: int, m: Model, problem: Problem, now: Carried, key: jax.Array
) -> Carried:
    d, form = whole.d, whole.form.multiple_shooting
    states = jax.vmap(lambda rows: d.replace(**rows))(now["states"])
    found = multiple_shooting(
        m,
        d,
        now["ctrl"],
        problem,
        nodes=form.nodes,
        states=states,
        iterations=iterations,
        tolerance=form.tolerance,
        regularization=now["mu"],
    )
    return {
        "ctrl": found.ctrl,
        "cost": found.cost,
        "ended": found.iterations < iterations,
        "mu": found.regularization,
        "states": {name: getattr(found.states, name) for name in _SEARCH_STATE_FIELDS},
        "gains": found.gains,
    }


def _adam(whole: Optimization) -> Any:
    return require("optax", "control").adam(whole.form.shoot.rate)


def _begin_shots(whole: Optimization, guesses: np.ndarray, judge: Judge) -> Carried:
    now = _initial_state(whole, guesses, judge)
    memory = jax.vmap(_adam(whole).init)(now["ctrl"])
    return now | {"last": now["ctrl"], "memory": memory}


def _run_shooting(
    whole: Optimization, iterations: int, m: Model, problem: Problem, now: Carried, key: jax.Array
) -> Carried:
    found = shoot(
        m,
        whole.d,
        now["last"],
        problem,
        iterations=iterations,
        optimizer=_adam(whole),
        memory=now["memory"],
    )
    best = _keep_better(now, found.ctrl, found.cost)
    return best | {"last": found.last, "memory": found.memory}


def _begin_samples(whole: Optimization, guesses: np.ndarray, judge: Judge) -> Carried:
    form = whole.form.sampling
    knots = whole.guesses(form.knots)
    sigma = jnp.full_like(knots, form.sigma)
    return _initial_state(whole, guesses, judge) | {"knots": knots, "sigma": sigma}


def _samples(
    name: str,
    whole: Optimization,
    iterations: int,
    m: Model,
    problem: Problem,
    now: Carried,
    key: jax.Array,
) -> Carried:
    form = whole.form.sampling
    own = vars(getattr(whole.form, name)) if hasattr(whole.form, name) else {}
    found = getattr(sampling, name)(
        m,
        whole.d,
        now["knots"],
        problem,
        key,
        steps=whole.steps,
        samples=form.samples,
        iterations=iterations,
        sigma=now["sigma"],
        interpolation=form.interpolation,
        **own,
    )
    best = _keep_better(now, found.ctrl, found.cost)
    return best | {"knots": found.knots, "sigma": found.sigma}


_INITIAL_SEARCH = {"cost": jnp.inf, "mu": 0.0}
_METHOD_FUNCTIONS: dict[str, tuple[Callable[..., Carried], Callable[..., Carried]]] = {
    "ilqr": (_begin_ilqr, _ilqr),
    "multiple_shooting": (_begin_pieces, _run_multiple_shooting),
    "shoot": (_begin_shots, _run_shooting),
    "predictive_sampling": (_begin_samples, partial(_samples, "predictive_sampling")),
    "mppi": (_begin_samples, partial(_samples, "mppi")),
    "cem": (_begin_samples, partial(_samples, "cem")),
}
