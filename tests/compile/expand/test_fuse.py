"""Static bodies are fused with their parents exactly where MuJoCo does it, and as it does."""

import numpy as np
import pytest
from compile.oracle import assert_agrees, assert_refused

from jaxsim.compile import compile_string

_MOVING = (
    '<body name="p" {parent}><joint name="j"/><geom name="g" size=".1"/><site name="sp"/>'
    '<body name="c" pos="1 2 3" euler="10 20 30" {child}>{inside}</body></body>'
)
_INSIDE = (
    '<geom name="h" type="box" size=".1 .2 .3" pos=".1 0 .2"/><site name="s" pos="0 0 1"/>'
    '<camera name="k" pos="1 0 0"/><light name="l" dir="1 0 -1"/>'
)


def _model(tree: str, *, compiler: str = "", option: str = "", rest: str = "") -> str:
    return (
        f'<mujoco><compiler fusestatic="true" {compiler}/><option {option}/>'
        f"<worldbody>{tree}</worldbody>{rest}</mujoco>"
    )


def _moving(parent: str = "", child: str = "", inside: str = _INSIDE) -> str:
    return _MOVING.format(parent=parent, child=child, inside=inside)


def test_order_of_what_moves():
    """Own geoms first, then those of fused bodies; bodies stay where they stand."""
    ours = assert_agrees(
        _model(
            """
    <geom name="w0" size="1"/>
    <body name="s0"><geom name="s0a" size=".1"/>
      <body name="m"><joint name="j"/><geom name="A" size=".1"/>
        <site name="sa"/><camera name="ca"/><light name="la"/>
        <body name="k0"><joint name="jk0"/><geom name="K0" size=".1"/></body>
        <body name="b" pos="1 0 0" euler="0 0 90">
          <geom name="B1" size=".1" pos="1 0 0"/><site name="sb"/><camera name="cb"/>
          <light name="lb"/>
          <body name="kb"><joint name="jkb"/><geom name="KB" size=".1"/></body>
          <geom name="B2" size=".1"/>
          <frame pos="0 0 2" euler="30 0 0">
            <geom name="B3" size=".1"/>
            <body name="kf"><joint name="jkf"/><geom name="KF" size=".1"/></body>
          </frame>
          <body name="bb" pos="0 1 0"><geom name="BB" size=".1"/>
            <body name="kbb"><joint name="jkbb"/><geom name="KBB" size=".1"/></body></body>
        </body>
        <geom name="C" size=".1"/>
        <body name="k1"><joint name="jk1"/><geom name="K1" size=".1"/></body>
        <frame name="f" pos="0 0 1">
          <body name="ff" zaxis="1 1 0"><geom name="FF" size=".1"/></body>
          <geom name="FG" size=".1"/>
        </frame>
        <site name="sc"/>
      </body>
      <geom name="w1" size="1"/>
    </body>
    <geom name="w2" size="1"/>"""
        )
    )
    assert ours.names["body"] == ("world", "m", "k0", "kb", "kf", "kbb", "k1")


_INERTIAL = '<inertial pos="1 0 0" mass="2" diaginertia="1 1.5 1.2"/>'
_BOX = '<geom size=".1 .2 .3" type="box"/>'
_INERTIAS = {
    "written in both": (_INERTIAL, _INERTIAL),
    "written in the parent": (_INERTIAL, _BOX),
    "written in the child": (_BOX, _INERTIAL),
    "inferred in both": (_BOX, _BOX),
    "nothing in the child": (_BOX, ""),
    "nothing in the child of a written one": (_INERTIAL, "<site/>"),
    "nothing in the parent": ("", _INERTIAL),
    "only geoms in the child": ("", _BOX),
    "zero in the child": (_BOX, '<inertial pos="1 0 0" mass="0"/>'),
    "zero in the child with geoms": (_BOX, f'<inertial pos="1 0 0" mass="0"/>{_BOX}'),
    "zero in the parent": ('<inertial pos="0 0 0" mass="0"/>', _BOX),
    "no moments in the child": (_BOX, '<inertial pos="1 0 0" mass="1"/>'),
    "no mass in the child": (_BOX, '<inertial pos="1 0 0" mass="0" diaginertia="1 1 1"/>'),
    "both written, with geoms": (_INERTIAL + _BOX, _INERTIAL + _BOX),
}


