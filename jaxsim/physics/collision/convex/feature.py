"""Nearest points of two shapes on known features, by Newton's method, with implicit derivatives.

Let n be the unit normal and y_k(n) the support points of the Minkowski difference on its features
k. At the solution their weighted mean x is parallel to n, and all y_k have the same support:

    T' x = 0,    x = sum_k w_k y_k(n),    n . (y_k - y_1) = 0,    sum_k w_k = 1,

with two tangents T. There are as many equations as unknowns (two of n, and all weights but one) for
every type of feature: three vertices (face-vertex or edge-edge), a curved point on each shape, or
the side of a cylinder. One Newton step converges quadratically; evaluated at the solution with its
matrix held fixed, it has the derivative of the solution (implicit function theorem).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.math import Vec, safe_divide, safe_sqrt, select_where
from jaxsim.physics.collision.convex.difference import Corner, Difference, same_features
from jaxsim.physics.collision.frame import contact_frame
from jaxsim.transforms.materialize import materialize_decision
from jaxsim.transforms.platform import platform

_MAX_NORMAL_ROTATION = (
    0.3  # largest rotation of the normal in a step; a longer step is discarded [rad]
)


class Feature(NamedTuple):
    """The features of the nearest points.

    Attributes:
      corners: three corners of the difference, `[3, n]`, each on other features; an unneeded one
        repeats the first.
      weight: of the second and the third; that of the first is the rest.
      normal: unit vector from the first shape to the second.
      needed: the second and the third corner count.
      inside: the cores penetrate each other.
      flat: the first, and the second shape touches with a cap, as a face, `[2, n]`.
    """

    corners: Corner
    weight: tuple[Array, Array]
    normal: Vec
    needed: tuple[Array, Array]
    inside: Array
    flat: Array

    def corners_for(self, set_: Difference, normal: Vec) -> Corner:
        """Return the corners for another normal."""
        each = normal.map(lambda x: jnp.broadcast_to(x, self.corners.y.shape))
        return set_.support_on_features(self.corners, each, self.flat[:, None])


def feature_of(
    set_: Difference,
    corners: tuple[Corner, Corner, Corner],
    weight: tuple[Array, Array, Array],
    normal: Vec,
    inside: Array,
    flat: Array | None = None,
) -> Feature:
    """Return the feature of a triangle, without repeated corners and zero weights."""
    flat = set_.flat(corners, normal) if flat is None else flat
    smooth = ~jnp.any(flat, axis=0)
    first, second, third = corners
    w1, w2, w3 = weight

    # Put the corner of largest weight first.
    swap2 = (w2 > w1) & (w2 >= w3)
    swap3 = (w3 > w1) & ~swap2
    first, second = select_where(swap2, second, first), select_where(swap2, first, second)
    w1, w2 = jnp.where(swap2, w2, w1), jnp.where(swap2, w1, w2)
    first, third = select_where(swap3, third, first), select_where(swap3, first, third)
    w1, w3 = jnp.where(swap3, w3, w1), jnp.where(swap3, w1, w3)

    def differ(a: Corner, b: Corner) -> Array:
        """Return whether two corners are on different features."""
        apart = a.y - b.y
        return ~(same_features(a, b) & (smooth | (apart.dot(apart) == 0)))

    # Drop corners that are equal to another, or have no weight.
    two = differ(first, second) & (w2 != 0)
    three = differ(first, third) & (w3 != 0) & (differ(second, third) | ~two)
    w3_to_2 = two & (w3 != 0) & ~differ(second, third)
    w2 = jnp.where(w3_to_2, w2 + w3, w2)
    second, third = select_where(two, second, first), select_where(three, third, first)
    zero = jnp.zeros_like(w2)
    return Feature(
        jax.tree.map(lambda *x: jnp.stack(x), first, second, third),
        (jnp.where(two, w2, zero), jnp.where(three, w3, zero)),
        normal,
        (two, three),
        inside,
        flat,
    )


class _Equations(NamedTuple):
    """Residuals and the KKT matrix [[H, E], [E', 0]] of a Newton step."""

    r: tuple[Array, Array]
    c: tuple[Array, Array]
    H: tuple[Array, Array, Array]  # xx, xy, yy
    E: tuple[tuple[Array, Array], tuple[Array, Array]]  # columns


def solve_feature(set_: Difference, f: Feature, max_iterations: int) -> tuple[Feature, Corner]:
    """Return the feature with normal and weights at the solution, without derivative.

    The second result is the support point along that normal. A step that crosses an edge finds a
    corner on another feature, which is added to the active ones.
    """
    set_, f = lax.stop_gradient((set_, f))
    fixed = set_.assets.are_polytopes

    def iteration(state: _Search) -> _Search:
        """Take a Newton step and keep it if it improves the solution."""
        k, _, f, at = state
        start = k == 0  # the first iteration only evaluates the feature
        other = select_where(start, f, newton_step(set_, f, fixed=fixed))
        beyond = set_.farthest(other.normal)
        better = (
            materialize_decision(
                _is_better,
                _feature_merit(set_, f, at, fixed),
                _feature_merit(set_, other, beyond, fixed),
            )
            | start
        )
        new, added = _add_corner(select_where(better, other, f), beyond, ~start)
        return _Search(k + 1, jnp.any(better | added), new, select_where(better, beyond, at))

    def goes_on(state: _Search) -> Array:
        """Return whether iterations are left, and the last one changed some lane."""
        left = state.k <= max_iterations
        return left & state.changed if platform().branches else left

    first = jax.tree.map(lambda x: x[0], f.corners)
    start = _Search(jnp.int32(0), jnp.ones((), bool), f, first)
    last = lax.while_loop(goes_on, iteration, start)
    return last.feature, last.beyond


class _Search(NamedTuple):
    """State of the iteration over all lanes; `beyond` is the support point along the normal."""

    k: Array
    changed: Array
    feature: Feature
    beyond: Corner


def _add_corner(f: Feature, corner: Corner, wanted: Array) -> tuple[Feature, Array]:
    """Add a corner to a feature, if it is wanted, new, and fewer than three are used.

    Returns:
      The feature, and whether it has another corner, `[n]`.
    """
    corners = [jax.tree.map(lambda x, k=k: x[k], f.corners) for k in range(3)]
    new = wanted & f.inside & ~jnp.any(f.flat, axis=0)
    for known in corners:
        new = new & ~same_features(corner, known)
    # Fill the second or the third corner, whichever is free.
    second, third = new & ~f.needed[0], new & f.needed[0] & ~f.needed[1]
    corners[1] = select_where(second, corner, corners[1])
    corners[2] = select_where(third, corner, corners[2])
    changed = f._replace(
        corners=jax.tree.map(lambda *x: jnp.stack(x), *corners),
        needed=(f.needed[0] | second, f.needed[1] | third),
    )
    return changed, second | third


class _Worth(NamedTuple):
    """Merit of a solution.

    Attributes:
      residual: violation of the equations, a squared length [m2].
      depth: for penetrating shapes the depth along the normal [m]; else 0.
    """

    residual: Array
    depth: Array


def _is_better(old: _Worth, new: _Worth) -> Array:
    """Return whether the depth or the residual decreases; False for NaN."""
    eps = 16 * float(jnp.finfo(old.depth.dtype).eps)
    slack = eps * jnp.abs(old.depth)
    return (new.depth <= old.depth + slack) & (
        (new.residual < old.residual) | (new.depth < old.depth - slack)
    )


def attach_solution_derivative(set_: Difference, f: Feature) -> Feature:
    """Return a feature at its solution, with the derivative of the solution."""
    return newton_step(set_, lax.stop_gradient(f))


def points(set_: Difference, f: Feature) -> tuple[Vec, Vec]:
    """Return the nearest point of each core, in the frame of the first shape."""
    corners = f.corners_for(set_, f.normal)
    return _mean(corners.a, f.weight), _mean(corners.b, f.weight)


def _mean(points: Vec, weight: tuple[Array, Array]) -> Vec:
    """Return the weighted mean of three points."""
    one, two, three = points[0], points[1], points[2]
    return one + (two - one).scale(weight[0]) + (three - one).scale(weight[1])


def _feature_merit(set_: Difference, f: Feature, farthest: Corner, fixed: bool) -> _Worth:
    """Return the merit of a feature, given the support point along its normal."""
    _, total = feature_residual(set_, f, fixed)
    depth = f.normal.dot(farthest.y)
    return _Worth(total, jnp.where(f.inside, depth, 0))


def feature_residual(set_: Difference, f: Feature, fixed: bool = False) -> tuple[Vec, Array]:
    """Return the corners `[3, n]` of a feature, and the squared residual of its equations [m2].

    If the corners are `fixed`, those of the feature are used as they are.
    """
    # Part of the mean orthogonal to the normal, and differences of the support values.
    y = f.corners.y if fixed else f.corners_for(set_, f.normal).y
    x = _mean(y, f.weight)
    along = f.normal.dot(x)
    across = x - f.normal.scale(along)
    total = across.dot(across)
    for k in (1, 2):
        total = total + f.normal.dot(y[k] - y[0]) ** 2
    return y, total


def newton_step(
    set_: Difference, f: Feature, longest: Array | None = None, fixed: bool = False
) -> Feature:
    """Return the feature after one Newton step, of at most `longest` [rad] in the normal.

    Args:
      set_: pairs `[n]`.
      f: their features.
      longest: limit of the rotation, `[n]`; None: `_MAX_NORMAL_ROTATION`, beyond which a step is
        discarded.
      fixed: corners do not depend on the normal, and the shapes have no derivative.
    """
    _, t1, t2 = (lax.stop_gradient(v) for v in contact_frame(f.normal).rows)
    # Newton step in the tangent plane, of limited length; a NaN or a long step is discarded.
    equations = _newton_system(set_, f, (t1, t2), fixed)
    d1, d2, w2, w3 = _newton(equations, f.needed)
    if longest is not None:
        part = jnp.minimum(1, safe_divide(longest, safe_sqrt(d1 * d1 + d2 * d2)))
        d1, d2 = part * d1, part * d2
    short = d1 * d1 + d2 * d2 < _MAX_NORMAL_ROTATION * _MAX_NORMAL_ROTATION  # false for NaN
    zero = jnp.zeros_like(d1)
    d1, d2, w2, w3 = (jnp.where(short, v, zero) for v in (d1, d2, w2, w3))
    normal = (f.normal + t1.scale(d1) + t2.scale(d2)).normalize()
    return f._replace(normal=normal, weight=(f.weight[0] + w2, f.weight[1] + w3))


def _newton_system(
    set_: Difference, f: Feature, tangents: tuple[Vec, Vec], fixed: bool
) -> _Equations:
    """Assemble the residuals and the Newton matrix, which is held fixed under differentiation."""
    n = f.normal
    held = lax.stop_gradient((set_, n))
    # Corners and their mean at the present normal.
    y = f.corners.y if fixed else f.corners_for(set_, n).y
    x = _mean(y, f.weight)
    t1, t2 = tangents

    # Derivative of the points by the normal; the matrix itself is not differentiated.
    slopes = []
    for t in tangents:
        if fixed:
            slopes.append(Vec(*(jnp.zeros_like(a) for a in n.parts)))
            continue
        _, slope = jax.jvp(lambda n: f.corners_for(held[0], n).y, (held[1],), (t,))
        slopes.append(_mean(slope, f.weight))
    # Hessian H of the Lagrangian in the tangent plane, and the constraint columns E.
    depth = lax.stop_gradient(n.dot(x))
    e2, e3 = y[1] - y[0], y[2] - y[0]
    H = (
        t1.dot(slopes[0]) - depth,
        0.5 * (t1.dot(slopes[1]) + t2.dot(slopes[0])),
        t2.dot(slopes[1]) - depth,
    )
    E = tuple((t1.dot(e), t2.dot(e)) for e in (e2, e3))
    return _Equations(
        (t1.dot(x), t2.dot(x)),
        (n.dot(e2), n.dot(e3)),
        lax.stop_gradient(H),
        lax.stop_gradient((E[0], E[1])),
    )


def _convex(H: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    """Shift the matrix to positive eigenvalues, which it has at a minimum of the depth."""
    xx, xy, yy = H
    mean, half = 0.5 * (xx + yy), 0.5 * (xx - yy)
    spread = safe_sqrt(half * half + xy * xy)
    least = mean - spread
    shift = jnp.where(least > 0, 0, jnp.abs(least) - least)
    return xx + shift, xy, yy + shift


def _newton(q: _Equations, needed: tuple[Array, Array]) -> tuple[Array, Array, Array, Array]:
    """Solve for the rotation of the normal and the change of the weights."""
    r1, r2 = q.r
    hxx, hxy, hyy = q.H
    two, three = needed
    zero = jnp.zeros_like(r1)

    # One corner: H d = -r.
    cxx, cxy, cyy = _convex(q.H)
    over = safe_divide(1.0, cxx * cyy - cxy * cxy)
    d1, d2 = (cxy * r2 - cyy * r1) * over, (cxy * r1 - cxx * r2) * over
    one = d1, d2, zero, zero

    # Two corners: the constraint along the edge e, the balance across it.
    edge = select_where(two, q.E[0], q.E[1])
    c = jnp.where(two, q.c[0], q.c[1])
    square = edge[0] * edge[0] + edge[1] * edge[1]
    per = safe_divide(1.0, square)
    p1, p2 = -edge[1], edge[0]
    s1, s2 = -c * edge[0] * per, -c * edge[1] * per
    balance = p1 * r1 + p2 * r2 + p1 * (hxx * s1 + hxy * s2) + p2 * (hxy * s1 + hyy * s2)
    stiff = p1 * (hxx * p1 + hxy * p2) + p2 * (hxy * p1 + hyy * p2)
    k = -balance * safe_divide(1.0, jnp.abs(stiff))
    d1, d2 = s1 + k * p1, s2 + k * p2
    g1, g2 = r1 + hxx * d1 + hxy * d2, r2 + hxy * d1 + hyy * d2
    w = -(edge[0] * g1 + edge[1] * g2) * per
    pair = d1, d2, jnp.where(two, w, zero), jnp.where(two, zero, w)

    # Three corners: E' d = -c, then E w = -(r + H d).
    (a1, a2), (b1, b2) = q.E
    det = a1 * b2 - a2 * b1
    over = safe_divide(1.0, det)
    d1 = (a2 * q.c[1] - b2 * q.c[0]) * over
    d2 = (b1 * q.c[0] - a1 * q.c[1]) * over
    g1, g2 = r1 + hxx * d1 + hxy * d2, r2 + hxy * d1 + hyy * d2
    face = d1, d2, (b1 * g2 - b2 * g1) * over, (a2 * g1 - a1 * g2) * over

    return select_where(two & three, face, select_where(two | three, pair, one))
