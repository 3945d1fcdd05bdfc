"""Corners of polygons: their indices in the outlines, and four that span much of the area."""

import itertools

import numpy as np
from tolerance import ROUNDING

from jaxsim.assets.mesh.outline import outline_positions, quads

# a pyramid: its base and four sides
POLYVERT = np.array([3, 2, 1, 0, 0, 1, 4, 1, 2, 4, 2, 3, 4, 3, 0, 4])
POLYNUM = np.array([4, 3, 3, 3, 3])


def test_places():
    """Each entry of the map leads back to its vertex, in its polygon."""
    mapnum = np.array([3, 3, 3, 3, 4])
    polymap = np.array([0, 1, 4, 0, 1, 2, 0, 2, 3, 0, 3, 4, 4, 3, 2, 1])
    places = outline_positions(POLYVERT, POLYNUM, polymap, mapnum)
    assert (POLYVERT[places] == np.repeat(np.arange(5), mapnum)).all()
    assert (np.repeat(np.arange(5), POLYNUM)[places] == polymap).all()


def test_small_polygons_are_their_own_quads():
    point = np.random.default_rng(0).normal(size=(5, 3))
    found = quads(point, POLYVERT, POLYNUM)
    np.testing.assert_array_equal(found[0], [1, 2, 3])
    np.testing.assert_array_equal(found[2], [3, 0, 1])
    np.testing.assert_array_equal(found[5], [6, 4, 4])  # of a triangle the last one stands twice


def area(corner: np.ndarray) -> float:
    a, b, c, d = corner
    return float(np.linalg.norm(np.cross(c - a, d - b)) / 2)


def test_quads_of_large_polygons():
    """In the order of the outline; never smaller than four in a row, seldom far from the most."""
    rng = np.random.default_rng(1)
    share = []
    for n in (5, 8, 13):
        angle = np.sort(rng.uniform(0, 2 * np.pi, n))
        point = np.c_[np.cos(angle), 0.5 * np.sin(angle), np.ones(n)]
        found = quads(point, np.arange(n), np.array([n]))
        for first, others in enumerate(found):
            steps = (others - first) % n
            assert (np.diff(steps, prepend=0) > 0).all()
            row = point[(first + np.arange(4)) % n]
            mine = area(point[[first, *others]])
            rest = itertools.combinations([k for k in range(n) if k != first], 3)
            most = max(area(point[sorted((first, *three))]) for three in rest)
            assert area(row) <= mine <= most + ROUNDING["atol"]
            share.append(mine / most)
    assert np.median(share) > 0.9
