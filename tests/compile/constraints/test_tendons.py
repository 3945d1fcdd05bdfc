"""Tendons, their paths and their lengths equal MuJoCo's."""

import mujoco
import numpy as np
import pytest
from compile.oracle import assert_agrees, assert_refused

from jaxsim.compile.reference.wrap import wrap
from jaxsim.enums import WrapType


def model(tendons, *, defaults="", compiler="", joint="", actuators=""):
    """Two arms with sites, and shapes to wrap around."""
    return f"""
        <mujoco>
          <compiler {compiler}/>
          <default>{defaults}</default>
          <worldbody>
            <site name="top" pos="0 0 1"/>
            <geom name="ball" size=".1" pos="0 .45 .5"/>
            <geom name="rod" type="cylinder" size=".1 .2" pos="0 .5 .5" euler="0 60 0"/>
            <geom name="box" type="box" size=".1 .2 .3" pos="0 5 5"/>
            <body name="arm">
              <joint name="j" ref="10" springref="30" axis="1 0 0" {joint}/>
              <joint name="k" type="slide"/>
              <geom type="box" size=".1 .2 .3"/>
              <site name="s" pos="0 .7 0"/>
              <site name="side" pos="0 1.2 .5"/>
              <site name="core" pos="0 .46 .5"/>
            </body>
            <body name="other" pos="1 1 1">
              <joint name="turn" type="ball"/>
              <geom type="box" size=".1 .2 .3"/>
              <site name="far" pos="0 .3 0"/>
            </body>
          </worldbody>
          <tendon>{tendons}</tendon>
          <actuator>{actuators}</actuator>
        </mujoco>"""


ENDS = '<site site="top"/><site site="s"/>'
FIXED = '<joint joint="j" coef="2"/><joint joint="k" coef="-3"/>'

ATTRIBUTES = [
    "",
    'range="1 2" margin=".1"',
    'range="1 2" limited="false"',
    'range="2 1"',
    'actuatorfrcrange="-1 2"',
    'springlength="1"',
    'springlength="1 2"',
    'springlength="-1"',
    'springlength="-1 3"',
    'springlength="0 0"',
    'stiffness="3 4 5" damping="1 2"',
    'springyield="1" stiffness="3"',
    'armature="1" frictionloss="2"',
    'group="4" user="1 2" name="n"',
    'solreflimit="1 2" solimplimit=".1 .2 .3" solreffriction="3" solimpfriction=".4 .5"',
]


@pytest.mark.parametrize("attributes", ATTRIBUTES)
def test_attributes(attributes):
    assert_agrees(model(f"<spatial {attributes}>{ENDS}</spatial>"))
    assert_agrees(model(f"<fixed {attributes}>{FIXED}</fixed>", joint='springyield="3"'))


PATHS = [
    '<site site="top"/><geom geom="ball"/><site site="s"/>',
    '<site site="top"/><geom geom="ball" sidesite="side"/><site site="s"/>',
    '<site site="top"/><geom geom="ball" sidesite="core"/><site site="s"/>',
    '<site site="top"/><geom geom="rod"/><site site="s"/>',
    '<site site="top"/><geom geom="rod" sidesite="side"/><site site="s"/>',
    '<site site="top"/><geom geom="rod" sidesite="core"/><site site="s"/>',
    f'{ENDS}<pulley divisor="2"/><site site="s"/><geom geom="rod"/><site site="far"/>',
    f'<pulley divisor="4"/>{ENDS}<site site="far"/>',
]


@pytest.mark.parametrize("path", PATHS)
def test_path(path):
    assert_agrees(
        model(
            f'<spatial name="t">{path}</spatial><fixed name="f">{FIXED}</fixed>',
            actuators='<motor tendon="t" gear="2"/><motor tendon="f" armature=".1"/>',
        )
    )


def test_classes():
    defaults = (
        '<tendon stiffness="4" springlength="3" user="1"/>'
        '<default class="a"><tendon width=".1"/></default>'
    )
    assert_agrees(
        model(f'<spatial>{ENDS}</spatial><fixed class="a">{FIXED}</fixed>', defaults=defaults)
    )


def test_tendons_that_wait_for_their_pose_are_measured_in_qpos_spring():
    compiled = assert_agrees(model(f"<fixed>{FIXED}</fixed>"))
    np.testing.assert_allclose(compiled.fields["tendon_length0"], 2 * np.deg2rad(10))
    np.testing.assert_allclose(compiled.fields["tendon_lengthspring"], 2 * np.deg2rad(30))


