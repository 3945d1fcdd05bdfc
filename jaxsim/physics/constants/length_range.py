"""Length ranges of actuators, by pulling on them in a damped simulation.

MuJoCo's documentation, Modeling: Length range; corresponds to `mj_setLengthRange`. Each actuator is
pulled to either side from `qpos0`, with a force along its moment that would accelerate the joints
by a given amount, while velocities decay; the range is where its length settles. Limits and
equalities are active, all else is disabled. All actuators and sides are worlds of one batch.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, sum_items
from jaxsim.enums import MINVAL, DisableBit, IntegratorType
from jaxsim.errors import LocatedProblem, ModelError
from jaxsim.linalg.cholesky import solve_spd
from jaxsim.math import safe_sqrt
from jaxsim.model.allocate import allocate
from jaxsim.model.data import Data
from jaxsim.model.derived import ActuatorOutput, LengthRanges
from jaxsim.model.model import Model
from jaxsim.physics.actuator.transmission import moment_pattern
from jaxsim.physics.constraint import equality
from jaxsim.physics.integrate.integrate import advance
from jaxsim.physics.pipeline.forward import fwd_dynamics, fwd_position, fwd_velocity
from jaxsim.transforms.layout import unpack_record
from jaxsim.transforms.platform import FAST_COMPILE_OPTIONS

_DISABLED_FLAGS = (
    DisableBit.CONTACT
    | DisableBit.FRICTIONLOSS
    | DisableBit.SPRING
    | DisableBit.DAMPER
    | DisableBit.GRAVITY
    | DisableBit.ACTUATION
)
_MIN_TIME_CONSTANT = 0.01  # smallest time constant of the decay [s]


def find_length_ranges(m: Model, wanted: LengthRanges) -> Model:
    """Return the model with `actuator_lengthrange` of the wanted actuators, from a simulation.

    Raises:
      ModelError: a length did not settle, or has no range; lists every such actuator.
    """
    _check_supported(m, wanted)
    timestep = wanted.timestep or float(m.opt.timestep)
    # Double precision for any model: in single precision lengths settle only roughly.
    with jax.enable_x64(True):
        double = jax.tree.map(lambda a: np.asarray(a, np.float64), m)
        low, high = _settle(_limits_only_model(double, timestep), wanted, timestep)
    problems = []
    ranges = np.array(m.actuator_lengthrange)
    # Check each result and collect the faults of all actuators.
    for k, puller in enumerate(wanted.pullers):
        found = low[0, k], high[1, k]
        message = _range_error(puller, found, low[:, k], high[:, k], wanted.tolrange)
        if message:
            problems.append(LocatedProblem(puller.place, message))
        ranges[puller.output] = found
    if problems:
        raise ModelError(problems)
    return m.replace(actuator_lengthrange=jnp.asarray(ranges))


def _range_error(
    puller: ActuatorOutput, found: tuple, low: np.ndarray, high: np.ndarray, tolerance: float
) -> str:
    """Return an error message for the lengths of one actuator, pulled to either side; or ""."""
    # The same advice in both messages.
    remedy = (
        "give it a lengthrange, limit the joints or tendons that it moves, or change the settings "
        "of <compiler><lengthrange>"
    )
    span = found[1] - found[0]
    # The length still changed by more than the tolerance within the measured interval.
    for side, where in enumerate(("shortest", "longest")):
        if high[side] - low[side] > tolerance * span > 0:
            return (
                f"{puller.label}: its length does not settle where it is {where}: it moves from "
                f"{low[side]:g} to {high[side]:g}, in a range from {found[0]:g} to {found[1]:g}; "
                + remedy
            )
    if not span > 0:
        return f"{puller.label}: its length has no range, it stays {found[0]:g}; {remedy}"
    return ""


def _check_supported(m: Model, wanted: LengthRanges) -> None:
    """Raise ModelError for models with constraints that the simulation does not support."""
    lacks = equality.unsupported_equalities(m)
    if lacks:
        first = wanted.pullers[0]
        message = f"{first.label}: give it a lengthrange; simulation cannot find it: "
        raise ModelError(LocatedProblem(first.place, message + lacks[0].message))


def _limits_only_model(m: Model, timestep: float) -> Model:
    """Return the model with limits and equalities only, for Euler's method."""
    opt = m.opt.replace(
        timestep=jnp.full_like(m.opt.timestep, timestep),
        disableflags=int(_DISABLED_FLAGS),
        enableflags=0,
        integrator=int(IntegratorType.EULER),
    )
    return m.replace(opt=opt)


