"""The editable model: effective values, the order of elements, and effects of edits."""

import mujoco
import numpy as np
import pytest
from compile.oracle import assert_agrees

from jaxsim.compile import compile_spec
from jaxsim.mjcf import read_string
from jaxsim.spec import Spec

ARM = """
    <mujoco model="arm">
      <option timestep="0.01"/>
      <default>
        <joint damping="1"/>
        <geom size=".1 .2 .3" friction="1 2 3"/>
        <default class="soft">
          <joint stiffness="5"/>
          <default class="softer"><joint damping=".1"/></default>
        </default>
      </default>
      <worldbody>
        <body name="upper" childclass="soft">
          <joint name="shoulder"/>
          <geom name="bone" friction=".5"/>
          <frame name="f" childclass="softer" pos="0 0 1">
            <body name="lower">
              <joint name="elbow"/>
              <joint name="twist" class="main" axis="1 0 0"/>
              <geom/>
            </body>
            <site name="mark"/>
          </frame>
        </body>
        <geom name="floor" type="plane" size="1 1 1"/>
      </worldbody>
      <option gravity="0 0 -5"/>
      <actuator><motor name="m" joint="elbow"/></actuator>
      <sensor><jointpos joint="elbow"/></sensor>
    </mujoco>"""


@pytest.fixture
def arm() -> Spec:
    return Spec.from_element(read_string(ARM))


def test_value_in_effect(arm):
    joints = {name: arm.find("joint", name) for name in ("shoulder", "elbow", "twist")}
    effective = {n: (j.get("damping")[0], j.get("stiffness")[0]) for n, j in joints.items()}
    assert effective == {"shoulder": (1.0, 5.0), "elbow": (0.1, 5.0), "twist": (1.0, 0.0)}
    assert joints["elbow"].own("damping") is None
    assert joints["elbow"].is_set("damping")
    assert not joints["elbow"].is_set("armature")
    assert joints["elbow"].get("armature") == 0.0
    assert joints["elbow"].get("springdamper").tolist() == [0, 0]


def test_a_short_array_replaces_the_first_numbers(arm):
    assert arm.find("geom", "bone").get("friction").tolist() == [0.5, 2, 3]
    assert arm.find("geom", "bone").get("size").tolist() == [0.1, 0.2, 0.3]


def test_bodies_are_seen_through_frames(arm):
    assert [b.name for b in arm.bodies] == ["world", "upper", "lower"]
    world, upper, lower = arm.bodies
    assert [g.name for g in world.geoms] == ["floor"]
    assert [s.name for s in upper.sites] == ["mark"]
    assert [j.name for j in lower.joints] == ["elbow", "twist"]
    assert [f.name for f in lower.element.frames()] == ["f"]
    assert lower.parent is upper


def test_repeated_sections_are_merged(arm):
    assert arm.setting("option", "timestep") == 0.01
    assert arm.setting("option", "gravity").tolist() == [0, 0, -5]
    assert arm.setting("option", "impratio") == 1.0
    assert arm.modelname == "arm"


@pytest.mark.parametrize(
    "defaults",
    [
        '<default><default class="a"><geom margin=".1"/></default></default>'
        '<default><geom friction=".5"/></default>',
        '<default><default class="a"><geom margin=".1"/></default><geom friction=".5"/></default>',
        '<default><geom margin=".1"/></default><default><default class="a"/></default>'
        '<default><geom friction=".5"/></default>',
    ],
)
def test_a_class_inherits_from_what_stands_before_it(defaults):
    assert_agrees(
        f"<mujoco>{defaults}<worldbody>"
        '<geom class="a" size=".1"/><geom size=".1"/></worldbody></mujoco>'
    )


def test_edits_show_at_once(arm):
    geom = arm.find("body", "lower").add("geom", name="tip", type="box", pos=[0, 0, 1])
    geom.set("size", ".5")
    assert geom.get("size").tolist() == [0.5, 0.2, 0.3]
    assert [g.name for g in arm.bodies[2].geoms] == [None, "tip"]
    arm.find("joint", "twist").remove()
    assert [j.name for j in arm.bodies[2].joints] == ["elbow"]


def test_renaming_reaches_all_references(arm):
    arm.rename("joint", "elbow", "knee")
    assert arm.section("actuator")[0].get("joint") == "knee"
    assert arm.section("sensor")[0].get("joint") == "knee"
    assert arm.find("joint", "elbow") is None


def test_what_does_not_fit_is_refused(arm):
    body = arm.find("body", "lower")
    with pytest.raises(ValueError, match="<body name='lower'> cannot hold <motor>"):
        body.add("motor")
    with pytest.raises(ValueError, match="<geom name='bone'> has no attribute 'mas'"):
        arm.find("geom", "bone").set("mas", 1)
    with pytest.raises(ValueError, match="<geom name='bone'>: friction"):
        arm.find("geom", "bone").set("friction", "much")


def test_an_edited_model_compiles_to_what_mujoco_makes_of_its_text(arm):
    arm.find("body", "lower").add("geom", type="sphere", size=0.3, pos=[0, 0, 1])
    arm.root.add("worldbody").add("site", name="extra")
    ours, theirs = compile_spec(arm), mujoco.MjModel.from_xml_string(arm.to_xml())
    for field in ("body_mass", "geom_size", "site_pos", "dof_damping"):
        np.testing.assert_allclose(ours.fields[field], getattr(theirs, field))


def test_compiling_does_not_change_the_spec():
    text = """
        <mujoco>
          <worldbody><replicate count="2"><site name="s"/></replicate></worldbody>
        </mujoco>"""
    spec = Spec.from_element(read_string(text))
    before = spec.to_xml()
    assert compile_spec(spec).names["site"] == ("s0", "s1")
    assert spec.to_xml() == before


def test_a_copy_is_independent(arm):
    other = arm.copy()
    other.find("geom", "bone").set("size", 9.0)
    assert arm.find("geom", "bone").get("size")[0] == 0.1
