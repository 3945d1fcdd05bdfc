"""Tendons and rods as chains of capsules, for drawing.

A tendon is straight between the points of its path, around shapes along the chord, with the radius
`tendon_width`; a one-dimensional flex has a segment for each edge, with its own radius.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather, gather_static
from jaxsim.enums import WrapType
from jaxsim.math import Vec, concat
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure

_PULLEY_OBJ = -2  # value of `wrap_obj`


class Strands(NamedTuple):
    """Segments, those of tendons first, `[n, *W]`.

    Attributes:
      begin, end: centers of their round ends, in the world [m].
      radius: radius [m]; negative for unused slots.
      owner: id of the tendon, or ntendon plus that of the flex.
    """

    begin: Vec
    end: Vec
    radius: jax.Array
    owner: jax.Array


@dataclass(frozen=True, eq=False)
class _Rods:
    """Edges of one-dimensional flexes: their vertices, `[2, n]`, and flexes, `[n]`."""

    vert: np.ndarray
    flex: np.ndarray


def strands(m: Model, d: Data) -> Strands:
    """Return all segments; `d` has the paths of tendons and the vertices of flexes."""
    like = jnp.zeros_like(d.qpos, shape=(1, *d.qpos.shape[1:]))
    parts = [*_tendons(m, d), *_rods(m, d)]
    return concat(jax.tree.map(lambda x: x + 0 * like.astype(x.dtype), parts))


def has_strands(s: Structure) -> bool:
    """Return whether a model has tendons with a path, or rods."""
    return _has_paths(s) or len(_rods_of(s).flex) > 0


def _has_paths(s: Structure) -> bool:
    """Return whether some tendon is spatial, not a sum of joints."""
    return bool(np.any(s.wrap_type != WrapType.JOINT)) if s.nwrap else False


def _tendons(m: Model, d: Data) -> list[Strands]:
    if not _has_paths(m.structure):
        return []
    point = Vec(*(d.wrap_xpos[:, k::3].reshape(-1, *d.qpos.shape[1:]) for k in range(3)))
    number = len(point.x)
    pulley = d.wrap_obj.reshape(number, *d.qpos.shape[1:]) == _PULLEY_OBJ
    place = jnp.asarray(column(np.arange(number, dtype=np.int32), point.x))
    end = d.ten_wrapadr + d.ten_wrapnum
    # the tendon of each point: the first one that ends after it
    tendon = sum((place >= end[k : k + 1]).astype(jnp.int32) for k in range(m.ntendon))
    joined = (tendon[:-1] == tendon[1:]) & (tendon[1:] < m.ntendon) & ~(pulley[:-1] | pulley[1:])
    owner = jnp.minimum(tendon[:-1], m.ntendon - 1)
    seen = joined & (gather(m.tendon_rgba[:, 3], owner) > 0)
    radius = jnp.where(seen, gather(m.tendon_width, owner), -1)
    return [Strands(point[:-1], point[1:], radius, owner)]


def _rods(m: Model, d: Data) -> list[Strands]:
    rods = _rods_of(m.structure)
    if not len(rods.flex):
        return []
    begin, end = (gather_static(d.flexvert_xpos, index) for index in rods.vert)
    radius = jnp.where(
        gather_static(m.flex_rgba[:, 3], rods.flex) > 0, gather_static(m.flex_radius, rods.flex), -1
    )
    owner = jnp.asarray(column(m.ntendon + rods.flex.astype(np.int32), begin.x))
    return [Strands(begin, end, radius, owner)]


@cache_by_structure
def _rods_of(s: Structure) -> _Rods:
    vert, flex = [np.zeros((0, 2), int)], [np.zeros(0, int)]
    for f in np.flatnonzero(s.flex_dim == 1) if s.nflex else []:
        own = slice(s.flex_edgeadr[f], s.flex_edgeadr[f] + s.flex_edgenum[f])
        vert.append(s.flex_vertadr[f] + np.asarray(s.flex_edge).reshape(-1, 2)[own])
        flex.append(np.full(s.flex_edgenum[f], f))
    return _Rods(np.concatenate(vert).T, np.concatenate(flex))


def capsule_entry(strand: Strands, pos: Vec, way: Vec) -> tuple[Array, Vec]:
    """Return where rays enter capsules from outside, and the outward normals there.

    With the axis s from begin to end and o from begin to the ray origin, the ray o + t u is at the
    distance of the radius from the axis where

        (s s - (s u)^2) t^2 + 2 (s s (o u) - (s o)(s u)) t + s s (o o - r^2) - (s o)^2 = 0

    Args:
      strand: segments, with the shape of the rays or broadcastable to it.
      pos, way: rays; the directions have unit length.

    Returns:
      Distances [m], infinite without a hit, and normals.
    """
    axis, away = strand.end - strand.begin, pos - strand.begin
    ss, su, so = axis.dot(axis), axis.dot(way), axis.dot(away)
    ou, oo, rr = away.dot(way), away.dot(away), strand.radius**2
    a, b, c = ss - su * su, ss * ou - so * su, ss * (oo - rr) - so * so
    side = _smaller_root(a, b, c)
    along = so + jnp.where(jnp.isfinite(side), side, 0) * su
    side = jnp.where((along > 0) & (along < ss), side, jnp.inf)
    one = jnp.ones_like(ss)
    last = pos - strand.end
    ends = [_smaller_root(one, o.dot(way), o.dot(o) - rr) for o in (away, last)]
    t = jnp.minimum(side, jnp.minimum(*ends))
    t = jnp.where(strand.radius > 0, t, jnp.inf)
    point = away + way.scale(jnp.where(jnp.isfinite(t), t, 0))
    part = (axis.dot(point) / jnp.where(ss > 0, ss, 1)).clip(0, 1)
    return t, (point - axis.scale(part)).normalize()


def _smaller_root(a: Array, b: Array, c: Array) -> Array:
    """Return the smaller root of a t^2 + 2 b t + c = 0 if it is not negative, else infinity."""
    square = b * b - a * c
    meets = (square >= 0) & (a > 1e-12)
    root = jnp.sqrt(jnp.where(meets, square, 1))
    t = (-b - root) / jnp.where(meets, a, 1)
    return jnp.where(meets & (t >= 0), t, jnp.inf)
