"""Time and geometry of impact of two moving geoms, by conservative advancement.

MuJoCo's documentation, Computation: Speculative contacts (Conservative advancement). The limit of
iterations, what the last one does, and when the iteration fails were determined by experiment.
Conservative advancement: Mirtich, Impulse-based Dynamic Simulation of Rigid Body Systems (1996). In
an iteration `start` is the distance at t = 0, `whole` that minus the margin, `left` the distance to
the target, and `goes` flags the pairs that still iterate.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.math import Vec, select_where
from jaxsim.math.guard import safe_divide
from jaxsim.physics.collision.speculative.motion import Moving

_CLEARANCE_FRACTION = 0.02  # target distance, as a fraction of the initial distance
_TOLERANCE_FRACTION = 0.01  # convergence tolerance above the target, as a fraction of the same
_MAX_ADVANCEMENT_STEPS = 16  # iterations

# Returns distance, midpoint and normal of geoms at a fraction of the step, for wanted pairs.
_DistanceFunction = Callable[[Moving, Moving, Array, Array], tuple[Array, Vec, Vec]]


class Meeting(NamedTuple):
    """Impact of two geoms, `[n, *W]`.

    Attributes:
      there: they collide before the step ends.
      t: time of impact, as a fraction of the step.
      pose: fraction of the step at which contact points are computed.
      closing: approach speed, per step [m].
      dist, pos, normal: distance, midpoint and direction from the first geom, at `pose`.
    """

    there: jax.Array
    t: jax.Array
    pose: jax.Array
    closing: jax.Array
    dist: jax.Array
    pos: Vec
    normal: Vec


class _Way(NamedTuple):
    """State of the iteration: pairs that still iterate, their initial distance, and the impacts."""

    goes: jax.Array
    start: jax.Array
    meeting: Meeting


def conservative_advancement(
    nearest: _DistanceFunction, a: Moving, b: Moving, margin: Array, wanted: Array
) -> Meeting:
    """Compute the time and geometry of impact of pairs.

        t <- t + (dist(t) - target) / bound,   bound = n . (dx_a - dx_b) + |dw_a| r_a + |dw_b| r_b

    The target is the margin plus 2 % of the initial gap; the iteration ends when the distance
    exceeds it by less than 1 % of that gap. After 16 iterations the last step uses the speed of the
    nearest points instead of the bound. A pair that is farther apart than both geoms can travel in
    the rest of the step does not collide.

    Args:
      nearest: distance of geoms at a fraction of the step.
      a, b: the pairs.
      margin: distance at which they touch, `[n, *W]` [m].
      wanted: which pairs to compute, `[n, *W]` bool.
    """

    def advance_pairs(way: _Way, k: Array) -> tuple[_Way, None]:
        """Advance each pair by a step that cannot pass the impact."""
        known, t = way.meeting, way.meeting.t
        dist, pos, normal = nearest(a, b, t, way.goes)
        start = jnp.where(k == 0, dist, way.start)
        # Convergence: the distance is within the tolerance of the target.
        whole = start - margin
        left = dist - margin - _CLEARANCE_FRACTION * whole
        near = (k > 0) & (left <= _TOLERANCE_FRACTION * whole)

        # Step by the conservative bound on the approach speed, or by the actual speed at the end.
        half = normal.scale(0.5 * dist)
        rate = a.displacement(t, pos - half) - b.displacement(t, pos + half)
        bound = normal.dot(a.shift - b.shift) + a.spin + b.spin
        rate = normal.dot(rate)
        last = k == _MAX_ADVANCEMENT_STEPS
        speed = jnp.where(last, rate, bound)
        closes = near | (speed > 0)
        step = jnp.where(near, 0, left * safe_divide(1.0, jnp.where(closes, speed, 1.0)))
        to = t + step
        # Discard pairs that separate, start in contact, or cannot meet in the rest of the step.
        in_time = dist <= margin + (1 - t) * (a.travel + b.travel)
        there = closes & in_time & (whole > 0) & (to < 1)
        mean = (start - dist) * safe_divide(1.0, t)
        now = Meeting(there, to, t, jnp.maximum(mean, rate), dist, pos, normal)
        goes = way.goes & there & ~near & ~last
        return _Way(
            goes, jnp.where(way.goes, start, way.start), select_where(way.goes, now, known)
        ), None

    zero = jnp.zeros_like(margin + (a.start.pos - b.start.pos).x)
    wanted = wanted & (zero == 0)
    still = Vec(zero, zero, zero)
    begin = Meeting(wanted, zero, zero, zero, zero, still, still)
    way, _ = lax.scan(
        advance_pairs, _Way(wanted, zero, begin), jnp.arange(_MAX_ADVANCEMENT_STEPS + 1)
    )
    return way.meeting
