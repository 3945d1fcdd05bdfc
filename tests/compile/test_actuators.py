"""Actuators equal MuJoCo's: every shortcut, what it inherits, transmissions, ranges, refusals."""

import itertools

import numpy as np
import pytest
from compile.oracle import assert_agrees, assert_refused

from jaxsim.compile import compile_string
from jaxsim.errors import ModelError


def model(actuators, *, defaults="", joint="", tendons="", compiler=""):
    """A hinge, a ball joint, a slider-crank and a free body, to be acted on."""
    return f"""
        <mujoco>
          <compiler {compiler}/>
          <default>{defaults}</default>
          <worldbody>
            <site name="world" pos=".1 .2 .3" euler="10 20 30"/>
            <body name="arm" pos="0 0 .1">
              <joint name="j" {joint}/>
              <geom type="box" size=".1 .2 .3" mass="1"/>
              <site name="s" pos="0 .3 0"/>
              <body name="hand" pos=".3 0 0">
                <joint name="ball" type="ball"/>
                <geom type="box" size=".1 .2 .3" mass="2" pos=".1 .1 0"/>
                <site name="grip" pos=".1 .2 .3" euler="30 20 30"/>
              </body>
            </body>
            <body name="slider" pos="0 0 .5">
              <joint name="slide" type="slide" axis="0 0 1" ref=".3"/>
              <geom size=".1"/>
              <site name="slider"/>
            </body>
            <body name="free" pos="1 0 0" euler="0 30 0">
              <freejoint name="free"/>
              <geom type="box" size=".1 .2 .1"/>
              <site name="thrust" pos="0 0 .1" euler="30 0 0"/>
            </body>
          </worldbody>
          <tendon>
            <fixed name="t" range="1 3" limited="true">
              <joint joint="j" coef="2"/><joint joint="slide" coef="3"/>
            </fixed>
            <spatial name="rope"><site site="world"/><site site="grip"/></spatial>
            {tendons}
          </tendon>
          <actuator>{actuators}</actuator>
        </mujoco>"""


MOTOR = 'motorconst="2" resistance="3"'

SHORTCUTS = [
    "<general/>",
    '<general dyntype="filter" dynprm=".3" gaintype="affine" gainprm="1 2 3" biastype="affine"'
    ' biasprm="4 5"/>',
    '<general dyntype="integrator" actrange="-1 1" actearly="true"/>',
    '<general gaintype="pid" biastype="affine" dyntype="pid" biasprm="0 -1" gainprm="2"'
    ' dynprm="1 3"/>',
    '<general input="vel"/>',
    '<general dyntype="user" actdim="3"/>',
    "<motor/>",
    '<motor gear="3" ctrlrange="-1 1" forcerange="-2 2" group="4" user="1 2"/>',
    "<position/>",
    '<position kp="10" kv="3"/>',
    '<position kp="10" dampratio=".7"/>',
    '<position kp="10" timeconst=".2"/>',
    '<position kp="0" dampratio="1"/>',
    '<velocity kv="4"/>',
    '<intvelocity kp="4" kv="2" actrange="-1 2"/>',
    '<intvelocity kp="4" dampratio="1" gear="3"/>',
    '<damper kv="2" ctrlrange="0 1"/>',
    '<cylinder timeconst=".3" area="2" bias="1 2 3"/>',
    '<cylinder diameter=".3" area="2"/>',
    '<muscle lengthrange=".1 .9"/>',
    '<muscle lengthrange=".1 .9" timeconst=".2 .3" tausmooth=".1" range=".5 1.5" force="9"'
    ' scale="8" lmin=".4" lmax="1.7" vmax="2" fpmax="3" fvmax="4"/>',
    "<pid/>",
    '<pid kp="3" kv="4" ki="5" imax="6" slewmax="7" input="pos vel ff" posrange="-1 1"'
    ' velrange="-2 2" ffrange="-3 3"/>',
    '<pid input="vel" ctrlrange="0 1" velrange="0 3" dampratio="1"/>',
    '<pid imax="2"/>',
    f"<dcmotor {MOTOR}/>",
    '<dcmotor motorconst="2 8" resistance="3"/>',
    '<dcmotor nominal="12 3 4"/>',
    '<dcmotor nominal="12 3 4" motorconst="5" resistance="7"/>',
    '<dcmotor resistance="3" input="none"/>',
    f'<dcmotor {MOTOR} inductance=".5" saturation="0 6 9"/>',
    f'<dcmotor {MOTOR} inductance="0 .5" cogging="1 2 3" lugre="1 2 3 4 5"/>',
    f'<dcmotor {MOTOR} thermal="1 0 4 .1 20 25" lugre="0 2 3 4 5"/>',
    f'<dcmotor {MOTOR} controller="1 2 3 4 5 6" input="pos vel ff voltage" ctrlrange="-1 1"/>',
    '<motor nsample="3" delay=".01" interp="cubic"/>',
    '<motor damping="1 2 3" armature=".2" gear="3"/>',
]


@pytest.mark.parametrize("actuator", SHORTCUTS)
def test_shortcut(actuator):
    assert_agrees(model(actuator.replace("/>", ' name="a" joint="j"/>')))