REFUSED = [
    ("<spatial/>", "empty"),
    ('<spatial><site site="top"/></spatial>', "two objects"),
    ('<spatial><geom geom="ball"/><site site="s"/></spatial>', "between two sites"),
    (
        '<spatial><site site="top"/><geom geom="ball"/><geom geom="rod"/><site site="s"/>'
        "</spatial>",
        "between",
    ),
    (
        '<spatial><site site="top"/><geom geom="box"/><site site="s"/></spatial>',
        "sphere or a cylinder",
    ),
    (
        '<spatial><site site="top"/><geom geom="bal"/><site site="s"/></spatial>',
        "did you mean 'ball'",
    ),
    (
        '<spatial><site site="top"/><geom geom="ball" sidesite="x"/><site site="s"/></spatial>',
        "sidesite",
    ),
    ('<spatial><site site="top"/><site site="top"/></spatial>', "repeats"),
    (f'<spatial>{ENDS}<pulley divisor="2"/></spatial>', "end with a pulley"),
    (f'<spatial>{ENDS}<pulley divisor="0"/>{ENDS}</spatial>', "positive"),
    (
        f'<spatial>{ENDS}<pulley divisor="2"/><pulley divisor="2"/>{ENDS}</spatial>',
        "another pulley",
    ),
    (f'<spatial>{ENDS}<pulley divisor="2"/><site site="far"/></spatial>', "two sites"),
    ('<fixed><joint joint="turn" coef="1"/></fixed>', "hinge or a slide"),
    ('<fixed><joint joint="j" coef="1"/><joint joint="j" coef="1"/></fixed>', "already"),
    (f'<spatial springlength="2 1">{ENDS}</spatial>', "springlength"),
    (f'<spatial limited="true">{ENDS}</spatial>', "range"),
    (f'<spatial actuatorfrcrange="1 2">{ENDS}</spatial>', "contain 0"),
    (f'<spatial armature="-1">{ENDS}</spatial>', "armature"),
    (f'<spatial armature="1">{PATHS[0]}</spatial>', "armature"),
    (f'<spatial springyield="-1">{ENDS}</spatial>', "springyield"),
    (f'<spatial width="0">{ENDS}</spatial>', "width"),
    (f'<fixed name="a">{FIXED}</fixed><fixed name="a">{FIXED}</fixed>', "exists already"),
]


@pytest.mark.parametrize(("tendons", "word"), REFUSED)
def test_refused(tendons, word):
    assert_refused(model(tendons), word)


def test_an_actuator_cannot_give_inertia_to_a_tendon_that_wraps():
    tendon = f'<spatial name="t">{PATHS[0]}</spatial>'
    assert_refused(
        model(tendon, actuators='<motor tendon="t" armature="1"/>'), "<motor>", "armature"
    )


def test_wrapping_at_random_places_is_mujocos():
    """Around a sphere and a cylinder, freely, past a side site, and from within."""
    rng = np.random.default_rng(0)
    spatial = '<spatial><site site="a"/><geom geom="{}" {}/><site site="b"/></spatial>'
    cases = [(geom, side) for geom in ("ball", "rod") for side in ("", 'sidesite="side"')]
    m = mujoco.MjModel.from_xml_string(f"""
        <mujoco>
          <worldbody>
            <geom name="ball" size="1"/>
            <geom name="rod" type="cylinder" size="1 1"/>
            <body mocap="true"><site name="a"/></body>
            <body mocap="true"><site name="b"/></body>
            <body mocap="true"><site name="side"/></body>
          </worldbody>
          <tendon>{"".join(spatial.format(*case) for case in cases)}</tendon>
        </mujoco>""")
    d = mujoco.MjData(m)
    kinds = [WrapType.SPHERE if geom == "ball" else WrapType.CYLINDER for geom, _ in cases]
    wrapped = 0
    for trial in range(1000):
        points = rng.normal(size=(3, 3)) * [[2.0], [2.0], [0.4 if trial % 2 else 2.0]]
        d.mocap_pos[:] = points
        mujoco.mj_fwdPosition(m, d)
        for tendon, (kind, (_, side)) in enumerate(zip(kinds, cases, strict=True)):
            arc = wrap(kind, 1.0, points[:2], points[2] if side else None)
            legs = points[:2] if arc is None else [points[0], arc.enter, arc.leave, points[1]]
            straight = sum(
                np.linalg.norm(b - a) for a, b in zip(legs[::2], legs[1::2], strict=True)
            )
            length = straight + (0.0 if arc is None else arc.length)
            assert length == pytest.approx(d.ten_length[tendon], rel=1e-9)
            wrapped += arc is not None
    assert wrapped > 800
