"""Ranges of actuator lengths, found by pulling on the actuators in a damped simulation.

MuJoCo's documentation, Modeling: Length range. Each actuator is pulled to either side from `qpos0`,
with a force along its moment that would accelerate the joints by a given amount, while velocities
decay; what counts is where its length settles. Limits and equalities hold, all else is switched
off. All actuators and sides are worlds of one simulation.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.enums import MINVAL, DisableBit, IntegratorType
from jaxsim.errors import ModelError, Problem
from jaxsim.math import safe_sqrt
from jaxsim.model.allocate import allocate
from jaxsim.model.data import Data
from jaxsim.model.derived import LengthRanges, Puller
from jaxsim.model.model import Model
from jaxsim.physics.actuator.transmission import moment_pattern
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.native import unpack
from jaxsim.physics.arrays.platform import QUICK
from jaxsim.physics.arrays.select import column, total
from jaxsim.physics.arrays.system.factor import solve_spd
from jaxsim.physics.constraint import equality
from jaxsim.physics.forward import (
    fwd_actuation,
    fwd_constraint,
    fwd_position,
    fwd_velocity,
    smooth_force,
)
from jaxsim.physics.integrate.integrate import advance

OFF = (
    DisableBit.CONTACT
    | DisableBit.FRICTIONLOSS
    | DisableBit.SPRING
    | DisableBit.DAMPER
    | DisableBit.GRAVITY
    | DisableBit.ACTUATION
)
SHORTEST = 0.01  # least time constant of the decay [s]


def find_length_ranges(m: Model, wanted: LengthRanges) -> Model:
    """The model with `actuator_lengthrange` of the wanted actuators found by simulation.

    Raises:
      ModelError: a length did not settle, or has no range; lists every such actuator.
    """
    _refuse(m, wanted)
    timestep = wanted.timestep or float(m.opt.timestep)
    # In double precision whatever that of the model is: what settles in single, does so roughly.
    with jax.enable_x64(True):
        double = jax.tree.map(lambda a: np.asarray(a, np.float64), m)
        low, high = _settle(_stripped(double, timestep), wanted, timestep)
    problems = []
    ranges = np.array(m.actuator_lengthrange)
    for k, puller in enumerate(wanted.pullers):
        found = low[0, k], high[1, k]
        message = _fault(puller, found, low[:, k], high[:, k], wanted.tolrange)
        if message:
            problems.append(Problem(puller.place, message))
        ranges[puller.output] = found
    if problems:
        raise ModelError(problems)
    return m.replace(actuator_lengthrange=jnp.asarray(ranges))


def _fault(
    puller: Puller, found: tuple, low: np.ndarray, high: np.ndarray, tolerance: float
) -> str:
    """What is wrong with the lengths of one actuator, pulled to either side; or nothing."""
    remedy = (
        "give it a lengthrange, limit the joints or tendons that it moves, or change the settings "
        "of <compiler><lengthrange>"
    )
    span = found[1] - found[0]
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


def _refuse(m: Model, wanted: LengthRanges) -> None:
    """Refuses models with constraints that the simulation does not know."""
    lacks = equality.refusals(m)
    if lacks:
        first = wanted.pullers[0]
        message = f"{first.label}: give it a lengthrange; simulation cannot find it: "
        raise ModelError(Problem(first.place, message + lacks[0].message))


def _stripped(m: Model, timestep: float) -> Model:
    """The model with limits and equalities only, to be stepped by Euler's method."""
    opt = m.opt.replace(
        timestep=jnp.full_like(m.opt.timestep, timestep),
        disableflags=int(OFF),
        enableflags=0,
        integrator=int(IntegratorType.EULER),
    )
    return m.replace(opt=opt)


