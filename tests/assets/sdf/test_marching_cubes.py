"""Surfaces of sampled fields: closed, facing outside, in place, for every case of a cube."""

from collections import Counter

import numpy as np
import pytest
from tolerance import STORED_SINGLE

from jaxsim.assets.mesh.mass import check_orientation, solid
from jaxsim.assets.sdf.cube_cases import COUNT, TRIANGLES
from jaxsim.assets.sdf.marching_cubes import marching_cubes

CORNERS = np.array([[corner & 1, corner >> 1 & 1, corner >> 2] for corner in range(8)])


def cube(case: int) -> np.ndarray:
    """One cube with the corners of a case inside, in a lattice that is outside otherwise."""
    field = np.ones((4, 4, 4), np.float32)
    inside = np.array([case >> corner & 1 for corner in range(8)], bool)
    x, y, z = CORNERS[inside].T
    field[z + 1, y + 1, x + 1] = -1
    return field


def middles(case: int) -> np.ndarray:
    """Corners of a case's triangles on a cube of side 2 around the origin, (n, 3, 3)."""
    ends = {}
    for axis in range(3):
        others = [a for a in range(3) if a != axis]
        for i in range(4):
            middle = np.zeros(3)
            middle[others] = 2 * (i & 1) - 1, 2 * (i >> 1) - 1
            ends[4 * axis + i] = middle
    return np.array([[ends[e] for e in t] for t in TRIANGLES[case, : COUNT[case]]])


@pytest.mark.parametrize("half", range(2))
def test_surfaces_of_all_cases_are_closed(half):
    for case in range(max(1, 128 * half), 128 * (half + 1)):
        vertex, face, normal = marching_cubes(cube(case))
        check_orientation(face)
        edges = Counter((f[i], f[i - 1]) for f in face.tolist() for i in range(3))
        assert all((b, a) in edges for a, b in edges)
        assert set(face.ravel()) == set(range(len(vertex)))
        assert solid(vertex.astype(float), face, signed=True).content > 0
        np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1, rtol=STORED_SINGLE["rtol"])


def test_inside_corners_are_kept_apart():
    """Two corners inside across a side of a cube, or across the cube, are two surfaces."""
    for case in (0b1001, 0b10000001):
        _, face, _ = marching_cubes(cube(case))
        first = set(face[0])
        for _ in face:
            for corners in face:
                first |= set(corners) if first & set(corners) else set()
        assert len(first) * 2 == len(set(face.ravel()))


def test_triangles_lie_between_inside_and_outside():
    for case in range(1, 255):
        sign = np.array([1 if case >> corner & 1 else -1 for corner in range(8)])
        outward = -(2 * CORNERS - 1).T @ sign  # the gradient of the corners' signs
        triangles = middles(case)
        a, b, c = triangles[:, 0], triangles[:, 1], triangles[:, 2]
        assert np.cross(b - a, c - a).sum(axis=0) @ outward >= 0


def test_vertices_are_where_a_linear_field_is_zero():
    z, y, x = np.indices((5, 6, 7), np.float32)
    field = (x + 2 * y - 3 * z - 1.25).astype(np.float32)
    vertex, face, normal = marching_cubes(field)
    np.testing.assert_allclose(
        vertex @ np.array([1, 2, -3]), 1.25, atol=1e-5
    )  # of single precision
    np.testing.assert_allclose(
        normal, np.tile([1, 2, -3] / np.sqrt(14), (len(vertex), 1)), atol=1e-5
    )
    assert face.max() == len(vertex) - 1


def test_surface_of_a_constant_field_is_empty():
    vertex, face, normal = marching_cubes(np.ones((2, 3, 4), np.float32))
    assert vertex.shape == face.shape == normal.shape == (0, 3)


def test_zero_is_outside():
    """A vertex may fall on a lattice point; where all its faces are points it has no normal."""
    field = np.zeros((3, 3, 3), np.float32)
    field[1, 1, 1] = -1
    vertex, face, normal = marching_cubes(field)
    assert len(vertex) == 6
    assert len(face) == 8
    np.testing.assert_allclose(np.abs(vertex - 1).sum(axis=1), 1)
    assert np.isfinite(normal).all()
