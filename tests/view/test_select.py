"""The object under a pixel, against `mjv_select`."""

import jax
import mujoco
import numpy as np
import pytest
from tolerance import STORED_SINGLE
from view.flex.models import SOFT
from view.scene import camera, model, scene_of, state

import jaxsim
from jaxsim.view import default_free_camera, pixel_ray, select

ASPECT = 1.5


@jax.jit
def selected(camera, qpos, mocap_pos, x, y):
    """Return the selected objects of many pixels of one state."""
    m = model()[1]
    d = jaxsim.make_data(m).replace(qpos=qpos, mocap_pos=mocap_pos)
    return jax.vmap(lambda x, y: select(m, d, camera, ASPECT, x, y))(x, y)


def test_the_same_is_under_a_pixel():
    """Selection from an orthographic camera, and through the lens of a fixed one."""
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


GRID = """<flexcomp name="{}" type="grid" count="3 4 3" spacing=".2 .15 .2" pos="{}" dim="3"
  radius=".02" dof="{}" cellcount="{}"><contact contype="0" conaffinity="0" selfcollide="none"/>
  </flexcomp>"""


@pytest.mark.slow
def test_flexes_and_skins_are_under_a_pixel():
    """The nearest object is selected, with the body of its vertex, node or bone."""
    grids = GRID.format("near", "-1 0 1", "trilinear", "2 1 3")
    grids += GRID.format("bent", "-1 1 1", "quadratic", "1 1 2")
    mj = mujoco.MjModel.from_xml_string(SOFT.replace("</worldbody>", f"{grids}</worldbody>"))
    m, d = jaxsim.put_model(mj), mujoco.MjData(mj)
    rng = np.random.default_rng(0)
    d.qpos[:] += 0.02 * rng.normal(size=mj.nq)
    mujoco.mj_forward(mj, d)
    theirs, option, scene = mujoco.MjvCamera(), mujoco.MjvOption(), mujoco.MjvScene(mj, 1000)
    mujoco.mjv_defaultFreeCamera(mj, theirs)
    theirs.lookat[:], theirs.distance, theirs.azimuth, theirs.elevation = (
        (0, 0.4, 0.7),
        2.2,
        120,
        -45,
    )
    mujoco.mjv_updateScene(mj, d, option, None, theirs, mujoco.mjtCatBit.mjCAT_ALL, scene)
    mine, pixels = default_free_camera(m), np.random.default_rng(1).uniform(size=(300, 2))
    mine = mine.replace(
        lookat=np.array([0, 0.4, 0.7]),
        distance=np.float64(2.2),
        azimuth=np.float64(120),
        elevation=np.float64(-45),
    )

    @jax.jit
    def of_all(qpos, x, y):
        d = jaxsim.make_data(m).replace(qpos=qpos)
        return jax.vmap(lambda x, y: select(m, d, mine, ASPECT, x, y))(x, y)

    found, met = of_all(d.qpos, *pixels.T), set()
    for k, (x, y) in enumerate(pixels):
        point, ids = np.zeros(3), [np.zeros(1, np.int32) for _ in range(3)]
        body = mujoco.mjv_select(mj, d, option, ASPECT, x, y, scene, point, *ids)
        ours = found.body[k], found.geom[k], found.flex[k], found.skin[k]
        assert ours == (body, *(one[0] for one in ids)), (k, ours, body, ids)
        far = max(1, np.linalg.norm(point))
        np.testing.assert_allclose(found.point[k] / far, point / far, **STORED_SINGLE)
        met.add(tuple(int(one[0]) for one in ids[1:]))
    assert {flex for flex, _ in met} == {-1, *range(mj.nflex)}
    assert {skin for _, skin in met} == {-1, *range(mj.nskin)}
