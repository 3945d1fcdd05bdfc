"""Planning by sampling: controls along splines, evaluated in many worlds at once, without
derivatives.

A plan is a few knots, evenly spaced over the horizon, and the controls are a spline through them.
Each iteration samples knots about the mean, simulates all motions as one batch, and updates the
mean:

    predictive sampling   to the knots of lowest cost  Howell et al., Predictive Sampling, 2022
    MPPI                  to sum w knots, w = exp(-(J - min J) / temperature) / sum
                          Williams et al., Information theoretic MPC, ICRA 2017
    CEM                   to the mean of the elites; the spread follows them
                          Rubinstein, The cross-entropy method, 1999

The first sample of each iteration is the mean itself. A diverged motion has infinite cost and is
ignored. Equal keys give equal plans.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.batch.devices import over_devices
from jaxsim.control.motion import check_motion, run_cost
from jaxsim.control.problem import Problem
from jaxsim.derivative.ctrl_limits import without_ctrl_clamp
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.record.check import brief_value
from jaxsim.physics.public.arguments import check_count
from jaxsim.spelling import check_options, remedy


class Plan(NamedTuple):
    """A plan found by sampling.

    Attributes:
      ctrl: controls of the sampled motion with the lowest cost, (steps, nu).
      cost: cost of that motion, (); infinite if all diverged.
      knots: the mean, for the next call, (n, nu).
      sigma: standard deviation of the knots, in half ranges of the controls, (n, nu).
      history: cost of the mean before each iteration, (iterations,).
    """

    ctrl: jax.Array
    cost: jax.Array
    knots: jax.Array
    sigma: jax.Array
    history: jax.Array


# options of all methods of this file, see `predictive_sampling`
SAMPLING_OPTIONS = ("steps", "samples", "iterations", "sigma", "interpolation", "devices")

Update = Callable[[jax.Array, jax.Array, jax.Array, jax.Array], tuple[jax.Array, jax.Array]]


def predictive_sampling(
    m: Model, d: Data, knots: jax.Array, problem: Problem, key: jax.Array, **how
):
    """Take the random plan of lowest cost.

    Args:
      m: the model.
      d: the world at the start.
      knots: initial mean, (n, nu): the knots of an earlier plan, or zeros.
      problem: the costs and limits.
      key: random key.
      how: options of all methods of this file. `steps`: the horizon. `samples`: motions per
        iteration (64). `iterations`: number of iterations (1). `sigma`: standard deviation of the
        knots in half ranges of the controls, or in the unit of a control without limits, a number
        or (n, nu) (0.3). `interpolation`: "zero", "linear" or "cubic" ("cubic"). `devices`: those
        that share the motions of an iteration; None: one (None).

    Returns:
      A Plan.

    Raises:
      ValueError: a shape or precision is wrong.
    """
    check_options("predictive_sampling", how, SAMPLING_OPTIONS)

    def update(tried: jax.Array, costs: jax.Array, mean: jax.Array, sigma: jax.Array) -> tuple:
        best = jnp.argmin(costs)
        return tried[best], sigma

    return _improve("predictive_sampling", m, d, knots, problem, key, update, **how)


def mppi(
    m: Model,
    d: Data,
    knots: jax.Array,
    problem: Problem,
    key: jax.Array,
    *,
    temperature: Any = 0.1,
    **how,
) -> Plan:
    """Average random plans, weighted by exp(-cost / temperature).

    Args, returns, raises: see `predictive_sampling`.
      temperature: increase of the cost that lowers the weight of a plan by a factor e.
    """
    check_options("mppi", how, ("temperature", *SAMPLING_OPTIONS))

    def update(tried: jax.Array, costs: jax.Array, mean: jax.Array, sigma: jax.Array) -> tuple:
        finite = jnp.isfinite(costs)
        least = jnp.min(jnp.where(finite, costs, jnp.inf))
        weight = jnp.where(finite, jnp.exp(-(jnp.where(finite, costs - least, 0)) / temperature), 0)
        some = jnp.any(finite)
        share = weight / jnp.where(some, jnp.sum(weight), 1)
        return jnp.where(some, jnp.einsum("s,snu->nu", share, tried), mean), sigma

    return _improve("mppi", m, d, knots, problem, key, update, **how)


def cem(
    m: Model,
    d: Data,
    knots: jax.Array,
    problem: Problem,
    key: jax.Array,
    *,
    elites: int = 8,
    least_sigma: Any = 0.02,
    **how,
) -> Plan:
    """Fit mean and standard deviation to the plans of lowest cost.

    Args, returns, raises: see `predictive_sampling`.
      elites: number of plans that are used.
      least_sigma: lower bound of the standard deviation.
    """
    check_options("cem", how, ("elites", "least_sigma", *SAMPLING_OPTIONS))
    elites = check_count("cem: elites", elites)
    unit = half_range(m, problem)

    def update(tried: jax.Array, costs: jax.Array, mean: jax.Array, sigma: jax.Array) -> tuple:
        order = jnp.argsort(costs)[:elites]
        good = jnp.isfinite(costs[order])
        share = good.astype(tried.dtype) / jnp.maximum(jnp.sum(good.astype(tried.dtype)), 1)
        center = jnp.einsum("s,snu->nu", share, tried[order])
        square = jnp.einsum("s,snu->nu", share, (tried[order] - center[None]) ** 2)
        spread = jnp.maximum(jnp.sqrt(square) / unit[None], least_sigma)
        some = jnp.any(good)
        return jnp.where(some, center, mean), jnp.where(some, spread, sigma)

    return _improve("cem", m, d, knots, problem, key, update, **how)


def motion_costs(
    m: Model,
    d: Data,
    ctrl: jax.Array,
    problem: Problem,
    devices: Sequence[jax.Device] | None = None,
) -> jax.Array:
    """Return the costs of many motions from one start, (n,), of controls (n, steps, nu).

    Args:
      m: the model.
      d: the world at the start.
      ctrl: controls of each motion, (n, steps, nu); clipped to the limits.
      problem: the costs and limits.
      devices: devices that share the motions; None: one.
    """
    lower, upper = (a[None, None] for a in problem.limits(m))
    inside, free = jnp.clip(ctrl, lower, upper), without_ctrl_clamp(m)
    axes = (None, None, 0, None)
    run = jax.vmap(run_cost, in_axes=axes)
    if devices is not None and len(devices) > 1:
        run = over_devices(run, in_axes=axes, devices=devices)
    costs: jax.Array = run(free, d, inside, problem)
    return costs


def half_range(m: Model, problem: Problem) -> jax.Array:
    """Return half of the range of each control, (nu,); 1 for a control without limits."""
    lower, upper = problem.limits(m)
    limited = jnp.isfinite(lower) & jnp.isfinite(upper)
    return jnp.where(limited, (jnp.where(limited, upper, 0) - jnp.where(limited, lower, 0)) / 2, 1)


def spline(knots: jax.Array, steps: int, interpolation: str = "cubic") -> jax.Array:
    """Return the controls (steps, nu) along a spline through knots (n, nu).

    The first knot is at the first step, the last at the end of the last. "zero" holds each knot
    until the next, "linear" interpolates linearly, "cubic" has the slopes of central differences
    (Catmull and Rom, 1974).

    Raises:
      ValueError: there is no such interpolation, or no knot.

    Example:
      >>> spline(jnp.array([[0.0], [1.0]]), 4, "linear")[:, 0].tolist()
      [0.0, 0.25, 0.5, 0.75]
    """
    if jnp.ndim(knots) != 2 or len(knots) == 0:
        raise ValueError(
            f"knots: expected shape (n, nu), with n at least 1, got {brief_value(knots)}"
        )
    return jnp.asarray(spline_basis(len(knots), steps, interpolation), knots.dtype) @ knots


def spline_basis(number: int, steps: int, interpolation: str = "cubic") -> np.ndarray:
    """Return the matrix (steps, number) from the knots of a spline to its controls.

    Raises:
      ValueError: there is no such interpolation.
    """
    if interpolation not in SPLINE_BASES:
        known = "; there are: " + ", ".join(SPLINE_BASES)
        raise ValueError(
            f"interpolation: none is called {interpolation!r}"
            f"{remedy(str(interpolation), SPLINE_BASES, known)}"
        )
    return SPLINE_BASES[interpolation](number, steps) if number > 1 else np.ones((steps, 1))


def _knot_positions(number: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the preceding knot of each step, and the fraction of the way to the next."""
    at = np.arange(steps) * (number - 1) / steps
    before = np.minimum(at.astype(int), number - 2)
    return before, at - before


