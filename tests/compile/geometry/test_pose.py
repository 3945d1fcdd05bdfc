"""Every spelling of a pose, and frames around it, give MuJoCo's numbers."""

import numpy as np
import pytest
from compile.oracle import assert_agrees, assert_refused

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


def test_signs_of_quaternions_from_axes():
    """They show in the position of a free body."""
    rng = np.random.default_rng(0)
    axes = [np.linalg.qr(rng.normal(size=(3, 3)))[0][:2] for _ in range(100)]
    axes += [np.round(pair) for pair in axes if abs(np.prod(np.round(pair).sum(1))) == 1]
    axes += [
        sign * np.eye(3)[[a, b]] for a in range(3) for b in range(3) for sign in (1, -1) if a != b
    ]
    bodies = "".join(
        f'<body xyaxes="{" ".join(map(repr, pair.ravel().tolist()))}">'
        '<freejoint/><geom size=".1"/></body>'
        for pair in axes
    )
    assert_agrees(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")


@pytest.mark.parametrize(
    "parts",
    [
        '<body zaxis="0 0 {}"/>',
        '<body axisangle="0 {} 0 1"/>',
        '<body xyaxes="1 0 0 1 {} 0"/>',
        '<geom type="capsule" size="1" fromto="0 0 0 0 0 {}"/>',
        '<body><joint axis="0 0 {}"/><geom size="1"/></body>',
        '<light dir="0 {} 0"/>',
    ],
)
def test_what_is_too_short_for_a_direction(parts):
    assert_agrees(f"<mujoco><worldbody>{parts.format('1.01e-7')}</worldbody></mujoco>")
    assert_refused(f"<mujoco><worldbody>{parts.format('9.9e-8')}</worldbody></mujoco>")


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
