"""The images that cameras say they make, against MuJoCo's rangefinders of the same cameras."""

import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.view import camera_images

W, H = 7, 5
XML = f"""<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="3 3 .1"/>
    <body name="other"><camera name="plain" pos="0 0 1" output="rgb"/></body>
    <body name="head" pos="0 -2 1">
      <camera name="eye" euler="75 0 10" resolution="{W} {H}" fovy="60"
        output="normal distance depth"/>
      <camera name="flat" euler="75 0 10" resolution="{H} {H}" fovy="2.5" projection="orthographic"
        output="depth"/>
    </body>
    <geom name="ball" size=".4" pos="0 0 .5"/>
    <geom name="box" type="box" size=".2 .3 .4" pos=".8 .3 .4" euler="0 0 30"/>
  </worldbody>
  <sensor>
    <rangefinder camera="eye" data="dist"/><rangefinder camera="eye" data="normal"/>
    <rangefinder camera="eye" data="depth"/><rangefinder camera="flat" data="depth"/>
  </sensor>
</mujoco>"""


@pytest.mark.slow
def test_data_needs_no_results():
    m = jaxsim.load_model(XML)
    full, bare = jaxsim.make_data(m), jaxsim.make_data(m, keep=[])
    assert bare.xpos is None
    one, other = (jaxsim.render(m, d, "eye", W, H).rgb for d in (full, bare))
    np.testing.assert_array_equal(one, other)


def test_images_are_those_of_rangefinders():
    mj = mujoco.MjModel.from_xml_string(XML)
    their = mujoco.MjData(mj)
    mujoco.mj_forward(mj, their)
    dist, normal, depth, flat = np.split(their.sensordata, mj.sensor_adr[1:])
    m = jaxsim.load_model(XML)
    d = jaxsim.make_data(m)
    eye, other = jax.jit(lambda d: [camera_images(m, d, c) for c in ("eye", "flat")])(d)
    assert eye.rgb is None
    assert eye.segmentation is None
    assert other.depth.shape == (H, H)
    met = (dist > 0).reshape(H, W)
    assert 5 < met.sum() < W * H
    for mine, theirs in (
        (eye.distance, dist.reshape(H, W)),
        (eye.depth, depth.reshape(H, W)),
        (eye.normal, normal.reshape(H, W, 3)),
    ):
        np.testing.assert_allclose(mine[met], theirs[met], atol=1e-9)
    # the rangefinder of one that is not square would see a square
    seen = (flat > 0).reshape(H, H)
    np.testing.assert_allclose(other.depth[seen], flat.reshape(H, H)[seen], atol=1e-9)


def test_segmentation_is_of_flexes_and_tendons_too():
    m = jaxsim.load_model(XML.replace('output="depth"', 'output="segmentation"'))
    found = jax.eval_shape(lambda d: camera_images(m, d, "flat"), jaxsim.make_data(m))
    assert found.segmentation.shape == (H, H)
    assert found.object.shape == (H, H, 2)
    assert found.depth is None


def test_a_camera_without_images_is_refused():
    m = jaxsim.load_model(XML)
    d = jaxsim.make_data(m)
    with pytest.raises(ValueError, match=r"'plain' has no resolution; give it one"):
        camera_images(m, d, "plain")
    with pytest.raises(ValueError, match=r"'eye' has no output; name some"):
        camera_images(m.replace(structure=_without_output(m)), d, "eye")
    with pytest.raises(ValueError, match="eyes"):
        camera_images(m, d, "eyes")


def _without_output(m):
    return m.structure.replace(cam_output=0 * m.cam_output)
