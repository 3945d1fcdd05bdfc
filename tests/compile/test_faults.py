"""Models that MuJoCo rejects are rejected, with the location, the value and a remedy."""

import pytest
from compile.oracle import refusal

from jaxsim.compile import compile_string
from jaxsim.errors import ModelError

BALL = '<geom size=".1"/>'

FAULTS = {
    # masses
    "<body><joint/></body>": "it moves, but has mass 0",
    '<body><inertial pos="0 0 0" mass="0" diaginertia="1 1 1"/><joint/></body>': (
        "all must be positive"
    ),
    '<body><inertial pos="0 0 0" mass="1"/><joint/></body>': "add geoms or <inertial>",
    '<body><inertial pos="0 0 0" mass="1" diaginertia="1 1 3"/></body>': "balanceinertia='true'",
    '<body><inertial pos="0 0 0" mass="1" fullinertia="1 1 1 0 0 2"/></body>': "positive definite",
    '<body><inertial pos="0 0 0" mass="1" fullinertia="1 1 1 0 0 0" diaginertia="1 1 1"/></body>': (
        "both diaginertia and fullinertia"
    ),
    '<body><geom size=".1" mass="-1"/></body>': "must not be negative",
    '<body><geom size=".1" density="-1"/><geom size=".1"/></body>': "must not be negative",
    f"<body><joint/><body>{BALL}<joint/></body></body>": "it moves, but has mass 0",
    # joints
    f"<body>{BALL}<freejoint/><joint/></body>": "7 dofs, more than 6",
    f"<body><body>{BALL}<freejoint/></body></body>": "children of the world only",
    f'<body>{BALL}<joint type="ball"/><joint/></body>': "a rotation after a ball joint",
    f'<body>{BALL}<joint axis="0 0 0"/></body>': "axis has no direction",
    f'<body>{BALL}<joint axis="1e-11 0 0"/></body>': "axis has no direction",
    f'<body>{BALL}<joint limited="true"/></body>': "must rise, because limited is on",
    f'<body>{BALL}<joint limited="true" range="1 0"/></body>': "range='1 0' must rise",
    f'<body>{BALL}<joint actuatorfrclimited="true"/></body>': "must rise",
    f'<body>{BALL}<joint type="ball" range="-1 2"/></body>': "must begin with 0, got '-1 2'",
    f'<body>{BALL}<joint springdamper="0.1 -0.2"/></body>': "two positive numbers",
    f'<body>{BALL}<joint springyield="-1"/></body>': "springyield='-1' must not be negative",
    f'<body>{BALL}<joint type="free" springyield="1"/></body>': "a free joint has no springyield",
    # bodies
    f'<body mocap="true">{BALL}<joint/></body>': "a mocap body must be a child of the world",
    f'<body><body mocap="true">{BALL}</body></body>': "a mocap body must be a child of the world",
    f'<body name="a">{BALL}</body><body name="a"/>': "a body named 'a' exists already",
    '<body name="world"/>': "a body named 'world' exists already",
    # geoms and sites
    "<geom/>": "size needs the radius",
    '<geom type="capsule" size="1"/>': "the radius and half the length",
    '<geom type="box" size="1 1"/>': "half the three sides",
    '<geom size="-1"/>': "got '-1'",
    '<site size="0"/>': "size needs the radius",
    '<geom type="plane" size="0 0 0"/>': "third size of a plane",
    f'<body><joint/>{BALL}<geom type="plane" size="0 0 1"/></body>': "a plane cannot move",
    '<geom size="1" condim="2"/>': "condim=2 is none of 1, 3, 4, 6",
    '<geom type="capsule" size=".1" fromto="0 0 0 0 0 0"/>': "points of fromto coincide",
    '<geom type="sphere" size=".1" fromto="0 0 0 0 0 1"/>': "fromto is for capsules",
    '<geom type="capsule" size=".1" fromto="0 0 0 0 0 1" pos="1 0 0"/>': "both pos and fromto",
    '<geom size="1" material="x"/>': "material='x' names no material",
    # orientations
    '<geom size="1" quat="0 0 0 0"/>': "quat must not be zero",
    '<geom size="1" axisangle="0 0 0 1"/>': "the axis of axisangle has no direction",
    '<geom size="1" zaxis="0 0 0"/>': "zaxis has no direction",
    '<geom size="1" xyaxes="0 0 0 1 0 0"/>': "x axis of xyaxes has no direction",
    '<geom size="1" xyaxes="1 0 0 2 0 0"/>': "normal to the x axis has no direction",
    # cameras and lights
    '<camera target="x" mode="targetbody"/>': "target='x' names no body",
    '<camera fovy="200"/>': "fovy='200' must be below 180",
    '<camera focal="1 1"/>': "focal needs sensorsize",
    '<light dir="0 0 0"/>': "dir has no direction",
    # classes
    '<geom size="1" class="x"/>': "class='x'",
    '<body childclass="x"/>': "childclass='x'",
}


@pytest.mark.parametrize("part", FAULTS)
def test_refused_by_both(part):
    text = f"<mujoco>\n<worldbody>\n{part}\n</worldbody>\n</mujoco>"
    assert refusal(text) is not None
    with pytest.raises(ModelError) as error:
        compile_string(text)
    message = str(error.value)
    assert FAULTS[part] in message
    assert message.startswith("<string>:3: <")


COMPILER_FAULTS = {
    '<compiler coordinate="global"/>': "coordinate='global'",
    '<option><flag ipc="enable"/></option>': "needs <option integrator='discrete'/>",
}


@pytest.mark.parametrize("section", COMPILER_FAULTS)
def test_settings_refused_by_both(section):
    text = f'<mujoco>{section}<worldbody><geom size="1" euler="1 2 3"/></worldbody></mujoco>'
    assert refusal(text) is not None
    with pytest.raises(ModelError, match=COMPILER_FAULTS[section]):
        compile_string(text)


def test_a_range_needs_a_flag_without_autolimits():
    text = f"""
        <mujoco>
          <compiler autolimits="false"/>
          <worldbody><body>{BALL}<joint range="-1 1"/></body></worldbody>
        </mujoco>"""
    assert refusal(text) is not None
    with pytest.raises(ModelError, match="it has range but not limited, and autolimits is off"):
        compile_string(text)


def test_all_faults_of_a_pass_are_reported_at_once():
    text = f"""
        <mujoco>
          <worldbody>
            <body>{BALL}<joint name="a" axis="0 0 0"/><joint name="b" limited="true"/></body>
          </worldbody>
        </mujoco>"""
    with pytest.raises(ModelError) as error:
        compile_string(text)
    assert [p.message.split(":")[0] for p in error.value.problems] == [
        "<joint name='a'>",
        "<joint name='b'>",
    ]


def test_the_nearest_name_is_proposed():
    text = '<mujoco><worldbody><body name="torso"/><camera target="torsoo"/></worldbody></mujoco>'
    with pytest.raises(ModelError, match="did you mean 'torso'"):
        compile_string(text)


CLASS_FAULTS = {
    '<default><default class="a"/><default class="a"/></default>': "class 'a' is declared already",
    '<default><default class="a"/></default><default><default class="a"/></default>': "already",
}


@pytest.mark.parametrize("section", CLASS_FAULTS)
def test_classes_refused_by_both(section):
    text = f"<mujoco>{section}</mujoco>"
    assert refusal(text) is not None
    with pytest.raises(ModelError, match=CLASS_FAULTS[section]):
        compile_string(text)
