"""Time of impact of pairs along a straight motion: continuous collision detection by advancement.

A gap shrinks no faster than its two sides approach each other, so that steps of gap / speed never
overshoot (conservative advancement; Li, Kaufman and Jiang, *Codimensional incremental potential
contact*, 2021, section 5.2: additive CCD). A fifth of each gap remains at the time of impact.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather
from jaxsim.math import Vec
from jaxsim.physics.ipc.broadphase import NearPairs, split_by_side
from jaxsim.physics.ipc.gap import measure_gaps, pair_sides
from jaxsim.physics.ipc.plan import PairGrid
from jaxsim.physics.ipc.scene import IpcScene

_REMAINING_GAP_FRACTION = 0.2  # fraction of a gap that remains
_MAX_ADVANCEMENT_STEPS = 32  # maximum number of advancement steps
_MIN_CLOSING_SPEED = 1e-12  # [m]: motion below which a pair does not close
_GAP_ROUNDING = 1e-9  # relative to the gap: a remaining distance below this ends the iteration


class Impacts(NamedTuple):
    """Result for pairs, `[n, *W]`.

    Attributes:
      closes: True if the gap could fall below the remainder.
      time: time of impact as a fraction of the motion; 1: none.
    """

    closes: jax.Array
    time: jax.Array


def times_of_impact(
    scene: IpcScene, grid: PairGrid, found: NearPairs, x: Vec, motion: Vec
) -> Impacts:
    """Compute the times of impact of pairs for a motion `motion` of the points from x."""
    pairs = pair_sides(grid, found.pair)
    corner, motions = ([gather(a, p) for p in pairs.points] for a in (x, motion))
    # Upper bound of the closing speed; pairs slower than that cannot close.
    start, speed = found.gap.dist, _speed(scene, grid, found, motions)
    closes = (
        found.there
        & (speed >= _MIN_CLOSING_SPEED)
        & (start > 0)
        & (speed > (1 - _REMAINING_GAP_FRACTION) * start)
    )

    def advance_time(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        number, time, busy = state
        # Move the points to the current time, and advance by the distance left over the speed.
        there = [c + v.scale(time) for c, v in zip(corner, motions, strict=True)]
        remaining = measure_gaps(scene, grid, pairs, there).dist - _REMAINING_GAP_FRACTION * start
        goes = busy & (remaining > _GAP_ROUNDING * start)
        time = jnp.where(goes, time + remaining / jnp.where(goes, speed, 1), time)
        return number + 1, jnp.minimum(time, 1), goes & (time < 1)

    state = jnp.int32(0), jnp.zeros_like(start), closes
    _, time, _ = lax.while_loop(
        lambda s: (s[0] < _MAX_ADVANCEMENT_STEPS) & jnp.any(s[2]), advance_time, state
    )
    return Impacts(closes, jnp.where(closes, time, 1))


def _speed(scene: IpcScene, grid: PairGrid, found: NearPairs, motions: list[Vec]) -> Array:
    """Bound the speed at which a gap shrinks.

    The motion common to two items of one shell is subtracted, since it changes no gap.
    """
    # Shells against shells: remove the mean motion of both items.
    if grid.type is None:
        first, second = split_by_side(grid, found.gap.points)
        flex = jnp.asarray(column(scene.plan.flex, found.gap.dist), jnp.int32)
        same = (gather(flex, first[0]) == gather(flex, second[0])).astype(motions[0].x.dtype)
        shared = sum(motions[1:], motions[0]).scale(same / len(motions))
        motions = [v - shared for v in motions]
    # Sum over the two sides of the speed of their fastest point.
    fastest = [
        _most([v.norm() for v in of_side]) for of_side in split_by_side(grid, motions) if of_side
    ]
    return sum(fastest[1:], fastest[0])


def _most(lengths: list[Array]) -> Array:
    most = lengths[0]
    for length in lengths[1:]:
        most = jnp.maximum(most, length)
    return most
