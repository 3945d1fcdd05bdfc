"""Contacts of a capsule with a box: at most two spheres on the capsule's axis that touch the box.

Everything is computed in the frame of the box, where the axis is the segment p + t d, |t| <= 1. The
first sphere sits at the point of the segment nearest to the box. A second one supports a capsule that
lies along a face or an edge: it sits where the segment ends, or leaves that face or edge.

The nearest point is an end over a face (or inside the box), or it faces one of the twelve edges. Which of
these features it is, and along what the segment runs, is decided first and without derivatives; the two
parameters t are then computed for what was chosen, so that a gradient goes through one formula.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.math import Vec, select
from jaxsim.physics.collision.shape import Placed, Touch, pick, slots, touch_if, turned
from jaxsim.physics.collision.sphere import in_world, sphere_at_box
from jaxsim.physics.once import decide

SIGNS = ((-1, -1), (-1, 1), (1, -1), (1, 1))
LONG = 1e6  # in half lengths of the capsule: a side that is never reached


class Choice(NamedTuple):
    """What the nearest point faces, and along what the segment runs from there."""

    second: jax.Array  # there is a second contact
    end: jax.Array  # the nearest point is this end of the segment (-1, 1), or 0: it faces an edge
    face: jax.Array  # axis of the face under the end
    axis: jax.Array  # axis of the edge,
    sign1: jax.Array  # the side on which it lies along the next axis,
    sign2: jax.Array  # and along the one after (cyclic)
    way: jax.Array  # the second contact lies at greater (1) or smaller (-1) t
    along: jax.Array  # it lies along that edge, or along the face below it:
    side: jax.Array  # over the face the segment moves along the axis and this next axis (1 or 2),
    corner: jax.Array  # from the end of the edge, or else from where the nearest point is


def capsule_box(capsule: Placed, box: Placed) -> Touch:
    """A contact at the nearest point, and one more where the capsule lies along the box."""