@pytest.mark.parametrize("compiler", ["", 'boundmass="100" boundinertia=".1"', 'settotalmass="5"'])
@pytest.mark.parametrize("case", _INERTIAS)
def test_inertias_are_added(case, compiler):
    parent, child = _INERTIAS[case]
    tree = (
        f'<body name="p"><freejoint/>{parent}'
        f'<body name="c" pos="0 1 0" euler="0 0 45">{child}</body></body>'
    )
    assert_agrees(_model(tree, compiler=compiler))


@pytest.mark.parametrize("rule", ["true", "false"])
@pytest.mark.parametrize("case", ["written in both", "both written, with geoms"])
def test_rules_of_inference(case, rule):
    parent, child = _INERTIAS[case]
    tree = f'<body name="p"><freejoint/>{parent}<body pos="0 1 0">{child}</body></body>'
    assert_agrees(_model(tree, compiler=f'inertiafromgeom="{rule}"'))


def test_geoms_outside_inertiagrouprange_add_no_mass():
    tree = _moving(inside='<geom size="1" group="3"/>')
    assert_agrees(_model(tree, compiler='inertiagrouprange="0 2"'))


def test_balanced_child():
    tree = _moving(inside='<inertial mass="1" pos="0 0 0" diaginertia="1 1 5"/>')
    assert_agrees(_model(tree, compiler='balanceinertia="true"'))


_KEPT_OR_FUSED = {
    "fuse": (_model(_moving(child='fuse="false"')), 3),
    "simple": (_model(_moving(child='simple="false" user="1 2"')), 2),
    "mocap": (_model('<body mocap="true"><geom size=".1"/></body>'), 2),
    "gravcomp": (_model(_moving(child='gravcomp="1"')), 3),
    "gravcomp, massless": (_model(_moving(child='gravcomp="1"', inside="<site/>")), 2),
    "gravcomp of both": (_model(_moving('gravcomp="1"', 'gravcomp="1"')), 2),
    "gravcomp in the world": (_model('<body gravcomp="1"><geom size="1"/></body>'), 1),
    "fluid": (_model(_moving(), option='density="1"'), 3),
    "viscous, massless": (_model(_moving(inside="<site/>"), option='viscosity="1"'), 2),
    "fluid, world": (_model("<body><geom size='1'/></body>", option='viscosity="1"'), 1),
    "wind": (_model(_moving(), option='wind="1 0 0"'), 2),
    "ellipsoid": (
        _model(
            _moving(inside='<geom size=".1" mass="0" fluidshape="ellipsoid"/>'),
            option='density="1"',
        ),
        3,
    ),
    "inferred always": (_model(_moving(), compiler='inertiafromgeom="true"'), 2),
    "inferred and bounded": (
        _model(_moving(), compiler='inertiafromgeom="true" boundmass="100"'),
        3,
    ),
    "inferred and bounded in the world": (
        _model("<body>" + _INSIDE + "</body>", compiler='inertiafromgeom="true" boundmass="100"'),
        1,
    ),
    "inferred and bounded, massless": (
        _model(
            _moving(inside='<geom size="1" mass="0"/>'),
            compiler='inertiafromgeom="true" boundinertia="1"',
        ),
        3,
    ),
    "inferred and bounded, nothing": (
        _model(_moving(inside="<site/>"), compiler='inertiafromgeom="true" boundinertia="1"'),
        2,
    ),
    "gravcomp through a massless body": (
        _model(_moving('gravcomp=".5"', "", '<site/><body gravcomp=".5"><geom size=".1"/></body>')),
        2,
    ),
    "gravcomp of a massless parent": (
        _model(_moving("", 'gravcomp=".5"', '<site/><body gravcomp=".5"><geom size=".1"/></body>')),
        3,
    ),
    "nested": (
        _model(
            _moving(inside=f'<body name="d">{_INSIDE}<body euler="0 90 0">{_BOX}</body></body>')
        ),
        2,
    ),
    "looked at": (_model(_moving() + '<camera mode="targetbody" target="c"/>'), 3),
    "lit": (_model(_moving() + '<light mode="targetbody" target="c"/>'), 3),
    "camera that tracks": (_model(_moving(inside='<camera mode="track"/>')), 2),
}


