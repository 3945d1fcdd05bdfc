"""Flat images around primitives, against MuJoCo's renderer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from view.picture.oracle import inside, pictures

import jaxsim
from jaxsim.view import Look, default_free_camera

N, W, H = 64, 240, 120
XML = f"""<mujoco>
  <visual>
    <headlight ambient="0 0 0" diffuse="0 0 0" specular="0 0 0"/><quality offsamples="0"/>
    <map znear=".01" zfar="50"/>
  </visual>
  <statistic extent="2" center="0 0 0"/>
  <asset>
    <texture name="place" type="2d" builtin="flat" rgb1="1 1 1" width="{N}" height="{N}"/>
    <material name="once" texture="place" emission="1" specular="0"/>
    <material name="often" texture="place" emission="1" specular="0" texrepeat="2 1.5"/>
    <material name="meters" texture="place" emission="1" specular="0" texrepeat="3 4"
      texuniform="true"/>
    <material name="wide" texture="place" emission="1" specular="0" texrepeat=".2 .3"
      texuniform="true"/>
    <mesh name="block" vertex="-.2 -.2 -.3  .2 -.2 -.3  .2 .2 -.3  -.2 .2 -.3
      -.2 -.2 .3  .2 -.2 .3  .2 .2 .3  -.2 .2 .3"/>
  </asset>
  <worldbody>
    <geom name="end" type="plane" size=".4 .5 .1" pos="2.3 1.3 -.6" material="once"/>
    <geom name="bare" size=".1" pos="0 0 3"/>
    <geom name="box" type="box" size=".3 .35 .4" pos="-1.5 0 0" euler="0 0 20" material="once"/>
    <geom name="ball" size=".4" pos="-.5 0 0" euler="30 0 0" material="once"/>
    <geom name="egg" type="ellipsoid" size=".3 .35 .4" pos=".5 0 0" material="often"/>
    <geom name="tin" type="cylinder" size=".3 .4" pos="1.5 0 0" euler="20 0 100" material="once"/>
    <geom name="pill" type="capsule" size=".3 .25" pos="-1 1.2 0" euler="0 20 70" material="once"/>
    <geom name="crate" type="box" size=".3 .35 .4" pos="0 1.2 0" material="meters"/>
    <geom name="can" type="cylinder" size=".3 .4" pos="1 1.2 0" euler="-20 0 0" material="meters"/>
    <geom name="block" type="mesh" mesh="block" pos="2 -.1 0" material="once"/>
    <geom name="floor" type="plane" size="0 0 1" pos="0 0 -.7" material="wide"/>
  </worldbody>
</mujoco>"""


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Return images of MuJoCo and of jaxsim, with a texture that encodes its pixel positions."""
    image = np.zeros((N, N, 3), np.uint8)
    image[..., 0], image[..., 1] = np.arange(N) * 255 // N, np.arange(N)[:, None] * 255 // N
    path = tmp_path_factory.mktemp("images") / "place.npy"
    np.save(path, image.ravel())
    views = [
        {"azimuth": 100.0, "elevation": -35.0, "distance": 4.0, "lookat": [0, 0.5, 0]},
        {"azimuth": -60.0, "elevation": -20.0, "distance": 4.0, "lookat": [0, 0.5, 0]},
    ]
    size = {"width": W, "height": H, "images": str(path)}
    theirs = pictures([{"xml": XML, **view, **size} for view in views])
    m = jaxsim.load_model(XML)
    look = Look.of(m, XML).replace(tex_data=jnp.asarray(image.ravel()))
    d, camera = jaxsim.make_data(m), default_free_camera(m)

    @jax.jit
    def draw(camera):
        return jaxsim.render(m, d, camera, W, H, what=("rgb", "segmentation", "depth"), look=look)

    numbers = [{k: jnp.asarray(v, float) for k, v in view.items()} for view in views]
    return m, theirs, [draw(camera.replace(**n)) for n in numbers]


@pytest.mark.slow
def test_images_lie_where_they_lie_in_mujoco(both):
    """All but the pixels at edges and along seams, where MuJoCo mixes both sides of the image."""
    m, theirs, mine = both
    off = dict.fromkeys(m.names["geom"], 0)
    seen = dict.fromkeys(m.names["geom"], 0)
    for a, b in zip(theirs, mine, strict=True):
        same = inside(a.number) & inside(np.asarray(b.segmentation)) & (a.number == b.segmentation)
        wrong = np.abs(a.rgb - 255 * np.asarray(b.rgb)).max(axis=-1) > 12
        for g, name in enumerate(m.names["geom"]):
            off[name] += int((wrong & same & (a.number == g)).sum())
            seen[name] += int((same & (a.number == g)).sum())
    assert min(v for k, v in seen.items() if k != "bare") > 60
    # seams are a pixel of the picture wide, more where an image is small
    assert {k: v for k, v in off.items() if v > 0.12 * seen[k]} == {}
    assert sum(off.values()) < 0.1 * sum(seen.values())


def test_geoms_are_those_of_mujoco_but_for_edges(both):
    _, theirs, mine = both
    for a, b in zip(theirs, mine, strict=True):
        number = np.asarray(b.segmentation)
        differ = a.number != number
        assert not (differ & inside(number) & inside(a.number)).any()
        assert differ.sum() < 0.01 * differ.size
