"""Triangles of shapes: extent, volume and normals; textures are placed as in MuJoCo."""

import io

import numpy as np
import pytest

import jaxsim
from jaxsim.view.browser.draw.part import parts_of
from jaxsim.view.browser.draw.shape import shape_of

trimesh = pytest.importorskip("trimesh", reason="the extra view is not installed")

MODEL = """
<mujoco>
  <asset>
    <texture name="squares" type="2d" builtin="checker" width="8" height="8" rgb1="1 0 0"
             rgb2="0 0 1"/>
    <texture name="sides" type="cube" builtin="flat" width="8" height="48" rgb1="1 0 0"
             rgb2="0 0 1"/>
    <material name="floor" texture="squares" texrepeat="2 3" texuniform="true"/>
    <material name="skin" texture="sides" rgba="0.2 0.4 0.6 1"/>
    <hfield name="hill" nrow="3" ncol="4" size="2 1 0.5 0.1"
            elevation="0 0 0 0  0 1 1 0  0 0 0 0"/>
    <mesh name="wedge" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1" material="floor"/>
    <geom name="hill" type="hfield" hfield="hill"/>
    <body name="thing" pos="0 0 2">
      <freejoint/>
      <geom name="ball" size="0.2" material="skin"/>
      <geom name="egg" type="ellipsoid" size="0.1 0.2 0.3" group="3"/>
      <geom name="rod" type="capsule" size="0.1 0.4" rgba="0 1 0 0.5"/>
      <geom name="drum" type="cylinder" size="0.2 0.3" material="skin" rgba="1 1 0 1"/>
      <geom name="crate" type="box" size="0.1 0.2 0.3" material="skin"/>
      <geom name="wedge" type="mesh" mesh="wedge" pos="1 2 3" quat="0 1 1 0"/>
      <geom name="unseen" size="0.1" rgba="1 1 1 0"/>
      <site name="ball" size="0.01"/>
      <site name="wedge" type="mesh" mesh="wedge" pos="1 2 3" quat="0 1 1 0"/>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def model():
    return jaxsim.load_model(MODEL)


@pytest.fixture(scope="module")
def parts(model):
    return {(part.kind, part.name): part for part in parts_of(model)}


VOLUMES = {
    "ball": 4 / 3 * np.pi * 0.2**3,
    "egg": 4 / 3 * np.pi * 0.1 * 0.2 * 0.3,
    "rod": np.pi * 0.1**2 * (0.8 + 4 / 3 * 0.1),
    "drum": np.pi * 0.2**2 * 0.6,
    "crate": 8 * 0.1 * 0.2 * 0.3,
    "wedge": 1 / 6,
}


@pytest.mark.parametrize("name", VOLUMES)
def test_solids_are_closed_and_have_their_volume(parts, name):
    shape = parts["geom", name].shape
    solid = trimesh.Trimesh(shape.vertex, shape.face)  # joins equal corners
    assert solid.is_watertight
    assert solid.volume == pytest.approx(VOLUMES[name], rel=0.02)  # of polygons for circles


@pytest.mark.parametrize("name", ["ball", "egg", "rod", "drum", "crate"])
def test_normals_point_outwards(parts, name):
    shape = parts["geom", name].shape
    a, b, c = (shape.vertex[shape.face[:, k]] for k in range(3))
    across = np.cross(b - a, c - a)
    for k in range(3):
        assert np.all(np.einsum("ij,ij->i", across, shape.normal[shape.face[:, k]]) > 0)
    np.testing.assert_allclose(np.linalg.norm(shape.normal, axis=1), 1, atol=1e-6)


def test_a_height_field_is_closed_and_as_high_as_it_says(model, parts):
    shape = parts["geom", "hill"].shape
    solid = trimesh.Trimesh(shape.vertex, shape.face)
    np.testing.assert_allclose(solid.bounds, [[-2, -1, -0.1], [2, 1, 0.5]])
    assert solid.volume > 0
    top = shape.vertex[shape.vertex[:, 2] > 0.4]
    np.testing.assert_allclose(np.unique(top[:, 0]), [-2 / 3, 2 / 3])


def test_an_endless_plane_is_large(model, parts):
    floor = parts["geom", "floor"]
    assert floor.endless
    assert np.ptp(floor.shape.vertex[:, 0]) == pytest.approx(20 * float(model.stat.extent))


def test_what_cannot_be_seen_is_no_part(parts):
    assert ("geom", "unseen") not in parts
    assert parts["geom", "egg"].group == 3
    assert parts["site", "ball"].body == parts["geom", "ball"].body == 1


def test_colors_are_the_materials_unless_there_is_one(parts):
    np.testing.assert_allclose(parts["geom", "ball"].look.rgba, [0.2, 0.4, 0.6, 1])
    np.testing.assert_allclose(parts["geom", "drum"].look.rgba, [1, 1, 0, 1])
    assert parts["geom", "egg"].look.material == -1


def read(part, opacity=1.0, solid=False):
    """Return the mesh of a part, read from its glTF file."""
    scene = trimesh.load(io.BytesIO(part.glb(opacity, solid)), file_type="glb", process=False)
    return next(iter(scene.geometry.values()))


def test_a_flat_texture_repeats_twice_for_each_two_meters(parts):
    mesh = read(parts["geom", "floor"])
    per_meter = np.ptp(mesh.visual.uv, axis=0) / np.ptp(mesh.vertices[:, :2], axis=0)
    np.testing.assert_allclose(per_meter, [1.0, 1.5], rtol=1e-5)


def test_sides_of_a_cube_have_their_images(parts):
    """In MuJoCo's flat cube the side towards -y, the fourth image, has the second color."""
    mesh = read(parts["geom", "crate"])
    below = mesh.face_normals[:, 1] < -0.5
    place = 1 - mesh.visual.uv[mesh.faces][..., 1]  # from above
    assert np.all((place[below] > 3 / 6) & (place[below] < 4 / 6))
    assert np.all((place[~below] < 3 / 6) | (place[~below] > 4 / 6))
    image = np.asarray(mesh.visual.material.baseColorTexture)
    row = (place[below].mean() * len(image)).astype(int)
    np.testing.assert_array_equal(image[row, 4, :3], [0, 0, 255])


def test_what_is_sent_has_normals_and_opacity(parts):
    rod = parts["geom", "rod"]
    mesh = read(rod, 0.5)
    np.testing.assert_allclose(mesh.vertex_normals, rod.shape.normal, atol=1e-6)
    assert mesh.visual.material.baseColorFactor[3] == pytest.approx(0.25 * 255, abs=1)
    assert mesh.visual.material.alphaMode == "BLEND"


def test_instances_are_pale_and_not_transparent(parts):
    material = read(parts["geom", "rod"], 0.5, True).visual.material
    np.testing.assert_allclose(material.baseColorFactor, [191, 255, 191, 255], atol=1)
    assert material.alphaMode == "OPAQUE"


def test_a_mesh_is_in_its_own_frame(model, parts):
    """Its pose in the body is where the compiler has put the frame of its inertia."""
    part = parts["geom", "wedge"]
    assert shape_of(model, part.type, part.size, -1) is None
    assert np.abs(part.shape.vertex.mean(axis=0)).max() < 0.1


def test_the_mesh_of_a_site_is_where_that_of_a_geom_is(parts):
    site, geom = parts["site", "wedge"], parts["geom", "wedge"]
    np.testing.assert_allclose(site.pos, geom.pos, atol=1e-7)
    np.testing.assert_allclose(abs(site.quat @ geom.quat), 1, atol=1e-7)