def _settle(m: Model, wanted: LengthRanges, timestep: float) -> tuple[np.ndarray, np.ndarray]:
    """Return smallest and largest lengths over the interval, (2, n): shortened, lengthened."""
    times, time = [], 0.0
    while time < wanted.inttotal:
        times.append(time)
        time += timestep
    plan = _Plan(
        counts=np.array(times) > wanted.inttotal - wanted.interval,
        decay=float(np.exp(-timestep / max(_MIN_TIME_CONSTANT, wanted.timeconst))),
        accel=wanted.accel,
        maxforce=wanted.maxforce,
    )
    output = np.array([[p.output for p in wanted.pullers] * 2], np.int32)
    side = np.repeat([[-1.0, 1.0]], len(wanted.pullers), axis=1).astype(m.qpos0.dtype)

    def pull(m, d, output, side):
        """Pull in all worlds, with the batch axis last and one model (`vmap` would trace two)."""
        m, d = (
            unpack_record(_repeat_worlds(m, 1), 1),
            unpack_record(_repeat_worlds(d, output.size), 1),
        )
        return _pull_output(plan, m, d, output, side)

    lengths = _run_once(pull, m, allocate(m, ()), output, side)
    low, high = (np.asarray(a, np.float64).reshape(2, -1) for a in lengths)
    return low, high


def _repeat_worlds(tree: Data | Model, worlds: int) -> Data | Model:
    """Add a last batch axis to a record."""
    return jax.tree.map(lambda a: jnp.broadcast_to(a[..., None], (*a.shape, worlds)), tree)


def _run_once(function: Callable, *operands: Any) -> tuple[Array, Array]:
    """Run `function(*operands)`, compiled without optimization for a single run."""
    program = jax.jit(function).lower(*operands)
    try:
        return program.compile(FAST_COMPILE_OPTIONS)(*operands)
    except jax.errors.JaxRuntimeError:  # an XLA without these options
        return program.compile()(*operands)


class _Plan(NamedTuple):
    """Settings of the simulation; `counts` is the mask of steps whose length counts."""

    counts: np.ndarray
    decay: float
    accel: float
    maxforce: float


def _pull_output(plan: _Plan, m: Model, d: Data, output: Array, side: Array) -> tuple[Array, Array]:
    """Return smallest and largest length of an output pulled to a side, `[1, *W]` each.

    Args:
      plan: settings of the simulation.
      m: stripped model.
      d: data at `qpos0`.
      output: its index, int `[1, *W]`.
      side: -1 shortens, 1 lengthens it, `[1, *W]`.
    """
    # Select the output that each world pulls on.
    pattern = moment_pattern(m)
    pulled = (column(np.arange(m.nout, dtype=np.int32), output) == output).astype(side.dtype)
    start = d

    # One damped step: decay the velocity, apply the pull, record the length.
    def step(carry, counts):
        qpos, qvel, warm, low, high = carry
        d = start.replace(qpos=qpos, qvel=plan.decay * qvel, qacc_warmstart=warm)
        d = fwd_position(m, d)
        length = sum_items(pulled * d.actuator_length)
        moment = pattern.apply_transpose(pattern.entries(d.actuator_moment), pulled)
        d = d.replace(qfrc_applied=side * _force(plan, d.M, moment))
        d = fwd_dynamics(m, fwd_velocity(m, d))
        d = advance(m, d, d.qacc)
        # Extremes over the steps of the measured interval.
        low = jnp.where(counts, jnp.minimum(low, length), low)
        high = jnp.where(counts, jnp.maximum(high, length), high)
        return (d.qpos, d.qvel, d.qacc_warmstart, low, high), None

    # Start with an empty interval.
    nowhere = jnp.full_like(side, jnp.inf)
    begin = (d.qpos, d.qvel, d.qacc_warmstart, nowhere, -nowhere)
    (*_, low, high), _ = lax.scan(step, begin, plan.counts)
    return low, high


def _force(plan: _Plan, M: Array, moment: Array) -> Array:
    """Return the force along a moment whose acceleration has norm `accel`, bounded by maxforce."""
    # Scale the force to the requested acceleration, then limit it.
    force = moment * (plan.accel / jnp.maximum(_norm(solve_spd(M, moment)), MINVAL))
    if plan.maxforce > 0:
        force = force * jnp.minimum(plan.maxforce / jnp.maximum(_norm(force), MINVAL), 1)
    return force


def _norm(x: Array) -> Array:
    return safe_sqrt(sum_items(x * x))
