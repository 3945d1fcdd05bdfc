"""Transparency, mirrors, haze and deforming objects, against MuJoCo's renderer."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from view.flex.models import SOFT
from view.picture.oracle import inside, pictures

import jaxsim
from jaxsim.enums import ObjType
from jaxsim.view import Look, default_free_camera

W, H = 160, 120
CLEAR = """<mujoco>
  <visual><quality offsamples="0"/><rgba haze=".8 .3 .3 1"/></visual>
  <statistic extent="2" center="0 0 .5"/>
  <asset>
    <texture type="skybox" builtin="gradient" rgb1=".3 .5 .7" rgb2="1 .8 .3" width="64"
      height="384"/>
    <material name="mirror" rgba=".3 .4 .3 1" reflectance=".5" specular="0"/>
    <material name="table" rgba=".2 .2 .5 1"/>
    <material name="glass" rgba=".9 .2 .2 .4"/>
  </asset>
  <worldbody>
    <light pos="0 0 4" dir="0 0 -1" directional="true" castshadow="false"/>
    <geom name="floor" type="plane" size="2 2 .1" material="mirror"/>
    <geom name="ball" size=".3" pos="-.6 .5 .5" rgba=".2 .8 .2 1"/>
    <geom name="pane" type="box" size=".5 .05 .4" pos="-.4 -.3 .5" material="glass"/>
    <geom name="drop" size=".25" pos=".5 -.6 .4" rgba=".2 .3 .9 .5"/>
    <geom name="table" type="box" size=".4 .4 .2" pos=".6 .5 .3" material="table"/>
    <geom name="cup" type="cylinder" size=".1 .15" pos=".6 .5 .65" rgba=".9 .9 .2 1"/>
  </worldbody>
</mujoco>"""
VIEW = {"azimuth": 100.0, "elevation": -30.0, "distance": 3.0, "lookat": [0, 0, 0.4]}
FAR = {"azimuth": 100.0, "elevation": -12.0, "distance": 8.0, "lookat": [0, 0, 2.0]}
DECORATED = """<mujoco>
  <visual><quality offsamples="0"/></visual>
  <statistic extent="2" center="0 0 .5"/>
  <asset>
    <texture name="squares" type="2d" builtin="checker" width="8" height="8" rgb1="1 .5 0"
      rgb2="0 .5 1"/>
    <material name="tiles" texture="squares" texrepeat="2 2"/>
    <mesh name="wedge" vertex="0 0 0  .3 0 0  0 .3 0  0 0 .4"/>
  </asset>
  <worldbody>
    <light pos="0 0 4" dir="0 0 -1" directional="true"/>
    <geom name="floor" type="plane" size="2 2 .1"/>
    <site name="hidden" size=".5" pos="0 0 .5" group="3"/>
    <site name="gone" size=".5" pos="0 0 .5" rgba="1 0 0 0"/>
    <site name="ball" size=".15" pos="-.7 .3 .4" rgba=".9 .2 .2 1"/>
    <body pos="0 0 .5" euler="0 0 30"><freejoint/>
      <geom name="core" size=".1"/>
      <site name="rod" type="capsule" size=".08 .2" pos=".3 0 .2" euler="60 0 0" rgba="0 1 0 1"/>
      <site name="egg" type="ellipsoid" size=".1 .2 .3" pos="-.3 0 0" group="2"/>
      <site name="tiled" type="box" size=".15 .1 .2" pos="0 -.5 0" material="tiles"/>
    </body>
    <site name="veil" type="cylinder" size=".3 .02" pos="0 0 1" euler="30 0 0" group="1"
      rgba=".2 .2 .9 .4"/>
    <site name="wedge" type="mesh" mesh="wedge" pos=".6 .6 .3" euler="20 30 200" rgba=".9 .9 .1 1"/>
    <site name="wall" size=".06" pos="-.6 1.2 1.2"/>
    <geom name="drum" type="cylinder" size=".15 .2" pos="-.1 1.2 1" euler="90 0 0"/>
    <site name="side" size=".03" pos="-.1 1.2 1.3"/>
    <body pos=".4 1.2 1.2">
      <joint axis="0 1 0"/><geom size=".05"/><site name="end" size=".06" pos=".1 0 -.5"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="unseen" width=".05" group="4">
      <site site="wall"/><site site="end"/>
    </spatial>
    <spatial name="belt" width=".04" rgba="1 .2 .2 1">
      <site site="wall"/><geom geom="drum" sidesite="side"/><site site="end"/>
    </spatial>
  </tendon>
