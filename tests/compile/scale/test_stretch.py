"""Frames with a scale of three factors: their contents are stretched as in MuJoCo."""

import struct

import numpy as np
import pytest
from compile.oracle import assert_agrees, assert_refused
from compile.scale.test_scale import _EQUALITIES, _HULL, _PASSIVE, _TENDONS

from jaxsim.compile import compile_spec, flatten
from jaxsim.spec import Spec

SCALE = 'scale="2 3 5" scaling="geometry"'
ROUND = 'scale="2 2 5" scaling="geometry"'

_MESH = (
    '<mesh name="m" vertex="0 0 0 1 0 0 0 2 0 0 0 4" scale="1 2 1" refpos="1 2 3"'
    ' refquat="1 .3 .2 .1"/>'
)
_HFIELD = '<hfield name="h" nrow="2" ncol="2" size="1 2 3 4" elevation="0 1 2 3"/>'
_POINT = '<inertial pos="1 1 1" mass="1" fullinertia="3 4 5 .1 .2 .3"/>'
_TURNED = ("", 'euler="0 0 90"', 'euler="0 0 30"', 'euler="0 180 0"')


def _world(inside: str, rest: str = "", *, scale: str = SCALE, place: str = 'pos="1 2 3"') -> str:
    return (
        f"<mujoco><asset>{_MESH}{_HFIELD}</asset><worldbody><frame {place} {scale}>{inside}"
        f"</frame></worldbody>{rest}</mujoco>"
    )


WORLDS = {
    "bodies": _world(
        '<body pos="1 1 1" euler="0 0 90"><joint axis="1 0 0" pos="1 2 3"/>'
        '<geom type="box" size="1 1 1"/><camera pos="1 2 3"/><light pos="1 2 3" dir="1 1 1"/>'
        f'<body pos="1 1 1" euler="30 20 10">{_POINT}<joint type="ball" pos="1 0 0"/></body></body>'
    ),
    "sites": _world(
        '<body euler="30 20 10"><site pos="1 1 1" type="box" size="1 2 3"/><site size="1"/>'
        '<site type="capsule" size="1 2"/>'
        '<site type="ellipsoid" fromto="0 0 0 1 2 3" size=".1 .2"/>'
        '<site type="cylinder" fromto="0 0 0 1 2 3" size=".1"/></body>'
    ),
    "round": _world(
        '<geom type="cylinder" size="1 2"/><geom type="capsule" size=".1" fromto="0 0 0 .01 0 1"/>'
        '<geom type="box" size=".1 .2" fromto="0 0 0 0 0 1"/>'
        '<geom type="ellipsoid" size=".1 .2 .3" fromto="0 0 0 0 .01 1"/>',
        scale=ROUND,
    ),
    "nearly round": _world('<geom size="1"/>', scale='scale="2 2 2.01" scaling="geometry"'),
    "plane": _world('<geom type="plane" size="1 2 3" pos="1 1 1" euler="0 90 0"/>'),
    "density": _world(
        '<body><geom type="box" size="1 2 3"/><joint type="ball"/>'
        '<geom type="box" size="1 2 3" mass="2" shellinertia="true"/></body>',
        scale=SCALE + ' massscale="7"',
    ),
    "inertia": _world(
        '<body euler="0 0 30"><inertial pos="0 0 1" mass="1" diaginertia="2 3 4" euler="10 20 30"/>'
        '<joint type="ball"/></body><body><frame euler="10 20 30" pos="1 2 3">'
        '<inertial pos="0 0 1" mass="1" fullinertia="2 3 4 .1 .2 .3"/></frame>'
        '<joint type="ball"/></body>'
    ),
    "slides": _world(
        '<body euler="0 0 90"><inertial pos="0 0 1" mass="1" diaginertia="2 3 4"/>'
        f'<joint type="slide" axis="1 .01 0" pos="1 1 1" range="-1 1" margin=".1" {_PASSIVE}/>'
        f'<joint type="slide" axis="0 0 2" ref=".1" springref=".2"/></body>'
    ),
    "nested": _world(
        '<frame scale="1 2 1" scaling="geometry" euler="0 0 90" pos="1 2 3"><frame scale="2">'
        f'<geom type="box" size="1 1 1" pos="1 1 1"/><body euler="30 40 50">{_POINT}'
        '<site type="box" size="1 2 3" pos="1 2 3" quat="1 .2 .3 .4"/></body></frame></frame>'
    ),
}


@pytest.mark.parametrize("name", WORLDS)
def test_worlds(name):
    assert_agrees(WORLDS[name], skip=_HULL)


