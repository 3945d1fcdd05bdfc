"""Keyframes and custom fields equal MuJoCo's."""

import pytest
from compile.oracle import assert_agrees, assert_refused


def model(keys="", custom="", size="", joint=""):
    return f"""
        <mujoco>
          <size {size}/>
          <worldbody>
            <body name="a">
              <joint name="j" ref="20" springref="30" {joint}/><geom name="g1" size=".1"/>
              <body name="b" pos="1 1 1">
                <joint name="ball" type="ball" springyield="9"/><geom size=".1"/>
              </body>
            </body>
            <body name="c" pos="1 2 3" euler="10 20 30"><freejoint/><geom size=".1"/></body>
            <body mocap="true" pos="1 2 3" euler="10 0 0"/>
            <body mocap="true" pos="4 5 6"/>
          </worldbody>
          <tendon><fixed springyield=".1"><joint joint="j" coef="2"/></fixed></tendon>
          <actuator>
            <motor joint="j"/><intvelocity joint="j"/><orientation joint="ball" input="quat"/>
          </actuator>
          <custom>{custom}</custom>
          <keyframe>{keys}</keyframe>
        </mujoco>"""


@pytest.mark.parametrize(
    "keys",
    [
        "",
        "<key/>",
        '<key name="x" time="3"/><key qpos="1"/><key qvel="1 2 3 4 5 6 7 8 9 10"/>',
        '<key qpos="1 2 0 0 0 7 8 9 3 0 4 0" act="3" ctrl="1 2 3"/>',
        '<key qpos="1 0 0 0 0 7 8 9 0 0 0 0"/>',
        '<key mpos="1 2 3" mquat="1 1 0 0"/><key mquat="1 1 0 0 0 2 0 0"/>',
        '<key mpos="9 8"/><key mpos="9 8 7 6 5"/><key mquat="9 8 7"/><key mquat="9 8 7 6 5"/>',
        '<key plastic="1"/><key plastic="1 2 3 4 5 6"/>',
    ],
)
def test_keys(keys):
    assert_agrees(model(keys))
    assert_agrees(model(keys, size='nkey="4"', joint='springyield="3"'))


@pytest.mark.parametrize("attr", ["qpos", "qvel", "act", "ctrl", "mpos", "mquat", "plastic"])
def test_too_many_numbers_are_refused(attr):
    assert_refused(model(f'<key {attr}="{"1 " * 20}"/>'), attr, "20 numbers")


@pytest.mark.parametrize(
    "custom",
    [
        '<numeric name="x" data="1 2 3"/><numeric name="y" data="1 2" size="5"/>'
        '<numeric name="z" size="2"/>',
        '<text name="t" data="hello"/><text name="u" data="wörld"/>',
        '<tuple name="t"><element objtype="body" objname="a"/>'
        '<element objtype="geom" objname="g1" prm="3"/>'
        '<element objtype="xbody" objname="b"/></tuple>',
        '<tuple name="t"><element objtype="tuple" objname="u"/></tuple>'
        '<tuple name="u"><element objtype="numeric" objname="x"/></tuple>'
        '<numeric name="x" data="1"/>',
    ],
)
def test_custom(custom):
    assert_agrees(model(custom=custom))


@pytest.mark.parametrize(
    ("custom", "word"),
    [
        ('<numeric name="x"/>', "empty"),
        ('<numeric name="x" data="1 2 3" size="2"/>', "size"),
        ('<text name="t" data=""/>', "empty"),
        ('<tuple name="t"/>', "empty"),
        ('<tuple name="t"><element objtype="body" objname="q"/></tuple>', "names no body"),
        ('<numeric name="x" data="1"/><numeric name="x" data="1"/>', "exists already"),
    ],
)
def test_custom_refused(custom, word):
    assert_refused(model(custom=custom), word)
