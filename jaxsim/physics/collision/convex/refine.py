"""Refine nearest points of cylinders by an active-set method over the corners of their contact.

The signed distance of two convex shapes is -min over unit n of h(n), the support function of their
Minkowski difference. `feature.solved` finds a stationary point for one set of corners by Newton's
method. For a cylinder that set may be wrong: a slightly tilted cap touches with its rim, not as a
face, and two parallel side lines have more corners than they determine. Here the set itself is
chosen: from a pool of four corners each subset of at most three takes a Newton step, and the step
of least h is kept, among equal ones that of least residual. Eight hypotheses are tried until one
passes the optimality conditions: each cap as a face or as a rim (four combinations), a whole cap of
one shape, or one of the two crossings of the rims (`_NUM_HYPOTHESES`, `way`).
"""

from itertools import combinations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.enums import GeomType
from jaxsim.math import Vec, select_where
from jaxsim.physics.collision.convex.difference import Corner, Difference, same_features
from jaxsim.physics.collision.convex.feature import (
    Feature,
    feature_of,
    feature_residual,
    newton_step,
)
from jaxsim.transforms.compaction import evaluate_active_lanes
from jaxsim.transforms.materialize import materialize_decision
from jaxsim.transforms.tuning import tuning

_POOL_SIZE = 4  # corners from which active subsets are chosen
_CORNER_SUBSETS = [s for size in (3, 2, 1) for s in combinations(range(_POOL_SIZE), size)]
_MAX_ITERATIONS = 12  # per hypothesis
_NUM_HYPOTHESES = 8  # hypotheses of how caps touch
_NOT_TILED: Any = None  # placeholder for a field that is not tiled
_MAX_RIM_ROTATION = 0.5  # largest rotation of a rim point about the axis in a step [rad]


class _Merit(NamedTuple):
    """Measures by which features are compared.

    Attributes:
      h: support of the difference along the normal, minimal at a solution [m].
      residual: square by which the equations are violated, at least that of rounding [m2].
      gap: how much farther the difference reaches than the feature [m].
      outside: the most negative weight of a corner.
      scale: size of the corners, in which rounding is measured [m].
    """

    h: Array
    residual: Array
    gap: Array
    outside: Array
    scale: Array


class _Tried(NamedTuple):
    """A feature, its merit, and the support point along its normal."""

    feature: Feature
    merit: _Merit
    beyond: Corner


class _State(NamedTuple):
    """State of the iteration over all hypotheses."""

    best: _Tried  # of all hypotheses
    now: _Tried  # of the current hypothesis
    pool: Corner  # [_POOL_SIZE, n]
    part: Array  # trust region, as a fraction of the largest step
    k: Array


class _Lanes(NamedTuple):
    """Operands of the refinement, for compacted lanes."""

    set_: Difference
    corners: tuple[Corner, Corner, Corner]
    weight: tuple[Array, Array, Array]
    normal: Vec
    found: _Tried


def refine_features(
    set_: Difference,
    corners: tuple[Corner, Corner, Corner],
    weight: tuple[Array, Array, Array],
    normal: Vec,
    f: Feature,
    beyond: Corner,
) -> Feature:
    """Return features at their solution, with the set of corners that the solution has.

    Features that pass the optimality conditions are returned as they are.

    Args:
      set_: pairs `[n]`.
      corners, weight, normal: result of GJK/EPA.
      f: its feature, at the solution of its equations.
      beyond: the support point along the normal of `f`.
    """
    assets = set_.assets
    set_, corners, weight, normal, f, beyond = lax.stop_gradient(
        (set_, corners, weight, normal, f, beyond)
    )
    found = _Tried(f, _evaluate_merit(set_, f, beyond), beyond)
    wanted = ~materialize_decision(_is_optimal, found.merit)
    lanes = _Lanes(set_._replace(assets=_NOT_TILED), corners, weight, normal, found)

    def refine(lanes: _Lanes) -> Feature:
        return _refine_lanes(lanes._replace(set_=lanes.set_._replace(assets=assets)))

    return evaluate_active_lanes(refine, wanted, lanes, tuning().min_search_lanes, f)