@pytest.mark.parametrize("turned", _TURNED)
@pytest.mark.parametrize("kind", ["mesh", "box", "sphere"])
def test_meshes_are_stretched_along_any_axes(kind, turned):
    inside = (
        f'<body><joint type="ball"/><geom type="{kind}" mesh="m" pos="1 1 1" {turned}/>'
        f'<site type="mesh" mesh="m" {turned}/><geom type="mesh" mesh="m"/></body>'
    )
    assert_agrees(_world(inside), skip=_HULL)


@pytest.mark.parametrize("turned", _TURNED[:2])
def test_height_fields(turned):
    inside = f'<geom type="hfield" hfield="h" {turned}/><geom type="hfield" hfield="h"/>'
    assert_agrees(_world(inside), skip=_HULL)


_FREE = f'<body pos="1 1 1"><freejoint/>{_POINT}</body><body mocap="true" pos="1 1 1"/>'
_KEY = '<keyframe><key qpos="9 8 7 1 0 0 0" qvel="1 2 3 4 5 6" mpos="3 2 1"/></keyframe>'


@pytest.mark.parametrize("scale", ['scale="2"', SCALE])
@pytest.mark.parametrize("inner", ['scale="3"', 'scale="2 1 .5" scaling="geometry"'])
def test_keyframes_move_with_their_frames(scale, inner):
    nested = f'<frame pos="3 2 1" euler="10 20 30"><frame pos="1 2 3" euler="50 0 0" {inner}>'
    for inside in (_FREE, f"{nested}{_FREE}</frame></frame>"):
        text = _world(inside, _KEY, scale=scale, place='pos="1 2 3" euler="10 20 30"')
        assert_agrees(text, skip=_HULL)


_TREE = f"""
  <site name="w"/>
  <body name="o" pos="0 0 5"><joint name="oj"/><geom size=".1"/><site name="os"/></body>
  <frame pos="1 2 3" euler="0 0 30" {SCALE}>
    <body name="b" pos="1 0 0" euler="0 90 0"><joint name="h" axis="0 1 0"/>
      <joint name="s" type="slide" axis="1 0 0"/><geom name="g" type="box" size=".1 .2 .3"/>
      <site name="s1" pos="1 2 3" euler="10 20 30"/>
      <body name="i" pos="0 0 1" euler="30 0 0">{_POINT}<joint name="bl" type="ball"/>
      <site name="s3"/></body></body>
    <geom name="wg" type="ellipsoid" size=".3 .2 .1" pos="1 0 0"/>
  </frame>"""

_PAIRS = '<contact><pair geom1="g" geom2="wg" margin=".01" friction="1 2 3"/></contact>'

_ACTUATORS = """<actuator>
  <motor name="a" joint="s" gear="2" forcerange="-1 1" ctrlrange="-1 1"/>
  <position joint="s" kp="2" kv="1" ctrlrange="-1 1"/><position joint="s" inheritrange="0"/>
  <intvelocity joint="s" kp="2" actrange="-1 1"/>
  <cylinder joint="s" timeconst="2" bias="1 2 3" area="2"/>
  <muscle joint="s" force="10" lengthrange=".5 1"/>
  <motor tendon="ts"/><motor site="s1" gear="1 2 3 4 5 6"/>
  <motor site="s1" refsite="w" gear="1 2 3 4 5 6"/>
  <general cranksite="s1" slidersite="s3" cranklength="2"/>
</actuator>"""

_SENSORS = """<sensor>
  <rangefinder site="s1" cutoff="1"/><velocimeter site="s1" cutoff="1"/>
  <jointpos joint="s" cutoff="1" noise="1"/><jointvel joint="s" cutoff="1"/>
  <framepos objtype="site" objname="s1" reftype="site" refname="os" cutoff="1"/>
  <framepos objtype="body" objname="b" cutoff="1"/><subtreecom body="b" cutoff="1"/>
  <distance geom1="g" geom2="wg" cutoff="1"/><tendonpos tendon="ts" cutoff="1"/>
  <actuatorfrc actuator="a" cutoff="1"/><insidesite objtype="body" objname="i" site="s1"/>
</sensor>"""


@pytest.mark.parametrize(
    "rest",
    [_TENDONS + _EQUALITIES, _PAIRS, _TENDONS + _ACTUATORS + _SENSORS],
    ids=["ties", "pairs", "actuators"],
)
def test_what_is_tied_to_a_stretched_tree(rest):
    assert_agrees(f"<mujoco><worldbody>{_TREE}</worldbody>{rest}</mujoco>")


