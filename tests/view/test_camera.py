"""Cameras, their frames and pictures, and what a mouse does to them, against MuJoCo's."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import ROUNDING, STAGE, STORED_SINGLE
from view.scene import CAMERAS, camera, model, scene_of, state

import jaxsim
from jaxsim.view import (
    Camera,
    CameraType,
    Mouse,
    align_to_camera,
    camera_frame,
    camera_frustum,
    default_free_camera,
    move_camera,
)


@jax.jit
def frame(camera, qpos):
    m = model()[1]
    return camera_frame(m, jaxsim.make_data(m).replace(qpos=qpos), camera)


@pytest.mark.parametrize("kind", CAMERAS)
def test_frames_and_pictures_equal_those_of_mujoco(kind):
    m = model()[1]
    for seed in range(3):
        d = state(seed)
        theirs, mine = camera(kind, seed)
        expected = np.zeros((4, 3))
        mujoco.mjv_cameraFrame(*expected, d, theirs)
        np.testing.assert_allclose(np.stack(frame(mine, d.qpos)), expected, **STAGE)
    scene = scene_of(d, theirs)
    gl, frustum = scene.camera[0], camera_frustum(m, mine)
    near = 1 if gl.orthographic else gl.frustum_near
    edges = [gl.frustum_bottom, gl.frustum_top, gl.frustum_center, 2 * gl.frustum_width]
    np.testing.assert_allclose(np.stack(frustum), np.array(edges) / near, **STORED_SINGLE)
    height = mujoco.mjv_frustumHeight(scene)
    np.testing.assert_allclose(frustum.height, height, **STORED_SINGLE)


def test_the_default_camera_sees_the_model():
    mj, m = model()
    theirs = mujoco.MjvCamera()
    mujoco.mjv_defaultFreeCamera(mj, theirs)
    mine = default_free_camera(m)
    np.testing.assert_allclose(mine.lookat, theirs.lookat, **ROUNDING)
    np.testing.assert_allclose(mine.distance, theirs.distance, **ROUNDING)
    assert (mine.azimuth, mine.elevation) == (theirs.azimuth, theirs.elevation)
    assert mine.type == theirs.type
    assert (mine.fixedcamid, mine.trackbodyid) == (theirs.fixedcamid, theirs.trackbodyid)


@pytest.mark.parametrize("kind", ["free", "flat", "tracking", "fixed"])
@pytest.mark.parametrize("action", Mouse)
def test_the_mouse_moves_a_camera_as_in_mujoco(action, kind):
    """Small and large movements, and past the ends."""
    mj, m = model()
    rng, moved = np.random.default_rng(action), 0
    for seed in range(4):
        for size in (0.05, 1, 20):
            theirs, mine = camera(kind, seed)
            x, y = size * rng.normal(size=2)
            before = np.r_[mine.lookat, mine.distance, mine.azimuth, mine.elevation]
            mujoco.mjv_moveCamera(mj, action, x, y, theirs)
            mine = move_camera(m, mine, action, x, y)
            found = np.r_[mine.lookat, mine.distance, mine.azimuth, mine.elevation]
            expected = np.r_[theirs.lookat, theirs.distance, theirs.azimuth, theirs.elevation]
            # MuJoCo has the angle of view in single precision
            np.testing.assert_allclose(found, expected, **STORED_SINGLE)
            moved += np.abs(found - before).max() > 0
    if kind == "fixed" or (kind == "tracking" and action not in (1, 2, 5)):
        assert moved == 0
    else:
        assert moved > 6


@pytest.mark.slow
def test_cameras_of_many_worlds():
    """Cameras that differ, in worlds that differ; and the derivative by the camera's angle."""
    m, states = model()[1], [state(seed) for seed in range(3)]
    cameras = [camera("tracking", seed)[1] for seed in range(3)]
    every = jax.tree.map(lambda *x: jnp.stack([jnp.asarray(v) for v in x]), *cameras)
    qpos = np.array([d.qpos for d in states])
    found = jax.vmap(frame)(every, qpos)
    for k in range(3):
        expected = frame(cameras[k], qpos[k])
        np.testing.assert_allclose([x[k] for x in found], np.stack(expected), **ROUNDING)
    moved = jax.vmap(lambda c, x: move_camera(m, c, Mouse.ZOOM, x, x))(every, jnp.ones(3))
    assert (moved.distance < every.distance).all()
    one = cameras[0]
    slope = jax.jacfwd(lambda a: frame(one.replace(azimuth=a), qpos[0]).pos)(one.azimuth)
    out = frame(one, qpos[0])
    np.testing.assert_allclose(
        slope, -np.deg2rad(one.distance) * np.cross([0, 0, 1], out.forward), **ROUNDING
    )


def test_vectors_follow_a_camera():
    rng = np.random.default_rng(0)
    for vec, forward in rng.normal(size=(5, 2, 3)):
        expected = np.zeros(3)
        mujoco.mjv_alignToCamera(expected, vec, forward)
        np.testing.assert_allclose(align_to_camera(vec, forward), expected, **ROUNDING)


def test_cameras_by_name():
    m = model()[1]
    lens = Camera.fixed(m, "lens")
    assert (lens.type, lens.fixedcamid) == (CameraType.FIXED, 2)
    assert Camera.tracking(m, 1).trackbodyid == 1
    with pytest.raises(ValueError, match="no camera is named 'lense'; did you mean 'lens'"):
        Camera.fixed(m, "lense")
    with pytest.raises(ValueError, match="Camera: there is no body 9; the model has 5"):
        Camera.tracking(m, 9)
    with pytest.raises(
        ValueError, match=r"move_camera: action: expected one of ROTATE_V, .* got 0"
    ):
        move_camera(m, lens, 0, 0.0, 0.0)