def _refine_lanes(lanes: _Lanes) -> Feature:
    """Return the best feature over all hypotheses of how caps touch."""
    set_, corners, weight, normal, found = lanes
    every = _repeat_lanes(set_._replace(assets=_NOT_TILED), len(_CORNER_SUBSETS))._replace(
        assets=set_.assets
    )

    def iteration(s: _State) -> _State:
        """Take one Newton step for each subset of the current hypothesis."""
        # Each hypothesis starts with its own features.
        begins = s.k % _MAX_ITERATIONS == 0
        searched = found.feature._replace(normal=normal)
        start = _initial_features(set_, corners, weight, searched, s.k // _MAX_ITERATIONS)
        # Newton step of each subset of the pool, all as lanes of one call.
        tried = _corner_subsets(s.now.feature, s.pool)
        longest = _MAX_RIM_ROTATION * _repeat_lanes(s.part, len(_CORNER_SUBSETS))
        tried = newton_step(every, tried, longest * every.rim(tried.normal, tried.flat))
        tried = select_where(begins, _repeat_lanes(start, len(_CORNER_SUBSETS)), tried)
        beyond = every.farthest(tried.normal)
        rows = _Tried(tried, _evaluate_merit(every, tried, beyond), beyond)
        rows = jax.tree.map(lambda x: x.reshape(*x.shape[:-1], len(_CORNER_SUBSETS), -1), rows)
        # Keep the best subset; adapt the trust region; update the best of all hypotheses.
        first = materialize_decision(_pick_best, rows.merit)
        new = jax.tree.map(lambda x: _pick_row(x, first), rows)
        better = begins | materialize_decision(_is_better, s.now.merit, new.merit)
        part = jnp.where(begins, 1, jnp.where(better, jnp.minimum(2 * s.part, 1), s.part / 4))
        now = select_where(better, new, s.now)
        best = select_where(
            materialize_decision(_is_nearer_optimum, s.best.merit, now.merit), now, s.best
        )
        pool = jax.tree.map(lambda x: jnp.concatenate([x, x[:1]]), now.feature.corners)
        return _State(
            best, now, _update_pool(now, select_where(begins, pool, s.pool)), part, s.k + 1
        )

    def not_converged(s: _State) -> Array:
        """Return whether some lane is not optimal and hypotheses are left."""
        return (s.k < _NUM_HYPOTHESES * _MAX_ITERATIONS) & ~jnp.all(_is_optimal(s.best.merit))

    pool = jax.tree.map(lambda x: jnp.concatenate([x, x[:1]]), found.feature.corners)
    state = _State(found, found, pool, jnp.ones_like(found.merit.h), jnp.int32(0))
    return lax.while_loop(not_converged, iteration, state).best.feature


def _initial_features(
    set_: Difference,
    corners: tuple[Corner, Corner, Corner],
    weight: tuple[Array, Array, Array],
    f: Feature,
    way: Array,
) -> Feature:
    """Return the features that a hypothesis starts with.

    0 to 3: the corners of GJK/EPA; the cap of the second shape is a face if bit 0 is set, that of
    the first if bit 1 is. 4, 5: a whole cap of the first, of the second shape. 6, 7: the crossings
    of the rims of two caps, which nearly parallel ones touch with. Newton's method does not find
    them: on the axis of a cap the point of its rim is not determined.
    """
    second = jnp.broadcast_to(way == 5, f.inside.shape)
    cap, normal, part = set_.cap(f.normal, second)
    is_cylinder = set_.both.kind == GeomType.CYLINDER
    side = jnp.arange(2, dtype=jnp.int32)[:, None]
    some = jnp.where(way < 4, (way >> (1 - side)) & 1 == 1, side == way - 4)
    flat = is_cylinder & some
    one = ((way == 4) | (way == 5)) & jnp.where(second, is_cylinder[1], is_cylinder[0])
    rest = (1 - part) / 3
    corners, weight, normal = select_where(
        one, (cap, (part + rest, rest, rest), normal), (corners, weight, f.normal)
    )
    rim, tilted = set_.rim_crossing(f.normal, second=way == 7)
    zero = jnp.zeros_like(part)
    corners, weight, normal = select_where(
        jnp.broadcast_to(way >= 6, f.inside.shape),
        ((rim, rim, rim), (zero + 1, zero, zero), tilted),
        (corners, weight, normal),
    )
    return feature_of(set_, corners, weight, normal, f.inside, flat & (way < 6))


def _pick_row(x: Array, row: Array) -> Array:
    """Pick one of the rows `[..., k, n]`, `[..., n]`."""
    index = row.reshape((1,) * (x.ndim - 1) + (-1,))
    return jnp.take_along_axis(x, index, axis=-2).squeeze(-2)


def _update_pool(now: _Tried, pool: Corner) -> Corner:
    """Return the pool: the active corners, other known ones, and a new one in the last slot."""
    f = now.feature
    count = 1 + f.needed[0].astype(jnp.int32) + f.needed[1].astype(jnp.int32)
    moved = jax.tree.map(lambda mine, all_: _prepend_rows(mine, all_, count), f.corners, pool)
    each = jax.tree.map(lambda x: x[None], now.beyond)
    new = ~jnp.any(same_features(each, moved), axis=0)
    last = (np.arange(_POOL_SIZE)[:, None] == _POOL_SIZE - 1) & new[None]
    return select_where(last, each, moved)


def _prepend_rows(own: Array, pool: Array, count: Array) -> Array:
    """Return the first `count` rows of `own`, followed by rows of `pool`."""
    rows = []
    for k in range(_POOL_SIZE):
        older = pool[max(k - 1, 0)]
        rows.append(jnp.where(k < count, own[k], older) if k < len(own) else older)
    return jnp.stack(rows)


def _corner_subsets(f: Feature, pool: Corner) -> Feature:
    """Return the feature with each of `_CORNER_SUBSETS` as its corners, `[nsubsets, n]`."""
    # Constant table of the subsets; missing corners repeat the first.
    size = np.array([len(s) for s in _CORNER_SUBSETS], np.int32)
    index = np.array([(*s, *(s[0],) * (3 - len(s))) for s in _CORNER_SUBSETS]).T
    n = f.normal.x.shape[0]

    def row(x: Array) -> Array:
        return x[index].reshape(3, len(_CORNER_SUBSETS) * n)

    many = _repeat_lanes(f._replace(corners=_NOT_TILED), len(_CORNER_SUBSETS))
    count = jnp.asarray(np.repeat(size, n))
    share = 1 / count.astype(f.normal.x.dtype)
    two, three = count > 1, count > 2
    return many._replace(
        corners=jax.tree.map(row, pool),
        weight=(jnp.where(two, share, 0), jnp.where(three, share, 0)),
        needed=(two, three),
    )


def _repeat_lanes(x: PyTree, times: int) -> PyTree:
    """Repeat the lanes."""
    return jax.tree.map(lambda a: jnp.tile(a, (1,) * (a.ndim - 1) + (times,)), x)


def _evaluate_merit(set_: Difference, f: Feature, beyond: Corner) -> _Merit:
    """Return the merit of a feature, given the support point along its normal."""
    # Support value, residual with the gap to the support, and the most negative weight.
    y, square = feature_residual(set_, f)
    first, second = f.weight
    x = y[0] + (y[1] - y[0]).scale(first) + (y[2] - y[0]).scale(second)
    h = f.normal.dot(beyond.y)
    eps = float(jnp.finfo(h.dtype).eps)
    scale = jnp.max(_max_abs(y), axis=0) + _max_abs(set_.pos)
    floor = (8 * eps * scale) ** 2
    outside = jnp.minimum(jnp.minimum(first, second), jnp.minimum(1 - first - second, 0))
    gap = h - f.normal.dot(x)
    square = square + gap * gap
    # NaN becomes the worst possible merit.
    known = jnp.isfinite(h) & jnp.isfinite(square)
    big = float(jnp.finfo(h.dtype).max)
    h, square = jnp.where(known, h, big), jnp.where(known, jnp.maximum(square, floor), big)
    return _Merit(h, square, gap, outside, scale)


def _max_abs(y: Vec) -> Array:
    """Return the largest absolute coordinate."""
    return jnp.maximum(jnp.maximum(jnp.abs(y.x), jnp.abs(y.y)), jnp.abs(y.z))


def _support_rounding(m: _Merit) -> Array:
    """Return the rounding error of a support value [m]."""
    return 8 * float(jnp.finfo(m.h.dtype).eps) * m.scale


def _is_optimal(m: _Merit) -> Array:
    """Return whether the optimality conditions hold, up to rounding."""
    slack = 4 * _support_rounding(m)
    return (m.gap <= slack) & (m.residual <= slack * slack) & (m.outside >= -1e-6)


def _is_better(old: _Merit, new: _Merit) -> Array:
    """Return whether the depth or the residual decreases."""
    slack = _support_rounding(old)
    return (new.h <= old.h + slack) & (
        (new.residual < 0.5 * old.residual) | (new.h < old.h - slack)
    )


def _is_nearer_optimum(old: _Merit, new: _Merit) -> Array:
    """Return whether the optimality conditions are violated less, at no larger depth."""
    slack = _support_rounding(old)
    both = _is_optimal(old) & _is_optimal(new)
    less = jnp.where(
        both, new.h < old.h - slack, _equation_violation(new) < 0.5 * _equation_violation(old)
    )
    return less & (new.h <= old.h + slack)


def _equation_violation(m: _Merit) -> Array:
    """Return the violation of the equations, plus a little of that of the weights.

    Only the position depends on the weights.
    """
    outside = 1e-3 * m.outside * m.scale
    return m.residual + outside * outside


def _pick_best(m: _Merit) -> Array:
    """Pick of features `[k, n]` that of least h; of equal ones that of least residual."""
    least = jnp.min(m.h, axis=0, keepdims=True)
    equal = m.h <= least + _support_rounding(m)
    return jnp.argmin(jnp.where(equal, m.residual, jnp.inf), axis=0).astype(jnp.int32)
