"""Frames that scale what is inside them: everything follows as the units of MuJoCo say."""

import pytest
from compile.oracle import assert_agrees, assert_refused

# The order of the vertices of a convex hull is a matter of the program that makes it.
_HULL = ("mesh_graph", "mesh_extrema")

# The virtual masses of an ellipsoid have the error of MuJoCo's quadrature, see test_geoms.py.
_FLUID = ("geom_fluid",)

_PASSIVE = 'stiffness="3 2 1" damping="2 1 .5" armature=".1" frictionloss=".2" ref=".1"'
_LIMITS = 'range="-1 1" margin=".01" springref=".2" actuatorfrcrange="-3 3"'
_SOLVER = 'solimplimit=".9 .95 .001 .5 2" solimpfriction=".9 .95 .001 .5 2"'
_SOFT = 'solimp=".9 .95 .001 .5 2" solref="-100 -10"'

_TREE = f"""
  <site name="w"/>
  <body name="o" pos="0 0 5"><joint name="oj"/><geom size=".1"/><site name="os"/></body>
  <frame pos="1 2 3" euler="0 0 30" SCALE><frame pos=".1 0 0">
    <body name="b" pos="1 0 0" euler="0 10 0">
      <joint name="h" pos=".1 .2 .3" solreflimit="-100 -10" {_PASSIVE} {_LIMITS} {_SOLVER}/>
      <joint name="s" type="slide" axis="1 0 0" {_PASSIVE} {_LIMITS} {_SOLVER}/>
      <geom name="g" type="box" size=".1 .2 .3" pos="0 0 .2" margin=".01" gap=".002" {_SOFT}
        friction="1 .005 .0001" adhesion=".3" surfacevel="1 2 3 .1 .2 .3"/>
      <geom type="capsule" fromto="0 0 0 1 1 1" size=".1" mass="2"/>
      <geom type="ellipsoid" size=".1 .2 .3" fluidshape="ellipsoid"/>
      <site name="s1" pos="1 2 3" size=".1 .2 .3" type="box"/><site/>
      <camera pos="1 1 1" ipd=".1" projection="orthographic" fovy="3"/>
      <camera focal=".01 .01" sensorsize=".02 .03" resolution="9 9" principal=".001 .002"/>
      <light pos="1 1 1" range="3" attenuation="1 2 3" bulbradius=".1"/>
      <body name="i" pos="0 0 1"><inertial pos=".1 .2 .3" mass="2" diaginertia="1 1.1 1.2"/>
        <joint name="bl" type="ball" stiffness="1" damping="2" range="0 1" margin=".01"
          armature=".1" frictionloss=".1"/><site name="s3"/></body>
    </body></frame>
    <body name="m" mocap="true" pos="1 1 1"/><geom name="wg" size=".3" pos="1 0 0"/>
  </frame>
"""

_SPRING = 'range="0 2" stiffness="3" damping="2" frictionloss=".1"'
_TENDONS = f"""<tendon>
  <spatial name="ts" {_SPRING} width=".01" springlength="1" margin=".01" armature=".1">
    <site site="s1"/><site site="s3"/></spatial>
  <spatial name="tm" {_SPRING} springlength="1"><site site="s1"/><site site="os"/></spatial>
  <fixed name="tf" {_SPRING}><joint joint="h" coef="2"/></fixed>
  <fixed {_SPRING}><joint joint="s" coef="2"/></fixed>
  <fixed {_SPRING}><joint joint="s" coef="2"/><joint joint="oj" coef="3"/></fixed>
</tendon>"""

_EQUALITIES = f"""<equality>
  <connect body1="b" body2="i" anchor=".1 .2 .3" {_SOFT}/>
  <connect body1="b" body2="o" anchor=".1 .2 .3"/><connect body1="o" body2="b" anchor=".1 .2 .3"/>
  <connect site1="s1" site2="os"/><connect site1="os" site2="s1"/>
  <weld body1="b" body2="i" relpose=".1 .2 .3 1 0 0 0" torquescale="2" anchor=".1 .1 .1"/>
  <weld body1="b" body2="o"/><weld body1="o" body2="b" relpose="1 2 3 1 0 0 0" anchor="1 2 3"/>
  <joint joint1="s" joint2="h" polycoef="1 2 3 4 5"/>
  <joint joint1="h" joint2="s" polycoef="1 2 3 4 5"/>
  <joint joint1="s" polycoef="1 2 3 4 5"/>
  <joint joint1="s" joint2="oj" polycoef="1 2 3 4 5"/>
  <joint joint1="oj" joint2="s" polycoef="1 2 3 4 5"/>
  <tendon tendon1="ts" polycoef="1 2 3 4 5"/>
</equality>"""

