"""When two moving geoms meet, and where: conservative advancement.

MuJoCo's documentation, Computation: Speculative contacts (Conservative advancement); the limit of
turns, what is done there, and when it gives up, were found by experiment.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.math import Vec, select
from jaxsim.math.guard import safe_divide
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.collision.ahead.motion import Moving

CLEARANCE = 0.02  # of the distance at the start is left between the geoms
TOLERANCE = 0.01  # ... and so much of it they may be farther
TURNS = 16

# distance and normal of the geoms, and the points midway, of those that are wanted
Nearest = Callable[[Moving, Moving, Array, Array], tuple[Array, Vec, Vec]]


class Meeting(NamedTuple):
    """How two geoms meet, `[n, *W]`.

    Attributes:
      there: they do before the step ends.
      t: when, as a fraction of the step.
      pose: the fraction at which points of contact are taken.
      closing: how fast they come nearer, per step [m].
      dist, pos, normal: distance, the point midway, and the direction from the first, at `pose`.
    """

    there: jax.Array
    t: jax.Array
    pose: jax.Array
    closing: jax.Array
    dist: jax.Array
    pos: Vec
    normal: Vec


class _Way(NamedTuple):
    """On the way: where the pairs are that still go on, and what is known of those that met."""

    goes: jax.Array
    start: jax.Array
    meeting: Meeting


def advance(nearest: Nearest, a: Moving, b: Moving, margin: Array, wanted: Array) -> Meeting:
    """When and how pairs meet.

        t <- t + (dist(t) - target) / bound,   bound = n . (dx_a - dx_b) + |dw_a| r_a + |dw_b| r_b

    until what is left is a hundredth of the first distance. After 16 turns the last step is made
    with the speed of the nearest points. A pair that is farther than both geoms can go in what is
    left of the step does not meet.

    Args:
      nearest: the distance of geoms at a fraction of the step.
      a, b: the pairs.
      margin: distance at which they touch.
      wanted: which pairs are asked for.
    """

    def turn(way: _Way, k: Array) -> tuple[_Way, None]:
        known, t = way.meeting, way.meeting.t
        dist, pos, normal = nearest(a, b, t, way.goes)
        start = jnp.where(k == 0, dist, way.start)
        whole = start - margin
        left = dist - margin - CLEARANCE * whole
        near = (k > 0) & (left <= TOLERANCE * whole)

        half = normal.scale(0.5 * dist)
        rate = a.displacement(t, pos - half) - b.displacement(t, pos + half)
        bound = normal.dot(a.shift - b.shift) + a.spin + b.spin
        rate = normal.dot(rate)
        last = k == TURNS
        speed = jnp.where(last, rate, bound)
        closes = near | (speed > 0)
        step = jnp.where(near, 0, left * safe_divide(1.0, jnp.where(closes, speed, 1.0)))
        to = t + step
        in_time = dist <= margin + (1 - t) * (a.travel + b.travel)
        there = closes & in_time & (whole > 0) & (to < 1)
        mean = (start - dist) * safe_divide(1.0, t)
        now = Meeting(there, to, t, jnp.maximum(mean, rate), dist, pos, normal)
        goes = way.goes & there & ~near & ~last
        return _Way(goes, jnp.where(way.goes, start, way.start), select(way.goes, now, known)), None

    zero = jnp.zeros_like(margin + (a.start.pos - b.start.pos).x)
    wanted = wanted & (zero == 0)
    still = Vec(zero, zero, zero)
    begin = Meeting(wanted, zero, zero, zero, zero, still, still)
    way, _ = lax.scan(turn, _Way(wanted, zero, begin), jnp.arange(TURNS + 1))
    return way.meeting