REFUSED = {
    '<geom size="1"/>': "make it an ellipsoid",
    '<geom type="cylinder" size="1 2"/>': "equally across it",
    '<geom type="box" size="1 2 3" euler="0 0 30"/>': "not along those that are stretched",
    '<geom type="plane" size="1 2 3" euler="30 0 0"/>': "not along those that are stretched",
    '<geom type="hfield" hfield="h" euler="0 0 30"/>': "not along those that are stretched",
    '<body><geom type="box" size="1 1 1"/><joint axis="1 1 0"/></body>': "its axis is not along",
    '<frame scale="1 2 3"><site/></frame>': "add scaling='geometry'",
}


@pytest.mark.parametrize("inside", REFUSED)
def test_refused(inside):
    assert_refused(_world(inside), REFUSED[inside])


def test_a_mesh_that_is_stretched_is_written_as_a_list_of_points():
    inside = '<body><joint type="ball"/><geom type="mesh" mesh="m" euler="10 20 30"/></body>'
    spec = Spec.from_string(_world(inside))
    before, after = compile_spec(spec).fields, compile_spec(flatten(spec)).fields
    assert "scale" not in flatten(spec).to_xml()
    for name in ("body_mass", "body_inertia", "body_ipos", "geom_pos"):
        np.testing.assert_allclose(after[name], before[name], rtol=1e-5, err_msg=name)
    np.testing.assert_allclose(np.abs(after["mesh_vert"]), np.abs(before["mesh_vert"]), atol=1e-5)


# --- flexes and skins ---

_SCALES = ('scale="2"', 'scale="2" scaling="geometry"', 'scale="2" massscale="3"', SCALE)
_SLIDES = "".join(f'<joint type="slide" axis="{axis}"/>' for axis in ("1 0 0", "0 1 0", "0 0 1"))
_MASS = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
_VERTICES = tuple(
    f'<body name="v{i}" pos="{pos}" euler="0 90 0">{_MASS}{_SLIDES}</body>'
    for i, pos in enumerate(("0 0 0", "1 0 0", "0 1 0", "1 1 0"))
)
_FLEX = """
  <deformable><flex name="f" dim="2" body="{body}" element="0 1 2 1 3 2" radius=".01"
    vertex="1 1 1 1 0 0 1 0 0 1 0 0">{parts}</flex></deformable>
  <equality><flex flex="f" solimp=".9 .95 .001 .5 2"/></equality>"""
_ALL = "v0 v1 v2 v3"
_SHELL = """<contact margin=".1" gap=".01" solref="-100 -2" friction="1 .1 .1"/>
  <elasticity young="1e3" poisson=".1" damping=".1" thickness=".01" elastic2d="both"/>"""


def _soft(world: str, rest: str = "") -> str:
    return f'<mujoco><option integrator="Euler"/><worldbody>{world}</worldbody>{rest}</mujoco>'


@pytest.mark.parametrize("scale", _SCALES)
@pytest.mark.parametrize("parts", ["", _SHELL], ids=["bare", "shell"])
def test_flexes(scale, parts):
    flex = _FLEX.format(body=_ALL, parts=parts)
    flex = flex if not parts else flex.split("<equality>")[0]
    assert_agrees(_soft(f"<frame {scale}>{''.join(_VERTICES)}</frame>", flex))


_SHARED = {
    "frames of their own": "".join(
        f'<frame scale="{i + 1}">{v}</frame>' for i, v in enumerate(_VERTICES)
    ),
    "frames in a frame": '<frame scale="2">'
    + "".join(f'<frame scale="2">{vertex}</frame>' for vertex in _VERTICES)
    + "</frame>",
    "a body in the frame": f'<frame scale="2"><body>{"".join(_VERTICES)}</body></frame>',
}


@pytest.mark.parametrize("name", _SHARED)
def test_a_flex_has_the_scale_that_its_bodies_share(name):
    assert_agrees(_soft(_SHARED[name], _FLEX.format(body=_ALL, parts="")))


_GRID = '<flexcomp name="c" type="grid" spacing=".1 .1 .1" radius=".01" pos="1 0 0" mass="2"'
_COMPS = {
    "cloth": _GRID + ' count="3 3 1" dim="2"><edge equality="true"/></flexcomp>',
    "pinned": _GRID
    + ' count="3 3 1" dim="2"><pin id="0 1"/><elasticity young="1e3" thickness=".01"'
    ' elastic2d="both"/></flexcomp>',
    "rod": _GRID + ' count="4 1 1" dim="1"><elasticity young="1e3"/><pin id="0"/></flexcomp>',
}