def _zero_knots(number: int, steps: int) -> np.ndarray:
    return np.eye(number)[np.arange(steps) * number // steps]


def _linear(number: int, steps: int) -> np.ndarray:
    before, part = _knot_positions(number, steps)
    one = np.eye(number)
    return one[before] * (1 - part)[:, None] + one[before + 1] * part[:, None]


def _cubic(number: int, steps: int) -> np.ndarray:
    before, t = _knot_positions(number, steps)
    t = t[:, None]
    one = np.eye(number)
    slopes = np.gradient(one, axis=0)
    return (
        one[before] * (1 + 2 * t) * (1 - t) ** 2
        + slopes[before] * t * (1 - t) ** 2
        + one[before + 1] * t**2 * (3 - 2 * t)
        + slopes[before + 1] * t**2 * (t - 1)
    )


SPLINE_BASES = {"zero": _zero_knots, "linear": _linear, "cubic": _cubic}


def _improve(
    function: str,
    m: Model,
    d: Data,
    knots: jax.Array,
    problem: Problem,
    key: jax.Array,
    update: Update,
    *,
    steps: int,
    samples: int = 64,
    iterations: int = 1,
    sigma: Any = 0.3,
    interpolation: str = "cubic",
    devices: Sequence[jax.Device] | None = None,
) -> Plan:
    """Run the iterations that all methods share; `update` changes the mean and the spread."""
    steps, samples, iterations = (
        check_count(f"{function}: {name}", value)
        for name, value in (("steps", steps), ("samples", samples), ("iterations", iterations))
    )
    if not steps or not samples or not iterations:
        raise ValueError(f"{function}: steps, samples and iterations are at least 1")
    check_motion(function, m, d, spline(knots, steps, interpolation), problem)
    lower, upper = (a[None] for a in problem.limits(m))
    unit, dtype = half_range(m, problem)[None], m.qpos0.dtype
    knots = jnp.clip(jnp.asarray(knots).astype(dtype), lower, upper)
    sigma = jnp.broadcast_to(jnp.asarray(sigma).astype(dtype), knots.shape)

    def iterate(now: Plan, key: jax.Array) -> tuple[Plan, jax.Array]:
        noise = jax.random.normal(key, (samples, *knots.shape), dtype).at[0].set(0)
        tried = now.knots[None] + (now.sigma * unit)[None] * noise
        tried = jnp.clip(tried, lower[None], upper[None])
        ctrl = jax.vmap(lambda k: spline(k, steps, interpolation))(tried)
        costs = motion_costs(m, d, ctrl, problem, devices)
        costs = jnp.where(jnp.isnan(costs), jnp.inf, costs)
        mean, spread = update(tried, costs, now.knots, now.sigma)
        best = jnp.argmin(costs)
        better = costs[best] < now.cost
        cheapest = jnp.where(better, jnp.clip(ctrl[best], lower, upper), now.ctrl)
        new = Plan(cheapest, jnp.minimum(costs[best], now.cost), mean, spread, now.history)
        return new, costs[0]

    first = jnp.clip(spline(knots, steps, interpolation), lower, upper)
    start = Plan(first, jnp.full((), jnp.inf, dtype), knots, sigma, jnp.zeros((0,), dtype))
    end, history = lax.scan(iterate, start, jax.random.split(key, iterations))
    return end._replace(history=history)
