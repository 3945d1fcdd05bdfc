"""Every spelling of a pose, and frames around it, give MuJoCo's numbers."""

import pytest
from compile.oracle import assert_agrees

SPELLINGS = [
    'quat="1 2 3 4"',
    'quat="-1 0 0 0"',
    'axisangle="1 2 3 40"',
    'euler="10 20 30"',
    'xyaxes="1 2 0 -1 3 1"',
    'xyaxes="-1 0 0 0 1 0"',
    'xyaxes="1 0 0 0 -1 0"',
    'zaxis="1 2 3"',
    'zaxis="0 0 1"',
    'zaxis="0 0 -2"',
]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("compiler", ["", 'angle="radian"', 'eulerseq="ZYX"', 'eulerseq="xYz"'])
def test_spellings(spelling, compiler):
    assert_agrees(f"""
        <mujoco>
          <compiler {compiler}/>
          <worldbody>
            <body pos="1 2 3" {spelling}>
              <freejoint/>
              <geom size=".1" pos="1 0 2" {spelling}/>
              <site pos="0 1 0" {spelling}/>
              <camera pos="0 0 1" {spelling}/>
            </body>
          </worldbody>
        </mujoco>""")


def test_nested_frames():
    assert_agrees("""
        <mujoco>
          <default>
            <default class="small"><geom size=".1"/></default>
          </default>
          <worldbody>
            <frame pos="1 0 0" euler="90 0 0" childclass="small">
              <geom/>
              <frame pos="0 2 0" zaxis="1 1 0">
                <body name="a" pos="0 0 3" euler="0 10 0">
                  <frame quat="1 1 0 0" pos="0 0 .2">
                    <joint axis="1 2 3" pos="1 0 0"/>
                    <geom type="capsule" fromto="0 0 0 1 0 1"/>
                    <site pos="1 2 3"/>
                    <camera/>
                    <light dir="1 2 3" pos="1 1 1"/>
                  </frame>
                </body>
                <site name="s"/>
              </frame>
            </frame>
            <body name="b"><geom size="1"/></body>
          </worldbody>
        </mujoco>""")


@pytest.mark.parametrize("kind", ["capsule", "cylinder", "box", "ellipsoid"])
@pytest.mark.parametrize("ends", ["0 0 0 0 0 1", "0 0 0 0 0 -1", "1 2 3 3 2 1", "0 1 0 0 0 0"])
def test_fromto(kind, ends):
    assert_agrees(f"""
        <mujoco>
          <worldbody>
            <body>
              <geom type="{kind}" size=".1 .5" fromto="{ends}"/>
              <site type="{kind}" size=".1" fromto="{ends}"/>
            </body>
          </worldbody>
        </mujoco>""")


@pytest.mark.parametrize(
    "own", ["", 'quat="0 1 0 0"', 'euler="0 0 30"', 'axisangle="1 0 0 20"', 'zaxis="1 0 0"']
)
def test_strongest_layer_gives_the_orientation(own):
    assert_agrees(f"""
        <mujoco>
          <default><geom size=".1" euler="90 0 0"/></default>
          <worldbody><geom {own}/></worldbody>
        </mujoco>""")
