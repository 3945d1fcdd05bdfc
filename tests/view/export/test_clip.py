"""A clip has the poses of MuJoCo's kinematics, the viewer's triangles and the recorded fields."""

import numpy as np
import pytest
from view.export.clips import RECORDS, STEP, names_of_bodies, oracle, triangles

from jaxsim.view.browser.motion import RecordedMotion
from jaxsim.view.export.clip import _frames
from jaxsim.view.export.surface import vertex_normals


def test_bodies_have_the_poses_of_mujoco(clip, recorded):
    assert clip.bodies == names_of_bodies()
    offset = clip.pos[0, :, 0]  # body 0 is the world
    for frame in range(RECORDS):
        for world in range(2):
            _, d = oracle(recorded["qpos"][frame, world])
            np.testing.assert_allclose(clip.pos[frame, world] - offset[world], d.xpos, atol=1e-12)
            same = np.sum(clip.quat[frame, world] * d.xquat, axis=1)
            np.testing.assert_allclose(np.abs(same), 1, atol=1e-12)


def test_quaternions_do_not_jump(clip, recorded):
    free = recorded["qpos"][:, 0, 3:7]
    assert np.sum(free[1:] * free[:-1], axis=1).min() < 0
    assert np.sum(clip.quat[1:] * clip.quat[:-1], axis=-1).min() > 0.5


def test_worlds_do_not_overlap(clip):
    assert np.abs(clip.pos[:, 1, 0] - clip.pos[:, 0, 0]).max() > 2
    assert "floor" in [s.name for s in clip.solids_of(0)]
    assert "floor" not in [s.name for s in clip.solids_of(1)]


def test_only_the_world_and_the_post_stand_still(clip):
    assert {clip.bodies[b] for b in np.flatnonzero(~clip.moving)} == {"world", "post"}


def test_surfaces_are_those_of_the_viewer(clip, recorded):
    m, _ = oracle(recorded["qpos"][0, 0])
    found = {s.name: s.surface for s in clip.solids}
    assert set(found) == {"floor", "hill", "box", "pad", "ball", "ball (2)", "geom 6"}
    assert {n: len(found[n].face) for n in triangles(m)} == triangles(m)
    glass = found["ball"].material
    np.testing.assert_allclose(glass.rgba, [0.2, 0.4, 0.6, 0.5], atol=1e-6)
    np.testing.assert_allclose(glass.linear[:3], np.array([0.2, 0.4, 0.6]) ** 2.2, atol=1e-6)
    assert (glass.metallic, glass.roughness) == pytest.approx((1.0, 0.3))
    assert found["floor"].material.image.shape == (8, 8, 3)
    np.testing.assert_allclose(found["floor"].material.plain.rgba[:3], [0.5, 0, 0.5], atol=1e-6)
    for surface in found.values():
        np.testing.assert_allclose(np.linalg.norm(surface.normal, axis=1), 1, atol=1e-6)


def test_a_mesh_is_where_mujoco_has_it(clip, recorded):
    m, d = oracle(recorded["qpos"][3, 0])
    solid = next(s for s in clip.solids if s.name == "pad")
    geom = m.geom("pad").id
    vertex = (
        m.mesh_vert[: m.mesh_vertnum[0]] @ d.geom_xmat[geom].reshape(3, 3).T + d.geom_xpos[geom]
    )
    mine = _rotate(solid.quat, solid.surface.vertex) + solid.pos
    mine = _rotate(clip.quat[3, 0, solid.body], mine) + clip.pos[3, 0, solid.body]
    for corner in (np.min, np.max):
        np.testing.assert_allclose(corner(mine, axis=0), corner(vertex, axis=0), atol=1e-6)


def _rotate(quat, point):
    w, v = quat[0], quat[1:]
    return point + 2 * np.cross(v, np.cross(v, point) + w * point)


def test_a_rope_has_the_vertices_of_mujoco(clip, recorded):
    rope = next(s for s in clip.softs if s.name == "flex rope")
    m, d = oracle(recorded["qpos"][3, 0])
    first = m.flex_vertadr[1]
    np.testing.assert_allclose(rope.vertex[3, 0], d.flexvert_xpos[first:], atol=1e-6)
    assert rope.rod


def test_curves_have_names_and_units(clip, recorded):
    found = {c.name: c for c in clip.curves}
    assert set(found) == {"qpos", "ctrl", "sensordata", "reward"}
    assert found["sensordata"].titles == ["angle [rad]"]
    assert found["ctrl"].labels == ["motor"]
    np.testing.assert_array_equal(found["ctrl"].values, recorded["ctrl"])
    np.testing.assert_allclose(clip.curve_time, STEP * np.arange(RECORDS))


def test_what_no_format_has_is_told(clip):
    assert clip.left_out == ["1 geoms and sites of groups that the viewer hides"]


def test_frames_are_records_with_their_times():
    motion = RecordedMotion(0.001 * np.arange(101), {"qpos": np.zeros((101, 1, 1))})
    rate, records = _frames(motion, None)
    assert rate == 60
    np.testing.assert_array_equal(records, [0, 16, 33, 50, 66, 83, 100])
    rate, records = _frames(motion, 5000.0)  # no more frames than records
    assert len(records) == 101


def test_normals_of_moving_triangles_are_outward():
    vertex = np.array([[[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 0, 0], [0, 1, 0], [0, 0, 1]]], float)
    normal = vertex_normals(vertex, np.array([[0, 1, 2]]))
    np.testing.assert_allclose(normal[0], np.tile([0, 0, 1], (3, 1)))
    np.testing.assert_allclose(normal[1], np.tile([1, 0, 0], (3, 1)))