</mujoco>"""
SOFT_VIEW = {"azimuth": 100.0, "elevation": -40.0, "distance": 3.5, "lookat": [0.5, 0.3, 0.5]}
ENDLESS = CLEAR.replace('size="2 2 .1" material="mirror"', 'size="0 0 .1" rgba=".3 .4 .3 1"')
ENDLESS = ENDLESS.replace('name="table" rgba=".2 .2 .5 1"', 'name="table" reflectance=".5"')
FOGGY = CLEAR.replace("<visual>", '<visual><map fogstart="2" fogend="5"/>').replace(
    "<rgba ", '<rgba fog=".2 .7 .4 1" '
)


@cache
def theirs():
    """All pictures of MuJoCo, from one process."""
    size = {"width": W, "height": H}
    plain = SOFT.replace("<asset>", '<visual><quality offsamples="0"/></visual><asset>')
    cases = [
        {"xml": CLEAR, **VIEW, **size},
        {"xml": ENDLESS, **FAR, **size},
        {"xml": DECORATED, **VIEW, **size},
        {"xml": plain, **SOFT_VIEW, **size, "qpos": bent().tolist()},
        {"xml": FOGGY, **FAR, **size, "fog": True},
        {"xml": FOGGY, **FAR, **size},
        {"xml": FOGGY.replace('reflectance=".5"', ""), **FAR, **size, "fog": True},
    ]
    return pictures(cases)


def bent() -> np.ndarray:
    """A state of SOFT in which everything is bent."""
    m = jaxsim.load_model(SOFT)
    return np.asarray(m.qpos0) + 0.04 * np.random.default_rng(5).normal(size=m.nq)


def drawn(xml: str, view: dict, **more):
    m = jaxsim.load_model(xml)
    d = jaxsim.make_data(m)
    if "qpos" in more:
        d = d.replace(qpos=jnp.asarray(more["qpos"]))
    camera = default_free_camera(m).replace(**{k: jnp.asarray(v, float) for k, v in view.items()})
    look = Look.of(m, xml, fog=more.get("fog", False))
    look = look.replace(layers=more.get("layers", look.layers))
    kinds = ("rgb", "depth", "segmentation", "object")
    draw = jax.jit(lambda d, c, look: jaxsim.render(m, d, c, W, H, what=kinds, look=look))
    return m, look, draw(d, camera, look)


def compared(their, mine, far: float = 0.01):
    """Differences of colors, of 255, away from edges; geoms agree but for edges."""
    number, kind = np.moveaxis(np.asarray(mine.object), -1, 0)
    same = (their.number == number) & (their.type == kind)
    tell, told = their.number + 100 * their.type, number + 100 * kind
    inner = inside(tell) & inside(told)
    assert not (~same & inner).any()
    assert (~same).mean() < far
    return np.abs(their.rgb - 255 * np.asarray(mine.rgb)).max(axis=-1), same & inner


def test_glass_and_mirrors():
    their = theirs()[0]
    m, look, mine = drawn(CLEAR, VIEW)
    assert look.layers > 0
    off, inner = compared(their, mine)
    # what is seen through and in a mirror has edges of its own, and highlights are of corners there
    assert np.median(off[inner]) < 2
    assert np.mean(off[inner] > 16) < 0.04
    # without it, the same surfaces are opaque
    glass = inner & (their.number == jaxsim.name2id(m, "geom", "pane"))
    assert glass.sum() > 300
    assert np.median(off[glass]) < 6


@pytest.mark.slow
def test_haze_before_the_horizon():
    their = theirs()[1]
    m, look, mine = drawn(ENDLESS, FAR)
    floor = jaxsim.name2id(m, "geom", "floor")
    np.testing.assert_allclose(look.haze, [0.8, 0.3, 0.3])
    off = np.abs(their.rgb - 255 * np.asarray(mine.rgb)).max(axis=-1)
    shown = (
        inside(their.number) & (their.number == floor) & (np.asarray(mine.segmentation) == floor)
    )
    assert np.median(off[shown]) < 3
    # the haze itself: within a sixth of its strength
    assert np.percentile(off[shown], 99) < 45


@pytest.mark.slow
def test_fog():
    their = theirs()[4]
    m, _, mine = drawn(FOGGY, FAR, fog=True)
    off, inner = compared(their, mine)
    assert np.median(off[inner]) < 2
    sky = inner & (their.number == -1)
    assert sky.sum() > 500
    assert off[sky].max() < 2
    floor = inner & (their.number == jaxsim.name2id(m, "geom", "floor"))
    assert floor.sum() > 500
    assert np.percentile(off[floor], 90) < 2
    # its contents are mirrored there, in the fog of the whole path, which no mirror dims
    clear, blank = theirs()[5].rgb, theirs()[6].rgb
    mirrored = floor & (np.abs(their.rgb - blank).max(axis=-1) > 50)
    assert mirrored.sum() > 100
    assert np.median(off[mirrored]) < 2
    assert np.percentile(off[mirrored], 90) < 12
    assert np.abs(clear - their.rgb)[floor].mean() > 25


@cache
def decorated():
    """Numbers and types in our picture of tendons and sites, and differences of colors inside."""
    _, _, mine = drawn(DECORATED, VIEW)
    number, kind = np.moveaxis(np.asarray(mine.object), -1, 0)
    assert np.all((np.asarray(mine.segmentation) == -1) == (kind != ObjType.GEOM))
    return number, kind, *compared(theirs()[2], mine)


@pytest.mark.slow
def test_tendons():
    number, kind, off, inner = decorated()
    belt = kind == ObjType.TENDON
    assert belt.sum() > 100
    assert np.all(number[belt] == 1)
    assert np.median(off[inner & belt]) < 6
    assert np.mean(off[inner] > 12) < 0.005


def test_sites():
    number, kind, off, inner = decorated()
    site, m = kind == ObjType.SITE, jaxsim.load_model(DECORATED)
    names = [jaxsim.id2name(m, "site", i) for i in range(m.nsite)]
    shown = {names[i] for i in number[site]}
    assert shown == set(names) - {"hidden", "gone"}
    assert (inner & site).sum() > 1000
    assert np.median(off[inner & site]) < 2
    assert np.mean(off[inner & site] > 12) < 0.02
    assert np.mean(off[inner] > 12) < 0.005  # shadows of sites among them


@pytest.mark.filterwarnings("ignore:.*contacts of flexes")
def test_flexes_and_skins():
    their = theirs()[3]
    _, _, mine = drawn(SOFT, SOFT_VIEW, qpos=bent())
    seen = {(int(n), int(k)) for n, k in np.asarray(mine.object).reshape(-1, 2)}
    flexes, skins = (
        {(i, int(kind)) for i in range(n)} for kind, n in ((ObjType.FLEX, 3), (ObjType.SKIN, 2))
    )
    assert flexes | skins <= seen
    off, inner = compared(their, mine, far=0.02)
    assert np.median(off[inner]) < 3
    depth = np.abs(their.depth - np.asarray(mine.depth))[inner] / np.asarray(mine.depth)[inner]
    assert np.percentile(depth, 99) < 2e-3