DEFAULTS = [
    '<general gainprm="5 6 7" biasprm="1 2 3" dynprm="4 5"/>',
    '<general dyntype="integrator" gaintype="affine" biastype="affine" gainprm="5 6 -7"'
    ' biasprm="1 2 -3"/>',
    '<general dyntype="filterexact" gainprm="5" biasprm="0 0 -3" dynprm="4" actearly="true"/>',
    '<motor ctrlrange="0 1" forcerange="0 2" gear="3"/>',
    '<position kp="10" kv="3" timeconst=".1"/>',
    '<velocity kv="7"/>',
    '<intvelocity kp="4"/>',
    '<damper kv="4" ctrlrange="0 1"/>',
    '<cylinder area="3" timeconst="9" bias="1 2 3"/>',
    '<muscle force="5"/>',
    '<pid kp="4" ki="2" posrange="0 1"/>',
    '<dcmotor motorconst="1" resistance="2" saturation="3"/>',
    '<position kp="10"/><velocity kv="5"/>',
    '<position kp="10"/><general gainprm="5"/>',
    '<position kp="10" kv="2"/><default class="a"><motor/></default>',
    '<position kp="10" kv="2"/><default class="a"><intvelocity/></default>',
    '<position kp="10" kv="2"/><default class="a"><general gaintype="affine"/></default>',
    '<general gainprm="5"/><default class="a"><position/></default>',
]
INHERITORS = (
    "general motor position velocity intvelocity damper cylinder muscle pid dcmotor".split()
)
NEEDED = {"damper": 'ctrlrange="0 3"', "muscle": 'lengthrange=".1 .9"', "dcmotor": MOTOR}


@pytest.mark.parametrize("defaults", DEFAULTS)
def test_what_a_shortcut_inherits_from_the_actuator_of_its_class(defaults):
    needs_range = "<muscle" in defaults
    for tag in INHERITORS:
        if tag == "damper" and "-7" not in defaults and "affine" in defaults:
            continue  # a gain that is no damping: refused
        name = 'class="a"' if 'class="a"' in defaults else ""
        extra = NEEDED.get(tag, NEEDED["muscle"] if needs_range else "")
        assert_agrees(model(f'<{tag} {name} joint="j" {extra}/>', defaults=defaults))


TRANSMISSIONS = [
    'joint="slide" gear="2"',
    'joint="ball" gear="1 2 3"',
    'jointinparent="ball" gear="1 2 3" armature=".1"',
    'joint="free" gear="1 2 3 4 5 6" armature=".1"',
    'jointinparent="free" gear="1 2 3 4 5 6"',
    'tendon="t" gear="2" armature=".1" damping="1"',
    'tendon="rope" gear="2" armature=".1"',
    'cranksite="s" slidersite="slider" cranklength=".7" gear="2"',
    'cranksite="s" slidersite="slider" cranklength=".1"',
    'site="thrust" gear="1 2 3 4 5 6"',
    'site="grip" refsite="world" gear="1 2 3 4 5 6"',
    'site="grip" refsite="s" gear="1 2 3 4 5 6"',
]


@pytest.mark.parametrize("transmission", TRANSMISSIONS)
def test_transmission(transmission):
    assert_agrees(model(f"<general {transmission}/>"))


ORIENTATIONS = [
    '<orientation joint="ball"/>',
    '<orientation joint="ball" kp="3" dampratio="1" ctrlrange="-1 1" forcerange="0 3"/>',
    '<orientation site="grip" refsite="world" kp="3" kv="4" input="quat"/>',
    '<orientation site="grip" refsite="s" dampratio="2" kp="4"/>',
    '<general gaintype="so3" biastype="so3" joint="ball" biasprm="0 -1"'
    ' dyntype="integrator" gear="2"/>',
]


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_orientation_has_three_outputs(orientation):
    assert_agrees(
        model(orientation + '<motor joint="j"/><adhesion body="free" ctrlrange="0 1" gain="3"/>')
    )


def test_several_actuators_on_a_joint_share_its_damping_and_armature():
    assert_agrees(
        model(
            '<motor joint="j" armature=".1"/><motor joint="j"/>'
            '<motor joint="slide" damping="1"/><motor joint="slide" damping="0 1"/>'
            '<motor tendon="t" armature=".2" gear="3"/><motor tendon="rope" damping="1"/>'
        )
    )


@pytest.mark.parametrize(
    "actuator",
    [
        '<position joint="j" inheritrange=".5" gear="2"/>',
        '<position tendon="t" inheritrange="1.2"/>',
        '<intvelocity joint="j" inheritrange=".5"/>',
        '<pid joint="j" inheritrange=".5"/>',
        '<general joint="j" inheritrange=".5" biastype="affine" biasprm="0 -1"/>',
        '<general joint="j" inheritrange=".5" gainprm="2" biastype="affine" biasprm="0 -1"/>',
    ],
)
def test_inheritrange(actuator):
    assert_agrees(model(actuator, joint='range="-90 30"'))