def _settle(m: Model, wanted: LengthRanges, timestep: float) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest lengths over the interval, (2, n): shortened and lengthened actuators."""
    times, time = [], 0.0
    while time < wanted.inttotal:
        times.append(time)
        time += timestep
    plan = _Plan(
        counts=np.array(times) > wanted.inttotal - wanted.interval,
        decay=float(np.exp(-timestep / max(SHORTEST, wanted.timeconst))),
        accel=wanted.accel,
        maxforce=wanted.maxforce,
    )
    output = np.array([[p.output for p in wanted.pullers] * 2], np.int32)
    side = np.repeat([[-1.0, 1.0]], len(wanted.pullers), axis=1).astype(m.qpos0.dtype)

    def pull(m, d, output, side):
        """Worlds last, the model the same in all; under `vmap` all would be traced twice."""
        m, d = unpack(_repeated(m, 1), 1), unpack(_repeated(d, output.size), 1)
        return _pull(plan, m, d, output, side)

    lengths = _run_once(pull, m, allocate(m, ()), output, side)
    low, high = (np.asarray(a, np.float64).reshape(2, -1) for a in lengths)
    return low, high


def _repeated(tree: Data | Model, worlds: int) -> Data | Model:
    """A record with a last axis of worlds."""
    return jax.tree.map(lambda a: jnp.broadcast_to(a[..., None], (*a.shape, worlds)), tree)


def _run_once(function: Callable, *operands: Any) -> tuple[Array, Array]:
    """`function(*operands)`, compiled for a single run."""
    program = jax.jit(function).lower(*operands)
    try:
        return program.compile(QUICK)(*operands)
    except jax.errors.JaxRuntimeError:  # an XLA that does not know these options
        return program.compile()(*operands)


class _Plan(NamedTuple):
    """How to pull: `counts` says of each step whether its length counts."""

    counts: np.ndarray
    decay: float
    accel: float
    maxforce: float


def _pull(plan: _Plan, m: Model, d: Data, output: Array, side: Array) -> tuple[Array, Array]:
    """Least and largest length of an output while it is pulled to a side, `[1, *W]` each.

    Args:
      plan: constants of the simulation.
      m: stripped model.
      d: data at `qpos0`.
      output: its number, int `[1, *W]`.
      side: -1 shortens, 1 lengthens it, `[1, *W]`.
    """
    pattern = moment_pattern(m)
    pulled = (column(np.arange(m.nout, dtype=np.int32), output) == output).astype(side.dtype)
    start = d

    def step(carry, counts):
        qpos, qvel, warm, low, high = carry
        d = start.replace(qpos=qpos, qvel=plan.decay * qvel, qacc_warmstart=warm)
        d = fwd_position(m, d)
        length = total(pulled * d.actuator_length)
        moment = pattern.apply_transpose(pattern.entries(d.actuator_moment), pulled)
        d = d.replace(qfrc_applied=side * _force(plan, d.M, moment))
        for stage in (fwd_velocity, fwd_actuation, smooth_force, fwd_constraint):
            d = stage(m, d)
        d = advance(m, d, d.qacc)
        low = jnp.where(counts, jnp.minimum(low, length), low)
        high = jnp.where(counts, jnp.maximum(high, length), high)
        return (d.qpos, d.qvel, d.qacc_warmstart, low, high), None

    nowhere = jnp.full_like(side, jnp.inf)
    begin = (d.qpos, d.qvel, d.qacc_warmstart, nowhere, -nowhere)
    (*_, low, high), _ = lax.scan(step, begin, plan.counts)
    return low, high


def _force(plan: _Plan, M: Array, moment: Array) -> Array:
    """The force along a moment whose acceleration M^-1 force has norm `accel`, within its bound."""
    force = moment * (plan.accel / jnp.maximum(_norm(solve_spd(M, moment)), MINVAL))
    if plan.maxforce > 0:
        force = force * jnp.minimum(plan.maxforce / jnp.maximum(_norm(force), MINVAL), 1)
    return force


def _norm(x: Array) -> Array:
    return safe_sqrt(total(x * x))
