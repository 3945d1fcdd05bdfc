"""Smaller images: their pixels by hand, and what is far away against MuJoCo's renderer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from view.picture.oracle import inside, pictures

import jaxsim
from jaxsim.view import Look
from jaxsim.view.picture.pyramid import Texture, levels_of, pyramid

W, H = 120, 90
FLOORS = """<mujoco>
  <visual><quality offsamples="0"/><global azimuth="70" elevation="-15" fovy="40"/></visual>
  <statistic extent="4" center="0 0 .5"/>
  <asset>
    <texture name="told" type="2d" builtin="checker" width="30" height="50" rgb1=".1 .2 .9"
      rgb2=".9 .3 .1" mark="edge" markrgb="1 1 1" colorspace="sRGB"/>
    <texture name="light" type="2d" builtin="checker" width="64" height="64" rgb1=".1 .2 .9"
      rgb2=".9 .3 .1" mark="edge" markrgb="1 1 1"/>
    <texture name="cube" type="cube" builtin="checker" width="64" height="64" rgb1=".1 .8 .9"
      rgb2=".9 .3 .1"/>
    <material name="told" texture="told" texrepeat="9 7" specular="0"/>
    <material name="light" texture="light" texrepeat="20 20" specular="0"/>
    <material name="cube" texture="cube" texuniform="true" specular="0"/>
    <material name="mirror" rgba=".1 .1 .1 1" reflectance=".7" specular="0"/>
  </asset>
  <worldbody>
    <geom name="told" type="plane" size="4 4 .1" material="told"/>
    <geom name="light" type="box" size="3 1.5 .05" pos="0 1 .6" material="light"/>
    <geom name="cube" type="box" size=".6 .6 .6" pos="-1.5 -1 1" material="cube"/>
    <geom name="mirror" type="plane" size="1 1 .1" pos="2 -2.5 .02" material="mirror"/>
  </worldbody>
</mujoco>"""


def test_each_size_is_half_of_the_one_before():
    textures = (Texture(0, 4, 2, 1, 1, False), Texture(8, 3, 3, 3, 6, False))
    data = np.random.default_rng(0).integers(0, 256, 8 + 6 * 27).astype(np.uint8)
    levels = levels_of(textures)
    np.testing.assert_array_equal(levels.width, [[4, 3], [2, 1], [1, 1]])
    np.testing.assert_array_equal(levels.height, [[2, 3], [1, 1], [1, 1]])
    np.testing.assert_array_equal(levels.start, [[0, 8], [170, 173], [172, 173]])
    np.testing.assert_array_equal(levels.last, [2, 1])
    both = pyramid(textures, np.stack([data, data[::-1]]))
    assert both.shape == (2, 173 + 18)
    np.testing.assert_array_equal(both[0, :170], data)
    means = data[:8].reshape(1, 2, 2, 2).mean(axis=(1, 3)).ravel()
    np.testing.assert_allclose(both[0, 170:172], means, atol=0.5)
    # of three pixels the middle one: the smaller one's middle is there
    sides = data[8:].reshape(6, 3, 3, 3)
    np.testing.assert_array_equal(both[0, 173:].reshape(6, 3), sides[:, 1, 1])
    np.testing.assert_array_equal(jax.jit(lambda x: pyramid(textures, x))(data), both[0])


def test_far_images_are_those_of_mujoco():
    """Flat ones and cubes, told in light and as a screen is, on floors, boxes and in a mirror."""
    view = {"azimuth": 70.0, "elevation": -15.0}
    their = pictures([{"xml": FLOORS, "width": W, "height": H, **view}])[0]
    m = jaxsim.load_model(FLOORS)
    what, look = ("rgb", "segmentation"), Look.of(m, FLOORS)
    mine = jax.jit(lambda d, k: jaxsim.render(m, d, None, W, H, what=what, look=k))(
        jaxsim.make_data(m), look
    )
    number = np.asarray(mine.segmentation)
    same = inside(number) & inside(their.number) & (number == their.number)
    off = np.abs(their.rgb - 255 * np.asarray(mine.rgb)).max(axis=-1)
    for name in m.names["geom"]:
        here = same & (number == jaxsim.name2id(m, "geom", name))
        assert here.sum() > 150, name
        assert np.percentile(off[here], 90) < 4, (name, np.percentile(off[here], [50, 90, 99]))
    assert np.mean(off[same]) < 1.5


def test_the_free_camera_is_that_of_the_file():
    m = jaxsim.load_model(FLOORS)
    camera = Look.of(m, FLOORS).free_camera(m)
    found = camera.azimuth, camera.elevation, camera.fovy
    np.testing.assert_allclose(jnp.stack(found), [70.0, -15.0, 40.0])
    assert Look.of(m).free_camera(m).azimuth == 90.0


def test_images_may_be_exchanged():
    m = jaxsim.load_model(FLOORS)
    look = Look.of(m, FLOORS)
    other = look.replace(tex_data=255 - look.tex_data)
    assert other.tex_pyramid.shape == look.tex_pyramid.shape
    np.testing.assert_array_equal(other.tex_data, 255 - look.tex_data)
    with pytest.raises(TypeError, match="tex_dat"):
        look.replace(tex_dat=look.tex_data)
    for wrong in (look.tex_data[1:], look.tex_data / 255, look.tex_pyramid, [1, 2], None):
        with pytest.raises(ValueError, match=r"tex_data: expected \(\.\.\., \d+\) uint8, got"):
            look.replace(tex_data=wrong)