@pytest.mark.parametrize("flag", ["true", "false", "auto"])
@pytest.mark.parametrize("tag", ["motor", "pid", "position"])
def test_limits_are_on_by_flag_or_range(tag, flag):
    attrs = f'ctrllimited="{flag}" forcelimited="{flag}" ctrlrange="0 1" forcerange="-1 1"'
    assert_agrees(model(f'<{tag} joint="j" {attrs}/>'))


@pytest.mark.parametrize(
    ("settings", "attrs"),
    [
        ('uselimit="true"', 'joint="j" gear="2"'),
        ('uselimit="true" useexisting="false"', 'joint="j" lengthrange="1 2"'),
        ('mode="none"', 'joint="j"'),
        ('mode="all" uselimit="true"', 'tendon="t" gear="-2"'),
    ],
)
def test_length_range_from_limits(settings, attrs):
    text = model(f"<muscle {attrs}/>", joint='range="10 20"')
    assert_agrees(text.replace("<compiler />", f"<compiler><lengthrange {settings}/></compiler>"))


REFUSED = [
    ("<motor/>", "joint, jointinparent, tendon"),
    ('<motor joint="jj"/>', "did you mean 'j'"),
    ('<motor joint="j" refsite="s"/>', "refsite"),
    ('<motor joint="j" slidersite="s"/>', "slidersite"),
    ('<motor cranksite="s"/>', "slidersite"),
    ('<motor cranksite="s" slidersite="world"/>', "cranklength"),
    ('<motor site="s" armature="1"/>', "armature"),
    ('<motor joint="j" delay=".1"/>', "nsample"),
    ('<motor joint="j" ctrllimited="true"/>', "ctrlrange"),
    ('<motor joint="j" name="x"/><motor joint="j" name="x"/>', "exists already"),
    ('<position joint="j" kv="1" dampratio="1"/>', "kv and dampratio"),
    ('<position joint="j" kv="-1"/>', "negative"),
    ('<position joint="j" inheritrange="1"/>', "range"),
    ('<position joint="ball" inheritrange="1"/>', "hinge or slide"),
    ('<position joint="j" inheritrange="1" ctrlrange="0 1"/>', "inheritrange"),
    ('<damper joint="j"/>', "ctrlrange"),
    ('<damper joint="j" ctrlrange="-1 1"/>', "negative"),
    ('<adhesion body="arm" ctrlrange="0 1" gain="-1"/>', "gain"),
    ('<muscle joint="j" lengthrange="0 1" range="2 1"/>', "range"),
    ('<muscle joint="j" lengthrange="0 1" lmin="2"/>', "lmin"),
    ('<muscle joint="j" lengthrange="0 1" vmax="0"/>', "vmax"),
    ('<pid joint="j" input="vel" ki="1"/>', "pos"),
    ('<pid joint="j" ki="-1"/>', "no state"),
    ('<general joint="j" dyntype="pid"/>', "gaintype='pid'"),
    ('<general joint="j" gaintype="pid"/>', "biastype='affine'"),
    ('<general joint="j" dyntype="dcmotor"/>', "actearly"),
    ('<general joint="j" gaintype="so3"/>', "both"),
    ('<general joint="j" input="ff"/>', "input"),
    ('<general joint="j" actdim="2"/>', "actdim"),
    ('<general joint="j" actrange="0 1"/>', "dyntype"),
    ('<dcmotor joint="j" resistance="1"/>', "motor constant"),
    ('<dcmotor joint="j" motorconst="1"/>', "resistance"),
    (f'<dcmotor joint="j" {MOTOR} thermal="1"/>', "thermal"),
    (f'<dcmotor joint="j" {MOTOR} controller="1"/>', "pos, vel and ff"),
    ('<orientation joint="j"/>', "ball"),
    ('<orientation site="s"/>', "refsite"),
    ('<orientation joint="ball" forcerange="-1 1"/>', "forcerange"),
]


@pytest.mark.parametrize(("actuator", "word"), REFUSED)
def test_refused(actuator, word):
    assert_refused(model(actuator), word)


def test_two_targets_are_refused_where_mujoco_takes_the_last():
    with pytest.raises(ModelError, match="joint and tendon"):
        compile_string(model('<motor joint="j" tendon="t"/>'))


def test_ranges_need_flags_without_autolimits():
    assert_refused(
        model('<motor joint="j" ctrlrange="0 1"/>', compiler='autolimits="false"'), "ctrllimited"
    )


def test_all_faults_of_the_actuators_come_together():
    text = model('<motor joint="x"/>\n<motor tendon="y"/>\n<motor joint="j" delay="1"/>')
    with pytest.raises(ValueError, match="'x'") as caught:
        compile_string(text)
    assert len(caught.value.problems) == 3


def test_sizes_add_up():
    f = compile_string(
        model('<pid joint="j" ki="1"/><orientation joint="ball"/><motor joint="j"/>')
    ).fields
    assert (f["nactuator"], f["nu"], f["nout"], f["na"]) == (3, 6, 5, 1)
    ends = itertools.accumulate(f["actuator_ctrlnum"])
    np.testing.assert_array_equal(f["actuator_ctrladr"][1:], list(ends)[:-1])
