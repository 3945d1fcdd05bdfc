"""What is under a pixel, beside `mjv_select`."""

import jax
import mujoco
import numpy as np
from tolerance import STORED_SINGLE
from view.scene import camera, model, scene_of, state

import jaxsim
from jaxsim.view import pixel_ray, select

ASPECT = 1.5


@jax.jit
def selected(camera, qpos, mocap_pos, x, y):
    """Of many pixels of one state."""
    m = model()[1]
    d = jaxsim.make_data(m).replace(qpos=qpos, mocap_pos=mocap_pos)
    return jax.vmap(lambda x, y: select(m, d, camera, ASPECT, x, y))(x, y)


def test_the_same_is_under_a_pixel():
    """From an orthographic camera, and through the lens of a fixed one."""
    mj, m = model()
    pixels, met = np.random.default_rng(0).uniform(size=(60, 2)), set()
    for kind in ("flat", "lens"):
        d = state(4)
        theirs, mine = camera(kind, 4)
        if kind == "flat":
            theirs.lookat[:], theirs.elevation = d.xpos[1], -30
            mj.vis.global_.fovy = 3  # the height of its picture in meters
            mine = mine.replace(lookat=d.xpos[1], elevation=np.float64(-30), fovy=np.float64(3))
        scene, option = scene_of(d, theirs), mujoco.MjvOption()
        mj.vis.global_.fovy = 50
        found = selected(mine, d.qpos, d.mocap_pos, *pixels.T)
        for k, (x, y) in enumerate(pixels):
            point, geom = np.zeros(3), np.zeros(1, np.int32)
            flex, skin = np.zeros(1, np.int32), np.zeros(1, np.int32)
            given = option, ASPECT, x, y, scene, point, geom, flex, skin
            body = mujoco.mjv_select(mj, d, *given)
            assert (found.body[k], found.geom[k]) == (body, geom[0])
            assert (found.flex[k], found.skin[k]) == (flex[0], skin[0])
            # MuJoCo has the pose of its camera in single precision, and the floor lies far away
            far = max(1, np.linalg.norm(point))
            np.testing.assert_allclose(found.point[k] / far, point / far, **STORED_SINGLE)
            if body >= 0:
                local = d.xmat[body].reshape(3, 3).T @ (found.point[k] - d.xpos[body])
                np.testing.assert_allclose(found.localpos[k], local, atol=1e-12)
            else:
                assert not np.any(found.localpos[k])
            met.add(body)
    assert {-1, 0, 1} <= met
    assert 2 not in met  # its group is not shown
    shown = select(m, jaxsim.make_data(m), mine, ASPECT, 0.5, 0.5, geomgroup=(0,) * 6)
    assert shown.body == shown.geom == -1


def test_the_ray_of_a_pixel_meets_what_is_there():
    """The middle of a free camera's picture is what it looks at."""
    m = model()[1]
    mine = camera("free", 0)[1]
    begin, way = pixel_ray(m, jaxsim.make_data(m), mine, ASPECT, 0.5, 0.5)
    np.testing.assert_allclose(begin + mine.distance * way, mine.lookat, atol=1e-12)
