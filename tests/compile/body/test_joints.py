"""Joints and dofs equal MuJoCo's."""

import pytest
from compile.oracle import assert_agrees

JOINTS = [
    'axis="1 1 0" pos="1 2 3" range="-90 90" margin="10" ref="30" springref="45"',
    'type="slide" axis="0 1 1" pos="1 2 3" range="-90 90" ref="30" springref="45"',
    'type="ball" axis="1 1 0" pos="1 2 3" range="0 90" ref="30"',
    'type="ball" limited="true"',
    'type="free" axis="1 1 0" pos="1 2 3" range="0 90" ref="3" stiffness="1"',
    'type="free" armature="1" damping="2" frictionloss="3" limited="true" range="0 1"',
    'stiffness="1 2 3" damping="4 5 6" armature=".1" frictionloss=".2"',
    'stiffness="1 2" damping="4"',
    'type="ball" stiffness="1 2 3" damping="4 5 6" armature=".1" frictionloss=".2"',
    'springyield="20" stiffness="1"',
    'type="slide" springyield="20"',
    'type="ball" springyield="20"',
    'actuatorfrcrange="-1 2" actuatorgravcomp="true"',
    'type="slide" actuatorfrcrange="-1 2" actuatorfrclimited="false"',
    'type="ball" actuatorfrcrange="-1 2"',
    'range="-30 60" limited="false"',
    'range="1 1"',
    'range="1 0"',
    'solreflimit=".1 .5" solimplimit=".8 .9" solreffriction="-10 -1" solimpfriction="0 .9 .1 .4 3"',
    'group="3" user="1 2 3"',
    'springdamper=".5 .7" armature=".1" stiffness="3" damping="4 5 6"',
    'type="slide" springdamper=".5 .7"',
    'type="ball" springdamper=".5 .7" armature=".1"',
    'type="free" springdamper=".5 .7" armature=".1"',
]


@pytest.mark.parametrize("joint", JOINTS)
@pytest.mark.parametrize("angle", ["degree", "radian"])
def test_joint(joint, angle):
    assert_agrees(f"""
        <mujoco>
          <compiler angle="{angle}"/>
          <worldbody>
            <body pos="0 0 1" euler=".1 .2 .3">
              <joint name="j" {joint}/>
              <geom type="box" size=".1 .2 .3" pos="0 .2 0"/>
            </body>
          </worldbody>
        </mujoco>""")


def test_several_joints_in_a_body_and_free_joints_take_no_defaults():
    assert_agrees("""
        <mujoco>
          <default>
            <joint damping="1" armature="2" stiffness="3" frictionloss="4" margin="5"/>
            <default class="soft"><joint damping=".5"/></default>
          </default>
          <worldbody>
            <body name="free"><freejoint name="f" group="2"/><geom size=".1"/></body>
            <body name="arm" childclass="soft">
              <joint type="slide" axis="1 0 0"/>
              <joint type="slide" axis="0 1 0" class="main"/>
              <joint type="ball" range="0 1"/>
              <geom size=".1"/>
              <body pos="0 0 1"><joint/><joint axis="1 0 0" damping="7"/><geom size=".1"/></body>
            </body>
          </worldbody>
        </mujoco>""")


def test_autolimits_off():
    assert_agrees("""
        <mujoco>
          <compiler autolimits="false"/>
          <worldbody>
            <body>
              <joint range="-1 1" limited="true" actuatorfrcrange="-1 1" actuatorfrclimited="true"/>
              <joint axis="1 0 0"/>
              <geom size=".1"/>
            </body>
          </worldbody>
        </mujoco>""")