@pytest.mark.parametrize("case", _KEPT_OR_FUSED)
def test_what_is_kept(case):
    text, bodies = _KEPT_OR_FUSED[case]
    assert assert_agrees(text).fields["nbody"] == bodies


@pytest.mark.parametrize(
    ("rest", "bodies"),
    [
        ('<contact><exclude body1="c" body2="z"/></contact>', 4),
        ('<contact><pair geom1="h" geom2="gz"/></contact>', 3),
        ('<equality><weld body1="c"/></equality>', 4),
        ('<equality><connect body1="z" body2="c" anchor="0 0 0"/></equality>', 4),
        ('<equality><connect site1="s" site2="sz"/></equality>', 3),
        ('<sensor><force site="s"/></sensor>', 4),
        ('<sensor><torque site="s"/></sensor>', 4),
        ('<sensor><touch site="s"/><accelerometer site="s"/></sensor>', 3),
        ('<sensor><framepos objtype="body" objname="c"/></sensor>', 4),
        ('<sensor><framepos objtype="xbody" objname="c"/></sensor>', 4),
        (
            '<sensor><framepos objtype="site" objname="sz" reftype="body" refname="c"/></sensor>',
            4,
        ),
        ('<sensor><framepos objtype="camera" objname="k"/></sensor>', 3),
        ('<sensor><subtreecom body="c"/></sensor>', 4),
        ('<sensor><distance geom1="h" body2="z" cutoff="1"/></sensor>', 3),
        ('<sensor><contact subtree1="c"/></sensor>', 4),
        ('<actuator><adhesion body="c" ctrlrange="0 1"/></actuator>', 4),
        ('<actuator><motor site="s" refsite="sz"/></actuator>', 3),
        ('<custom><tuple name="t"><element objtype="body" objname="c"/></tuple></custom>', 4),
        ('<tendon><spatial><site site="s"/><site site="sz"/></spatial></tendon>', 3),
    ],
)
def test_references(rest, bodies):
    other = '<body name="z"><joint/><geom name="gz" size=".1"/><site name="sz"/></body>'
    assert assert_agrees(_model(other + _moving(), rest=rest)).fields["nbody"] == bodies


def test_classes_stay_with_their_elements():
    classes = '<default class="q"><geom size=".5"/></default><default class="r"/>'
    inside = '<geom/><frame childclass="q"><body><geom name="i"/></body></frame>'
    for child in ("", 'childclass="q"'):
        tree = (
            '<body childclass="r"><joint/><geom size=".2"/><frame childclass="q">'
            f"<body {child}>{inside}</body></frame></body>"
        )
        assert_agrees(_model(tree, rest=f"<default>{classes}</default>"))


def test_angles_of_an_attached_model_stay_its_own():
    text = _model(
        '<body><joint/><geom size=".1"/><attach model="m" prefix="a_"/></body>',
        rest='<asset><model name="m" file="m.xml"/></asset>',
    )
    part = (
        '<mujoco><compiler angle="radian"/><worldbody><body name="b" euler="1 0 0">'
        '<geom size=".1 .2 .3" type="box" euler="0 1 0"/></body></worldbody></mujoco>'
    )
    assets = {"m.xml": part.encode()}
    ours = compile_string(text, assets)
    assert ours.fields["nbody"] == 2
    half = np.array([np.cos(0.5), np.sin(0.5), 0, 0])
    turn = np.array([np.cos(0.5), 0, np.sin(0.5), 0])
    w = half[0] * turn[0], half[1] * turn[0], half[0] * turn[2], half[1] * turn[2]
    assert np.allclose(ours.fields["geom_quat"][1], w)


def test_a_static_body_that_is_no_real_body_is_refused():
    tree = _moving(inside='<inertial mass="1" pos="0 0 0" diaginertia="1 1 5"/>')
    assert_refused(_model(tree), "physically impossible")