_RANGES = 'forcerange="-1 1" ctrlrange="-1 1"'
_ACTUATORS = f"""<actuator>
  <motor joint="h" gear="2" {_RANGES}/><motor joint="s" gear="2" {_RANGES}/>
  <position joint="h" kp="2" kv="1" {_RANGES}/><position joint="s" kp="2" kv="1" {_RANGES}/>
  <velocity joint="s" kv="2" ctrlrange="-1 1"/>
  <intvelocity joint="s" kp="2" actrange="-1 1" ctrlrange="-1 1"/>
  <damper joint="s" kv="2" ctrlrange="0 1"/>
  <cylinder joint="s" timeconst="2" bias="1 2 3" area="2"/>
  <muscle joint="s" force="10" scale="100" lengthrange=".5 1"/>
  <muscle joint="s" lengthrange=".5 1"/>
  <adhesion body="b" gain="2" ctrlrange="0 1"/>
  <motor tendon="ts" gear="2"/><motor tendon="tm" gear="2"/>
  <motor site="s1" gear="1 2 3 4 5 6"/><motor site="s1" refsite="w" gear="1 2 3 4 5 6"/>
  <general joint="s" gainprm="1 2 3" biasprm="1 2 3" biastype="affine" gaintype="affine"
    dyntype="filter" dynprm="2" armature=".3" damping="1 2 3"/>
  <general joint="s" gainprm="1 2 -3" biasprm="1 2 -3" biastype="affine" gaintype="affine"/>
  <general jointinparent="bl" gear="1 2 3"/>
  <position joint="s" kp="2" dampratio="1"/><position joint="s" inheritrange="1" timeconst=".1"/>
  <intvelocity joint="s" inheritrange=".5"/>
  <pid joint="s" kp="2" kv=".5" ki="1" imax=".2" slewmax="3" posrange="-1 1" velrange="-2 2"
    ffrange="-3 3" input="pos vel ff"/>
  <orientation joint="bl" kp="2" kv="3"/>
</actuator>"""

_OF_SITE = ("touch", "accelerometer", "force", "torque", "velocimeter", "gyro", "rangefinder")
_SENSORS = "".join(
    (
        "<sensor>",
        *(f'<{tag} site="s1" cutoff="1"/>' for tag in _OF_SITE),
        '<jointpos joint="s" cutoff="1" noise="1"/><jointpos joint="h" cutoff="1"/>',
        '<framepos objtype="site" objname="s1" reftype="site" refname="os" cutoff="1"/>',
        '<distance geom1="g" geom2="wg" cutoff="1"/><distance body1="b" body2="o" cutoff="1"/>',
        '<normal body1="o" body2="b" cutoff="1" noise="1"/><tendonpos tendon="ts" cutoff="1"/>',
        '<actuatorfrc actuator="a1" cutoff="1"/><actuatorfrc actuator="a2" cutoff="1"/>',
        '<subtreeangmom body="b" cutoff="1"/><e_kinetic cutoff="1"/><clock cutoff="1"/>',
        "</sensor>",
    )
)

_PAIRS = f"""<contact><pair geom1="g" geom2="wg" margin=".01" gap=".001" {_SOFT} adhesion=".2"/>
  <exclude body1="b" body2="i"/></contact>"""

_SCALES = [
    'scale="2"',
    'scale=".5" scaling="geometry"',
    'massscale="3"',
    'scale="3" massscale=".7"',
    'scale="3" massscale=".7" scaling="geometry"',
    'massscale="2" scaling="geometry"',
]


@pytest.mark.parametrize("scale", _SCALES)
@pytest.mark.parametrize(
    "rest", ["", _TENDONS + _EQUALITIES, _PAIRS], ids=["tree", "ties", "pairs"]
)
def test_the_tree_and_its_ties(rest, scale):
    text = f"<mujoco><worldbody>{_TREE}</worldbody>{rest}</mujoco>"
    assert_agrees(text.replace("SCALE", scale), skip=_FLUID)


@pytest.mark.parametrize("scale", _SCALES)
def test_actuators_sensors_and_keyframes(scale):
    actuators = _ACTUATORS.replace("<motor", '<motor name="a1"', 1)
    actuators = actuators.replace('<motor joint="s"', '<motor name="a2" joint="s"', 1)
    ones = " ".join(["1"] * 27)
    key = f'<keyframe><key qpos=".1 .2 .3 1 0 0 0" qvel="1 1 1 1 1 1" ctrl="{ones}"/></keyframe>'
    text = f"<mujoco><worldbody>{_TREE}</worldbody>{_TENDONS}{actuators}{_SENSORS}{key}</mujoco>"
    assert_agrees(text.replace("SCALE", scale), skip=_FLUID)


