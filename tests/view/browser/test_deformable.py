"""Flexes, skins, the model's lights and its sky on a page."""

import json
import struct
from io import BytesIO

import numpy as np
import pytest
from view.flex.models import SOFT
from view.visitor import Visitor

import jaxsim
from jaxsim.view import Viewer
from jaxsim.view.browser.draw.deformable import deformables_of
from jaxsim.view.browser.draw.light import _rotation_towards
from jaxsim.view.flex.topology import surface_topology

SEAM = """<mujoco>
  <asset>
    <texture name="checks" type="2d" builtin="checker" width="16" height="16"/>
    <material name="checks" texture="checks"/>
  </asset>
  <worldbody><body name="a"><freejoint/><geom size=".1"/></body></worldbody>
  <deformable>
    <flex name="cloth" dim="2" body="a" vertex="0 0 0  1 0 0  1 1 0  0 1 0" MATERIAL
      element="0 1 2  0 2 3" texcoord="0 0  1 0  1 1  0 .5  .5 1" elemtexcoord="0 1 2  3 4 0">
      <contact contype="0" conaffinity="0"/>
    </flex>
  </deformable>
</mujoco>"""


@pytest.mark.filterwarnings("ignore:.*contacts of flexes")
def test_a_page_gets_points_that_move_and_the_light_of_the_model():
    m = jaxsim.load_model(SOFT)
    qpos = np.asarray(m.qpos0)
    with Viewer(m, port=0) as viewer, Visitor(viewer.server) as visitor:
        nodes = visitor.nodes
        wanted = {"/flexes/cloth", "/flexes/jelly", "/skins/flag", "/flexes/rope"}
        visitor.wait(lambda: wanted <= set(nodes))
        drawn = corners(nodes["/flexes/cloth"])
        plan = surface_topology(m.structure)
        before = viewer.scene.poses.soft[0]
        np.testing.assert_allclose(drawn, before[plan.corner[:, plan.owner == 0].T], atol=1e-6)
        assert pictured(nodes["/flexes/cloth"]).baseColorTexture.size == (16, 16)
        assert nodes["/flexes/rope"]["points"].reshape(-1, 2, 3).shape == (3, 2, 3)
        assert nodes["/lights/light 0"]["cast_shadow"]
        assert bytes(nodes["/sky"]["glb_data"][:4]) == b"glTF"

        # two worlds in which the middle of the cloth is elsewhere
        adr = m.jnt_qposadr[m.body_jntadr[m.names["body"].index("cloth_4")]]
        moved = np.stack([qpos, qpos])
        moved[:, adr] += [0.05, 0.15]
        viewer.show_state({"qpos": moved})
        visitor.wait(lambda: "/worlds/flex cloth" in nodes)
        poses = viewer.scene.poses.soft + viewer.scene.offset[:, None]
        for path, points in (("/flexes/cloth", poses[0]), ("/worlds/flex cloth", poses[1])):
            wanted = points[plan.corner[:, plan.owner == 0].T]
            np.testing.assert_allclose(corners(nodes[path]), wanted, atol=1e-5)

        # an image is read unseen, and seen when it is there
        moved[0, adr] += 0.05
        viewer.show_state({"qpos": moved})
        visitor.wait(lambda: nodes["/flexes/cloth (2)"].get("visible") is True)
        assert nodes["/flexes/cloth"]["visible"] is False
        wanted = viewer.scene.poses.soft[0][plan.corner[:, plan.owner == 0].T]
        np.testing.assert_allclose(corners(nodes["/flexes/cloth (2)"]), wanted, atol=1e-5)
        # the bounds of the file, outside of which nothing is hit, are those of what moved
        low, high = bounds(nodes["/flexes/cloth (2)"])
        np.testing.assert_allclose(low, wanted.min(axis=(0, 1)), atol=1e-5)
        np.testing.assert_allclose(high, wanted.max(axis=(0, 1)), atol=1e-5)

        visitor.set("flexes of group 0 (3)", False)
        visitor.wait(lambda: nodes["/flexes/cloth (2)"].get("visible") is False)
        assert nodes["/flexes/cloth"]["visible"] is False
        visitor.set("lights of the model", False)
        visitor.wait(lambda: "/lights/light 0" not in nodes)
        visitor.set("sky", False)
        visitor.wait(lambda: nodes["/sky"].get("visible") is False)
        click = {"type": "SceneNodeClickMessage", "name": "/flexes/jelly", "instance_index": None}
        ray = {"ray_origin": (0.0,) * 3, "ray_direction": (1.0, 0, 0), "screen_pos": (0.5, 0.5)}
        visitor.send({**click, **ray, "modifier": None, "owner": ""})
        visitor.wait(lambda: "**jelly** (flex 2, 3 dimensions" in visitor.text())


def bounds(node: dict) -> tuple[list[float], list[float]]:
    """Return the bounds of the vertices in a node's file."""
    data = bytes(node["glb_data"])
    size, length = struct.unpack_from("<II", data, 8)
    assert (size, length % 4) == (len(data), 0)
    told = json.loads(data[20 : 20 + length])
    place = told["meshes"][0]["primitives"][0]["attributes"]["POSITION"]
    return told["accessors"][place]["min"], told["accessors"][place]["max"]


def test_corners_are_shared_where_no_image_is_used():
    plain, imaged = (
        deformables_of(jaxsim.load_model(SEAM.replace("MATERIAL", material)))[0]
        for material in ("", 'material="checks"')
    )
    assert plain.texcoord is None
    assert len(plain.vertex) == 2 * 4 + 8 * 3  # two sides, and the flat triangles of the rim
    assert len(imaged.vertex) > len(plain.vertex)  # at the seam
    np.testing.assert_array_equal(plain.vertex[plain.face], imaged.vertex[imaged.face])


def corners(node: dict) -> np.ndarray:
    """Triangles of a node, (n, 3, 3)."""
    mesh = read(node)
    return mesh.vertices[mesh.faces]


def pictured(node: dict):
    """The material of a node with an image."""
    return read(node).visual.material


def read(node: dict):
    """A node's file."""
    trimesh = pytest.importorskip("trimesh")
    data = BytesIO(bytes(node["glb_data"]))
    return trimesh.load(data, file_type="glb", process=False).to_geometry()


def test_spots_are_turned_along_their_direction():
    from jaxsim.math.quaternion import quat_rotate

    for way in [*np.eye(3).tolist(), [-0.6, 0.0, -0.8], [0.0, 0.0, -1.0]]:
        turned = quat_rotate(_rotation_towards(np.array(way))[None], np.array([[0.0, 0.0, -1.0]]))[
            0
        ]
        np.testing.assert_allclose(turned, way, atol=1e-12)
