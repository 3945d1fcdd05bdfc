"""The default camera frames the bodies, whatever the floor is, unless the file gives settings."""

import jax.numpy as jnp
import numpy as np
import pytest
from tolerance import ROUNDING

import jaxsim
from jaxsim.view import camera_frame, camera_frustum, default_free_camera
from jaxsim.view.browser.draw.poses import Posing
from jaxsim.view.camera import Camera
from jaxsim.view.default_camera import FileCamera, fit_camera, framed_geoms, framed_points

ROBOT = """
<mujoco>
  {settings}
  <worldbody>
    <geom name="floor" type="plane" size="{floor} {floor} 1"/>
    <geom name="wall" type="box" size="3 .1 3" pos="0 9 0"/>
    <camera name="eye" pos="0 0 3"/>
    <body name="base" pos="0 0 .1">
      <geom name="base" type="box" size=".1 .1 .1"/>
      <body name="arm" pos="0 0 .1">
        <joint name="slide" type="slide" axis="1 0 0"/>
        <geom name="arm" type="capsule" fromto="0 0 0 0 0 .5" size=".04"/>
        <geom name="hidden" size="2" group="3"/>
        <geom name="clear" size="2" rgba="1 1 1 0"/>
      </body>
    </body>
    <body name="post" pos="5 0 0"><geom name="post" size=".1"/></body>
    <body name="ball" pos=".3 0 .2"><freejoint/><geom name="ball" size=".05"/></body>
  </worldbody>
</mujoco>"""
POINTS = np.random.default_rng(0).normal(size=(40, 3)) * [1.0, 2.0, 0.5] + [3.0, 1.0, 2.0]


def robot(floor=20, settings=""):
    """Return the robot, and its settings for the default camera."""
    text = ROBOT.format(floor=floor, settings=settings)
    return jaxsim.load_model(text), FileCamera.of(jaxsim.Spec.from_string(text))


def poses_of(m, *positions):
    """Return poses with the arm at these positions, and the ball at these heights."""
    qpos = [np.array(m.qpos0) for _ in positions]
    for q, (arm, height) in zip(qpos, positions, strict=True):
        q[0], q[3] = arm, height
    return [Posing(m).of({"qpos": q[None]}) for q in qpos]


def image_of(m, camera, points):
    """Return the positions of points in an image of height 2, from its center, and their depths."""
    frame, frustum = camera_frame(m, jaxsim.make_data(m), camera), camera_frustum(m, camera)
    way = points - np.asarray(frame.pos)
    depth = way @ np.asarray(frame.forward)
    x, y = way @ np.asarray(frame.right), way @ np.asarray(frame.up)
    scale = float(frustum.height) / 2 * (1.0 if camera.orthographic else depth)
    return x / scale, y / scale, depth


@pytest.mark.parametrize("orthographic", [False, True])
@pytest.mark.parametrize("aspect", [0.5, 2.0])
def test_the_camera_is_the_closest_that_sees_all_points(aspect, orthographic):
    m, _ = robot()
    free = default_free_camera(m, azimuth=35.0, elevation=-25.0, orthographic=orthographic)
    x, y, depth = image_of(m, fit_camera(free, POINTS, aspect=aspect), POINTS)
    assert depth.min() > 0
    # the margin is a fifth of the image; one of its sides limits the distance
    widest = max(np.abs(x).max() / aspect, np.abs(y).max())
    np.testing.assert_allclose(widest, 0.8, **ROUNDING)
    for side, half in ((x, aspect), (y, 1.0)):
        np.testing.assert_allclose((side.min() + side.max()) / half, 0, atol=0.2)


def test_the_floor_does_not_matter():
    small, large = (robot(floor) for floor in (1, 300))
    found = []
    for m, settings in (small, large):
        camera = settings.frame(m, poses_of(m, (0.0, 0.2)), aspect=1.5)
        found.append(np.r_[camera.lookat, camera.distance, camera.azimuth, camera.elevation])
    np.testing.assert_allclose(*found, **ROUNDING)
    assert 0.5 < found[0][3] < 3
    assert found[0][4:].tolist() == [120.0, -20.0]


def test_bodies_that_move_are_framed_with_what_carries_them():
    m, _ = robot()
    names = [m.names["geom"][i] for i in framed_geoms(m)]
    assert names == ["base", "arm", "ball"]
    slide = '<joint name="slide" type="slide" axis="1 0 0"/>'
    text = ROBOT.format(floor=1, settings="").replace(slide, "").replace("<freejoint/>", "")
    still = jaxsim.load_model(text)
    names = [still.names["geom"][i] for i in framed_geoms(still)]
    assert names == ["wall", "base", "arm", "post", "ball"]


def test_a_motion_is_framed_as_a_whole_without_what_is_lost():
    m, settings = robot()
    motion = poses_of(m, (0.0, 0.2), (2.0, 0.2), (4.0, -1e4))
    points = framed_points(m, motion)
    assert 4 < points[:, 0].max() < 4.1
    assert points[:, 2].min() > -0.1
    camera = settings.frame(m, motion, aspect=1.5)
    x, y, _ = image_of(m, camera, points)
    assert np.abs(x).max() < 1.5
    assert np.abs(y).max() < 1.0


def test_the_settings_of_the_file_take_precedence():
    view = '<visual><global azimuth="10" elevation="-80" fovy="30"/></visual>'
    m, settings = robot(settings=view)
    camera = settings.frame(m, poses_of(m, (0.0, 0.2)), aspect=1.0)
    found = camera.azimuth, camera.elevation, camera.fovy
    np.testing.assert_allclose(jnp.stack(found), [10, -80, 30])

    # MuJoCo's free camera of an explicit <statistic>, except for a motion, which may leave it
    m, settings = robot(settings='<statistic center="0 0 7" extent="2"/>')
    poses = poses_of(m, (0.0, 0.2), (1.0, 0.2))
    camera = settings.frame(m, poses[:1], aspect=1.0)
    np.testing.assert_allclose(np.r_[camera.lookat, camera.distance], [0, 0, 7, 3])
    assert settings.frame(m, poses, aspect=1.0).lookat[2] < 1
    m, settings = robot(settings='<statistic extent="90"/>')
    assert settings.frame(m, poses[:1], aspect=1.0).distance < 3


def test_a_camera_of_the_model_may_be_the_default():
    m, settings = robot(settings='<visual><global cameraid="0"/></visual>')
    assert settings.fixed_camera(m).fixedcamid == 0
    assert robot()[1].fixed_camera(m) is None
    m, settings = robot(settings='<visual><global cameraid="3"/></visual>')
    with pytest.raises(ValueError, match="there is no camera 3"):
        settings.fixed_camera(m)


def test_only_free_cameras_are_fitted():
    m, _ = robot()
    with pytest.raises(ValueError, match="expected a free camera, got FIXED"):
        fit_camera(Camera.fixed(m, 0), POINTS, aspect=1.0)