_BALL = '<body pos="1 1 1"><joint/><geom size="1"/></body>'
_MESH = '<mesh name="m" vertex="0 0 0 1 0 0 0 2 0 0 0 4" scale="1 2 1" refpos="1 2 3"/>'
_OF_MESH = '<body><joint/><geom type="mesh" mesh="m"/></body>'
_HFIELD = '<hfield name="h" nrow="2" ncol="2" size="1 2 3 4" elevation="0 1 2 3"/>'
_OF_HFIELD = '<geom type="hfield" hfield="h"/>'


def _in(scale: str, inside: str) -> str:
    return f"<frame {scale}>{inside}</frame>"


_WORLDS = {
    "nested": _in(
        'scale="2" pos="1 0 0"',
        _in(
            'scale="3" scaling="geometry" pos="0 1 0"',
            '<body pos="1 1 1"><joint damping="1" armature=".1"/><geom size="1"/>'
            + _in(
                'massscale=".5" pos="0 1 0"',
                f'<body><joint type="slide" {_PASSIVE}/><geom size="1"/></body>',
            )
            + "</body>",
        ),
    ),
    "free": _in('scale="2"', '<body pos="1 1 1"><freejoint/><geom size="1"/></body>'),
    "free with damping": _in(
        'scale="2"', f'<body><joint type="free" {_PASSIVE}/><geom size="1"/></body>'
    ),
    "springdamper": _in(
        'scale="2" scaling="geometry"',
        '<body><joint springdamper="1 .5"/><geom size="1"/></body>',
    ),
    "shells": _in(
        'scale="2" massscale="5"',
        '<body><joint/><geom size="1" shellinertia="true"/><geom size="1" density="40"/></body>',
    ),
    "plane": _in('scale="2"', '<geom type="plane" size="1 2 3" pos="0 0 1"/>'),
    "copies": _in('scale="2"', f'<replicate count="3" offset="1 0 0">{_BALL}</replicate>'),
    "mesh": _in('scale="2"', _OF_MESH + _OF_MESH),
    "meshes of two sizes": _in('scale="2"', _OF_MESH) + _in('scale="3"', _OF_MESH) + _OF_MESH,
    "the same mesh as it is": _OF_MESH + _in('scale="2"', _OF_MESH),
    "fitted": _in('scale="2"', '<body><joint/><geom type="box" mesh="m"/></body>'),
    "height fields": _in('scale="2"', _OF_HFIELD) + _OF_HFIELD,
    "explicit inertia": _in(
        'scale="2"',
        '<body><joint/><inertial pos="1 2 3" mass="2" fullinertia="1 2 2 .1 .1 .1"/></body>',
    ),
    "one": _in('scale="1 1 1"', _BALL),
}


@pytest.mark.parametrize("name", _WORLDS)
def test_worlds(name):
    assets = f"<asset>{_MESH}{_HFIELD}</asset>"
    assert_agrees(f"<mujoco>{assets}<worldbody>{_WORLDS[name]}</worldbody></mujoco>", skip=_HULL)


def test_keyframes_of_free_joints():
    body = '<body pos="1 1 1"><freejoint/><geom size="1"/></body>'
    key = '<keyframe><key qpos="1 2 3 1 0 0 0" qvel="1 2 3 4 5 6"/></keyframe>'
    assert_agrees(f"<mujoco><worldbody><frame scale='2'>{body}</frame></worldbody>{key}</mujoco>")


def test_classes_and_other_options():
    text = (
        '<mujoco><compiler fusestatic="true" discardvisual="true"/><default><default class="a">'
        '<joint type="slide" stiffness="3" range="-1 1"/><geom type="capsule" size=".1 .3"'
        ' density="30" friction="2"/></default></default><worldbody><frame scale="2">'
        '<body><joint class="a"/><geom class="a"/><body pos="1 0 0"><geom size=".2"/></body>'
        '<geom size="1" contype="0" conaffinity="0"/></body></frame></worldbody></mujoco>'
    )
    assert_agrees(text)


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        ('scale="0"', "must be positive"),
        ('scale="-1"', "must be positive"),
        ('massscale="-1"', "must not be negative"),
        ('scale="1 2"', "1 or 3 numbers"),
        ('scale="1 2 3"', "stretches the axes differently"),
    ],
)
def test_refusals(scale, words):
    assert_refused(f"<mujoco><worldbody>{_in(scale, _BALL)}</worldbody></mujoco>", words)


def test_a_motor_with_its_electronics():
    text = (
        "<mujoco><worldbody>"
        + _in("SCALE", '<body><joint name="j"/><geom size="1"/></body>')
        + '</worldbody><actuator><dcmotor joint="j" motorconst=".1" resistance="1"/></actuator>'
        "</mujoco>"
    )
    assert_refused(text.replace("SCALE", 'scale="2"'), "scaling='geometry'")
    assert_agrees(text.replace("SCALE", 'scale="2" scaling="geometry"'))
