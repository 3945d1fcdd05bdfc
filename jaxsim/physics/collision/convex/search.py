"""Where two convex shapes are nearest to each other, or deepest in each other.

All lanes that are wanted look for the nearest points; those whose cores overlap go on with the
depth; all end with a few Newton steps on the features found. What is searched is decided: integers,
and numbers without derivative (`feature.at_solution` gives the derivative).
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.math import Rot, Vec
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.platform import platform
from jaxsim.physics.collision.convex.difference import Corner, Difference
from jaxsim.physics.collision.convex.epa import deepest
from jaxsim.physics.collision.convex.feature import Feature, feature_of, solved
from jaxsim.physics.collision.convex.gjk import nearest, weighted
from jaxsim.physics.collision.convex.lanes import for_some
from jaxsim.physics.collision.convex.solid import Assets, Solid

NEWTON_TURNS = 4


class Lanes(NamedTuple):
    """Pairs of shapes, `[n]`; see Difference."""

    a: Solid
    b: Solid
    pos: Vec
    rot: Rot

    def difference(self, assets: Assets) -> Difference:
        """The differences of the shapes."""
        both = jax.tree.map(lambda *x: jnp.stack(x), self.a, self.b)
        return Difference(assets, both, self.pos, self.rot)


class _Found(NamedTuple):
    """A triangle of the difference, its weights, the normal; `near`: not too far apart."""

    corners: tuple[Corner, Corner, Corner]
    weight: tuple[Array, Array, Array]
    normal: Vec
    inside: Array
    near: Array


def search(
    assets: Assets, lanes: Lanes, wanted: Array, cutoff: Array, turns: int
) -> tuple[Feature, Array]:
    """The features of nearest or deepest points.

    Args:
      assets: tables of the model.
      lanes: pairs `[n]`.
      wanted: which of them are asked for.
      cutoff: distance of the cores beyond which nothing more is asked, `[n]`.
      turns: limit of iterations.

    Returns:
      Features; and which lanes have any: wanted, and not too far apart.
    """
    nothing = jax.tree.map(
        lambda s: jnp.zeros(s.shape, s.dtype),
        jax.eval_shape(functools.partial(_approach, assets, turns), (lanes, cutoff)),
    )
    size = platform().lanes
    approach = functools.partial(_approach, assets, turns)
    found = for_some(approach, wanted, (lanes, cutoff), nothing, size)
    penetrate = functools.partial(_penetrate, assets, turns)
    found = for_some(penetrate, found.near & found.inside, (lanes, found), found, size)
    finish = functools.partial(_finish, assets)
    blank = jax.eval_shape(finish, (lanes, found))
    blank = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), blank)
    return for_some(finish, found.near, (lanes, found), blank, size), found.near


def _approach(assets: Assets, turns: int, operands: tuple[Lanes, Array]) -> _Found:
    lanes, cutoff = operands
    near = nearest(lanes.difference(assets), cutoff, turns)
    towards = -weighted(_ys(near.triangle), near.weight)
    normal = towards.normalize(fallback=lanes.pos.normalize())
    return _Found(near.triangle, near.weight, normal, near.inside, ~near.apart)


def _penetrate(assets: Assets, turns: int, operands: tuple[Lanes, _Found]) -> _Found:
    lanes, found = operands
    deep = deepest(lanes.difference(assets), turns)
    return found._replace(corners=deep.triangle, weight=deep.weight, normal=deep.normal)


def _finish(assets: Assets, operands: tuple[Lanes, _Found]) -> Feature:
    lanes, found = operands
    set_ = lanes.difference(assets)
    feature = feature_of(set_, found.corners, found.weight, found.normal, found.inside)
    return solved(set_, feature, NEWTON_TURNS)


def _ys(triangle: tuple[Corner, Corner, Corner]) -> tuple[Vec, Vec, Vec]:
    one, two, three = triangle
    return one.y, two.y, three.y
