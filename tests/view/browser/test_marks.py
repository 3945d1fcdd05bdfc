"""Marks and geometry of a page: inertia boxes, joint axes, applied forces, hulls, wireframe."""

import jax.numpy as jnp
import numpy as np
import pytest
from tolerance import ROUNDING, STORED_SINGLE
from view.visitor import Visitor

import jaxsim
from jaxsim.view import Viewer
from jaxsim.view.browser.draw.marks import inertia_boxes
from jaxsim.view.browser.draw.part import parts_of
from jaxsim.view.browser.draw.shape import hull_of

# a box that is turned in its body, and an arrow of triangles with a hollow
MODEL = """
<mujoco>
  <asset>
    <mesh name="arrow" vertex="0 0 0  2 0 0  0 2 0  .5 .5 0  0 0 1  2 0 1  0 2 1  .5 .5 1"
      face="0 3 1 0 2 3 4 5 7 4 7 6 0 1 5 0 5 4 1 3 7 1 7 5 3 2 6 3 6 7 2 0 4 2 4 6"/>
  </asset>
  <worldbody>
    <body name="crate" pos="0 0 1">
      <freejoint/>
      <geom name="crate" type="box" size=".1 .2 .3" pos=".4 0 0" euler="0 0 30"/>
    </body>
    <body name="rod" pos="1 0 1">
      <joint name="turn" axis="0 1 0" pos="0 0 .1"/>
      <joint name="slide" type="slide" axis="1 0 0"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
    </body>
    <body name="arrow" pos="3 0 1"><joint/><geom name="arrow" type="mesh" mesh="arrow"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(MODEL)


def test_the_inertia_box_of_a_box_is_the_box(m):
    half = inertia_boxes(m)
    np.testing.assert_allclose(np.sort(half[1]), [0.1, 0.2, 0.3], **ROUNDING)
    assert not half[0].any()


def test_a_page_gets_inertia_joint_axes_and_applied_forces(m):
    d = jaxsim.make_data(m)
    push = jnp.zeros((m.nbody, 6)).at[1, 2].set(5.0)
    with Viewer(m, port=0) as viewer, Visitor(viewer.server) as visitor:
        visitor.set("inertia boxes", True)
        visitor.set("joint axes", True)
        viewer.show(d.replace(xfrc_applied=push, qpos=d.qpos.at[7].set(np.pi / 2)))
        wanted = {"/inertia/1", "/joints/arrows", "/perturbations/arrows"}
        visitor.wait(lambda: wanted <= set(visitor.nodes))
        places = visitor.nodes["/inertia/1"]["batched_positions"].reshape(-1, 3)
        np.testing.assert_allclose(places[0], [0.4, 0, 1], atol=1e-6)
        # the slide is turned by the hinge before it
        turn, slide = visitor.nodes["/joints/arrows"]["points"].reshape(-1, 2, 3)[:2]
        np.testing.assert_allclose(turn[0], [1, 0, 1.1], atol=1e-6)
        for arrow, axis in ((turn, [0, 1, 0]), (slide, [0, 0, -1])):
            way = arrow[1] - arrow[0]
            np.testing.assert_allclose(way / np.linalg.norm(way), axis, atol=1e-5)
        begin, end = visitor.nodes["/perturbations/arrows"]["points"].reshape(2, 3)
        np.testing.assert_allclose(begin, [0.4, 0, 1], atol=1e-6)
        np.testing.assert_allclose((end - begin)[:2], 0, atol=1e-6)
        assert end[2] > begin[2]
        viewer.show(d)
        visitor.wait(lambda: "/perturbations/arrows" not in visitor.nodes)


def test_marks_follow_all_worlds(m):
    d = jaxsim.make_data(m)
    with Viewer(m, port=0) as viewer, Visitor(viewer.server) as visitor:
        visitor.set("inertia boxes", True)
        viewer.show_state({"qpos": np.repeat(np.asarray(d.qpos)[None], 3, axis=0)})
        visitor.wait(lambda: "/inertia/3" in visitor.nodes and "/inertia/1" not in visitor.nodes)
        assert visitor.nodes["/inertia/3"]["batched_positions"].size == 3 * 3 * 3


def test_the_hull_of_a_mesh_contains_it_and_is_convex(m):
    part = next(p for p in parts_of(m) if p.name == "arrow")
    hull = hull_of(m, part.data)
    face = hull.vertex[hull.face]
    normal = np.cross(face[:, 1] - face[:, 0], face[:, 2] - face[:, 0])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    np.testing.assert_allclose(normal, hull.normal[hull.face[:, 0]], atol=1e-6)
    points = part.shape.vertex
    above = np.einsum("fk,pfk->pf", normal, points[:, None] - face[:, 0])
    assert above.max() < 1e-9
    # the hollow is half of the hull
    np.testing.assert_allclose(volume(hull), 2.0, **STORED_SINGLE)
    np.testing.assert_allclose(volume(part.shape), 1.0, **STORED_SINGLE)
    assert next(p for p in parts_of(m) if p.name == "crate").hull() is None


def volume(shape):
    """Return the volume inside of triangles."""
    return np.linalg.det(shape.vertex[shape.face]).sum() / 6


def test_shapes_are_drawn_as_hulls_and_wireframes(m):
    with Viewer(m, port=0) as viewer, Visitor(viewer.server) as visitor:
        at = "/bodies/arrow/arrow"
        visitor.wait(lambda: at in visitor.nodes)
        surface = bytes(visitor.nodes[at]["glb_data"])
        visitor.set("geometry", "convex hulls")
        visitor.wait(lambda: bytes(visitor.nodes.get(at, {}).get("glb_data", surface)) != surface)
        visitor.set("geometry", "wireframe")
        visitor.wait(lambda: visitor.nodes.get(at, {}).get("wireframe") is True)
        viewer.show_state({"qpos": np.repeat(np.asarray(m.qpos0)[None], 2, axis=0)})
        visitor.wait(lambda: visitor.nodes.get("/worlds/arrow", {}).get("wireframe") is True)
        visitor.set("geometry", "surfaces")
        visitor.wait(lambda: "glb_data" in visitor.nodes.get(at, {}))


def test_switches_of_groups_say_what_they_hide(m):
    with Viewer(m, port=0) as viewer, Visitor(viewer.server) as visitor:
        label = "geoms of group 0 (3)"
        visitor.wait(lambda: any(c["label"] == label for c in visitor.controls.values()))
        control = next(c for c in visitor.controls.values() if c["label"] == label)
        assert control["hint"] == "crate, geom 1, arrow"
