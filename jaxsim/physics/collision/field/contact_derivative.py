"""The derivative of contacts found by descent, without differentiating the descent.

The descent ends somewhere in the overlap of both geoms, near the points where their normals are
opposite; where exactly depends on its path, a sequence of halved steps with jumps, which is not
differentiated. Instead a contact point is assumed to move

  * with both geoms, half of the way with each, as do initial points in the boxes of both;
  * and along the surfaces, like the point of opposite normals: if a geom rotates or slides, to
    where the normals have the same angle again.

Distance and normal are differentiated at that point. The distance is not the depth: the last step
of the search is a power of two, and leaves a distance of 1/11 to 1/2 of the depth.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.math import Vec, concat
from jaxsim.physics.collision.field.fields import SdfTables
from jaxsim.physics.collision.field.pair import Pair, normalize_or_zero, pair_of
from jaxsim.physics.collision.field.search_results import SdfSearchResult
from jaxsim.physics.collision.frame import contact_frame
from jaxsim.physics.collision.shape import PlacedGeoms, add_slot_axis
from jaxsim.transforms.materialize import materialize_result

_MIN_CURVATURE = (
    0.3  # regularization: curvature, in radians per geom size, below which points hardly slide
)


class _Surfaces(NamedTuple):
    """Distances of points from both geoms, and the outward unit normals there."""

    first: Array
    second: Array
    normal1: Vec
    normal2: Vec


def follow_contacts(
    found: SdfSearchResult, a: PlacedGeoms, b: PlacedGeoms, fields: SdfTables
) -> SdfSearchResult:
    """Return the same contacts, as differentiable functions of the geoms.

    Args:
      found: result of the search, held constant.
      a, b: the geoms.
      fields: distance functions of the model.
    """
    found = lax.stop_gradient(found)
    pair = pair_of(a, b, fields)
    # Values and derivatives at the found points, held constant.
    fixed: Pair = lax.stop_gradient(pair)
    tangents = contact_frame(found.normal).rows[1:]
    still, bends = materialize_result(_surfaces_and_curvatures, fixed, found.x, tangents)

    # Move with both geoms.
    x = (found.x + pair.to_second(fixed.to_first(found.x))).scale(0.5)
    s = materialize_result(_surfaces_at, pair, x)
    by_second = still.second > still.first
    change = jnp.where(by_second, s.second - still.second, s.first - still.first)

    # Slide along the surfaces to where the normals have the same angle.
    turned = s.normal1 + s.normal2 - still.normal1 - still.normal2
    size = add_slot_axis(lax.stop_gradient(fields.box(a)[1].norm()))
    normal = s.normal1 - s.normal2
    ways = _restoring_displacement(turned, tangents, bends, _MIN_CURVATURE / size)
    for way, tangent, bend in zip(ways, tangents, bends, strict=True):
        x = x + tangent.scale(way)
        normal = normal + (bend.normal1 - bend.normal2).scale(way)
    return SdfSearchResult(x, found.dist + change, normalize_or_zero(normal))


def _surfaces_at(pair: Pair, x: Vec) -> _Surfaces:
    """Return distances and normals at points."""
    s = pair.slopes(x)
    return _Surfaces(s.first, s.second, normalize_or_zero(s.slope1), normalize_or_zero(s.slope2))


def _surfaces_and_curvatures(
    pair: Pair, x: Vec, tangents: tuple[Vec, ...]
) -> tuple[_Surfaces, list[_Surfaces]]:
    """Return distances and normals at points, and their derivatives along each tangent."""

    def surfaces(x: Vec) -> _Surfaces:
        return _surfaces_at(pair, x)

    number = len(tangents)
    here, change = jax.jvp(surfaces, (concat([x] * number),), (concat(tangents),))

    def part(tree: PyTree, k: int) -> PyTree:
        """Return the k-th of the stacked parts."""
        return jax.tree.map(lambda v: jnp.split(v, number)[k], tree)

    return part(here, 0), [part(change, k) for k in range(number)]


def _restoring_displacement(
    turned: Vec, tangents: tuple[Vec, ...], bends: list[_Surfaces], least: Array
) -> tuple[Array, Array]:
    """Return the displacement along the tangents that restores the angle between the surfaces.

    It is the regularized least-squares solution of (K' K + least^2) way = -K' turned in the plane
    of contact, with K the sum of the curvatures of both surfaces and `least` the regularization
    [1/m].
    """
    t1, t2 = tangents
    k1, k2 = (bend.normal1 + bend.normal2 for bend in bends)
    k11, k12, k21, k22 = t1.dot(k1), t1.dot(k2), t2.dot(k1), t2.dot(k2)
    r1, r2 = t1.dot(turned), t2.dot(turned)
    # Normal equations of the 2 x 2 least-squares problem, solved by Cramer's rule.
    a = k11 * k11 + k21 * k21 + least * least
    b = k11 * k12 + k21 * k22
    c = k12 * k12 + k22 * k22 + least * least
    g1, g2 = k11 * r1 + k21 * r2, k12 * r1 + k22 * r2
    det = a * c - b * b
    return (b * g2 - c * g1) / det, (b * g1 - a * g2) / det
