"""The closest point of a surface and its side, against closed forms and exhaustive search."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from tolerance import ROUNDING

from jaxsim.assets.mesh.boxes import BoundingBoxTree
from jaxsim.assets.mesh.closest_point import EDGES, INSIDE, Triangles
from jaxsim.assets.mesh.distance import SurfaceDistance
from jaxsim.assets.octree.overlap import overlaps_box

CUBE = ConvexHull([[x, y, z] for x in (-1, 1) for y in (-2, 2) for z in (-3, 3)])


def outward(hull: ConvexHull) -> np.ndarray:
    """Faces of a hull, seen from outside."""
    a, b, c = hull.points[hull.simplices].transpose(1, 0, 2)
    inward = np.einsum("ni,ni->n", np.cross(b - a, c - a), hull.equations[:, :3]) < 0
    return np.where(inward[:, None], hull.simplices[:, ::-1], hull.simplices)


def test_distance_from_a_box():
    point = np.random.default_rng(0).uniform(-5, 5, (2000, 3))
    beyond = np.abs(point) - (1, 2, 3)
    outside = np.linalg.norm(np.maximum(beyond, 0), axis=1)
    want = outside + np.minimum(beyond.max(axis=1), 0)
    found = SurfaceDistance(CUBE.points, outward(CUBE))(point)
    np.testing.assert_allclose(found, want, **ROUNDING)


def half_spaces(hull: ConvexHull, point: np.ndarray) -> np.ndarray:
    """Return the side of a hull that points are on, by its half spaces."""
    return np.sign((point @ hull.equations[:, :3].T + hull.equations[:, 3]).max(axis=1))


def test_points_near_acute_corners_are_outside():
    """Points from which the faces at an acute corner face away are outside too."""
    rng = np.random.default_rng(1)
    hull = ConvexHull(rng.normal(size=(7, 3)) * (3, 1, 0.3))
    point = rng.uniform(-4, 4, (3000, 3))
    found = SurfaceDistance(hull.points, outward(hull))(point)
    np.testing.assert_array_equal(np.sign(found), half_spaces(hull, point))


def test_acute_edges_of_faces_that_share_no_vertices():
    """A long prism: the points are far from its ends."""
    hull = ConvexHull([[x, y, z] for y in (-9, 9) for x, z in ((0, 0), (2, 0.1), (2, -0.3))])
    vertex = hull.points[outward(hull)].reshape(-1, 3)
    point = np.random.default_rng(1).uniform(-3, 3, (3000, 3))
    found = SurfaceDistance(vertex, np.arange(len(vertex)).reshape(-1, 3))(point)
    np.testing.assert_array_equal(np.sign(found), half_spaces(hull, point))


def test_points_on_the_surface():
    rng = np.random.default_rng(4)
    corner = rng.normal(size=(50, 3, 3)) + 1e3
    vertex, face = corner.reshape(-1, 3), np.arange(150).reshape(-1, 3)
    point = np.einsum("sk,nkj->nsj", rng.dirichlet((1, 1, 1), size=100), corner).reshape(-1, 3)
    found = SurfaceDistance(vertex, face)(np.concatenate([point, vertex]))
    np.testing.assert_allclose(found, 0, atol=1e-11)  # coordinates of a thousand


@pytest.mark.parametrize("count", [1, 2, 7, 300])
def test_search_finds_the_closest_triangle(count):
    rng = np.random.default_rng(count)
    corner = rng.normal(size=(count, 1, 3)) + 0.5 * rng.normal(size=(count, 3, 3))
    point = rng.normal(size=(200, 3)) * 2
    triangles = Triangles.of(corner)
    every = [
        np.linalg.norm(triangles.offset(np.full(200, i), point.T)[0], axis=0) for i in range(count)
    ]
    ((_, found),) = BoundingBoxTree(corner).closest(point)
    np.testing.assert_array_equal(np.unique(found.row), np.arange(200))
    length = np.linalg.norm(found.offset, axis=1)
    np.testing.assert_allclose(length, np.min(every, axis=0)[found.row], **ROUNDING)


def test_the_offset_is_least_and_the_feature_is_where_it_starts():
    rng = np.random.default_rng(2)
    corner, point = rng.normal(size=(500, 3, 3)), rng.normal(size=(3, 500)) * 2
    offset, feature = Triangles.of(corner).offset(np.arange(500), point)
    length = np.linalg.norm(offset, axis=0)
    share = rng.dirichlet((1, 1, 1), size=200)
    other = np.einsum("sk,nkj->snj", share, corner)
    assert np.all(length <= np.linalg.norm(point.T - other, axis=2) + 1e-12)
    assert set(feature) == set(range(7))
    edge = np.roll(corner, -1, axis=1) - corner
    for k in range(3):
        on = np.isin(feature, (EDGES[k], INSIDE))
        across = np.einsum("ni,in->n", edge[on, k], offset[:, on])
        np.testing.assert_allclose(across, 0, **ROUNDING)


def test_boxes_meet_triangles():
    """Compared with points of the triangle: one in the box proves that they meet."""
    rng = np.random.default_rng(3)
    triangle = rng.normal(size=(3000, 3, 3))
    low = rng.normal(size=(3000, 3))
    high = low + rng.uniform(0.1, 1.5, (3000, 3))
    found = overlaps_box(triangle, low, high)
    share = rng.dirichlet((1, 1, 1), size=4000)
    seen = np.zeros(3000, bool)
    for part in np.array_split(share, 40):
        point = np.einsum("sk,nkj->nsj", part, triangle)
        seen |= np.any(np.all((point >= low[:, None]) & (point <= high[:, None]), axis=2), axis=1)
    assert not np.any(seen & ~found)
    assert np.mean(found & ~seen) < 0.02  # those that only a corner of the box cuts
    assert 0.1 < np.mean(found) < 0.9


def test_touching_boxes_and_triangles_overlap():
    flat = np.array([[[0, 0, 1], [1, 0, 1], [0, 1, 1.0]]])
    assert overlaps_box(flat, np.zeros((1, 3)), np.ones((1, 3)))
    assert not overlaps_box(flat, np.zeros((1, 3)), np.full((1, 3), 0.999))
