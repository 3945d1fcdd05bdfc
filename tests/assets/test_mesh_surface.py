"""Steps of the mesh processing by themselves: welding, mass, normals, hulls and polygons."""

import numpy as np
import pytest
from tolerance import ROUNDING, STAGE

from jaxsim.assets.mesh import hull, mass, normals, polygons, weld
from jaxsim.assets.mesh.surface import MeshSurface
from jaxsim.assets.surface import Surface
from jaxsim.compile.asset.mesh import mesh_geometry
from jaxsim.enums import GeomType
from jaxsim.errors import AssetError

BOX = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-2.0, 2.0) for z in (-3.0, 3.0)])
SOUP_FACE = hull.convex_hull(BOX).face


def test_welding_keeps_the_order_in_which_points_appear():
    corners = BOX[SOUP_FACE].reshape(-1, 3)
    vertex, index = weld.weld_vertices(corners)
    assert len(vertex) == 8
    np.testing.assert_array_equal(vertex[index], corners)
    first = [np.flatnonzero((corners == v).all(axis=1))[0] for v in vertex]
    assert first == sorted(first)


def test_welding_takes_zeros_of_both_signs_for_equal():
    vertex = np.array([[0.0, 1, 2], [-0.0, 1, 2], [0, 1, np.nextafter(2, 3)]])
    assert len(weld.weld_vertices(vertex)[0]) == 2


def test_welding_without_a_perfect_hash(monkeypatch):
    monkeypatch.setattr(weld, "_HASH_FACTORS", (0, 0, 0))  # all rows have the same number
    vertex = np.array([[1.0, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]])
    welded, index = weld.weld_vertices(vertex)
    np.testing.assert_array_equal(welded, vertex[[0, 1, 3]])
    np.testing.assert_array_equal(index, [0, 1, 0, 2])


@pytest.mark.parametrize("offset", [0.0, 10.0])
def test_mass_of_a_box(offset):
    """m/3 (b^2 + c^2) for the solid; the shell's moments are those of its six sides."""
    vertex = BOX + np.array([offset, -offset, 0])
    for signed in (False, True):
        solid = mass.solid(vertex, SOUP_FACE, signed=signed)
        np.testing.assert_allclose(solid.content, 48, **ROUNDING)
        np.testing.assert_allclose(solid.center, [offset, -offset, 0], **ROUNDING)
        np.testing.assert_allclose(solid.tensor, 16 * np.diag([13, 10, 5]), **STAGE)
    shell = mass.shell(vertex, SOUP_FACE)
    np.testing.assert_allclose(shell.content, 88, **ROUNDING)
    xx, yy, zz = 48 + 40 / 3, 4 * (24 + 64 / 3), 9 * (16 + 72 / 3)
    np.testing.assert_allclose(np.diag(shell.tensor), [yy + zz, xx + zz, xx + yy], **ROUNDING)


def test_moments_of_no_body_are_refused():
    mass.check_moments(np.array([2.0, 1.0, 1.0]))
    with pytest.raises(AssetError, match="exceeds the sum"):
        mass.check_moments(np.array([3.0, 1.0, 1.0]))
    with pytest.raises(AssetError, match="not positive"):
        mass.check_moments(np.array([1.0, 1.0, 0.0]))


def test_smooth_normals_of_a_box_point_away_from_its_center():
    smooth = normals.vertex_normals(BOX, SOUP_FACE, smooth=True)
    assert np.all(np.sign(smooth) == np.sign(BOX))
    np.testing.assert_allclose(np.linalg.norm(smooth, axis=1), 1, **ROUNDING)


def test_hull_excludes_inner_points():
    points = np.vstack([[[0, 0, 0]], BOX, [[0.5, 0.5, 0.5]], [[0, 0, 3.0]]])
    found = hull.convex_hull(points)
    np.testing.assert_array_equal(found.vertex, np.arange(1, 9))
    a, b, c = (points[found.face[:, i]] for i in range(3))
    outward = np.einsum("ni,ni->n", np.cross(b - a, c - a), a + b + c)
    assert np.all(outward > 0)


def test_every_edge_of_a_hull_is_run_through_in_both_directions():
    angle = np.linspace(0, 2 * np.pi, 50, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1).astype(np.float32)
    cylinder = np.vstack([ring + np.array([0, 0, z]) for z in np.linspace(0, 1e-3, 5)]).astype(
        float
    )
    face = hull.convex_hull(cylinder).face
    edges = {(f[i], f[i - 2]) for f in face.tolist() for i in range(3)}
    assert len(edges) == 3 * len(face)
    assert all((b, a) in edges for a, b in edges)


def test_polygons_of_a_box_are_its_sides():
    sides = polygons.polygons(BOX, SOUP_FACE)
    assert sides.num.tolist() == [4] * 6
    assert sides.mapnum.tolist() == [3] * 8
    np.testing.assert_allclose(np.abs(sides.normal).sum(axis=1), 1, **ROUNDING)
    outline = sides.vertex.reshape(6, 4)
    np.testing.assert_allclose(
        np.einsum("pvi,pi->pv", BOX[outline], sides.normal),
        np.broadcast_to((np.abs(sides.normal) @ [1, 2, 3])[:, None], (6, 4)),
    )
    mirrored = sides.outlines(True).reshape(6, 4)
    np.testing.assert_array_equal(mirrored, outline[:, [0, 3, 2, 1]])


def test_a_box_fitted_to_its_own_inertia_is_itself():
    half = np.array([1.0, 2.0, 3.0])
    moments = np.array([13.0, 10.0, 5.0]) / 3
    np.testing.assert_allclose(mesh_geometry.inertia_box(moments), half, **ROUNDING)
    assert mesh_geometry.TO_INERTIA[GeomType.SPHERE](*half) == (2.0,)
    assert mesh_geometry.TO_INERTIA[GeomType.CAPSULE](*half) == (1.5, 2.25)
    assert mesh_geometry.AROUND_BOX[GeomType.SPHERE](*half) == (3.0,)
    assert mesh_geometry.AROUND_BOX[GeomType.CAPSULE](3.0, 3.0, 1.0) == (3.0, 0.0)


def test_the_hull_of_a_surface_is_found_only_when_it_is_asked_for():
    flat = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]])
    surface = MeshSurface(Surface(flat, np.array([[0, 1, 2], [1, 3, 2]])), False, -1)
    assert len(surface.normal) == 4
    with pytest.raises(AssetError, match="in one plane"):
        _ = surface.hull
