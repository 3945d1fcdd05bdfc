"""The search for the nearest or deepest points of two convex shapes: GJK, EPA, Newton.

GJK runs on all lanes within reach; EPA on those whose cores overlap; a few Newton steps on the
features then give exact points, and patches of flat contact. Each phase compacts its active lanes
(`evaluate_active_lanes`). The results are discrete choices and numbers without derivative;
`feature.attach_solution_derivative` defines the derivative.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.enums import GeomType
from jaxsim.math import Rot, Vec, select_where
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.physics.collision.convex.difference import Corner, Difference
from jaxsim.physics.collision.convex.epa import epa_deepest_face, epa_first_triangle
from jaxsim.physics.collision.convex.feature import Feature, feature_of, points, solve_feature
from jaxsim.physics.collision.convex.gjk import combine_corners, gjk_nearest
from jaxsim.physics.collision.convex.patch import MAX_PATCH_POINTS, Patch, patch_of
from jaxsim.physics.collision.convex.patch import patch_contacts as patch_contacts
from jaxsim.physics.collision.convex.refine import refine_features
from jaxsim.physics.collision.convex.solid import Assets, ConvexShape, core_radius
from jaxsim.transforms.compaction import evaluate_active_lanes, evaluate_part
from jaxsim.transforms.platform import platform
from jaxsim.transforms.tuning import tuning

_NEWTON_ITERATIONS = 6


class Lanes(NamedTuple):
    """Pairs of shapes, `[n]`; see Difference."""

    a: ConvexShape
    b: ConvexShape
    pos: Vec
    rot: Rot

    def difference(self, assets: Assets) -> Difference:
        """Return the Minkowski differences of the shapes."""
        both = jax.tree.map(lambda *x: jnp.stack(x), self.a, self.b)
        return Difference(assets, both, self.pos, self.rot)


class ConvexSearchResult(NamedTuple):
    """Result of a search.

    Attributes:
      near: the lane was active, and its shapes are within reach.
      contacts: distances, positions and normals in the frame of the first shape, `[k, n]`.
      feature: features of the nearest points, needed with the patch for derivatives; or None.
      patch: points of flat contact; None if no shapes of the model can have any.
    """

    near: Array
    contacts: tuple[Array, Vec, Vec]
    feature: Feature | None
    patch: Patch | None


class _Nearest(NamedTuple):
    """A triangle of the difference, its weights, the normal; `near`: within reach."""

    corners: tuple[Corner, Corner, Corner]
    weight: tuple[Array, Array, Array]
    normal: Vec
    inside: Array
    near: Array


def search_convex_pairs(
    assets: Assets, lanes: Lanes, reach: Array, features: bool
) -> ConvexSearchResult:
    """Compute the nearest or deepest points, and patches of flat contact.

    Args:
      assets: tables of the model.
      lanes: pairs `[n]`.
      reach: distance up to which there are contacts, `[n]`; -NO_CONTACT_DISTANCE: skip the pair.
      features: also return features, which doubles the memory for all lanes.
    """
    # Few pairs of a world are in contact.
    t = tuning()
    few = max(t.min_search_lanes, len(reach) // t.pairs_per_contact)
    cutoff = reach + core_radius(lanes.a) + core_radius(lanes.b)
    # GJK on active lanes, EPA on overlapping cores, Newton and patches on lanes within reach.
    approach = functools.partial(_approach, assets)
    found = evaluate_active_lanes(
        approach, reach > -NO_CONTACT_DISTANCE / 2, (lanes, cutoff), t.gjk_lanes
    )
    overlap = found.near & found.inside
    start = functools.partial(_start_epa, assets)
    triangle = evaluate_active_lanes(start, overlap, lanes, min(t.contact_lanes, few))
    penetrate = functools.partial(_run_epa, assets)
    apart = found.corners, found.weight, found.normal
    deepest = evaluate_active_lanes(
        penetrate, overlap, (lanes, triangle), min(t.epa_lanes, few), apart
    )
    found = _Nearest(*deepest, found.inside, found.near)
    finish = functools.partial(_solve_contacts, assets, features, min(t.contact_lanes, few))
    if platform().fuses_calls:  # each part compacts its lanes, in a kernel of its own
        at, feature, patch = finish((lanes, found, reach))
        # As compaction does: lanes that were not evaluated have zeros, not results of zeros.
        at = jax.tree.map(lambda x: jnp.where(found.near[None], x, 0), at)
    else:
        at, feature, patch = evaluate_active_lanes(
            finish, found.near, (lanes, found, reach), min(t.contact_lanes, few)
        )
    return ConvexSearchResult(found.near, at, feature, patch)


def search_contacts(
    set_: Difference, f: Feature, patch: Patch | None, point: Vec | None = None
) -> tuple[Array, Vec, Vec]:
    """Return distance, position and normal of the contacts, `[k, n]`.

    Differentiable if the points of a patch are not given.
    """
    # Single contact: midpoint between the surfaces of both shapes.
    a, b = points(set_, f)
    one, other = set_.radii
    dist = f.normal.dot(b - a) - one - other
    middle = (a + f.normal.scale(one) + b - f.normal.scale(other)).scale(0.5)
    single = jax.tree.map(lambda x: x[None], (dist, middle, f.normal))
    if patch is None:
        return single
    # Patch contacts, or the single contact in the first slot.
    several = patch_contacts(set_, f, patch, point)
    first = np.arange(MAX_PATCH_POINTS).reshape(MAX_PATCH_POINTS, 1) == 0
    only = jnp.where(first, single[0], NO_CONTACT_DISTANCE), single[1], single[2]
    only = jax.tree.map(lambda x: jnp.broadcast_to(x, several[0].shape), only)
    return select_where(patch.number == 0, only, several)


def _approach(assets: Assets, operands: tuple[Lanes, Array]) -> _Nearest:
    """Run GJK."""
    lanes, cutoff = operands
    near = gjk_nearest(lanes.difference(assets), cutoff, assets.max_iterations)
    towards = -combine_corners(_difference_points(near.triangle), near.weight)
    normal = towards.normalize(fallback=lanes.pos.normalize())
    return _Nearest(near.triangle, near.weight, normal, near.inside, ~near.apart)


def _start_epa(assets: Assets, lanes: Lanes) -> tuple[Corner, Corner, Corner]:
    """Return the initial polytopes of EPA."""
    return epa_first_triangle(lanes.difference(assets))


def _run_epa(
    assets: Assets, operands: tuple[Lanes, tuple[Corner, Corner, Corner]]
) -> tuple[tuple[Corner, Corner, Corner], tuple[Array, Array, Array], Vec]:
    """Run EPA; return the corners, their weights and the normal."""
    lanes, triangle = operands
    deep = epa_deepest_face(lanes.difference(assets), triangle, assets.max_iterations)
    return deep.triangle, deep.weight, deep.normal


def _solve_contacts(
    assets: Assets, features: bool, size: int, operands: tuple[Lanes, _Nearest, Array]
) -> tuple[tuple[Array, Vec, Vec], Feature | None, Patch | None]:
    """Solve for the exact nearest points and compute the contacts.

    Args:
      assets: tables of the model.
      features: also return the features and patches.
      size: lanes of a chunk of each part.
      operands: pairs, results of the search, and reach.
    """
    lanes, found, reach = operands
    solve = functools.partial(_solve_feature, assets)
    feature = evaluate_part(solve, found.near, (lanes, found), size)
    set_ = lanes.difference(assets)
    patch, point = None, None
    if assets.patches:
        patch, point = patch_of(set_, feature, reach, found.near, size)
    at = search_contacts(set_, feature, patch, point)
    return (at, feature, patch) if features else (at, None, None)


def _solve_feature(assets: Assets, operands: tuple[Lanes, _Nearest]) -> Feature:
    """Return the features of the final simplex, refined by Newton's method."""
    lanes, found = operands
    set_ = lanes.difference(assets)
    feature = feature_of(set_, found.corners, found.weight, found.normal, found.inside)
    feature, beyond = solve_feature(set_, feature, _NEWTON_ITERATIONS)
    # Exact features of a curved pair take two thirds more compile time and a fifth of its step. In
    # single precision, where distances are accurate to 1e-6 at best, the result of `solve_feature`
    # is kept.
    is_curved = {GeomType.CYLINDER, GeomType.ELLIPSOID} & set(assets.kinds)
    if is_curved and feature.normal.x.dtype == np.float64:
        feature = refine_features(set_, found.corners, found.weight, found.normal, feature, beyond)
    return feature


def _difference_points(triangle: tuple[Corner, Corner, Corner]) -> tuple[Vec, Vec, Vec]:
    """Return the points of a triangle's corners."""
    one, two, three = triangle
    return one.y, two.y, three.y