@pytest.mark.parametrize("scale", [_SCALES[0], SCALE])
@pytest.mark.parametrize("name", _COMPS)
def test_bodies_of_a_flexcomp_have_the_scale_of_the_body_it_is_in(name, scale):
    comp, place = _COMPS[name], 'pos="1 2 3" euler="10 20 30"'
    assert_agrees(_soft(f'<frame {scale}><body name="q" pos="1 2 3">{comp}</body></frame>'))
    assert_agrees(_soft(f'<body name="q"><frame {place} {scale}>{comp}</frame></body>'))
    inner = f'<frame {place} {scale}><frame pos="3 2 1">{comp}</frame></frame><body/>'
    assert_agrees(_soft(f'<frame scale="3"><body name="q" pos="1 2 3">{inner}</body></frame>'))


@pytest.mark.parametrize("simpler", ["fusestatic", "discardvisual"])
def test_a_simpler_tree_weighs_what_its_stretched_meshes_did(simpler):
    geom = '<geom type="mesh" mesh="m" euler="20 30 40" contype="0" conaffinity="0"/>'
    assert_agrees(
        f"""<mujoco><compiler {simpler}="true"/>
        <asset><mesh name="m" vertex="0 0 0 1 0 0 0 2 0 0 0 4"/></asset>
        <worldbody><body>{_POINT}<freejoint/>
        <frame {SCALE} euler="10 20 30"><body euler="30 40 50">{geom}</body></frame>
        </body></worldbody></mujoco>""",
        skip=_HULL,
    )


_BONES = "".join(
    f'<bone body="{body}" bindpos="1 2 3" bindquat="1 .2 .3 .4" vertid="0 1 2" vertweight="1 1 1"/>'
    for body in "ab"
)
_SKIN = f"""<deformable><skin name="s" inflate=".1" vertex="1 0 0 0 1 0 0 0 1" face="0 1 2">
  {_BONES}</skin></deformable>"""


def _limb(name: str, turn: str = "") -> str:
    return f'<body name="{name}" pos="1 0 0" {turn}>{_POINT}<joint type="ball"/></body>'


@pytest.mark.parametrize("scale", [_SCALES[0], SCALE])
@pytest.mark.parametrize("turn", ["", 'euler="30 20 10"'])
def test_skins(scale, turn):
    assert_agrees(_soft(f"<frame {scale}>{_limb('a', turn)}{_limb('b', turn)}</frame>", _SKIN))


def test_bones_of_a_skin_have_one_scale():
    turned = _limb("b", 'euler="0 0 90"')
    for world in (
        f'<frame scale="2">{_limb("a")}</frame>{_limb("b")}',
        f"<frame {SCALE}>{_limb('a')}{turned}</frame>",
    ):
        assert_refused(_soft(world, _SKIN), "its bones have different scales")


def test_a_skin_of_a_file():
    bones = b"".join(
        name.ljust(40, b"\0")
        + np.float32([1, 2, 3, 1, 0.2, 0.3, 0.4]).tobytes()
        + np.int32([3, 0, 1, 2]).tobytes()
        + np.float32([1, 1, 1]).tobytes()
        for name in (b"a", b"b")
    )
    data = struct.pack("<4i", 3, 0, 1, 2) + np.float32([1, 0, 0, 0, 1, 0, 0, 0, 1]).tobytes()
    data += np.int32([0, 1, 2]).tobytes() + bones
    world = f"<frame {SCALE}>{_limb('a')}{_limb('b')}</frame>"
    text = _soft(world, '<asset><skin file="s.skn" inflate=".1"/></asset>')
    assert_agrees(text, files={"s.skn": data})


_PLUGINS = """<extension><plugin plugin="mujoco.pid"/>
  <plugin plugin="mujoco.sensor.touch_grid"/></extension>"""
_LIMB = f'<frame scale="2">{_limb("b")[:-7]}<site name="s"/></body></frame>'


def test_plugins_are_not_scaled():
    grid = """<sensor><plugin plugin="mujoco.sensor.touch_grid" objtype="site" objname="s">
      <config key="size" value="2 2"/><config key="fov" value="45 45"/></plugin></sensor>"""
    assert_refused(_soft(_LIMB, _PLUGINS + grid), "a plugin sensor cannot be scaled")
    pid = """<actuator><plugin plugin="mujoco.pid" site="s"><config key="kp" value="1"/></plugin>
      </actuator>"""
    assert_refused(_soft(_LIMB, _PLUGINS + pid), "scaling='geometry'")
